//! `jobboard doctor --fix`: its repairs, its limits and its confirmation.

use serde_json::{Value, json};

use super::{Stage, dead, diagnosed, doctor, findings, finds, on_every_board, use_it};
use crate::support::{Env, Pane, Server};

on_every_board!(fix_repairs_what_is_safe_and_nothing_else);

fn fix_repairs_what_is_safe_and_nothing_else(stage: &Stage) {
    use_it(stage);
    let env = &stage.env;
    let (gone, dead) = (super::dead("night"), env.post("dead"));
    let kept = env.post("kept");
    env.claim(&dead, &gone);
    env.claim(&kept, "ada");
    let before = of(&dead, &env.everything());
    env.run("doctor --fix --dry-run").prints("abandon --force");
    assert_eq!(of(&dead, &env.everything()), before);
    assert_eq!(env.state(&dead), "CLAIMED");
    assert_eq!(doctor(env, &["--fix"]).code, 8);
    // Without an answer, the plan is the document.
    let refused = env.run("doctor --fix --json");
    assert_eq!(refused.code, 8, "{refused}");
    assert_eq!(
        refused.values()[0],
        env.json("doctor --fix --dry-run --json")
    );
    let fixed = env.run("doctor --fix --yes --skip server --json");
    assert_eq!(fixed.code, 0, "{fixed}");
    let step = &fixed.json()["fixed"][0];
    assert_eq!(
        (&step["code"], &step["message"]["done"]),
        (&json!("owner-dead"), &json!("abandoned")),
        "{fixed}"
    );
    assert_eq!(env.state(&dead), "UNCLAIMED");
    assert_eq!(env.state(&kept), "CLAIMED");
    assert_eq!(findings(env, "owner-dead"), [json!(null); 0]);
    // The other claims are unchanged.
    assert_eq!(of(&dead, &env.everything()), before);
    let nothing = env.run("doctor --fix --only owner-dead");
    nothing.warns("nothing to fix automatically");
    env.claim(&dead, &gone);
    env.run("doctor --fix --yes --read-only").has_code(8);
}

/// Returns the entries of one job, and the others.
fn of(job: &str, everything: &[Value; 2]) -> (Vec<Vec<Value>>, usize) {
    let keys = ["uuid", "state", "owner", "attempts", "not_before"];
    let jobs = everything[0].as_array().unwrap().iter();
    let others = jobs.filter(|other| other["uuid"] != job);
    let others = others.map(|other| keys.map(|key| other[key].clone()).to_vec());
    (others.collect(), everything[1].as_array().unwrap().len())
}

#[test]
fn unreadable_records_are_moved_to_the_trash() {
    let env = Env::new();
    env.post_many(4);
    let change = "PRAGMA ignore_check_constraints = on;
        UPDATE job SET details = 'nonsense' WHERE sequence = 1;
        UPDATE job SET failures = 'nonsense' WHERE sequence = 2";
    env.database().execute_batch(change).unwrap();
    let words = ["doctor", "--fix", "--yes", "--reason", "a bad night"];
    let decided = ["--only", "unreadable-record"];
    let left = env.run(words);
    left.warns("is destructive; to run it: `jobboard trash --force --problem unreadable-record");
    assert_eq!(env.ok("list --count"), "4\n");
    let fixed = env.run([&words[..], &decided].concat());
    assert_eq!(fixed.code, 0, "{fixed}");
    let fixed = doctor(&env, &[]);
    // A sidecar may be of a newer version: the job itself is sound.
    assert_eq!(fixed.code, 7, "{fixed}");
    assert_eq!(env.names(), ["job-1", "job-2", "job-3"]);
    finds(&env, "unreadable-sidecar");
    let refused = env.run("retry @2");
    refused.fails(4, "the job cannot be claimed: ");
    refused.warns("`jobboard help unreadable-sidecar`");
    let skipped = env.run("retry --problem unreadable-sidecar --yes");
    skipped.warns("skipped 1 of 1 job: impossible to claim\n");
    assert_eq!(env.json("list --trash --json").as_array().unwrap().len(), 1);
}

