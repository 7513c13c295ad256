//! `jobboard doctor`: each problem, on boards with it and without it.

mod commands;
mod fix;
mod local;
mod network;

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    conduct::{Stage, on_every_board, set_mode},
    faults::SmallDisk,
    support::{Env, Outcome, column, copy_program, play, texts, wait_until},
};

on_every_board!(
    board_in_normal_use_has_no_problem,
    dead_owners_and_exhausted_jobs_are_reported,
    killed_conductor_without_claims_is_a_note,
    looking_changes_nothing,
    stopped_conductors_and_their_claims_are_reported,
);

/// Skips a problem that most test servers have.
const USUAL: [&str; 2] = ["--skip", "not-persistent"];

#[test]
fn commands_in_a_text_reach_the_same_board() {
    play(
        r#"
        # another board than the default
        0 --board sqlite:other.db post resize
        0 --board sqlite:other.db doctor -> `jobboard --board sqlite:other.db claim JOB -- COMMAND`
        "#,
    );
}

fn doctor(env: &Env, words: &[&str]) -> Outcome {
    env.run([&["doctor", "--json"], words].concat())
}

fn diagnosed(env: &Env, words: &[&str]) -> Value {
    let run = doctor(env, words);
    let report = run.value();
    let worst = |finding: &Value| finding["severity"] != "note";
    let is_sound = !report["problems"].as_array().unwrap().iter().any(worst);
    assert_eq!(
        (&report["sound"], run.code),
        (&json!(is_sound), if is_sound { 0 } else { 7 }),
        "{run}"
    );
    report
}

pub(crate) fn findings(env: &Env, code: &str) -> Vec<Value> {
    let report = diagnosed(env, &["--only", code]);
    let findings = report["problems"].as_array().unwrap().clone();
    assert!(findings.iter().all(|it| it["code"] == code), "{report}");
    findings
}

/// Returns the words of the suggested command.
fn command(found: &Value) -> Vec<&str> {
    texts(&found["fix"]["command"])
}

/// Requires exactly one finding of this code, and returns it.
fn finds(env: &Env, code: &str) -> Value {
    let found = findings(env, code);
    assert_eq!(found.len(), 1, "{code}: {found:?}");
    assert!(found[0]["fix"].is_object(), "{found:?}");
    found[0].clone()
}

fn is_sound(env: &Env) {
    let report = diagnosed(env, &USUAL);
    assert_eq!(report["sound"], json!(true), "{report}");
}

/// Returns the owner name of an ended process on this machine.
pub(crate) fn dead(name: &str) -> String {
    let host = rustix::system::uname();
    format!(
        "{name}:{}:999999999:c0ffee01",
        host.nodename().to_string_lossy()
    )
}

/// Uses a board in all common ways.
fn use_it(stage: &Stage) {
    let env = &stage.env;
    let jobs = env.post_many(9);
    env.claim(&jobs[0], "ada");
    env.fail(&jobs[1], "1d");
    env.fail(&jobs[2], "1ms");
    env.trash(&jobs[3]);
    env.trash(&jobs[4]);
    env.ok(format!("restore {}", jobs[4]));
    env.ok(format!("claim {} -- true", jobs[5]));
    env.ok(format!("consume {} --force --yes", jobs[6]));
    let claimed = env.run(format!("claim {} --expiry 1h", jobs[7]));
    assert_eq!(claimed.code == 0, stage.zookeeper_board().is_none());
}

