//! `jobboard completions`.

use crate::support::env::Env;

#[test]
fn each_shell_gets_a_script_that_knows_the_commands() {
    let env = Env::new();
    for shell in ["bash", "zsh", "fish"] {
        let run = env.jobboard(&["completions", shell]).run();
        let script = run.succeeded();
        assert!(script.contains("conductors"), "{shell}");
        assert!(script.contains("check-first"), "{shell}");
        assert_eq!(run.stderr, "");
    }
}

#[test]
fn the_script_for_bash_is_one() {
    let env = Env::new();
    let script = env.jobboard(&["completions", "bash"]).run();
    let check = env
        .program("bash".as_ref(), &["-n"])
        .stdin(script.succeeded());
    assert_eq!(check.run().stderr, "");
}

/// Asks for completions of the last word, as a shell would.
fn completed(env: &Env, words: &[&str]) -> Vec<String> {
    let words = [&["--", "jobboard"], words].concat();
    let run = env.jobboard(&words).env("COMPLETE", "fish").run();
    let lines = run.succeeded().lines().map(str::to_owned);
    lines.filter(|line| !line.starts_with('-')).collect()
}

#[test]
fn references_are_completed_from_what_is_on_the_board_or_in_the_trash() {
    let env = Env::new();
    let uuids = env.post_many(2);
    env.trash("@2");
    let [one, other] = [&uuids[0], &uuids[1]].map(|uuid| &uuid[..8]);
    let shown = completed(&env, &["consume", ""]);
    assert!(shown.iter().any(|line| line.starts_with(one)), "{shown:?}");
    assert!(
        !shown.iter().any(|line| line.starts_with(other)),
        "{shown:?}"
    );
    let shown = completed(&env, &["restore", ""]);
    assert!(
        shown.iter().any(|line| line.starts_with(other)),
        "{shown:?}"
    );
    assert!(!shown.iter().any(|line| line.starts_with(one)), "{shown:?}");
    let shown = completed(&env, &["retry", ""]);
    for job in [one, other] {
        assert!(shown.iter().any(|line| line.starts_with(job)), "{shown:?}");
    }
}

#[test]
fn whatever_goes_wrong_while_completing_is_silence() {
    let env = Env::new();
    assert_eq!(completed(&env, &["consume", ""]), [""; 0]);
    assert!(!env.board().exists());
    env.configure("nonsense");
    assert_eq!(completed(&env, &["consume", ""]), [""; 0]);
}

#[test]
fn an_unknown_shell_is_refused() {
    let run = Env::new().jobboard(&["completions", "cmd"]).run();
    assert!(run.failed(2).contains("bash"), "{run}");
}
