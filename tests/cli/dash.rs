//! `jobboard dash`: one frame as text, and the whole on a real terminal.

use std::fs;

use rustix::process::{Pid, Signal};

use crate::support::{Env, Pane, Server, play, process::signal, wait_until};

/// Starts the dashboard from a script that records its pid and the terminal settings before and after.
fn start(env: &Env, pane: &Pane<'_>, options: &str) {
    pane.line(&format!("cd {}; stty -g > before", env.root().display()));
    let run = format!("echo $$ > pid; exec jobboard dash {options}");
    pane.line(&format!("sh -c '{run}'"));
}

fn pid(env: &Env) -> Pid {
    let text = fs::read_to_string(env.root().join("pid")).unwrap();
    Pid::from_raw(text.trim().parse().unwrap()).unwrap()
}

/// Requires that the terminal settings are unchanged.
fn is_whole(env: &Env, pane: &Pane<'_>) {
    let read = |name| fs::read_to_string(env.root().join(name)).unwrap_or_default();
    pane.line("stty -g > after; echo done > answered");
    wait_until("the shell has answered", || !read("answered").is_empty());
    assert_eq!(read("before"), read("after"));
    let _ = fs::remove_file(env.root().join("answered"));
}

#[test]
fn once_prints_one_frame_as_text() {
    let env = Env::new();
    env.post("resize");
    env.post("backup");
    env.claim("@1", "ada");
    let frame = env.run("dash --once --view jobs");
    let text = frame.succeeded();
    for part in [
        "█ 1 claimed ▒ 1 unclaimed",
        "[2 Jobs 2]",
        "claim-never-expires",
        "held longest",
        "backup",
    ] {
        assert!(text.contains(part), "{part}: {frame}");
    }
    assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.chars().count() <= 80));
    let frame = env.run("dash --once --ascii --view claims --filter owner=bob");
    frame.prints("filter: owner=bob");
    assert!(
        frame.stdout.is_ascii() && !frame.stdout.contains("ada  "),
        "{frame}"
    );
}

#[test]
fn dashboard_follows_events_and_restores_the_terminal_after_random_keys() {
    let env = Env::new();
    need!(pane = Pane::open(&env, &["stty"]));
    env.post("resize");
    start(&env, &pane, "");
    pane.shows(r"1 unclaimed .*\n(?s:.*)> resize +. no-conductor");
    env.post("backup");
    pane.shows("2 unclaimed");
    env.claim("@1", "ada");
    pane.shows("resize +. claim-never-expires");
    // A job, and its explanation.
    pane.press("Enter");
    pane.shows("if ada is gone");
    pane.press("Escape");
    // Narrows while it is typed.
    // No uuid contains it.
    pane.text("/back");
    pane.shows("filter: back");
    pane.shows("1/1");
    pane.press("Escape");
    pane.shows("1/2");
    pane.text("/name=backup");
    pane.press("Enter");
    pane.shows("filter: name=backup");
    pane.shows("1/1");
    pane.resize(40, 10);
    pane.shows("this one has");
    pane.resize(100, 30);
    pane.shows("> .*backup");
    // The shell controls the terminal meanwhile.
    pane.press("C-z");
    pane.shows("Stopped");
    is_whole(&env, &pane);
    env.post("later");
    pane.line("fg");
    pane.shows("2 unclaimed");
    // A click on a tab and on a line, and the wheel, as terminals send them.
    pane.press("Escape");
    pane.text("2g");
    pane.shows("> resize");
    pane.text("\u{1b}[<0;6;8M");
    pane.shows("> backup");
    pane.text("\u{1b}[<64;6;8M");
    pane.shows("> resize");
    pane.text("\u{1b}[<0;4;5M");
    pane.shows("\\[1 Problems");
    pane.press("q");
    assert_eq!(pane.code(), 0);
    is_whole(&env, &pane);
}

#[test]
fn signal_restores_the_terminal() {
    for (ending, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let env = Env::new();
        need!(pane = Pane::open(&env, &["stty"]));
        start(&env, &pane, "--view events");
        pane.shows("7 Events");
        signal(pid(&env), ending);
        assert_eq!(pane.code(), code);
        is_whole(&env, &pane);
    }
}

#[test]
fn reconnected_server_is_shown_as_it_is() {
    let env = Env::new();
    need!(mut server = Server::start_keeping_data());
    server.serves(&env, "");
    need!(pane = Pane::open(&env, &[]));
    env.post("resize");
    start(&env, &pane, "");
    pane.shows("1 unclaimed");
    pane.shows("live");
    server.kill();
    pane.shows(r"away \d");
    server.start_again();
    env.post("backup");
    pane.shows("2 unclaimed");
    pane.shows("live");
    pane.press("C-c");
    assert_eq!(pane.code(), 0);
}

#[test]
fn job_that_changes_owner_during_a_confirmation_is_kept() {
    let env = Env::new();
    need!(pane = Pane::open(&env, &[]));
    env.post("resize");
    env.post("backup");
    env.claim("@1", "ada");
    env.claim("@2", "ada");
    env.post("idle");
    start(&env, &pane, "--act");
    pane.shows("> resize +. claim-never-expires");
    pane.text("xxxA");
    pane.shows("abandon 2 jobs by force");
    pane.shows("1 skipped: the job is not claimed");
    pane.shows("claimed by ada");
    env.ok("abandon @1 --who ada");
    env.claim("@1", "bob");
    pane.shows("changed meanwhile");
    pane.press("Enter");
    pane.shows("abandoned 1 job");
    pane.shows("the job changed in the meantime");
    assert_eq!(env.show("@1")["owner"], "bob");
    pane.press("Enter");
    // In its current state the job can be released.
    pane.text("gA");
    pane.shows("claimed by bob");
    pane.press("Enter");
    pane.shows("abandoned 1 job");
    assert_eq!(env.state("@1"), "UNCLAIMED");
    pane.text("qA");
    pane.shows("the job is not claimed");
    // The same key resumes paused names.
    for (question, done) in [
        ("pause all jobs named resize", "paused resize"),
        ("resume jobs named resize", "resumed resize"),
    ] {
        pane.text("P");
        pane.shows(question);
        pane.press("Enter");
        pane.shows(done);
        pane.press("q");
    }
    pane.press("q");
    assert_eq!(pane.code(), 0);
}

#[test]
fn without_a_terminal_alternatives_are_suggested() {
    play(
        r#"
        # a dashboard without a terminal
        2 dash => dash --once
        2 dash --once --json => status --json
        "#,
    );
}

#[test]
fn read_only_dashboard_cannot_act() {
    let run = Env::new()
        .jobboard("dash --act --read-only")
        .at_terminal(80)
        .run();
    assert_eq!(run.code, 8, "{run}");
}
