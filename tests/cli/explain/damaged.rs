//! Damaged records and locks, and missing rights.

use serde_json::json;

use super::{Stage, explain, is};
use crate::{
    doctor::findings,
    support::{Peer, wait_until},
};

#[test]
fn unreadable_record_on_an_embedded_board_is_explained() {
    need!(stage = Stage::embedded());
    stage.env.post("resize");
    let ruin = "PRAGMA ignore_check_constraints = on;
                UPDATE job SET details = 'nonsense'";
    stage.env.database().execute_batch(ruin).unwrap();
    let explanation = is(&stage, "@1", "unreadable-record", 4);
    assert_eq!(explanation.codes().len(), 1, "{}", explanation.run);
    repair(&stage, &explanation.remedy());
}

fn repair(stage: &Stage, remedy: &[&str]) {
    let repair = stage.env.jobboard(&[remedy, &["--yes"]].concat());
    repair.run().succeeded();
}

fn broken_lock_is_repaired(stage: &Stage, job: &str) {
    let explanation = is(stage, job, "broken-lock", 4);
    repair(stage, &explanation.remedy());
    is(stage, job, "no-conductor", 4);
}

#[test]
fn record_that_peers_delete_is_explained_on_redis() {
    need!(stage = Stage::redis());
    let server = stage.redis_server().unwrap();
    server.run_with(&["HSET", "taskflow:listings", "bad"], b"\xc1");
    let explanation = is(&stage, "key:bad", "unreadable-record", 4);
    let peers = &explanation.value["findings"][0]["evidence"][1];
    assert_eq!(peers["what"], "peers", "{}", explanation.run);
    let key = "deadbeef-0000-4000-8000-000000000000";
    server.run_with(&["HSET", "taskflow:listings", key], b"\xc1");
    is(&stage, "deadbeef", "unreadable-record", 4);
    let text = stage.env.run("explain deadbeef").stdout;
    assert!(
        text.starts_with(&format!("key:{key}  unreadable-record\n")),
        "{text}"
    );
    stage.env.run("show deadbeef").prints(key);
    let job = stage.env.post("resize");
    let explanation = explain(&stage, &job);
    assert!(
        !explanation.codes().contains("breaks-peers"),
        "{}",
        explanation.run
    );
    // A foreign value replaces the owner.
    server.run(&["LPUSH", &format!("taskflow:{job}.owned"), "x"]);
    broken_lock_is_repaired(&stage, &job);
    // Under this key there is a readable job with another uuid.
    let copy = "redis.call('HSET', KEYS[1], ARGV[2], redis.call('HGET', KEYS[1], ARGV[1]))";
    let key = "cafecafe-0000-4000-8000-000000000000";
    server.run(&["EVAL", copy, "1", "taskflow:listings", &job, key]);
    for start in [key, "cafecafe"] {
        let explanation = is(&stage, start, "unknown-job", 3);
        assert_eq!(explanation.remedy(), ["explain", &format!("key:{key}")]);
    }
}

#[test]
fn blocking_node_and_unreadable_lock_are_explained_on_zookeeper() {
    need!(mut stage = Stage::zookeeper());
    let job = stage.env.post("resize");
    let server = stage.zookeeper_server().unwrap();
    need!(mut peer = Peer::on(&*server));
    server.create(&mut peer, "jobx", "{}");
    server.create(&mut peer, "job0000000000.lock", "nonsense");
    let explanation = is(&stage, "key:jobx", "unreadable-record", 4);
    assert!(explanation.text().contains("Python"), "{}", explanation.run);
    broken_lock_is_repaired(&stage, &job);
}

#[test]
fn unrenewed_claim_is_explained_and_reported_and_a_single_delay_is_not() {
    need!(stage = Stage::redis());
    let server = stage.redis_server().unwrap();
    let job = stage.post("long", "touch log; sleep 600");
    let conductor = stage.start(&["--name", "night"]);
    wait_until("it is claimed", || stage.env.state(&job) == "CLAIMED");
    let short = || server.run(&["PEXPIRE", &format!("taskflow:{job}.owned"), "9000"]);
    conductor.signal(rustix::process::Signal::STOP);
    short();
    let explanation = is(&stage, &job, "claim-not-renewed", 4);
    assert_eq!(explanation.value["will_run"], false);
    short();
    assert_eq!(findings(&stage.env, "claim-not-renewed").len(), 1);
    conductor.signal(rustix::process::Signal::CONT);
    wait_until("it is renewed", || {
        explain(&stage, &job).verdict() == "running"
    });
}