fn board_in_normal_use_has_no_problem(stage: &Stage) {
    let unused = doctor(&stage.env, &USUAL);
    unused.prints("\"problems\":[]");
    unused.warns("no job was ever posted on");
    use_it(stage);
    stage.post("long", "touch log; exec sleep 600");
    let codes = |report: &Value| {
        let mut codes = column(report["problems"].as_array().unwrap(), "code");
        codes.sort();
        codes
    };
    let waiting = diagnosed(&stage.env, &USUAL);
    let notes = ["claim-never-expires", "no-conductor"].map(str::to_owned);
    assert_eq!(
        (&waiting["sound"], codes(&waiting)),
        (&json!(true), notes.into()),
        "{waiting}"
    );
    let _conductor = stage.start(&[]);
    wait_until("it runs", || stage.env.file("log").exists());
    let report = diagnosed(&stage.env, &USUAL);
    // The jobs without a command have no handler.
    let left = ["claim-never-expires", "no-matching-conductor"];
    assert_eq!(codes(&report), left, "{report}");
    let others = report["groups"].as_array().unwrap().iter();
    // ZooKeeper does not report its configuration.
    let is_fine =
        |it: &Value| it["group"] == "jobs" || it["state"] == "ok" || it["state"] == "unknown";
    assert!(others.into_iter().all(is_fine), "{report}");
}

fn dead_owners_and_exhausted_jobs_are_reported(stage: &Stage) {
    let env = &stage.env;
    let jobs = env.post_many(4);
    is_sound(env);
    env.claim(&jobs[0], &dead("night"));
    env.claim(&jobs[1], "ada");
    let found = finds(env, "owner-dead");
    assert_eq!(found["fix"]["risk"], "safe", "{found}");
    // The command releases that claim only.
    let words = command(&found);
    env.ok([&words[1..], &["--yes"]].concat());
    assert_eq!(
        [0, 1].map(|at| env.state(&jobs[at])),
        ["UNCLAIMED", "CLAIMED"]
    );
    is_sound(env);
    // Processes on another machine cannot be checked, and an expiring claim ends without help.
    env.claim(&jobs[0], "night:elsewhere.:7:c0ffee01");
    let found = finds(env, "owner-dead");
    assert_eq!(found["fix"]["risk"], "decision", "{found}");
    assert!(command(&found).contains(&"--now"), "{found}");
    env.ok(format!("abandon {} --force --yes", jobs[0]));
    for _ in 0..5 {
        env.fail(&jobs[2], "1ms");
    }
    // A job with attempts left is no problem.
    env.fail(&jobs[3], "1ms");
    let found = finds(env, "retries-exhausted");
    assert_eq!(
        (&found["jobs"], &found["examples"][0]["job"]),
        (&json!(1), &json!(jobs[2]))
    );
    env.ok(format!("retry {}", jobs[2]));
    is_sound(env);
}

fn killed_conductor_without_claims_is_a_note(stage: &Stage) {
    stage.start(&["--name", "night"]).kill();
    is_sound(&stage.env);
    // On ZooKeeper the registration ends with the session.
    let silent = stage.env.json("status --json")["silent"].clone();
    let found = findings(&stage.env, "conductor-silent");
    if stage.zookeeper_board().is_none() {
        assert_eq!((&silent, found.len()), (&json!(1), 1), "{found:?}");
        assert_eq!(found[0]["severity"], "note");
    }
}

fn stopped_conductors_and_their_claims_are_reported(stage: &Stage) {
    let job = stage.post("long", "touch log; exec sleep 600");
    let conductor = stage.start(&["--name", "night", "--lease", "35s"]);
    wait_until("it runs", || stage.env.file("log").exists());
    assert_eq!(findings(&stage.env, "owner-stopped"), [json!(null); 0]);
    let idle = stage.start(&["--name", "idle", "--filter", "name=other"]);
    assert_eq!(findings(&stage.env, "conductor-silent"), [json!(null); 0]);
    idle.signal(Signal::STOP);
    conductor.signal(Signal::STOP);
    wait_until("both heartbeats are late", || {
        let codes = ["owner-stopped", "conductor-silent"];
        codes
            .iter()
            .all(|code| !findings(&stage.env, code).is_empty())
    });
    let found = finds(&stage.env, "conductor-silent");
    let summary = found["summary"].as_str().unwrap();
    assert!(summary.starts_with("idle on "), "{found}");
    idle.signal(Signal::CONT);
    let resume = format!("kill -CONT {}", conductor.pid());
    assert_eq!(
        command(&finds(&stage.env, "owner-stopped")).join(" "),
        resume
    );
    let explained = stage.env.run(format!("explain {job}"));
    assert_eq!(explained.code, 4, "{explained}");
    explained.shows(&resume);
    conductor.signal(Signal::CONT);
    wait_until("its heartbeat is back", || {
        findings(&stage.env, "owner-stopped").is_empty()
    });
}

