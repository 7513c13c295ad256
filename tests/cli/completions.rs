//! `jobboard completions`, and the requests of its scripts.

use std::{path::Path, time::Duration};

use crate::{
    conduct::Stage,
    support::{Env, Pane, SOON, comes_true, play, wait_until, words},
};

#[test]
fn each_shell_script_asks_the_program() {
    let env = Env::new();
    for shell in ["bash", "zsh", "fish"] {
        let run = env.run(["completions", shell]);
        let script = run.succeeded();
        assert!(script.contains("COMPLETE"), "{shell}");
        // Scripts find the program by its name.
        assert!(!script.contains(env!("CARGO_BIN_EXE_jobboard")), "{shell}");
        assert_eq!(run.stderr, "");
    }
}

#[test]
fn packaged_scripts_are_the_same() {
    let env = Env::new();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("completions");
    for (shell, file) in [
        ("bash", "jobboard.bash"),
        ("zsh", "_jobboard"),
        ("fish", "jobboard.fish"),
    ] {
        let stored = std::fs::read_to_string(directory.join(file)).unwrap();
        let run = env.run(["completions", shell]);
        assert_eq!(run.succeeded(), stored, "{shell}");
    }
}

/// Returns the completions of the last word, without their descriptions.
fn completed(env: &Env, words: &[&str]) -> Vec<String> {
    let call = [&["--", "jobboard"], words].concat();
    let run = env.jobboard(&call).env("COMPLETE", "fish").run();
    assert_eq!(run.stderr, "");
    let lines = run.succeeded().lines();
    let values = lines.map(|line| line.split('\t').next().unwrap());
    // Options are offered where no value fits.
    let is_begun = words.last().is_some_and(|word| !word.is_empty());
    let values = values.filter(|value| is_begun || !value.starts_with('-'));
    values.map(str::to_owned).collect()
}

/// Requires exactly these completions. A busy machine may exceed the time limit, so it retries.
fn offers(env: &Env, words: &[&str], expected: &[&str]) {
    let mut shown = Vec::new();
    let is_shown = comes_true(SOON, || {
        shown = completed(env, words);
        shown == expected
    });
    assert!(is_shown, "{words:?}: {shown:?} and not {expected:?}");
}

#[test]
fn words_are_completed() {
    let env = Env::new();
    env.configure("[board.prod]\nurl = 'redis://127.0.0.1:1'\n[board.past]\nurl = 'sqlite:past'\n");
    for (line, expected) in [
        ("list --state un", "UNCLAIMED"),
        ("list --state=U", "--state=UNCLAIMED"),
        ("consume --state T", "TRASHED"),
        ("post a --priority v", "VERY_HIGH VERY_LOW"),
        ("watch --event conductor-j", "conductor-joined"),
        ("list --sort -h", "-held"),
        ("list --columns name,+si", "name,+size"),
        ("list --count --by state,own", "state,owner"),
        (
            "wait --any --filter pri",
            "priority= priority!= priority< priority<= priority> priority>=",
        ),
        ("list --board p", "past prod"),
        ("copy --to pr", "prod"),
        ("help exit", "exit-codes"),
        ("help abandon", "abandon"),
        ("schema ev", "event"),
        // The remaining words belong to the command.
        ("run a -- list --state un", ""),
    ] {
        offers(&env, &words(line), &words(expected));
    }
    let quoted = ["list", "--filter", "'state=UN"];
    offers(&env, &quoted, &["state=UNCLAIMED"]);
}

/// Posts an unclaimed, a claimed, a delayed and a trashed job, and returns their ids.
fn peopled(env: &Env) -> [String; 4] {
    let uuids: [String; 4] = env.post_many(4).try_into().unwrap();
    env.claim(&uuids[1], "ada");
    let failing = ["claim", &uuids[2], "--", "sh", "-c", "exit 75"];
    assert_ne!(env.run(failing).code, 0);
    env.trash(&uuids[3]);
    env.ok("pause night-*");
    uuids.map(|uuid| uuid[..8].to_owned())
}