#[test]
fn unsupported_jobs_and_claimed_records_are_kept() {
    need!((env, server) = Server::with_env(&[]));
    let jobs = env.post_many(3);
    let later = r#"{"v":2,"attempts":1}"#;
    server.run(&["SET", &format!("taskflow:{}.jobboard", jobs[0]), later]);
    env.claim(&jobs[1], "ada");
    server.run(&["SET", &format!("taskflow:{}.jobboard", jobs[1]), later]);
    for record in ["bad", "worse"] {
        server.run(&["HSET", "taskflow:listings", record, "nonsense"]);
    }
    server.run(&["SET", "taskflow:worse.owned", "a python service"]);
    let before = env.everything();
    let fixed = env.run("doctor --fix --yes --only unreadable-record");
    assert_eq!(fixed.code, 7, "{fixed}");
    let records = server.run(&["HKEYS", "taskflow:listings"]);
    // A uuid may contain either number.
    let is_there = |record| records.lines().any(|it| it == record);
    assert!(is_there("worse") && !is_there("bad"), "{records}");
    let left: Vec<_> = jobs.iter().map(|job| env.state(job)).collect();
    assert_eq!(left, ["UNCLAIMED", "CLAIMED", "UNCLAIMED"], "{before:?}");
    assert_eq!(finds(&env, "unreadable-record")["fix"]["risk"], Value::Null);
}

#[test]
fn unreadable_registry_makes_no_owner_dead() {
    need!((env, server) = Server::with_env(&[]));
    let job = env.post("resize");
    env.claim(&job, &dead("ada"));
    assert_eq!(finds(&env, "owner-dead")["fix"]["risk"], "safe");
    server.run(&["ACL", "SETUSER", "default", "-scan"]);
    assert_eq!(finds(&env, "owner-dead")["fix"]["risk"], "decision");
    assert_eq!(findings(&env, "no-conductor"), [Value::Null; 0]);
}

#[test]
fn unreadable_lock_blames_no_owner() {
    need!(stage = Stage::zookeeper());
    let (env, server) = (&stage.env, stage.zookeeper_board().unwrap());
    let jobs = env.post_many(2);
    env.claim(&jobs[0], "ada");
    for node in ["/job0000000000.lock", "/job0000000001"] {
        server.set_rights(node, "world:anyone:cdwa");
    }
    let report = diagnosed(env, &["--only", "jobs"]);
    assert_eq!(report["problems"], json!([]), "{report}");
    let unseen = &report["unseen"][0]["what"];
    assert_eq!(*unseen, "records without read permission: 2", "{report}");
    let fixed = env.run("doctor --fix --yes");
    fixed.warns("nothing to fix automatically");
}

#[test]
fn protected_board_requires_its_name_once() {
    let env = Env::new();
    env.configure("default = \"b\"\n[board.b]\nurl = \"sqlite:b.db\"\nprotected = true\n");
    env.post("resize");
    env.claim("@1", &dead("ada"));
    let fix = |words: &[&str]| env.run([&["doctor", "--fix"], words].concat());
    assert_eq!(fix(&["--yes"]).code, 8);
    assert_eq!(env.state("@1"), "CLAIMED");
    assert_eq!(fix(&["--confirm", "b"]).code, 0);
    assert_eq!(env.state("@1"), "UNCLAIMED");
}

#[test]
fn fix_asks_on_a_terminal() {
    let env = Env::new();
    env.post("resize");
    env.claim("@1", &dead("ada"));
    need!(screen = Pane::open(&env, &[]));
    screen.line("jobboard doctor --fix");
    let question = r"(?s)1 of 1\. owner-dead: 1 job, .* \(the owner\s+is\s+gone;\s+release\s+the\s+claim\):\s+\[y\]es \[n\]o \[a\]ll safe \[s\]how \[q\]uit";
    screen.shows(question);
    screen.line("n");
    screen.shows("nothing was changed");
    screen.shows("1 problem");
    assert_eq!(env.state("@1"), "CLAIMED");
    screen.line("clear; jobboard doctor --fix");
    screen.shows(question);
    screen.line("s");
    screen.shows("CLAIMED");
    screen.line("y");
    screen.shows("abandoned ");
    screen.shows("no problems");
    assert_eq!(env.state("@1"), "UNCLAIMED");
}

#[test]
fn question_shows_the_whole_cause() {
    need!(stage = Stage::embedded());
    let cause = "cannot write the nightly dump of all databases to the backup volume: no space";
    let script = format!("echo {cause} >&2; exit 3");
    stage.post_with("dump", &script, &["max_attempts:=1"]);
    stage.conduct(&["--drain"]).run().failed(7);
    need!(screen = Pane::open(&stage.env, &[]));
    screen.resize(120, 30);
    screen.line("jobboard doctor --fix --only failed");
    let cause = cause.replace(" no space", r"\n    no space");
    screen.shows(&format!(
        r"^1 of 1\. failed: 1 job, exit 3: {cause} \(after fixing the cause\): \[y\]es .*\[q\]uit"
    ));
    screen.line("q");
}

