//! Problems of boards on servers.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Stage, command, diagnosed, doctor, findings, finds, is_sound};
use crate::support::{Authority, Env, Host, Identity, Peer, Server, ZooKeeper, wait_until};

/// Requires that a diagnosis leaves all nodes unchanged.
pub(super) fn foreign_nodes_stay_unchanged(stage: &Stage) {
    need!(server = stage.zookeeper_board());
    need!(mut peer = Peer::on(server));
    server.create(&mut peer, "jobx", "{}");
    let before = server.everything(&mut peer);
    diagnosed(&stage.env, &[]);
    assert_eq!(server.everything(&mut peer), before);
}

/// Requires that all views count a problem once, and returns it.
fn is_counted(env: &Env, code: &str) -> Value {
    let status = env.run("status");
    assert_eq!(status.stderr, "", "{status}");
    status.shows(format!("doctor --only {code}"));
    env.run("check").shows(format!("{code} 1"));
    let metrics = env.ok("metrics");
    let line = format!("code=\"{code}\"}} 1");
    assert!(metrics.lines().any(|it| it.ends_with(&line)), "{metrics}");
    finds(env, code)
}

#[test]
fn unsafe_redis_settings_are_reported() {
    need!((env, server) = Server::with_env(&[]));
    env.post("resize");
    finds(&env, "not-persistent");
    server.run(&["CONFIG", "SET", "save", "3600 1"]);
    assert_eq!(diagnosed(&env, &[])["sound"], json!(true));
    server.run(&["CONFIG", "SET", "maxmemory", "100mb"]);
    assert_eq!(findings(&env, "evicts-keys"), [json!(null); 0]);
    server.run(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    env.run("ping").warns("removes keys");
    is_counted(&env, "evicts-keys");
    server.run(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    assert_eq!(diagnosed(&env, &[])["sound"], json!(true));
    server.run(&["CONFIG", "SET", "maxmemory", "1"]);
    env.run("post grow").fails(1, "doctor` shows");
    env.run("ping").warns("rejects writes");
    let found = is_counted(&env, "memory-full");
    let words = command(&found);
    server.run(&words[words.len() - 4..]);
    env.post("grow");
    assert_eq!(diagnosed(&env, &[])["sound"], json!(true));
    server.run(&["CONFIG", "SET", "maxmemory", "0"]);
    // A directory in place of the file makes saving fail.
    let directory = server.run(&["CONFIG", "GET", "dir"]);
    fs::create_dir(format!("{}/dump.rdb", directory.lines().nth(1).unwrap())).unwrap();
    server.run(&["BGSAVE"]);
    wait_until("it is reported", || {
        findings(&env, "persistence-failing").len() == 1
    });
    need!(master = Server::start());
    let port = master.port().to_string();
    server.run(&["REPLICAOF", "127.0.0.1", &port]);
    assert_eq!(findings(&env, "writable-replica"), [json!(null); 0]);
    server.run(&["CONFIG", "SET", "replica-read-only", "no"]);
    finds(&env, "writable-replica");
}

#[test]
fn lagging_replica_is_reported() {
    let (Some(stage), Some(replica)) = (Stage::redis(), Server::start()) else {
        return;
    };
    let (env, server) = (&stage.env, stage.redis_server().unwrap());
    let port = server.port().to_string();
    replica.run(&["REPLICAOF", "127.0.0.1", &port]);
    wait_until("it has all", || {
        server
            .run(&["INFO", "replication"])
            .contains("state=online")
    });
    wait_until("it keeps up", || {
        findings(env, "replica-lagging").is_empty()
    });
    let mut asleep = replica.start_run(&["DEBUG", "SLEEP", "25"]);
    wait_until("it is reported", || {
        findings(env, "replica-lagging").len() == 1
    });
    asleep.kill().unwrap();
    asleep.wait().unwrap();
}

#[test]
fn expiring_certificate_is_reported() {
    need!(authority = Authority::new());
    for (days, count) in [(7, 1), (90, 0)] {
        let identity = authority.issue("IP:127.0.0.1", days);
        need!(server = Server::start_tls(&identity, &authority));
        let (env, ca) = (Env::new(), authority.ca());
        let host = server.host();
        let Identity { cert, key } = &identity;
        let [ca, cert, key] = [&ca, cert, key].map(|path| path.display().to_string());
        let url = format!("rediss://{host}?ca={ca}&cert={cert}&key={key}");
        let run = doctor(&env, &["--board", &url, "--only", "certificate-expires"]);
        let report = run.value();
        assert_eq!(
            report["problems"].as_array().unwrap().len(),
            count,
            "{report}"
        );
    }
}

#[test]
fn missing_redis_rights_are_reported_despite_each_other() {
    need!((env, server) = Server::with_env(&[]));
    env.post("resize");
    is_sound(&env);
    let denied = ["-hdel", "-config", "-publish", "-multi"];
    server.run(&[&["ACL", "SETUSER", "default"], &denied[..]].concat());
    let report = diagnosed(&env, &[]);
    assert_eq!(report["problems"][0]["code"], "missing-rights", "{report}");
    let evidence = report["problems"][0]["evidence"].to_string();
    for seen in [
        "HDEL: settling jobs",
        "PUBLISH: sending",
        "MULTI: receiving",
    ] {
        assert!(evidence.contains(seen), "{report}");
    }
    assert!(
        report["unseen"][0]["what"]
            .as_str()
            .unwrap()
            .contains("config|get"),
        "{report}"
    );
    for right in ["eval", "info", "scan", "hscan", "type", "hlen", "get"] {
        server.run(&["ACL", "SETUSER", "default", &format!("-{right}")]);
        let run = doctor(&env, &["--skip", "not-persistent"]);
        assert!(run.code == 7 && run.stderr.is_empty(), "{right}: {run}");
    }
}

#[test]
fn invalid_redis_keys_are_reported() {
    need!((env, server) = Server::with_env(&[]));
    let jobs = env.post_many(3);
    env.claim(&jobs[0], "ada");
    is_sound(&env);
    let side = format!("taskflow:{}.jobboard", jobs[0]);
    let kept = server.run(&["GET", &side]);
    assert_eq!(finds(&env, "claim-never-expires")["severity"], "note");
    for (years, code) in [("2001", "claim-never-expires"), ("2999", "clock-skew")] {
        let time = kept.split("\"claimed_on\":\"").nth(1).unwrap();
        let aged = kept.replace(&time[..4], years);
        server.run(&["SET", &side, aged.trim()]);
        finds(&env, code);
        server.run(&["SET", &side, kept.trim()]);
    }
    server.run(&["SET", &format!("taskflow:{}.jobboard", jobs[1]), "nonsense"]);
    finds(&env, "unreadable-sidecar");
    server.run(&["DEL", &format!("taskflow:{}.jobboard", jobs[1])]);
    server.run(&["HSET", "taskflow:listings", "bad", "nonsense"]);
    assert!(
        finds(&env, "unreadable-record")["summary"]
            .as_str()
            .unwrap()
            .contains("Python")
    );
    server.run(&["HDEL", "taskflow:listings", "bad"]);
    // Keys of a board whose namespace begins like ours, and of another program.
    let gone = "1f0c9a58-8f0e-5d0a-8a43-6b0c3f6d2e7b";
    for name in [
        format!("taskflow:b:{gone}.owned"),
        "taskflow:x.owned".to_owned(),
    ] {
        server.run(&["SET", &name, "ada"]);
    }
    is_sound(&env);
    for suffix in ["owned", "last_modified", "jobboard"] {
        let name = format!("taskflow:{gone}.{suffix}");
        server.run(&["SET", &name, "ada"]);
        assert_eq!(finds(&env, "stray-keys")["evidence"][0]["value"], name);
        server.run(&["PEXPIRE", &name, "600000"]);
        assert_eq!(findings(&env, "stray-keys"), [json!(null); 0]);
        server.run(&["DEL", &name]);
    }
    server.run(&["SET", "taskflow:sequence", "1"]);
    let found = finds(&env, "sequence-behind");
    assert!(
        command(&found).ends_with(&["INCRBY", "taskflow:sequence", "2"]),
        "{found}"
    );
    server.run(&["SET", "taskflow:sequence", "3"]);
    is_sound(&env);
}

#[test]
fn counter_of_an_empty_board_is_checked() {
    need!((env, server) = Server::with_env(&[]));
    for number in ["zzz", "9007199254740992"] {
        server.run(&["SET", "taskflow:sequence", number]);
        env.run("post resize").has_code(1);
        let found = finds(&env, "wrong-type");
        let look = ["GET", "taskflow:sequence"];
        assert!(command(&found).ends_with(&look), "{found}");
        server.run(&["DEL", "taskflow:sequence"]);
    }
    is_sound(&env);
}

#[test]
fn redis_keys_of_other_types_are_reported() {
    need!((env, server) = Server::with_env(&[]));
    env.post_many(3);
    is_sound(&env);
    for fence in ["zzz", "9007199254740992"] {
        server.run(&["SET", "taskflow:fence", fence]);
        let found = finds(&env, "wrong-type");
        let words = command(&found);
        let aside = ["RENAMENX", "taskflow:fence", "taskflow:fence.aside"];
        assert!(words.ends_with(&aside), "{found}");
    }
    server.run(&["DEL", "taskflow:fence"]);
    let sequence = "taskflow:sequence";
    server.run(&["SET", sequence, "9007199254740992"]);
    let found = finds(&env, "wrong-type");
    assert!(
        command(&found).ends_with(&["SET", sequence, "3"]),
        "{found}"
    );
    server.run(&["SET", sequence, "3"]);
    for (key, kind) in [
        ("trash", "hash"),
        ("past", "stream"),
        ("paused", "hash"),
        ("moves", "hash"),
        ("listings", "hash"),
    ] {
        let key = format!("taskflow:{key}");
        server.run(&["DEL", &key]);
        server.run(&["SET", &key, "x"]);
        let found = finds(&env, "wrong-type");
        assert!(
            found["summary"].as_str().unwrap().ends_with(kind),
            "{found}"
        );
        let report = diagnosed(&env, &["--skip", "not-persistent"]);
        assert_eq!(report["groups"].as_array().unwrap().len(), 6, "{report}");
        server.run(&["DEL", &key]);
    }
}

#[test]
fn commands_on_a_board_of_python_services_are_reported() {
    need!(stage = Stage::redis());
    let (env, server) = (&stage.env, stage.redis_server().unwrap());
    let job = env.post("flow");
    let owned = format!("taskflow:{job}.owned");
    server.run(&["SET", &owned, "octavia-7", "PX", "60000"]);
    assert_eq!(findings(env, "breaks-peers"), [json!(null); 0]);
    stage.post("command", "true");
    let found = finds(env, "breaks-peers");
    assert_eq!(found["evidence"][0]["value"], "octavia-7");
}

#[test]
fn invalid_zookeeper_nodes_are_reported() {
    need!(stage = Stage::zookeeper());
    let (env, server) = (&stage.env, stage.zookeeper_board().unwrap());
    need!(mut peer = Peer::on(server));
    let jobs = env.post_many(3);
    is_sound(env);
    server.create(&mut peer, "jobx", "{}");
    let found = finds(env, "unreadable-record");
    assert!(
        found["summary"]
            .as_str()
            .unwrap()
            .contains("Python services fail"),
        "{found}"
    );
    let delete = |peer: &mut Peer, name: &str| {
        let path = format!("{}/{name}", server.path());
        peer.request(&json!({"do": "delete", "path": path}));
    };
    delete(&mut peer, "jobx");
    is_sound(env);
    server.create(&mut peer, "job0000000001/child", "");
    let found = finds(env, "breaks-peers").to_string();
    assert!(found.contains("nodes below the job's node"), "{found}");
    delete(&mut peer, "job0000000001/child");
    is_sound(env);
    server.create(&mut peer, "job0000000001.lock", "nonsense");
    finds(env, "broken-lock");
    delete(&mut peer, "job0000000001.lock");
    server.create(&mut peer, "job0000000077.lock", "{}");
    let found = finds(env, "stray-keys");
    let words = command(&found);
    assert_eq!(words[..2], ["sh", "-c"], "{found}");
    let delete = format!("-server {} delete {}", words[3], words[4]);
    ZooKeeper::cli(&delete);
    is_sound(env);
    env.claim(&jobs[2], "ada");
    let side = format!("{}/.jobboard/jobs/jobs/job0000000002", server.top());
    peer.request(&json!({"do": "write", "path": side, "data": "nonsense"}));
    finds(env, "unreadable-sidecar");
    let beside = server.beside();
    let other = |words: &[&str]| env.run([words, &["--board", &beside]].concat());
    other(&["post", "theirs"]).succeeded();
    assert_eq!(findings(env, "shared-trash"), [json!(null); 0]);
    other(&["trash", "@0", "--force", "--yes"]).succeeded();
    finds(env, "shared-trash");
}

#[test]
fn conductors_with_the_same_name_are_reported() {
    need!(stage = Stage::zookeeper());
    let (env, server) = (&stage.env, stage.zookeeper_board().unwrap());
    need!(mut peer = Peer::on(server));
    peer.request(&json!({"do": "register", "name": "py", "host": "h1", "pid": 7}));
    env.post("flow");
    assert_eq!(diagnosed(env, &[])["problems"], json!([]));
    stage.post("command", "true");
    finds(env, "breaks-peers");
    assert_eq!(findings(env, "duplicate-name"), [json!(null); 0]);
    peer.request(&json!({"do": "register", "name": "py", "host": "h2", "pid": 7}));
    finds(env, "duplicate-name");
}

#[test]
fn unsettled_job_is_reported() {
    need!(stage = Stage::zookeeper());
    let (env, server) = (&stage.env, stage.zookeeper_board().unwrap());
    need!(mut peer = Peer::on(server));
    stage.post("stuck", "true");
    let below = format!("{}/job0000000000/a child", server.path());
    peer.request(&json!({"do": "create", "path": below}));
    let conductor = stage.start(&["--name", "night"]);
    stage.says(&conductor, "not_settled");
    wait_until("it is reported", || {
        findings(env, "unsettled-job").len() == 1
    });
}

#[test]
fn refused_login_is_no_missing_right() {
    need!((env, server) = Server::with_env(&[]));
    server.run(&[
        "ACL", "SETUSER", "jobs", "on", ">right", "~*", "&*", "+@all",
    ]);
    let logins = [
        ("jobs", Some("wrong")),
        ("nobody", Some("right")),
        ("jobs", None),
    ];
    for (user, password) in logins {
        let board = format!("redis://{user}@{}/0", server.host());
        let run = |command: &str| {
            let call = env.jobboard(&[command, "--board", &board]);
            let variable = password.map(|it| ("JOBBOARD_PASSWORD", it));
            variable
                .into_iter()
                .fold(call, |it, (name, value)| it.env(name, value))
                .run()
        };
        let (list, doctor) = (run("list"), run("doctor"));
        assert_eq!((list.code, doctor.code), (5, 5), "{doctor}");
        assert_eq!(doctor.stdout, "", "{doctor}");
    }
}

#[test]
fn missing_zookeeper_rights_are_reported() {
    need!(stage = Stage::zookeeper());
    let (env, server) = (&stage.env, stage.zookeeper_board().unwrap());
    env.post("resize");
    is_sound(env);
    let rights = "world:anyone:ra,digest:eve:GkRpAoVbHMFmBoOVwMa3nPxx6vE=:r";
    server.set_rights("", rights);
    let read_only = env.run("doctor --json --only missing-rights --read-only");
    let read_only = read_only.value();
    assert_eq!(read_only["problems"], json!([]), "{read_only}");
    let found = finds(env, "missing-rights");
    assert_eq!(found["evidence"].as_array().unwrap().len(), 2, "{found}");
    let words = command(&found);
    let acls = words.last().unwrap();
    assert!(
        acls.starts_with("world:anyone:cdrwa,digest:eve:") && acls.ends_with(":r"),
        "{acls}"
    );
    ZooKeeper::cli(&words[1..].join(" "));
    is_sound(env);
}

#[test]
fn missing_ensemble_member_is_reported() {
    need!(mut stage = Stage::ensemble());
    stage.env.post("resize");
    is_sound(&stage.env);
    stage.zookeeper_ensemble().unwrap().member(1).stop();
    // That member may have been the leader.
    wait_until("the others work", || stage.env.run("ping").code == 0);
    wait_until("it is reported", || {
        findings(&stage.env, "server-unreachable").len() == 1
    });
}

/// An unreadable board is not a sound one.
#[test]
fn jobs_that_may_not_be_read_are_an_error() {
    need!((env, server) = Server::with_env(&[]));
    env.post("resize");
    server.run(&["ACL", "SETUSER", "default", "-hscan", "-hgetall"]);
    for words in [&["doctor", "--only", "jobs"][..], &["explain"]] {
        let run = env.run(words);
        run.exits(5, "does not allow the user");
        run.shows("the jobs could not be read");
        assert_eq!(run.stdout.matches("not checked: jobs").count(), 1, "{run}");
    }
    let run = env.run("doctor --only jobs --json");
    let report = run.value();
    assert_eq!((&report["sound"], run.code), (&json!(false), 5), "{run}");
}

/// A part that the user may not read may hide a problem.
#[test]
fn headline_counts_parts_that_may_not_be_read() {
    need!((env, server) = Server::with_env(&[]));
    env.post("resize");
    server.run(&["SET", "taskflow:conductor.night", "nonsense"]);
    let keys = "listings trash sequence fence past moves *.owned *.last_modified *.jobboard";
    let keys: Vec<_> = keys
        .split(' ')
        .map(|it| format!("~taskflow:{it}"))
        .collect();
    let keys = keys.iter().map(String::as_str);
    let user = ["ACL", "SETUSER", "eve", "on", "nopass", "&*", "+@all"];
    server.run(&user.into_iter().chain(keys).collect::<Vec<_>>());
    let board = format!("redis://eve@{}", server.host());
    let run = |words: &[&str]| env.run([words, &["--board", &board]].concat());
    let doctor = run(&["doctor"]);
    assert_eq!(doctor.code, 7, "{doctor}");
    doctor.shows("missing-rights");
    for seen in ["listing conductors", "obeying pauses"] {
        let printed = run(&["doctor", "--json"]).stdout;
        assert!(printed.contains(seen), "{printed}");
    }
    let skip = "missing-rights,not-persistent";
    let doctor = run(&["doctor", "--skip", skip]);
    doctor.prints("no problems found, but 3 parts could not be checked");
    let report: Value = run(&["doctor", "--skip", skip, "--json"]).json();
    let conductors = json!({"group": "conductors", "state": "unknown"});
    let groups = report["groups"].as_array().unwrap();
    assert!(groups.contains(&conductors), "{report}");
    let status = run(&["status", "--json"]).json();
    assert_eq!(status["unseen"].as_array().unwrap().len(), 2, "{status}");
    let check = run(&["check"]);
    assert_eq!(check.code, 1, "{check}");
    check.shows("cannot read the pauses");
    run(&["dash", "--once"]).shows("unread: the pauses, the conductors");
    run(&["explain", "resize"]).shows("the pauses");
    let report = run(&["report", "--json"]).json();
    assert!(
        report["unseen"].to_string().contains("the pauses"),
        "{report}"
    );
}

#[test]
fn unreadable_registration_on_redis_is_reported() {
    need!((env, server) = Server::with_env(&[]));
    env.post("resize");
    for set in [
        &["SET", "taskflow:conductor.night", "nonsense"][..],
        &["LPUSH", "taskflow:conductor.night", "x"],
        &["SET", "taskflow:conductor-seen.night", "{}"],
    ] {
        is_sound(&env);
        server.run(set);
        let found = is_counted(&env, "unreadable-entry");
        env.run("dash --once --view problems")
            .shows("unreadable-entry");
        assert!(command(&found).ends_with(&["DEL", set[1]]), "{found}");
        server.run(&["DEL", set[1]]);
    }
    is_sound(&env);
}

#[test]
fn unreadable_registration_on_zookeeper_is_reported() {
    need!(stage = Stage::zookeeper());
    let (env, server) = (&stage.env, stage.zookeeper_board().unwrap());
    need!(mut peer = Peer::on(server));
    stage.post("resize", "true");
    let conductor = stage.start(&["--name", "night"]);
    wait_until("the job is done", || env.names().is_empty());
    let top = server.top();
    for path in [
        format!("{top}/.jobboard/jobs/conductors/ghost"),
        format!("{top}/.entities/conductor/ghost"),
    ] {
        is_sound(env);
        peer.request(&json!({"do": "create", "path": path, "data": "zzz"}));
        let found = is_counted(env, "unreadable-entry");
        let words = command(&found);
        assert_eq!(words[4..], [path], "{found}");
        ZooKeeper::cli(&format!("-server {} delete {}", words[3], words[4]));
    }
    is_sound(env);
    conductor.signal(Signal::TERM);
    conductor.ended().succeeded();
}

#[test]
fn unreadable_pause_is_reported_and_can_be_removed() {
    need!((env, server) = Server::with_env(&[]));
    env.post("resize");
    for names in ["backup-*", "[", &"a".repeat(2000)] {
        env.ok("pause good-*");
        server.run(&["HSET", "taskflow:paused", names, "nonsense"]);
        let found = finds(&env, "unreadable-entry");
        let words = command(&found);
        assert_eq!(words[words.len() - 2], "resume", "{found}");
        assert!(env.run("pause").succeeded().contains("unreadable"));
        env.ok(["resume", words[words.len() - 1]]);
        assert_eq!(server.run(&["HLEN", "taskflow:paused"]).trim(), "1");
        server.run(&["HSET", "taskflow:paused", names, "nonsense"]);
        env.ok("resume --yes");
        assert_eq!(server.run(&["HLEN", "taskflow:paused"]).trim(), "0");
    }
    is_sound(&env);
}

#[test]
fn excessive_delay_is_reported_and_ended_by_retry() {
    need!((env, server) = Server::with_env(&[]));
    let job = env.post("resize");
    env.fail(&job, "1d");
    is_sound(&env);
    let side = format!("taskflow:{job}.jobboard");
    let kept = server.run(&["GET", &side]);
    let time = kept.split("\"not_before\":\"").nth(1).unwrap();
    server.run(&["SET", &side, kept.replace(&time[..4], "9999").trim()]);
    let found = finds(&env, "excessive-delay");
    let words: Vec<_> = command(&found)[1..].to_vec();
    assert!(words.starts_with(&["retry"]), "{found}");
    env.ok([&words[..], &["--yes"]].concat());
    is_sound(&env);
    env.fails(2, "claim @1 --retry-max 366d -- true");
}
