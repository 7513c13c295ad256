//! The effect of signals on a working conductor.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use super::{Stage, WAITS, on_one_board, stage::set_mode};
use crate::support::{
    Host, Invocation, Manager, ProxyMode, Running, process::is_alive, stays, wait_until,
};

on_one_board!(
    timer_and_limit_signals_end_a_conductor_cleanly,
    jobs_continue_during_a_reload,
    quiet_conductor_takes_no_more_jobs_and_stays,
);

fn course(stage: &Stage) -> Value {
    let listed = stage.env.json("conductors --json");
    listed[0]["course"].clone()
}

fn quiet_conductor_takes_no_more_jobs_and_stays(stage: &Stage) {
    stage.post("first", WAITS);
    let conductor = stage.start(&["--name", "w1", "-j2", "--idle-exit", "1s"]);
    stage.logged(1);
    conductor.signal(Signal::USR1);
    wait_until("it is reported", || course(stage) == "quiet");
    let second = stage.post("second", "echo ran >> log");
    let why = stage.env.run(format!("explain {second} -o table"));
    why.shows("quiet");
    stage.env.run("conductors -o table").prints("quiet: first");
    fs::write(stage.env.file("go"), "").unwrap();
    stays("left alone", Duration::from_secs(2), || {
        stage.env.state(&second) == "UNCLAIMED"
    });
    conductor.signal(Signal::USR1);
    stage.logged(2);
    conductor.ended().succeeded();
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
}

#[test]
fn conductor_that_has_not_read_the_board_is_not_idle() {
    need!(stage = Stage::redis());
    stage.post("a", "echo ran >> log");
    let (board, proxy) = stage.through_proxy();
    proxy.set_at("HSCAN", ProxyMode::Stall);
    let conductor = stage.start(&["--board", &board, "--idle-exit", "200ms"]);
    wait_until("it looks", || proxy.has_sprung());
    let pid = Pid::from_raw(i32::try_from(conductor.pid()).unwrap()).unwrap();
    stays("at work", Duration::from_secs(2), || is_alive(pid));
    proxy.set(ProxyMode::PassOn);
    conductor.ended().succeeded();
    assert_eq!(stage.log(), ["ran"]);
}

fn timer_and_limit_signals_end_a_conductor_cleanly(stage: &Stage) {
    for signal in [Signal::ALARM, Signal::XCPU, Signal::POWER, Signal::QUIT] {
        stage.post("a", "echo began >> log; sleep 0.2; echo ended >> log");
        let before = stage.log().len();
        let conductor = stage.start(&[]);
        stage.logged(before + 1);
        conductor.signal(signal);
        conductor.ended().succeeded();
        assert_eq!(stage.log().len(), before + 2, "{signal:?}");
    }
}

fn jobs_continue_during_a_reload(stage: &Stage) {
    let mut jobs = stage.post_many(60, "echo $JOBBOARD_JOB >> log; sleep 0.02");
    let manager = Manager::start(&stage.env);
    let conduct = stage.conduct(&["-j3", "--drain"]).in_session();
    let start = Instant::now();
    let conductor = manager.over(conduct).spawn();
    for reloads in 1..=3 {
        stage.logged(reloads * 10);
        conductor.signal(Signal::HUP);
        wait_until("it is ready again", || {
            manager.count("READY=1") == reloads + 1
        });
    }
    let run = conductor.ended();
    run.succeeded();
    assert_eq!(run.stderr.matches("=reloaded\n").count(), 3, "{run}");
    let mut ran = stage.log();
    ran.sort();
    jobs.sort();
    assert_eq!(ran, jobs);
    let heard = manager.heard();
    let is_status = |line: &&String| line.starts_with("STATUS=");
    let message = heard.iter().filter(is_status).count() as u64;
    assert!(message <= start.elapsed().as_secs() + 8, "{heard:?}");
    let reloading = heard.iter().position(|line| line == "RELOADING=1").unwrap();
    assert!(
        heard[reloading + 1].starts_with("MONOTONIC_USEC="),
        "{heard:?}"
    );
    assert!(
        heard[..reloading].contains(&"READY=1".to_owned()),
        "{heard:?}"
    );
}

/// Prepares a conductor that reads its policy from the configuration.
fn configured(stage: &Stage, table: &str) -> Invocation {
    configure(stage, table);
    stage.env.jobboard("conduct --name w1").in_session()
}