#[test]
fn all_runs_only_safe_steps_without_a_question() {
    let env = Env::new();
    env.post_many(3);
    env.claim("@1", &dead("ada"));
    env.claim("@2", "elsewhere.:1:c0ffee01");
    let change = "PRAGMA ignore_check_constraints = on;
        UPDATE job SET details = 'nonsense' WHERE sequence = 3";
    env.database().execute_batch(change).unwrap();
    need!(screen = Pane::open(&env, &[]));
    screen.line("jobboard doctor --fix");
    screen.shows(r"(?s)1 of 3\. owner-dead: 1 job, .*\[q\]uit");
    screen.line("a");
    screen.shows(r"(?s)2 of 3\. owner-dead: 1 job, .*\[q\]uit");
    screen.line("n");
    screen.shows(r"(?s)3 of 3\. unreadable-[^(]*\(destructive; .*\[q\]uit");
    screen.line("q");
    screen.shows("2 problems");
    assert_eq!(env.state("@1"), "UNCLAIMED");
    assert_eq!(env.ok("list --trash --count"), "0\n");
}

#[test]
fn problems_found_after_the_confirmation_are_not_fixed() {
    need!((env, server) = Server::with_env(&[]));
    let put = |from, to| {
        for number in from..to {
            let record = format!("bad-{number}");
            server.run(&["HSET", "taskflow:listings", &record, "nonsense"]);
        }
    };
    put(0, 25);
    need!(screen = Pane::open(&env, &[]));
    screen.line("jobboard doctor --fix --skip server");
    screen.shows(r"(?s)unreadable-record: 25 [^(]*\(destructive; .*\[s\]how");
    put(25, 27);
    screen.line("y");
    screen.shows("27 jobs selected, but --max is 25; nothing changed");
    screen.shows(
        r"(?s)steps: 1 failed\nstep 1 failed \(unreadable-record: 25 jobs, .*\); to\s+continue:\n   jobboard trash --force",
    );
    assert_eq!(server.run(&["HLEN", "taskflow:listings"]).trim(), "27");
}

#[test]
fn fix_of_each_problem_acts_on_its_own_jobs_only() {
    let env = Env::new();
    for code in 1..=6 {
        let job = env.post("resize");
        let script = format!("exit {code}");
        let words = ["claim", &job, "--max-attempts", "1", "--", "sh", "-c"];
        let words = [&words[..], &[&script]].concat();
        env.fails(code, words);
    }
    let found = findings(&env, "failed");
    let jobs: Vec<_> = found
        .iter()
        .map(|it| it["jobs"].as_u64().unwrap())
        .collect();
    assert_eq!(jobs, [1, 1, 1, 3], "{found:?}");
    let (joined, apart) = found.split_last().unwrap();
    for problem in apart {
        // Without a conductor, a canary would never end.
        let words = super::command(problem);
        assert_eq!(&words[1..3], ["retry", "--problem"], "{problem}");
        assert_eq!(words.len(), 4, "{problem}");
        let dry = [&words[1..], &["--dry-run", "--json"]].concat();
        let dry = env.run(dry);
        assert_eq!(dry.json().as_array().unwrap().len(), 1, "{dry}");
    }
    assert_eq!(super::command(joined)[1..], ["list", "--problem", "failed"]);
    assert_eq!(joined["fix"]["risk"], Value::Null, "{joined}");
    let fixed = env.run("doctor --fix --yes --only failed");
    assert_eq!(fixed.code, 7, "{fixed}");
    assert_eq!(findings(&env, "failed").len(), 3, "{fixed}");
}

#[test]
fn document_has_a_report_only_for_a_step_with_one_job() {
    let env = Env::new();
    for count in [1, 3] {
        let jobs: Vec<_> = (0..count).map(|_| env.post("resize")).collect();
        for job in &jobs {
            env.claim(job, &dead("night"));
        }
        let fixed = env.run("doctor --fix --yes --only owner-dead --json");
        let report = format!(
            r#"{{"uuid":"{}","name":"resize","done":"abandoned","not_before":null}}"#,
            jobs[0]
        );
        let report = if count == 1 { &report } else { "null" };
        let end = format!("\"state\":\"done\",\"message\":{report}}}]}}\n");
        assert!(fixed.stdout.ends_with(&end), "{end}{fixed}");
        assert_eq!(fixed.json()["fixed"][0]["jobs"], count, "{fixed}");
    }
}
