//! `jobboard check`.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    conduct::{Stage, on_every_board, set_mode},
    support::{Env, Outcome, ProxyMode, Server, needs, texts, wait_until, words},
};

on_every_board!(
    numbers_equal_those_of_status_and_listings,
    claims_of_a_dead_conductor_differ_from_live_ones,
);

fn check(env: &Env, words: &[&str]) -> Outcome {
    env.run([&["check"], words].concat())
}

/// Returns the value and the grade of a metric.
fn metric(report: &Value, name: &str) -> (u64, String) {
    let mut metrics = report["metrics"].as_array().unwrap().iter();
    let found = metrics.find(|it| it["name"] == name).unwrap();
    let state = found["state"].as_str().unwrap().to_owned();
    (found["value"].as_f64().unwrap() as u64, state)
}

fn checked_values(env: &Env, words: &[&str]) -> Value {
    let run = check(env, &[words, &["--json"]].concat());
    run.value()
}

/// Posts jobs of all kinds: claimed, claimed by a dead owner, trashed, delayed and exhausted.
pub(crate) fn post_jobs_of_all_kinds(env: &Env) {
    let jobs = env.post_many(12);
    for job in &jobs[..3] {
        env.claim(job, "ada");
    }
    env.claim(&jobs[3], "ada:elsewhere.:7:c0ffee01");
    env.trash(&jobs[4]);
    env.trash(&jobs[5]);
    env.fail(&jobs[6], "1d");
    for _ in 0..5 {
        env.fail(&jobs[7], "1ms");
    }
}

fn numbers_equal_those_of_status_and_listings(stage: &Stage) {
    let env = &stage.env;
    post_jobs_of_all_kinds(env);
    let checked = checked_values(env, &[]);
    let status = env.json("status --json");
    for (name, count) in [
        ("unclaimed", 6),
        ("claimed", 4),
        ("backing_off", 1),
        ("trashed", 2),
        ("conductors", 0),
    ] {
        assert_eq!(metric(&checked, name).0, count, "{name} of {checked}");
        assert_eq!(status[name], count, "{name} of {status}");
    }
    for (name, count) in [
        ("claim_never_expires", 3),
        ("owner_dead", 1),
        ("retries_exhausted", 1),
        ("unreadable_record", 0),
        ("claim_not_renewed", 0),
    ] {
        assert_eq!(metric(&checked, name).0, count, "{name} of {checked}");
        let counted = &status["jobs_with_problem"][name.replace('_', "-")];
        assert_eq!(counted.as_u64().unwrap_or(0), count, "{name} of {status}");
    }
    for found in checked["metrics"].as_array().unwrap() {
        let words = texts(&found["command"]);
        let form = if words[1] == "list" { "uuid" } else { "tsv" };
        let listed = env.run([&words[1..], &["-o", form]].concat());
        // `doctor` reports a finding by its exit code.
        let is_answer = listed.code == 0 || (words[1] == "doctor" && listed.code == 7);
        assert!(is_answer, "{words:?}: {listed}");
        let count = listed.stdout.lines().count();
        // For durations the command lists the longest ones; the other metrics count no jobs.
        let is_listed = words[1] == "list" && found["unit"] == "" && found["name"] != "backing_off";
        if is_listed {
            assert_eq!(found["value"], count, "{words:?}");
        }
    }
    // A filter applies to the trash too.
    let narrow = ["--filter", "name~job-[456]$"];
    let narrowed = checked_values(env, &[&narrow[..], &["-w", "trashed=1"]].concat());
    assert_eq!(metric(&narrowed, "unclaimed").0, 1);
    assert_eq!(metric(&narrowed, "trashed"), (2, "WARNING".to_owned()));
    assert_eq!(narrowed["code"], 1);
    assert_eq!(
        env.run("list --count --filter name~job-[456]$").stdout,
        "1\n"
    );
}