fn configure(stage: &Stage, table: &str) {
    let url = stage.redis_server().unwrap().board();
    stage.env.configure(&format!(
        "default = \"a\"\n[board.a]\nurl = \"{url}\"\n{table}\n"
    ));
}

/// Triggers a reload, and waits for its result.
fn reads_again(conductor: &Running, message: &str) {
    let before = conductor.stderr().matches(message).count();
    conductor.signal(Signal::HUP);
    wait_until(message, || {
        conductor.stderr().matches(message).count() > before
    });
}

#[test]
fn reload_applies_the_current_policy() {
    need!(stage = Stage::redis());
    let manager = Manager::start(&stage.env);
    let sh = "conduct = { allow = [\"/bin/sh\", \"/usr/bin/sh\"] }";
    let conductor = manager.over(configured(&stage, sh)).spawn();
    stage.post("shell", "echo shell >> log");
    stage.logged(1);
    stage.env.ok("post other -- env true");
    stage.says(&conductor, "example=other");
    // An invalid configuration changes nothing, and jobs continue.
    for (wrong, report) in [
        ("conduct = { allow = [\"sh\"] }", "is not an absolute path"),
        (
            "conduct = { allow = [\"/*\"], allow_any = true }",
            "use either",
        ),
        ("conduct = { allw = [] }", "unknown key `allw`"),
        ("conduct = { handlers = \"nowhere\" }", "no directory"),
        ("", "could run any program here"),
        ("url", "config.toml, line 4"),
    ] {
        configure(&stage, wrong);
        reads_again(&conductor, "not_reloaded");
        stage.says(&conductor, report);
        manager.shows(", not reloaded: ");
        // A valid configuration takes effect only after a reload.
        configure(&stage, sh);
        let before = stage.log().len();
        stage.post("shell", "echo shell >> log");
        stage.logged(before + 1);
    }
    let ran = stage.log().len();
    configure(
        &stage,
        "who = \"ada\"\nconduct = { allow = [\"/usr/bin/env\", \"/bin/env\"] }",
    );
    reads_again(&conductor, r#"reloaded needs_restart="[\"who\"]""#);
    wait_until("it is run", || stage.env.names().is_empty());
    manager.shows("no runnable jobs");
    assert!(
        !manager.status().contains("reloaded"),
        "{}",
        manager.status()
    );
    wait_until("it is reported", || {
        let report = stage.env.json("conductors --json");
        report[0]["accepts"]["programs"] == json!(["/usr/bin/env", "/bin/env"])
    });
    stage.post("shell", "echo shell >> log");
    stage.says(&conductor, "example=shell");
    assert_eq!(stage.log().len(), ran);
    let elsewhere = "[board.b]\nurl = \"sqlite:b.db\"\n";
    stage
        .env
        .configure(&format!("default = \"b\"\n{elsewhere}"));
    reads_again(&conductor, "not_reloaded");
    stage.says(&conductor, "restart");
    conductor.stops();
}

#[test]
fn new_handler_runs_after_a_reload() {
    need!(stage = Stage::redis());
    let directory = stage.env.root().join("config/jobboard/handlers");
    fs::create_dir_all(&directory).unwrap();
    set_mode(&directory, 0o755);
    let conductor = configured(&stage, "conduct = { handlers = \"handlers\" }").spawn();
    stage.env.post("resize");
    stage.says(&conductor, "example=resize");
    fs::write(directory.join("resize"), "#!/bin/sh\necho resized >> log\n").unwrap();
    set_mode(&directory.join("resize"), 0o755);
    reads_again(&conductor, "reloaded");
    stage.logged(1);
    let config = stage.env.run("config");
    let text = config
        .succeeded()
        .lines()
        .find(|line| line.starts_with("conduct"));
    assert!(
        text.is_some_and(|line| line.contains("config/jobboard/handlers")),
        "{config}"
    );
    // Variables alone keep the configured handlers.
    stage.env.ok("conduct --allow-env A --drain");
    conductor.stops();
}

#[test]
fn conductor_releases_its_jobs_when_the_terminal_hangs_up() {
    let stage = Stage::embedded().unwrap();
    let job = stage.post("a", WAITS);
    let conduct = stage.conduct(&["--grace", "100ms", "--name", "w1"]);
    let terminal = conduct.at_terminal(80).spawn();
    stage.logged(1);
    terminal.kill();
    wait_until("it has ended", || stage.env.state(&job) == "UNCLAIMED");
    let job = stage.env.show(&job);
    assert_eq!(job["attempts"], 0, "{job}");
    wait_until("it is gone", || course(&stage) == Value::Null);
}
