//! Shared behaviour of all commands: the place, form and end of output.

use crate::support::{Env, Invocation, Outcome, assert_contains, play};

/// A call of each command that prints something on the stocked board, and its input.
const CALLS: [(&[&str], &str); 32] = [
    (&["post", "resize"], ""),
    (&["post", "resize", "--dry-run"], ""),
    (
        &["post", "--from", "-"],
        "{\"name\":\"a\"}\n{\"name\":\"b\"}\n",
    ),
    (&["list"], ""),
    (&["list", "--count"], ""),
    (&["show", "@1", "@2"], ""),
    (&["owner", "@2"], ""),
    (&["claim", "@1"], ""),
    (&["extend", "@2", "--expiry", "1h"], ""),
    (&["abandon", "@2"], ""),
    (&["consume", "@2"], ""),
    (&["trash", "@2"], ""),
    (&["restore", "-"], "@3\n"),
    (&["retry", "@3"], ""),
    (&["change", "@1", "--priority", "LOW"], ""),
    (&["purge", "--all", "--yes"], ""),
    (&["purge", "--all", "--dry-run"], ""),
    (&["wait", "--any"], ""),
    (&["dump"], ""),
    (&["dump", "it"], ""),
    (&["copy", "--to", "sqlite:other.db"], ""),
    (
        &["load", "-"],
        "{\"name\":\"a\",\"uuid\":\"1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b\"}\n",
    ),
    (&["status"], ""),
    (&["report"], ""),
    (&["ping"], ""),
    (&["config"], ""),
    (&["conductors"], ""),
    (&["completions", "bash"], ""),
    (&["man"], ""),
    (&["man", "pages"], ""),
    (&["selftest", "--dry-run"], ""),
    (&["selftest", "--read-only"], ""),
];

/// An unclaimed job, one of ours, a trashed one, and a conductor.
fn stocked() -> Env {
    let env = Env::new();
    env.post_many(3);
    env.ok("claim @2");
    env.trash("@3");
    let conductor = "INSERT INTO conductor (name, host, pid, since, owner, token, alive_boot)
        VALUES ('c1', 'h1', 42, 0, CAST('c1' AS BLOB), 't', 9000000000000)";
    env.database().execute(conductor, []).unwrap();
    env
}

/// Prepares each call on its own board.
fn each_call(options: &[&str], mut check: impl FnMut(&[&str], Invocation)) {
    let stocked = stocked();
    for (call, input) in CALLS {
        let env = stocked.copy();
        let words = [call, options].concat();
        check(call, env.jobboard(&words).stdin(input));
    }
}

#[test]
fn json_is_complete_for_a_program_that_closes_stderr() {
    for format in ["json", "jsonl"] {
        each_call(&["-o", format], |call, run| {
            let run = run.in_shell("exec \"$@\" 2>&-").run();
            run.succeeded();
            assert!(!run.values().is_empty(), "{call:?}");
        });
    }
}

#[test]
fn jsonl_has_one_value_per_line() {
    each_call(&["-o", "jsonl"], |call, run| {
        let run = run.run();
        let lines = run.succeeded().lines();
        for line in lines {
            let value: Result<serde_json::Value, _> = serde_json::from_str(line);
            assert!(value.is_ok(), "{call:?}: {line}");
        }
    });
}

#[test]
fn closed_pipe_ends_every_command_quietly() {
    for format in ["table", "tsv", "json", "jsonl"] {
        each_call(&["-o", format], |call, run| {
            let run = run.run_unread();
            assert_eq!(run.code, 0, "{call:?}: {run}");
            assert!(!run.stderr.contains("error"), "{call:?}: {run}");
        });
    }
}

#[test]
fn closed_pipe_ends_help_quietly() {
    let env = Env::new();
    for call in [
        &["--help"][..],
        &["help", "post"],
        &["post", "-h"],
        &["--version"],
    ] {
        let run = env.jobboard(call).run_unread();
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{call:?}");
    }
}

