//! Errors without a server: of the command line, the configuration and files.

use std::fs;

use super::Errors;
use crate::support::Env;

/// Invalid or contradictory command lines.
const MISTAKES: &[&str] = &[
    "frobnicate",
    "kill 3f9a",
    "list --state failed",
    "list -n -1",
    "retry --all",
    "conduct -n 2",
    "trash --force --filter report",
    "post a -- ./report",
    "post a max_attempts=2 -- true",
    "post a env:=1 -- true",
    "post echo hi",
    "run hi",
    "lst",
    "trsh",
    "-q",
    "list --bord x",
    "list --filter name",
    "list --filter nam=x",
    "list --filter age>5",
    "list --filter =x",
    "list --filter details..a=x",
    "list --filter name=[",
    "list --filter name~(",
    "list --filter size>x",
    "list --filter sequence=x",
    "list --filter state=gone",
    "list --filter priority=URGENT",
    "list --filter name%x",
    "list --state gone",
    "list --name [",
    "list --sort colour",
    "list --columns colour",
    "list --columns name,-name",
    "list --by state",
    "list --count --by colour",
    "list --limit x",
    "list --count --limit 1",
    "list one two",
    "list --op-timeout 5",
    "list --op-timeout 0s",
    "list --op-timeout 5x",
    "list -q -v",
    "show",
    "claim zz",
    "show @x",
    "show unique:",
    "owner - -",
    "claim",
    "claim 12",
    "claim --next --expiry 5",
    "claim --next --expiry 0s",
    "claim --next --lease 10s",
    "claim --next --filter name",
    "claim abcd --wait 1s",
    "claim --next --",
    "extend abcd",
    "trash",
    "trash --limit 1",
    "trash abcd --limit 1",
    "trash abcd --owner ada",
    "abandon --filter name",
    "purge",
    "purge --older-than 5",
    "restore --max x",
    "change abcd",
    "change abcd --set x",
    "change abcd --priority URGENT",
    "copy",
    "copy --to nowhere",
    "load",
    "load nothing",
    "load a b",
    "dump --filter name",
    "retry",
    "retry abcd --rate 5",
    "post",
    "post a b",
    "post a b:=x",
    "post a b=1 b=2",
    "post a =x",
    "post a --uuid x",
    "post a --unique  --uuid 1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b",
    "post a --book x",
    "post a --priority URGENT",
    "post a --details x",
    "post a --details []",
    "post a --details @nothing",
    "post a --from x",
    "post a --timeout 1s",
    "post a command=x -- true",
    "post a --",
    "run a",
    "run a --on-failure purge -- true",
    "wait",
    "watch --count x",
    "dash",
    "dash --view colours",
    "dash --once --act",
    "report --at yesterday",
    "conduct --jobs 0",
    "conduct --output nowhere",
    "conduct --allow [",
    "conduct --metrics somewhere",
    "metrics --textfile board.txt",
    "mend",
    "mend --apply",
    "mend --lb xyz",
    "mend --all --apply",
    "drill --lease 1s",
    "drill --jobs 2",
    "drill --yours --copy",
    "selftest --for 1s",
    "selftest --for soon",
    "selftest --clean --dry-run",
    "completions tcsh",
    "list --who ",
    "list --board ",
    "list --board nowhere",
    "list --board ./board.db",
    "list --board http://h",
    "list --board redis-cluster://h",
    "list --board sqlite:",
    "list --board sqlite::memory:",
    "list --board sqlite:///x.db",
    "list --board sqlite:x?sink=full",
    "list --board redis://",
    "list --board redis://h:x",
    "list --board redis://h/x",
    "list --board redis://h?x=y",
    "list --board zk://h?session=5",
    "list --config nothing.toml",
];

/// Unreadable or contradictory configurations.
const CONFIGURATIONS: &[&str] = &[
    "default",
    "colour = 1",
    "default = \"a\"",
    "default = \"a\"\n[board.a]\n",
    "default = \"a\"\n[board.a]\nurl = \"http://h\"",
    "default = \"a\"\n[board.a]\nurl = \"sqlite:x\"\nread_only = 1",
    "default = \"a\"\n[board.a]\nurl = \"sqlite:x\"\nwho = \"\"",
    "op_timeout = \"5\"",
    "max_details = \"x\"",
];

pub(super) fn provoke(errors: &mut Errors) -> Option<()> {
    let env = Env::new();
    let mut mistakes = errors.of(&env, None);
    for command in MISTAKES {
        mistakes.expect("usage", command);
    }
    mistakes.expect("usage", "post --from nothing");
    mistakes.expect("refused", "conduct --board redis://h");
    mistakes.expect("refused", "conduct --metrics 0.0.0.0:0");
    mistakes.expect("failed", "conduct --otlp-file none/spans");
    mistakes.expect("failed", "metrics --textfile none/board.prom");
    mistakes.expect("usage", "list --board redis://h --password-file nothing");
    for configuration in CONFIGURATIONS {
        let env = Env::new();
        fs::write(env.file("config.toml"), configuration).unwrap();
        let mut wrong = errors.of(&env, None);
        wrong.expect("usage", "--config config.toml list");
    }
    jobs(errors);
    consent(errors);
    files(errors);
    Some(())
}