fn claims_of_a_dead_conductor_differ_from_live_ones(stage: &Stage) {
    let job = stage.post("long", "touch log; exec sleep 600");
    let conductor = stage.start(&["--lease", "10m"]);
    stage.logged(0);
    wait_until("it is claimed", || stage.env.state(&job) == "CLAIMED");
    let run = check(&stage.env, &["-c", "conductors=1:", "-w", "owner_dead=0"]);
    assert!(run.succeeded().starts_with("OK - 0 unclaimed, "), "{run}");
    let check = stage.env.jobboard(&["check", "--warn", "rtt=1h"]);
    check.in_shell("exec \"$@\" >/dev/full").run().has_code(3);
    conductor.kill();
    // On ZooKeeper a claim ends with its session.
    wait_until("it is reported", || {
        let report = checked_values(&stage.env, &[]);
        metric(&report, "owner_dead").0 == 1 || metric(&report, "claimed").0 == 0
    });
    let report = checked_values(&stage.env, &["-c", "conductors=1:"]);
    assert_eq!(metric(&report, "conductors"), (0, "CRITICAL".to_owned()));
    let status = stage.env.json("status --json");
    assert_eq!(status["conductors"], 0);
    let owner = &status["owners"][0];
    assert!(status["silent"] == 1 && owner["is_dead"] == true || owner.is_null());
}

#[test]
fn each_value_is_judged_and_the_worst_decides() {
    let env = Env::new();
    let jobs = env.post_many(4);
    env.trash(&jobs[0]);
    env.claim(&jobs[1], "ada");
    for (words, code) in [
        ("-w unclaimed=2 -c unclaimed=3", 0),
        ("-w unclaimed=1 -c unclaimed=3", 1),
        ("-w unclaimed=1 -c unclaimed=1", 2),
        ("-w unclaimed=1 -c unclaimed=3 -c trashed=0", 2),
        ("-w unclaimed=@2:3 -w claimed=1", 1),
        ("-w oldest_unclaimed=1h -w longest_claim=~:1d -w rtt=60s", 0),
        ("-c conductors=1:", 2),
        ("-w trashed=0 --filter name=job-3", 0),
    ] {
        let words: Vec<_> = words.split(' ').collect();
        let run = check(&env, &words);
        assert_eq!(run.code, code, "{words:?}: {run}");
        assert_eq!(run.stderr, "");
    }
}

#[test]
fn each_code_about_jobs_is_a_metric() {
    let env = Env::new();
    env.post("resize");
    env.load("wrong", &json!({"command": ["../x"]}));
    let fails = env.post("fails");
    let claim = format!("claim {fails} --max-attempts 1 -- false");
    env.fails(1, claim);
    for (name, count) in [
        ("invalid_command", 1),
        ("no_conductor", 1),
        ("failed", 1),
        ("conductor_refuses", 0),
        ("no_matching_conductor", 0),
    ] {
        let range = format!("{name}=0");
        let report = checked_values(&env, &["-c", &range]);
        let state = ["OK", "CRITICAL"][usize::from(count > 0)].to_owned();
        assert_eq!(metric(&report, name), (count, state), "{report}");
    }
    let filter = ["--filter", "name=resize", "-c", "failed=0"];
    assert_eq!(metric(&checked_values(&env, &filter), "failed").0, 0);
    let run = check(&env, &[]);
    assert_eq!(run.code, 1, "{run}");
    let first = "WARNING - invalid-command 1 (give ";
    assert!(run.stdout.starts_with(first), "{run}");
    run.shows("), failed 1 | ");
    assert_eq!(check(&env, &["-c", "invalid-command=0"]).code, 2);
    run.shows("\nWARNING: invalid-command is 1: give ");
}

/// Removes the numbers that differ in each run.
fn without_times(text: &str) -> String {
    let pattern = regex::Regex::new(r"(unclaimed|claim|rtt)=[0-9.]+s").unwrap();
    pattern.replace_all(text, "$1=SPANs").into_owned()
}