fn looking_changes_nothing(stage: &Stage) {
    use_it(stage);
    let env = &stage.env;
    if let Some(server) = stage.redis_server() {
        server.run(&["HSET", "taskflow:listings", "bad", "nonsense"]);
        let written = || {
            let outcome = server.run(&["INFO", "persistence"]);
            let line = outcome
                .lines()
                .find(|it| it.starts_with("rdb_changes_since_last_save"));
            (line.unwrap().to_owned(), server.everything())
        };
        let before = written();
        diagnosed(env, &[]);
        assert_eq!(written(), before);
        return;
    }
    if stage.is_network() {
        // Its ephemeral nodes end with the session; a peer checks the others.
        return network::foreign_nodes_stay_unchanged(stage);
    }
    let bytes = || ["", "-wal"].map(|it| fs::read(format!("{}{it}", env.board().display())).ok());
    let before = bytes();
    diagnosed(env, &[]);
    assert_eq!(bytes(), before);
}

#[test]
fn table_output_shows_problem_effect_and_fix() {
    let env = Env::new();
    env.post("resize");
    env.claim("@1", "ada:elsewhere.:7:c0ffee01");
    let run = env.run("doctor -o table --only jobs,server");
    assert_eq!(run.code, 7, "{run}");
    let lines: Vec<_> = run.stdout.lines().collect();
    let [title, _, "", what, more, example, fix, end] = lines[..] else {
        panic!("{run}");
    };
    assert!(
        title.contains("board.db: 1 problem (jobs, server only)  (SQLite "),
        "{run}"
    );
    let problem =
        "ERROR  owner-dead               1 job  ada:elsewhere.:7:c0ffee01 on elsewhere.: ";
    assert!(what.starts_with(problem), "{run}");
    assert_eq!(more, "       this machine cannot prove it", "{run}");
    assert!(
        example.starts_with("       resize ") && example.contains(", for "),
        "{run}"
    );
    let command = "jobboard abandon --force --now --problem owner-dead=elsewhere.";
    assert_eq!(
        fix,
        format!("       fix  if the process is gone, release the claim: {command}")
    );
    assert_eq!(end, "to review and run this fix: jobboard doctor --fix");
    let list = env.run("doctor --list --skip keys,local");
    list.prints("jobs\towner-dead\terror\t");
    assert!(!list.stdout.contains("stray-keys"), "{list}");
    env.fails(2, "doctor --only nonsense");
    env.fails(5, "doctor --board redis://127.0.0.1:1");
}

