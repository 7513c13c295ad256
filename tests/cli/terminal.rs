//! `jobboard run` on a terminal, under a shell with job control.

use std::{fs, time::Duration};

use rustix::process::{Pid, Signal};

use crate::support::{
    Env, Pane, Tag, members,
    process::{Stat, signal, stat},
    stays, wait_until,
};

/// Waits until the command of a run sleeps and controls the terminal, and returns it.
fn in_foreground(tag: &Tag) -> Pid {
    becomes(tag, |stat| {
        stat.state == 'S' && stat.foreground == stat.group
    })
}

/// Waits until a condition holds for the command of a run, and returns it.
fn becomes(tag: &Tag, holds: impl Fn(&Stat) -> bool) -> Pid {
    let mut found = None;
    wait_until("the command reaches the expected state", || {
        let sleepers = tag.sleepers().into_iter();
        found = sleepers
            .into_iter()
            .find(|&pid| stat(pid).is_some_and(|stat| holds(&stat)));
        found.is_some()
    });
    found.unwrap()
}

fn is_free(env: &Env) {
    wait_until("the job is back on the board", || {
        env.state("@1") == "UNCLAIMED"
    });
}

#[test]
fn control_c_ends_the_command_and_releases_the_job() {
    let (env, tag) = (Env::new(), Tag::new());
    need!(pane = Pane::open(&env, &[]));
    // A shell that notices the signal stops the loop and the line.
    let run = format!("jobboard run sleep -- sleep {}", tag.text());
    pane.line(&format!("while :; do {run}; done; echo went on"));
    let command = in_foreground(&tag);
    pane.press("C-c");
    assert_eq!(pane.code(), 130);
    tag.is_reaped(command);
    assert_eq!(env.names(), ["sleep"]);
    let job = env.show("@1");
    assert_eq!(members(&job, "state attempts"), "UNCLAIMED 0");
}

#[test]
fn conductor_logs_sentences_on_a_terminal() {
    let env = Env::new();
    need!(pane = Pane::open(&env, &[]));
    let script = "echo disk full >&2; exit 3";
    let post = format!("post three -- sh -c '{script}'");
    let job = env.run(post).posted();
    pane.line("jobboard conduct --drain --max-attempts 2 --output discard");
    let (time, id) = (r"^\d\d:\d\d:\d\dZ ", &job[..8]);
    let failed = format!(r"{time}three failed \(exit 3: disk full\)");
    pane.shows(&format!(
        r"{failed}; attempt 2 of 2 starts in \d+m?s  {id}$"
    ));
    pane.shows(&format!("{failed}, moved to the trash  {id}$"));
    pane.shows(&format!(
        "{time}failed: three {id}; next: jobboard explain {job}$"
    ));
    assert_eq!(pane.code(), 7);
}

#[test]
fn end_of_input_at_a_question_ends_its_line() {
    let env = Env::new();
    need!(pane = Pane::open(&env, &[]));
    env.post("resize");
    pane.line("jobboard consume --force @1");
    pane.shows(r"\[y/N\]");
    pane.press("C-d");
    pane.shows(r"(?m)^error: not confirmed");
    assert_eq!(pane.code(), 8);
}

#[test]
fn stopped_command_keeps_its_claim_and_can_continue() {
    let (env, tag) = (Env::new(), Tag::new());
    need!(pane = Pane::open(&env, &[]));
    let sleep = format!("sleep {}; read word; [ $word = enough ]", tag.text());
    pane.line(&format!("jobboard run sleep --lease 2s -- sh -c '{sleep}'"));
    in_foreground(&tag);
    pane.press("C-z");
    pane.shows("Stopped");
    let command = becomes(&tag, |stat| stat.state == 'T');
    stays("it is claimed", Duration::from_secs(3), || {
        env.state("@1") == "CLAIMED"
    });
    assert_eq!(stat(command).unwrap().state, 'T');
    pane.line("fg");
    in_foreground(&tag);
    signal(command, Signal::TERM);
    pane.line("enough");
    assert_eq!(pane.code(), 0);
    assert!(env.names().is_empty());
}

#[test]
fn stopped_command_can_continue_in_the_background() {
    let (env, tag) = (Env::new(), Tag::new());
    need!(pane = Pane::open(&env, &[]));
    pane.line(&format!("jobboard run sleep -- sleep {}", tag.text()));
    in_foreground(&tag);
    pane.press("C-z");
    pane.shows("Stopped");
    pane.line("bg");
    let command = becomes(&tag, |stat| stat.state == 'S');
    let shell = stat(command).unwrap().foreground;
    pane.line("jobs");
    pane.shows("Running");
    // It gets the terminal on request, and receives earlier input too.
    pane.line("fg");
    becomes(&tag, |stat| stat.foreground != shell);
    pane.press("C-\\");
    assert_eq!(pane.code(), 131);
    is_free(&env);
}

#[test]
fn hold_prints_how_to_end_it() {
    let env = Env::new();
    need!(pane = Pane::open(&env, &[]));
    env.post("resize");
    pane.line("jobboard claim --next --hold --lease 20s");
    pane.shows("^holding resize; Ctrl-C releases the claim. .* within 20s$");
    assert_eq!(env.state("@1"), "CLAIMED");
    pane.press("C-c");
    assert_eq!(pane.code(), 0);
    is_free(&env);
}

#[test]
fn editor_works_under_run() {
    let (env, tag) = (Env::new(), Tag::new());
    need!(pane = Pane::open(&env, &["vi"]));
    let file = env.file(&format!("note-{}", tag.text()));
    pane.line(&format!("jobboard run edit -- vi {}", file.display()));
    pane.shows(r"^~");
    pane.text("ihello");
    pane.shows("^hello");
    pane.press("Escape");
    pane.line(":wq");
    assert_eq!(pane.code(), 0);
    assert_eq!(fs::read_to_string(file).unwrap(), "hello\n");
    assert!(env.names().is_empty());
}

#[test]
fn terminal_is_restored_after_a_killed_command() {
    let (env, tag) = (Env::new(), Tag::new());
    need!(pane = Pane::open(&env, &["stty"]));
    // A shell at a prompt would restore the terminal itself; this one does not.
    let sleep = format!(
        "stty raw -echo; stty -g > during; exec sleep {}",
        tag.text()
    );
    let run = format!("jobboard run raw -- sh -c '{sleep}'");
    fs::write(
        env.file("script"),
        format!("stty -g > before\n{run}\nstty -g > after\n"),
    )
    .unwrap();
    pane.line("sh script");
    signal(in_foreground(&tag), Signal::KILL);
    assert_eq!(pane.code(), 0);
    let modes = ["before", "during", "after"].map(|name| fs::read(env.file(name)).unwrap());
    assert_ne!(modes[0], modes[1]);
    assert_eq!(modes[0], modes[2]);
    is_free(&env);
}

#[test]
fn command_works_in_a_pipeline() {
    let env = Env::new();
    need!(pane = Pane::open(&env, &["seq"]));
    pane.line("jobboard run count -- seq 3 | cat; echo codes ${PIPESTATUS[@]}");
    pane.shows("^1\n2\n3\ncodes 0 0$");
    // The process known to the shell reveals itself only to its child.
    pane.line("jobboard run look -- env > seen");
    assert_eq!(pane.code(), 0);
    let seen = fs::read_to_string(env.file("seen")).unwrap();
    assert!(seen.contains("\nJOBBOARD_JOB="), "{seen}");
    assert!(!seen.contains("JOBBOARD_FRONT"), "{seen}");
    assert!(env.names().is_empty());
}