fn only_suitable_jobs_are_offered_on(env: &Env) {
    let [free, claimed, held_back, trashed] = &peopled(env);
    let at = |ids: &[&String]| ids.iter().map(|id| id.to_string()).collect::<Vec<_>>();
    for (words, expected) in [
        (&["claim", ""][..], at(&[free, held_back])),
        (&["change", ""], at(&[free, held_back, trashed])),
        (&["consume", ""], at(&[claimed])),
        (&["abandon", ""], at(&[claimed])),
        (&["extend", ""], at(&[claimed])),
        (&["owner", ""], at(&[claimed])),
        (&["trash", "--force", ""], at(&[free, claimed, held_back])),
        (&["restore", ""], at(&[trashed])),
        (&["purge", ""], at(&[trashed])),
        (&["retry", ""], at(&[held_back, trashed])),
        (&["wait", ""], at(&[free, claimed, held_back])),
        (&["explain", ""], at(&[free, claimed, held_back, trashed])),
        (&["consume", &claimed[..5]], at(&[claimed])),
        (&["wait", free, held_back, ""], at(&[claimed])),
        (&["extend", "--force", "--owner", "a"], vec!["ada".into()]),
        (
            &["list", "--filter", "held>1h and owner=a"],
            vec!["held>1h and owner=ada".into()],
        ),
        (
            &["list", "--name", "job-"],
            ["job-0", "job-1", "job-2"].map(str::to_owned).to_vec(),
        ),
        (&["pause", "job-1"], vec!["job-1".into()]),
        (&["resume", ""], vec!["night-*".into()]),
    ] {
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        offers(env, words, &expected);
    }
}

#[test]
fn only_suitable_jobs_are_offered() {
    only_suitable_jobs_are_offered_on(&Env::new());
}

#[test]
fn only_suitable_jobs_are_offered_on_servers() {
    for stage in [Stage::redis(), Stage::zookeeper()].into_iter().flatten() {
        only_suitable_jobs_are_offered_on(&stage.env);
    }
}

#[test]
fn offered_job_has_a_description() {
    let env = Env::new();
    let uuid = env.post("resize");
    env.claim("@1", "ada");
    let call = ["--", "jobboard", "consume", ""];
    wait_until("it is offered", || {
        let run = env.jobboard(&call).env("COMPLETE", "fish").run();
        let offer = format!("{}\tresize CLAIMED by ada\n", &uuid[..8]);
        run.succeeded().starts_with(&offer)
    });
}

#[test]
fn conductors_are_completed() {
    let env = Env::new();
    env.post("resize");
    let row = "INSERT INTO conductor (name, host, pid, since, owner, token, alive_boot) VALUES
        ('c1', 'h1', 42, 1700000000000000, CAST('c1:owner' AS BLOB), 't', 9000000000000)";
    env.database().execute(row, []).unwrap();
    offers(&env, &["conductors", ""], &["c1"]);
}

#[test]
fn words_that_need_quotes_are_not_offered() {
    let env = Env::new();
    for name in ["two words", "$(reboot)", "it's", "plain"] {
        env.post(name);
    }
    offers(&env, &["pause", ""], &["plain"]);
}

#[test]
fn completion_errors_are_silent() {
    let env = Env::new();
    let questions: [&[&str]; 4] = [
        &["consume", ""],
        &["conductors", ""],
        &["resume", ""],
        &["list", "--filter", "owner="],
    ];
    for words in questions {
        assert_eq!(completed(&env, words), [""; 0]);
        assert!(!env.board().exists());
        let gone = [&["--board", "redis://127.0.0.1:1"], words].concat();
        assert_eq!(completed(&env, &gone), [""; 0]);
    }
    env.configure("nonsense");
    for words in questions {
        assert_eq!(completed(&env, words), [""; 0]);
    }
}

#[test]
fn bash_completes_jobs() {
    let env = Env::new();
    need!(pane = Pane::open(&env, &[]));
    let uuids = env.post_many(2);
    env.claim("@1", "ada");
    env.claim("@2", "ada");
    env.ok("pause night-*");
    pane.line("source <(jobboard completions bash)");
    for (typed, shown) in [
        ("jobboard li", "jobboard list$"),
        (
            "jobboard list --filter state=UN",
            "--filter state=UNCLAIMED$",
        ),
        (
            "jobboard list --filter=state=UN",
            "--filter=state=UNCLAIMED$",
        ),
        (
            "jobboard list --filter 'held>1h and out",
            "'held>1h and outcome$",
        ),
        ("jobboard list --filter de", "--filter details\\.$"),
        ("jobboard list --columns name,si", "name,size$"),
        (
            "X=1 jobboard list --board=sqlite:x --state un",
            "--state UNCLAIMED$",
        ),
        (
            "jobboard resume --reason 'a b' ",
            r"resume --reason 'a b' night-\\\*$",
        ),
    ] {
        pane.text(typed);
        completes(&pane, shown);
        pane.press("C-u");
        pane.line("clear");
    }
    pane.text("jobboard consume ");
    completes(
        &pane,
        &format!(r"^{}  \(job-0 CLAIMED by ada\)", &uuids[0][..8]),
    );
}

/// Presses the key until the screen shows the text: the first attempt may exceed the time limit.
fn completes(pane: &Pane, shown: &str) {
    wait_until(shown, || {
        pane.press("Tab");
        comes_true(Duration::from_secs(3), || pane.has(shown))
    });
}

#[test]
fn unknown_shell_is_refused() {
    play(
        r#"
        # an unknown shell
        2 completions cmd => bash
        "#,
    );
}