#[test]
fn file_problems_are_reported() {
    need!(stage = Stage::embedded());
    let env = &stage.env;
    env.post_many(200);
    is_sound(env);
    let board = env.board();
    let directory = board.parent().unwrap().to_owned();
    for (place, mode, usual) in [(&board, 0o666, 0o600), (&directory, 0o777, 0o700)] {
        set_mode(place, mode);
        finds(env, "writable-by-others");
        set_mode(place, usual);
    }
    // Simulates a reader that blocked checkpoints for a long time.
    let log = format!("{}-wal", board.display());
    let file = fs::File::options()
        .create(true)
        .append(true)
        .open(&log)
        .unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(65 << 20).unwrap();
    finds(env, "large-log");
    file.set_len(length).unwrap();
    set_mode(log.as_ref(), 0o666);
    finds(env, "writable-by-others");
    set_mode(log.as_ref(), 0o600);
    is_sound(env);
    let change = "UPDATE job SET created_on = created_on + 7200000000 WHERE sequence = 3";
    env.database().execute_batch(change).unwrap();
    let found = finds(env, "clock-skew");
    assert!(
        found["summary"].as_str().unwrap().contains("1h59m"),
        "{found}"
    );
    let change = "PRAGMA ignore_check_constraints = on;
        UPDATE job SET created_on = created_on - 7200000000 WHERE sequence = 3;
        UPDATE job SET details = 'nonsense' WHERE sequence = 1;
        UPDATE job SET failures = 'nonsense' WHERE sequence = 2";
    env.database().execute_batch(change).unwrap();
    finds(env, "unreadable-record");
    finds(env, "unreadable-sidecar");
    env.claim("@3", "ada");
    assert_eq!(finds(env, "claim-never-expires")["severity"], "note");
    let change = "UPDATE job SET claimed_on = claimed_on - 7200000000 WHERE sequence = 3";
    env.database().execute_batch(change).unwrap();
    let found = finds(env, "claim-never-expires");
    assert_eq!(found["severity"], "warning", "{found}");
    assert_eq!(found["summary"], "claimed by ada", "{found}");
    let mut bytes = fs::read(&board).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0x5a);
    fs::write(&board, bytes).unwrap();
    finds(env, "damaged-file");
}

#[test]
fn damaged_index_is_reported_with_its_fix() {
    let env = Env::new();
    env.post_many(3);
    // As if the index had missed a change.
    let part = "name = 'job_ranked' AND type = 'index'";
    env.database()
        .execute_batch(&format!(
            "CREATE TABLE kept AS SELECT * FROM sqlite_schema WHERE {part};
             PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE {part}"
        ))
        .unwrap();
    env.database()
        .execute_batch("UPDATE job SET priority = 0 WHERE sequence = 2")
        .unwrap();
    env.database()
        .execute_batch(
            "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM kept;
             PRAGMA writable_schema = RESET; DROP TABLE kept",
        )
        .unwrap();
    let found = finds(&env, "damaged-file");
    let problem = found["evidence"][0]["value"].as_str().unwrap();
    assert!(problem.contains("index job_ranked"), "{found}");
    env.database().execute_batch("REINDEX").unwrap();
    is_sound(&env);
}

#[test]
fn nearly_full_disk_is_reported() {
    let env = Env::new();
    let Some(disk) = SmallDisk::mount(env.root().join("small")) else {
        eprintln!("doctor: skipped the small disk, as this user cannot mount one");
        return;
    };
    let url = format!("sqlite:{}", disk.0.join("board.db").display());
    env.ok(format!("post a --board {url}"));
    let words = ["--only", "disk-full", "--board", &url];
    assert_eq!(doctor(&env, &words).code, 7);
    env.post("b");
    assert_eq!(doctor(&env, &["--only", "disk-full"]).code, 0);
}

#[test]
fn read_only_file_is_reported() {
    let env = Env::new();
    let shared = env.root().join("shared");
    let url = format!("sqlite:{}", shared.join("board.db").display());
    env.ok(format!("post a --create --board {url}"));
    let program = env.root().join("jobboard");
    copy_program(&program);
    set_mode(env.root(), 0o755);
    for file in fs::read_dir(&shared).unwrap() {
        set_mode(&file.unwrap().path(), 0o444);
    }
    set_mode(&shared, 0o755);
    let words = ["doctor", "--json", "--only", "connection", "--board", &url];
    let run = env
        .program(&program, &words)
        .cwd(Path::new("/"))
        .unprivileged()
        .run();
    let report = run.value();
    assert_eq!(report["problems"][0]["code"], "missing-rights", "{report}");
}

#[test]
fn altered_file_is_refused() {
    play(
        r#"
        # an altered file is refused
        0 post resize
        sql CREATE INDEX slow ON job (hex(name))
        8 doctor => the table or index slow => .schema` shows
        8 list => the table or index slow => .schema` shows
        8 post other => the table or index slow => .schema` shows
        "#,
    );
}
