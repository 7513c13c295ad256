//! The order of the sources of settings, and refusals for safety.

use std::fs;

use crate::support::{Env, Outcome, play};

/// An unclaimed job, a claimed one of ada, and a trashed one.
fn stocked() -> Env {
    let env = Env::new();
    env.post_many(3);
    env.claim("@2", "ada");
    env.trash("@3");
    env
}

/// Every call that changes the stocked board, and succeeds if permitted.
const CHANGES: [&[&str]; 18] = [
    &["post", "resize"],
    &["post", "--from", "lines.jsonl"],
    &["claim", "@1"],
    &["claim", "--next"],
    &["extend", "@2", "--expiry", "1h", "--who", "ada"],
    &["abandon", "@2", "--who", "ada"],
    &["abandon", "@2", "--force", "--yes"],
    &["consume", "@2", "--who", "ada"],
    &["consume", "@1", "--force", "--yes"],
    &["trash", "@2", "--who", "ada"],
    &["trash", "--filter", "owner=none", "--force", "--yes"],
    &["restore", "@3"],
    &["retry", "@3"],
    &["change", "@1", "--priority", "LOW"],
    &["restore", "--filter", "name=*", "--yes"],
    &["purge", "@3", "--yes"],
    &["purge", "--all", "--yes"],
    &["load", "lines.jsonl"],
];

/// A line to post or to load.
const LINE: &str = "{\"name\":\"a\",\"uuid\":\"1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b\"}\n";

#[test]
fn read_only_refuses_every_change() {
    let env = stocked();
    fs::write(env.file("lines.jsonl"), LINE).unwrap();
    let before = env.everything();
    let url = format!("sqlite:{}", env.board().display());
    let table = format!("[board.safe]\nurl = \"{url}\"\nread_only = true\n");
    env.configure(&table);
    for change in CHANGES {
        let by_flag = env.jobboard(&[change, &["--read-only"]].concat());
        let by_variable = env.jobboard(change).env("JOBBOARD_READ_ONLY", "1");
        let by_file = env.jobboard(&[change, &["--board", "safe"]].concat());
        for (command, source) in [
            (by_flag, "--read-only"),
            (by_variable, "JOBBOARD_READ_ONLY"),
            (by_file, "config.toml"),
        ] {
            command.run().fails(8, source);
        }
    }
    assert_eq!(env.everything(), before);
}

#[test]
fn unrestricted_board_accepts_every_change() {
    let stocked = stocked();
    let before = stocked.everything();
    for change in CHANGES {
        let env = stocked.copy();
        fs::write(env.file("lines.jsonl"), LINE).unwrap();
        env.ok(change);
        assert_ne!(env.everything(), before, "{change:?}");
    }
}

#[test]
fn read_only_allows_reading_and_dry_runs() {
    let env = stocked();
    for call in [
        &["list"][..],
        &["show", "@1"],
        &["owner", "@2"],
        &["status"],
        &["dash", "--once"],
        &["report"],
        &["check", "--warn", "rtt=1h"],
        &["doctor", "--only", "connection"],
        &["selftest"],
        &["selftest", "--dry-run"],
        &["dump"],
        &["ping"],
        &["conductors"],
        &["wait", "--any"],
        &["post", "a", "--dry-run"],
    ] {
        let run = env.jobboard(&[call, &["--read-only"]].concat());
        run.run().succeeded();
    }
}

#[test]
fn read_only_allows_a_dry_run_of_many_posts() {
    let env = Env::new();
    let post = ["post", "--from", "-", "--dry-run", "--read-only"];
    let run = env.jobboard(&post).stdin("{\"name\":\"a\"}\n").run();
    assert_eq!(run.succeeded().lines().count(), 1);
}