#[test]
fn unrenewed_claim_is_explained_on_an_embedded_board() {
    need!(stage = Stage::embedded());
    let job = stage.post("long", "touch log; sleep 600");
    let conductor = stage.start(&["--name", "night"]);
    wait_until("it is claimed", || stage.env.state(&job) == "CLAIMED");
    conductor.signal(rustix::process::Signal::STOP);
    let sooner = "UPDATE job SET expires_boot = expires_boot - 21000";
    stage.env.database().execute_batch(sooner).unwrap();
    is(&stage, &job, "claim-not-renewed", 4);
    assert_eq!(findings(&stage.env, "claim-not-renewed").len(), 1);
    conductor.signal(rustix::process::Signal::CONT);
    wait_until("it is renewed", || {
        explain(&stage, &job).verdict() == "running"
    });
    assert_eq!(findings(&stage.env, "claim-not-renewed").len(), 0);
}

#[test]
fn clock_skew_is_explained() {
    need!(stage = Stage::embedded());
    let job = stage.env.post("resize");
    assert!(!explain(&stage, &job).codes().contains("clock-skew"));
    let ahead = "UPDATE job SET created_on = created_on + 60000000";
    stage.env.database().execute_batch(ahead).unwrap();
    let explanation = is(&stage, &job, "no-conductor", 4);
    assert!(
        explanation.codes().contains("clock-skew"),
        "{}",
        explanation.run
    );
}

#[test]
fn denied_facts_are_named_and_visible_ones_explained() {
    need!(stage = Stage::redis());
    let server = stage.redis_server().unwrap();
    let job = stage.env.post("resize");
    let claimed = stage.env.post("claimed");
    stage.env.claim(&claimed, "ada");
    let allowed = "on nopass ~* &* +@all -scan -xrevrange -xrange -info";
    let user = [
        &["ACL", "SETUSER", "eve"],
        &allowed.split(' ').collect::<Vec<_>>()[..],
    ]
    .concat();
    server.run(&user);
    let board = format!("redis://eve@{}", server.host());
    let explanation = |job: &str| {
        let words = format!("explain {job} --json --board {board}");
        let run = stage.env.run(words);
        let explanation = run.value();
        assert!(
            explanation["unseen"].to_string().contains("the conductors"),
            "{run}"
        );
        explanation["verdict"].clone()
    };
    assert_eq!(explanation(&job), json!("unavailable"));
    assert_eq!(explanation(&claimed), json!("claim-never-expires"));
}

#[test]
fn flows_may_have_unregistered_conductors() {
    for stage in [Stage::redis(), Stage::embedded(), Stage::zookeeper()] {
        let Some(stage) = stage else { continue };
        let line = json!({"name": "flow", "book": {"name": "b", "uuid": "1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b"}, "details": {}});
        let post = stage.env.jobboard(&["post", "--from", "-"]);
        let job = post.stdin(format!("{line}\n")).run().posted();
        // Only where conductors may be unregistered does this finding appear.
        let expected = match stage.redis_server() {
            Some(_) => "unavailable",
            None => "no-conductor",
        };
        is(&stage, &job, expected, 4);
    }
}

#[test]
fn explain_changes_nothing() {
    need!(stage = Stage::redis());
    let server = stage.redis_server().unwrap();
    let job = stage.env.post("resize");
    stage.env.claim(&stage.env.post("claimed"), "ada");
    let writes = || server.run(&["INFO", "persistence"]);
    let writes = || {
        let info = writes();
        let line = info
            .lines()
            .find(|it| it.starts_with("rdb_changes_since_last_save"));
        line.unwrap().to_owned()
    };
    let before = (writes(), server.everything());
    explain(&stage, &job);
    assert_eq!(stage.env.run("explain").code, 0);
    assert_eq!((writes(), server.everything()), before);
}