#[test]
fn first_line_summarises_and_the_others_list_commands() {
    let env = Env::new();
    let run = check(&env, &[]);
    let nothing = "WARNING - no job was ever posted on this board | unclaimed=0;;;0 ";
    assert!(run.code == 1 && run.stdout.starts_with(nothing), "{run}");
    let jobs = env.post_many(4);
    env.trash(&jobs[0]);
    let words = words("-w trashed=0 -c unclaimed=2 -c oldest_unclaimed=@1h:");
    let mut run = check(&env, &words);
    run.stdout = without_times(&run.stdout);
    insta::assert_snapshot!(run, @"
    exit code 2
    --- stdout
    CRITICAL - unclaimed 3, trashed 1 | unclaimed=3;;2;0 oldest_unclaimed=SPANs;;@3600:;0 claimed=0;;;0 longest_claim=SPANs;;;0 claim_never_expires=0;;;0 owner_dead=0;;;0 claim_not_renewed=0;;;0 retries_exhausted=0;;;0 backing_off=0;;;0 unreadable_record=0;;;0 trashed=1;0;;0 conductors=0;;;0 rtt=SPANs;;;0
    CRITICAL: unclaimed is 3, outside the range 2: jobboard list --unclaimed
    WARNING: trashed is 1, outside the range 0: jobboard list --trash
    --- stderr
    ");
    check(&env, &["-v"]).prints("\nOK: trashed is 1: jobboard list --trash\n");
    // A filter may contain `|`, which separates the numbers for monitoring.
    let run = check(&env, &["--filter", "name~a|job", "-w", "unclaimed=0"]);
    assert_eq!(run.stdout.matches('|').count(), 1, "{run}");
    let (_, command) = run
        .stdout
        .split_once("outside the range 0: jobboard ")
        .unwrap();
    let shell = format!("\"$0\" {command}");
    let words = ["-c", &shell, env!("CARGO_BIN_EXE_jobboard")];
    let listed = env.program(std::path::Path::new("bash"), &words).run();
    assert_eq!(listed.succeeded().lines().count(), 3, "{listed}");
}

#[test]
fn failed_jobs_in_the_trash_are_a_warning() {
    let env = Env::new();
    let job = env.run(["post", "backup", "max_attempts:=1"]);
    let job = job.posted();
    env.fails(1, format!("claim {job} -- false"));
    let run = env.run("check");
    assert_eq!(run.code, 1, "{run}");
    run.shows("WARNING - failed 1");
    env.ok(format!("retry {job}"));
    env.trash(&job);
    let run = env.run("check");
    assert!(!run.stdout.contains("failed 1"), "{run}");
}

#[test]
fn every_failure_has_a_monitoring_exit_code() {
    let env = Env::new();
    env.configure("[board.a]\nurl = \"sqlite:a.db\"\n");
    for (code, line) in [
        (3, "check --bogus"),
        (3, "check -w none=1"),
        (3, "check -w trashed=5m"),
        (3, "check -w trashed=1 -w trashed=2"),
        (3, "check --filter name"),
        (3, "--board nonsense: check"),
        (3, "check --config none.toml"),
        (3, "check --password-file none --board redis://127.0.0.1:1"),
        (2, "check --board redis://127.0.0.1:1"),
        (2, "check --board redis://name.invalid"),
        (2, "check --board zk://127.0.0.1:1/a --op-timeout 1s"),
        (0, "check --help"),
    ] {
        let run = env.run(line);
        assert_eq!((run.code, run.stderr.as_str()), (code, ""), "{line}: {run}");
        let state = ["Report the health", "", "CRITICAL - ", "UNKNOWN - "][code as usize];
        assert!(run.stdout.starts_with(state), "{line}: {run}");
        if code > 0 {
            let run = env.run(format!("{line} --json"));
            let report = run.value();
            assert_eq!((run.code, &report["code"]), (code, &json!(code)), "{run}");
        }
    }
    // A board named `check` does not turn other commands into a plugin.
    env.fails(2, "--board check list");
}

#[test]
fn unreachable_or_silent_server_is_critical_and_denied_access_unknown() {
    need!(mut stage = Stage::redis());
    stage.env.post("resize");
    let (board, proxy) = stage.through_proxy();
    let words = ["--board", &board, "--timeout", "2s"];
    assert_eq!(
        check(&stage.env, &[&words[..], &["-w", "rtt=1h"]].concat()).code,
        0
    );
    proxy.set(ProxyMode::Silent);
    let run = check(&stage.env, &words);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stdout.starts_with("CRITICAL - "), "{run}");
    let server = stage.redis_server().unwrap();
    server.run(&["ACL", "SETUSER", "default", "-hgetall", "-hlen", "-hscan"]);
    let run = check(&stage.env, &[]);
    assert_eq!(run.code, 3, "{run}");
    assert!(
        run.stdout.starts_with("UNKNOWN - cannot check the board: "),
        "{run}"
    );
    stage.stop_server();
    let run = check(&stage.env, &[]);
    assert_eq!(run.code, 2, "{run}");
    run.shows("refused the connection");
}