#[test]
fn force_filters_and_purges_need_yes_without_a_terminal() {
    let env = stocked();
    let before = env.everything();
    for change in CHANGES.iter().filter(|change| change.contains(&"--yes")) {
        let words: Vec<_> = change
            .iter()
            .filter(|word| **word != "--yes")
            .copied()
            .collect();
        env.run(words).exits(8, "--yes");
    }
    assert_eq!(env.everything(), before);
}

#[test]
fn bulk_confirmation_shows_the_count_and_five_jobs() {
    let env = Env::new();
    env.post_many(7);
    let words = ["trash", "--filter", "name=*", "--force"];
    let run = env.jobboard(&words).at_terminal(80).stdin("n\n").run();
    assert_eq!(run.code, 8, "{run}");
    assert_eq!(run.stdout.matches(" job-").count(), 5, "{run}");
    run.shows("and 2 more");
    run.shows("trash 7 jobs by force?");
    assert_eq!(env.names().len(), 7);
    let run = env.jobboard(&words).at_terminal(80).stdin("y\n").run();
    assert_eq!(run.code, 0, "{run}");
    assert!(env.names().is_empty());
}

/// The stocked board as the protected board `prod`.
fn protected() -> Env {
    protected_copy(&stocked())
}

fn protected_copy(stocked: &Env) -> Env {
    let env = stocked.copy();
    let url = format!("sqlite:{}", env.board().display());
    let table = format!("default = \"prod\"\n[board.prod]\nurl = \"{url}\"\nprotected = true\n");
    env.configure(&table);
    env
}

#[test]
fn protected_board_requires_its_name_for_dangerous_changes() {
    let env = protected();
    let before = env.everything();
    for change in CHANGES.iter().filter(|change| change.contains(&"--yes")) {
        for confirmation in [&[][..], &["--confirm", "other"], &["--confirm", ""]] {
            let run = env.run([change, confirmation].concat());
            run.exits(8, "--confirm prod");
        }
    }
    assert_eq!(env.everything(), before);
}

#[test]
fn confirmed_name_allows_dangerous_changes() {
    let stocked = stocked();
    for change in CHANGES.iter().filter(|change| change.contains(&"--yes")) {
        let env = protected_copy(&stocked);
        let words: Vec<_> = change
            .iter()
            .filter(|word| **word != "--yes")
            .copied()
            .collect();
        let run = env.jobboard(&[&words[..], &["--confirm", "prod"]].concat());
        run.run().succeeded();
    }
}

#[test]
fn protected_board_asks_for_its_name_on_a_terminal() {
    let env = protected();
    let purge = |answer: &str| {
        let run = env.jobboard(&["purge", "@3", "--yes"]).at_terminal(80);
        run.stdin(format!("{answer}\n")).run()
    };
    let refused = purge("yes");
    assert_eq!(refused.code, 8, "{refused}");
    refused.shows("type the name of the board");
    assert_eq!(env.state("@3"), "TRASHED");
    purge("prod").has_code(0);
}

#[test]
fn owner_needs_no_confirmation_on_a_protected_board() {
    let env = protected();
    for change in [
        &["claim", "@1"][..],
        &["consume", "@2", "--who", "ada"],
        &["restore", "@3"],
        &["post", "resize"],
    ] {
        env.ok(change);
    }
}

/// A run with a secret in every possible place.
fn with_secrets(env: &Env, arguments: &[&str]) -> Outcome {
    env.jobboard(arguments)
        .env("JOBBOARD_PASSWORD", "hunter2")
        .run()
}