#[test]
fn closed_pipe_ends_a_long_listing_quietly() {
    let env = Env::new();
    env.post_many(5000);
    for call in [
        &["list"][..],
        &["list", "-o", "table"],
        &["list", "--json"],
        &["list", "-o", "jsonl"],
        &["list", "--sort", "name"],
        &["list", "--sort", "none"],
    ] {
        // The exit code of the listing itself, not of the pipe.
        let script = "{ \"$@\"; echo $? >&2; } | head -n 1";
        let run = env.jobboard(call).in_shell(script).run();
        assert_eq!(run.succeeded().lines().count(), 1, "{call:?}");
        assert_eq!(run.stderr, "0\n", "{call:?}");
    }
}

#[test]
fn unwritable_output_is_a_failure() {
    let env = stocked();
    for format in ["table", "tsv", "json", "jsonl"] {
        let list = env.jobboard(&["list", "-o", format]);
        let run = list.in_shell("exec \"$@\" >/dev/full").run();
        run.fails(1, "no space left");
    }
}

#[test]
fn unwritable_output_of_a_change_is_repeated_in_the_error() {
    let env = stocked();
    let unwritten = |words: &[&str]| {
        let run = env.jobboard(words).in_shell("exec \"$@\" >/dev/full").run();
        run.fails(1, "no space left");
        run.stderr
    };
    let posted = unwritten(&["post", "urgent", "--priority", "VERY_HIGH"]);
    let uuid = env.show("@4")["uuid"].as_str().unwrap().to_owned();
    assert_contains(&posted, format!("urgent is posted as {uuid}"));
    let claimed = unwritten(&["claim", "--next"]);
    assert_eq!(env.state("@4"), "CLAIMED");
    assert_contains(&claimed, format!("`jobboard abandon {uuid}`"));
    let consumed = unwritten(&["consume", &uuid]);
    assert_contains(&consumed, "consume succeeded for at least 1 job");
}

#[test]
fn pipe_has_colour_only_on_request() {
    for format in ["table", "tsv"] {
        each_call(&["-o", format], |_, run| {
            let run = run.run();
            assert!(!run.succeeded().contains('\u{1b}'), "{run}");
            assert!(!run.stderr.contains('\u{1b}'), "{run}");
        });
    }
    let env = stocked();
    let coloured = |format: &str| {
        let run = env.run(format!("list --color always -o {format}"));
        run.succeeded().contains('\u{1b}')
    };
    assert!(coloured("table"));
    assert!(!coloured("tsv"));
    assert!(!coloured("json"));
}

#[test]
fn terminal_has_colour_unless_refused() {
    let env = stocked();
    let is_coloured = |run: Invocation| {
        let run = run.at_terminal(80).run();
        run.prints("job-0");
        run.stdout.contains("\u{1b}[")
    };
    let list = || env.jobboard(&["list"]);
    assert!(is_coloured(list()));
    assert!(is_coloured(list().env("NO_COLOR", "")));
    assert!(!is_coloured(list().env("NO_COLOR", "1")));
    assert!(!is_coloured(list().env("TERM", "dumb")));
    assert!(!is_coloured(env.jobboard(&["list", "--color", "never"])));
    let always = env.jobboard(&["list", "--color", "always"]);
    assert!(is_coloured(always.env("NO_COLOR", "1")));
}

#[test]
fn help_and_usage_errors_respect_the_colour_option() {
    let env = Env::new();
    for call in [&["help", "list"][..], &["lst"], &["list", "--limit", "x"]] {
        let words = [&["--color", "never"], call].concat();
        let run = env.jobboard(&words).at_terminal(80).run();
        assert!(!run.stdout.contains('\u{1b}'), "{run}");
    }
}

#[test]
fn quiet_silences_notes_but_neither_data_nor_errors() {
    let env = stocked();
    let both = |call: &[&str]| -> [Outcome; 2] {
        let quiet = [call, &["-q"]].concat();
        [call, &quiet].map(|words| env.run(words))
    };
    let [loud, quiet] = both(&["list", "--limit", "1", "-o", "uuid"]);
    assert_eq!(loud.succeeded(), quiet.succeeded());
    loud.warns("1 more");
    assert_eq!(quiet.stderr, "");
    let [loud, quiet] = both(&["show", "@99"]);
    assert_eq!(loud.failed(3), quiet.failed(3));
}