#[test]
fn expiring_claim_differs_from_a_renewed_one() {
    need!(stage = Stage::redis());
    let not_renewed = || metric(&checked_values(&stage.env, &[]), "claim_not_renewed").0;
    stage.post("long", "touch log; exec sleep 600");
    let conductor = stage.start(&["--lease", "15s"]);
    wait_until("it runs", || stage.env.file("log").exists());
    assert_eq!(not_renewed(), 0);
    conductor.signal(Signal::STOP);
    wait_until("it is reported", || not_renewed() == 1);
    conductor.signal(Signal::CONT);
    // A manual claim needs no renewal, and a peer's claim is judged by its remaining time.
    let [hand, late, kept] = ["hand", "late", "kept"].map(|name| stage.env.post(name));
    let claim = format!("claim {hand} --expiry 5s");
    stage.env.ok(claim);
    let server = stage.redis_server().unwrap();
    for (job, left) in [(late, "7000"), (kept, "25000")] {
        let key = format!("taskflow:{job}.owned");
        server.run(&["SET", &key, "octavia-7", "PX", left]);
    }
    let report = checked_values(
        &stage.env,
        &["--filter", "name!=long", "-w", "claim_not_renewed=0"],
    );
    assert_eq!(
        metric(&report, "claim_not_renewed"),
        (1, "WARNING".to_owned()),
        "{report}"
    );
}

#[test]
fn icinga_accepts_every_number_and_the_definitions() {
    if !needs::has("icinga2") {
        return;
    }
    let env = Env::new();
    env.post_many(3);
    let words = words("-w oldest_unclaimed=1h -c unclaimed=~:9 -c trashed=@5:6");
    let run = check(&env, &words);
    let (_, perfdata) = run.succeeded().trim_end().split_once(" | ").unwrap();
    let icinga = |words: &[&str]| env.program(std::path::Path::new("icinga2"), words).run();
    let figures: Vec<_> = perfdata
        .split(' ')
        .map(|it| format!("parse_performance_data({it:?})"))
        .collect();
    let asked = format!("[{}]", figures.join(", "));
    let parsed = icinga(&["console", "--eval", &asked]).json();
    let report = checked_values(&env, &words);
    for (parsed, report) in parsed
        .as_array()
        .unwrap()
        .iter()
        .zip(report["metrics"].as_array().unwrap())
    {
        assert_eq!(parsed["label"], report["name"]);
        let unit = if report["unit"] == "s" { "seconds" } else { "" };
        assert_eq!(parsed["unit"], unit);
        if unit.is_empty() {
            assert_eq!(parsed["value"], report["value"]);
        }
    }
    assert_eq!(parsed.as_array().unwrap().len(), 13);
    assert_eq!(parsed[1]["warn"], json!(3600));
    // Icinga changes to its own user if root starts it.
    for directory in ["", "work"] {
        set_mode(&env.root().join(directory), 0o777);
    }
    let file = env.file("icinga.conf");
    let definitions = concat!(env!("CARGO_MANIFEST_DIR"), "/contrib/icinga2/jobboard.conf");
    let host = "object Host \"b\" { check_command = \"dummy\"\n\
        vars.jobboards[\"night\"] = { jobboard_warn = [ \"trashed=0\" ] } }";
    let text = format!("include <itl>\ninclude {definitions:?}\n{host}\n");
    std::fs::write(&file, text).unwrap();
    let directory = |name: &str| format!("-D{name}={}", env.root().display());
    let directories = ["DataDir", "CacheDir", "LogDir", "InitRunDir"].map(directory);
    let directories: Vec<_> = directories.iter().map(String::as_str).collect();
    let file = file.display().to_string();
    let vars = format!("-DVarsPath={}/vars", env.root().display());
    let run = icinga(&[&["daemon", "-C", "-c", &file, &vars], &directories[..]].concat());
    run.prints("Instantiated 1 Service.");
}

#[test]
fn redis_without_persistence_is_a_warning() {
    for (server, code) in [(Server::start(), 1), (Server::start_keeping_data(), 0)] {
        need!(server = server);
        let env = Env::new();
        server.serves(&env, "");
        env.post("resize");
        let run = check(&env, &[]);
        assert_eq!(run.code, code, "{run}");
        let command = "doctor --only not-persistent";
        assert_eq!(run.stdout.contains(command), code == 1, "{run}");
    }
}