#[test]
fn secrets_are_in_no_output() {
    let env = stocked();
    env.configure(
        "[board.a]\nurl = \"redis://ada:hunter2@localhost:1\"\n\
         [board.b]\nurl = \"zk://ada:hunter2@localhost:1/x/..\"\n\
         [board.c]\nurl = \"redis://localhost:1\"\npassword_command = [\"echo\", \"hunter2\"]\n",
    );
    let boards = [
        "redis://ada:hunter2@localhost:1/0",
        "redis://ada:hunter2@localhost:1/notanumber",
        "redis://ada:hunter2",
        "redis://ada:hunt@er2hunter2@localhost",
        "rediss://localhost?password=hunter2",
        "redis+sentinel://:hunter2@localhost",
        "octavia:redis://ada:hunter2@localhost",
        "octavia:octavia.conf,redis://ada:hunter2@localhost",
        "sqlite:redis://ada:hunter2@localhost",
        "a",
        "b",
        "c",
        "sqlite:jobs.db",
    ];
    for board in boards {
        for call in [&["config"][..], &["list"], &["ping"], &["post", "a"]] {
            for format in [&["-o", "table"][..], &["--json"]] {
                let words = [call, format, &["--board", board]].concat();
                let run = with_secrets(&env, &words);
                let printed = format!("{}{}", run.stdout, run.stderr);
                assert!(!printed.contains("hunter2"), "{words:?}: {printed}");
                assert!(!printed.is_empty(), "{words:?}");
            }
        }
    }
}

#[test]
fn refusals_for_safety() {
    play(
        r#"
        # --max refuses larger selections
        0 post a
        0 post b
        8 consume --filter name=* --force --yes --max 1 => error: 2 jobs selected, but --max is 1; nothing changed\nhint: use --dry-run to list the jobs, or raise --max
        0 consume --filter name=* --force --yes --max 2
        names

        # an error in the file does not show the secret line
        config [board.a]\nurl = "redis://ada:hunter2@localhost" x\n
        2 list => config.toml, line !> hunter2
        config [board.a]\nurl = ["redis://ada:hunter2@localhost"]\n
        2 list => config.toml, line !> hunter2
        config [board.a]\nurl = "redis://localhost"\npassword = "hunter2"\n
        2 list => config.toml, line !> hunter2
        config [board.a]\nurl = "redis://localhost"\npassword_file = 7\n# hunter2\n
        2 list => config.toml, line !> hunter2

        # a password in the URL causes a warning
        5 list --board redis://ada:hunter2@localhost:1 => warning:  => --password-file

        # the resolved settings are used
        config default = "a"\n[board.a]\nurl = "sqlite:a.db"\nwho = "file"\n
        0 post resize
        0 claim @1 --who flag
        0 list --count --board sqlite:ROOT/config/jobboard/a.db == 1
        0 owner @1 == flag
        0 post grow
        0 claim @2
        0 owner @2 == file

        # a named configuration file replaces the others
        config default = "a"\n[board.a]\nurl = "sqlite:/a.db"\n
        file mine.toml op_timeout = "7s"\n
        0 config --config mine.toml -> op_timeout\t7s\tmine.toml -> board\tnone\t
        2 config --config missing.toml => missing.toml

        # the board comes from the flag, then the environment, then the file
        0 config -> url\tsqlite:ROOT/state/jobboard/board.db\tdefault
        config default = "a"\n[board.a]\nurl = "sqlite:/a.db"\n
        0 config -> url\tsqlite:/a.db\tROOT/config/jobboard/config.toml
        0 JOBBOARD_URL=sqlite:/b.db config -> url\tsqlite:/b.db\tJOBBOARD_URL
        0 JOBBOARD_URL=sqlite:/b.db config --board sqlite:/c.db -> url\tsqlite:/c.db\t--board

        # the owner comes from the flag, then the environment, then the file
        config default = "a"\n[board.a]\nurl = "sqlite:a.db"\nwho = "file"\n
        0 config -> who\tfile\tROOT/config/jobboard/config.toml
        0 JOBBOARD_WHO=variable config -> who\tvariable\tJOBBOARD_WHO
        0 JOBBOARD_WHO=variable config --who flag -> who\tflag\t--who

        # read-only cannot be lifted
        0 post resize
        config [board.safe]\nurl = "sqlite:ROOT/state/jobboard/board.db"\nread_only = true\n
        8 JOBBOARD_READ_ONLY=0 claim @1 --board safe
        "#,
    );
}