#[test]
fn quiet_success_leaves_stderr_empty() {
    each_call(&["-q"], |call, run| {
        let run = run.run();
        assert!(!run.succeeded().is_empty(), "{call:?}");
        assert_eq!(run.stderr, "", "{call:?}");
    });
}

#[test]
fn results_of_verbs_have_three_fields_in_a_pipe() {
    let stocked = stocked();
    for (call, input) in &CALLS[7..13] {
        let env = stocked.copy();
        let run = env.jobboard(call).stdin(*input).run();
        let fields: Vec<_> = run.succeeded().trim_end_matches('\n').split('\t').collect();
        assert_eq!(fields.len(), 3, "{run}");
        assert!(uuid::Uuid::try_parse(fields[0]).is_ok(), "{run}");
    }
}

#[test]
fn new_default_board_is_named_once_on_a_terminal() {
    let names_the_board = |run: Invocation| {
        let run = run.at_terminal(80).run();
        run.succeeded().contains("using the board")
    };
    let post = ["post", "resize"];
    let env = Env::new();
    assert!(names_the_board(env.jobboard(&post)));
    assert!(!names_the_board(env.jobboard(&post)));
    assert!(names_the_board(env.jobboard(&["list", "-v"])));
    assert_eq!(env.run("list").stderr, "");
    for option in ["-q", "--json"] {
        let env = Env::new();
        assert!(!names_the_board(
            env.jobboard(&[&post[..], &[option]].concat())
        ));
    }
    let env = Env::new();
    let url = format!("sqlite:{}", env.file("chosen.db").display());
    assert!(!names_the_board(
        env.jobboard(&post).env("JOBBOARD_URL", &url)
    ));
}

/// Jobs with wide columns.
fn wide() -> Env {
    let env = Env::new();
    let name = "a name that is as long as people make them, héllo ☃ 日本語";
    let posted = env.run(format!("post '{name}' --priority very_high"));
    posted.succeeded();
    env.post("resize");
    let who = "somebody@a-long-host-name.in.some.domain.example.com";
    env.ok(format!("claim @1 --expiry 2d --who {who}"));
    env
}

/// Returns the line widths of a table on a terminal of this width.
fn widths(columns: u16) -> Vec<usize> {
    let list = ["list", "-q", "--color", "never"];
    let run = wide().jobboard(&list).at_terminal(columns).run();
    let lines = run.succeeded().lines();
    lines.map(unicode_width::UnicodeWidthStr::width).collect()
}

#[test]
fn table_fits_80_columns() {
    let widths = widths(80);
    assert_eq!(widths.len(), 3);
    assert!(widths.iter().all(|width| *width <= 80), "{widths:?}");
}

#[test]
fn table_fits_60_columns() {
    let widths = widths(60);
    assert_eq!(widths.len(), 3);
    assert!(widths.iter().all(|width| *width <= 60), "{widths:?}");
}

#[test]
fn wide_terminal_truncates_nothing() {
    let list = ["list", "-q", "--color", "never"];
    let run = wide().jobboard(&list).at_terminal(200).run();
    run.prints("日本語");
    run.shows("example.com");
    assert!(!run.stdout.contains('…'), "{run}");
}

#[test]
fn escaped_fields_are_reversible() {
    let env = Env::new();
    env.post("a\\tb");
    let line = env.run("list");
    assert_eq!(line.succeeded().split('\t').nth(1), Some("a\\\\tb"));
}

#[test]
fn closed_pipe_does_not_stop_the_work() {
    let env = Env::new();
    let lines = "{\"name\": \"resize\"}\n".repeat(5000);
    let post = env.jobboard(&["post", "--from", "-"]).stdin(lines);
    post.run_unread().succeeded();
    assert_eq!(env.names().len(), 5000);
    let trash = ["trash", "--filter", "name=resize", "--force", "--yes"];
    env.jobboard(&trash).run_unread().succeeded();
    assert!(env.names().is_empty());
}

#[test]
fn quiet_claim_without_a_claimable_job_prints_nothing() {
    play(
        r#"
        # a quiet claim without a claimable job
        6 claim --next --filter name=no-such-name -q => (nothing)
        6 claim --next --filter name=no-such-name => no job
        "#,
    );
}