/// Errors about jobs.
fn jobs(errors: &mut Errors) {
    let env = Env::new();
    let board = format!("sqlite:{}", env.board().display());
    let alike = ["5f3a0000", "5f3a0001"].map(|uuid| format!("{uuid}-8f0e-4d0a-8a43-6b0c3f6d2e7b"));
    for uuid in &alike {
        env.ok(format!("post twin --uuid {uuid}"));
    }
    let (free, held) = (env.post("free"), env.post("held"));
    env.claim(&held, "ada");
    let mut error = errors.of(&env, Some(&board));
    for (kind, command) in [
        ("not-found", "show abcd"),
        ("not-found", "show nosuch"),
        ("not-found", "wait unique:typo"),
        ("not-found", "trash abcd"),
        ("not-found", "owner @99"),
        ("not-found", "wait key:none"),
        ("not-found", "restore @1"),
        ("not-found", "purge @1 --yes"),
        ("not-found", "retry @99"),
        ("not-found", "conductors nix"),
        ("ambiguous", "claim 5f3a"),
        ("exists", &format!("post a --uuid {}", alike[0])),
        ("already-claimed", &format!("claim {held}")),
        ("already-claimed", &format!("retry {held}")),
        ("not-delayed", &format!("retry {free}")),
        ("not-owner", &format!("trash {held}")),
        ("not-owner", &format!("consume {held}")),
        ("not-owner", &format!("abandon {held}")),
        ("not-owner", &format!("extend {held} --expiry 1m")),
        ("not-claimed", &format!("trash {free}")),
        ("not-claimed", &format!("consume {free}")),
        ("not-claimed", &format!("abandon {free}")),
        ("not-claimed", &format!("extend {free} --expiry 1m")),
        ("not-found", &format!("owner {free}")),
        (
            "changed",
            &format!("abandon {held} --force --owner bob --yes"),
        ),
        ("not-found", "claim --next --filter name=nothing"),
        ("unsupported", "list --sort taskflow"),
        ("timeout", &format!("wait {held} --timeout 1s")),
        ("timeout", "claim --next --filter name=nothing --wait 1s"),
    ] {
        error.expect(kind, command);
    }
    error.board = None;
    error.expect("ambiguous", "show twin");
    error.expect("usage", "claim free");
    error.expect("ambiguous", "trash --force twin");
    error.expect("usage", "consume --force twin");
    error.expect("failed", &format!("trash {free} {held}"));
    error.expect("failed", &format!("owner {free} {held} abcd"));
    error.expect("failed", "trash --state UNCLAIMED --yes");
}

/// Refusals for safety.
fn consent(errors: &mut Errors) {
    let env = Env::new();
    let held = env.post("held");
    env.claim(&held, "ada");
    let mut error = errors.of(&env, None);
    for command in [
        "trash --name held",
        "trash --name held --max 0",
        "post a --read-only",
        "selftest",
        "selftest --clean --read-only",
        &format!("trash {held} --force"),
        &format!("trash {held} --force --confirm x"),
    ] {
        error.expect("refused", command);
    }
    let env = Env::new();
    env.configure("default = \"a\"\n[board.a]\nurl = \"sqlite:a.db\"\nprotected = true\n");
    env.post("held");
    let mut error = errors.of(&env, None);
    error.expect("refused", "trash @1 --force --yes");
    error.expect("refused", "trash @1 --force --confirm b");
}

/// Unusable board files.
fn files(errors: &mut Errors) {
    let env = Env::new();
    fs::create_dir(env.file("folder")).unwrap();
    fs::write(
        env.file("text"),
        "this is no database at all, and long enough",
    )
    .unwrap();
    fs::write(env.file("foreign.db"), "").unwrap();
    let foreign = rusqlite::Connection::open(env.file("foreign.db")).unwrap();
    foreign.execute_batch("CREATE TABLE a (b)").unwrap();
    let long = format!("sqlite:{}", "x".repeat(240));
    for (kind, board, command) in [
        ("usage", long.as_str(), "selftest"),
        ("failed", "sqlite:folder", "list"),
        ("failed", "sqlite:text", "list"),
        ("failed", "sqlite:foreign.db", "post a"),
        ("unreachable", "sqlite:none/x.db", "post a"),
        ("unreachable", "sqlite:none/x.db", "run a -- true"),
        ("failed", "sqlite:/proc/none/x.db", "post a --create"),
    ] {
        let mut error = errors.of(&env, Some(board));
        let command = format!("--board {board} {command}");
        error.expect(kind, &command);
    }
}
