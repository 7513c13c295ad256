//! How far work has come, as terminals show it by themselves.

use std::{io::Write, process::ChildStdin, time::Duration};

use regex::Regex;

use crate::support::env::{Env, Running, comes_true, wait_until};

const UNCERTAIN: &str = "\u{1b}]9;4;3;0\u{1b}\\";

/// Starts to post what is typed, at a terminal that is known by a variable.
fn posting(env: &Env, options: &[&str], variables: &[(&str, &str)]) -> (Running, ChildStdin) {
    let words = [&["post", "--from", "-"], options].concat();
    let mut run = env.jobboard(&words).at_terminal(80).piped_stdin();
    for (name, value) in variables {
        run = run.env(name, value);
    }
    let mut run = run.spawn();
    let input = run.stdin();
    (run, input)
}

/// Goes on posting until the terminal has got this.
fn posts_until(run: &Running, input: &mut ChildStdin, got: &str) {
    wait_until(got, || {
        input.write_all(b"{\"name\":\"resize\"}\n").unwrap();
        comes_true(Duration::from_millis(50), || run.stdout().contains(got))
    });
}

/// Returns what the terminal was told last of how far it is.
fn last_report(text: &str) -> &str {
    let (_, last) = text.rsplit_once("\u{1b}]9;4;").unwrap();
    last.split_once("\u{1b}\\").unwrap().0
}

#[test]
fn supported_terminal_shows_progress_and_its_end() {
    let env = Env::new();
    for variable in [("TERM_PROGRAM", "ghostty"), ("WT_SESSION", "1")] {
        let (run, mut input) = posting(&env, &[], &[variable]);
        posts_until(&run, &mut input, UNCERTAIN);
        drop(input);
        let run = run.ended();
        assert_eq!(last_report(run.succeeded()), "0;0");
    }
}

#[test]
fn interrupted_work_clears_the_progress() {
    let env = Env::new();
    let (run, mut input) = posting(&env, &[], &[("TERM_PROGRAM", "WezTerm")]);
    posts_until(&run, &mut input, UNCERTAIN);
    // Typed as Ctrl-C is.
    input.write_all(b"\x03").unwrap();
    let run = run.ended();
    assert_eq!((run.code, last_report(&run.stdout)), (130, "0;0"), "{run}");
}

#[test]
fn other_terminals_get_no_progress_sequence() {
    let env = Env::new();
    let ghostty = ("TERM_PROGRAM", "ghostty");
    for (options, variables) in [
        (&[][..], &[("TERM_PROGRAM", "iTerm.app")][..]),
        (&[], &[ghostty, ("NO_COLOR", "1")]),
        (&["--color", "never"], &[ghostty]),
    ] {
        let (run, mut input) = posting(&env, options, variables);
        posts_until(&run, &mut input, "posting");
        drop(input);
        let run = run.ended();
        assert!(!run.succeeded().contains("\u{1b}]9;"), "{run}");
    }
}

#[test]
fn known_length_is_shown_as_a_percentage() {
    let env = Env::new();
    env.post_many(20);
    env.jobboard(&["trash", "--state", "UNCLAIMED", "--force", "--yes"])
        .run()
        .succeeded();
    let retry = ["retry", "--state", "TRASHED", "--rate", "10/s", "--yes"];
    let retry = env.jobboard(&retry).at_terminal(80);
    let run = retry.env("TERM_PROGRAM", "ghostty").run();
    let text = run.succeeded();
    let percent = Regex::new(r"\x1b\]9;4;1;(\d+)\x1b").unwrap();
    let told: Vec<u8> = percent
        .captures_iter(text)
        .map(|found| found[1].parse().unwrap())
        .collect();
    assert!(told.is_sorted() && told.last() == Some(&100), "{told:?}");
    assert_eq!(last_report(text), "0;0");
}
