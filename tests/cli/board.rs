//! Which files are boards, and when files are created.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use crate::support::env::{Env, Outcome, stays};

/// Calls that read or change a board; each would succeed or find nothing.
const CALLS: [&[&str]; 6] = [
    &["list"],
    &["ping"],
    &["post", "resize"],
    &["post", "resize", "--unique", "key"],
    &["claim", "--next"],
    &["consume", "@1", "--force", "--yes"],
];

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Requires that every call fails with code 1 and leaves the file unchanged.
fn is_left_alone(env: &Env, file: &Path, reason: &str) {
    let before = fs::read(file).unwrap();
    for call in CALLS {
        let url = format!("sqlite:{}", file.display());
        let run = env.jobboard(&[call, &["--board", &url]].concat()).run();
        assert!(run.failed(1).contains(reason), "{run}");
        assert!(
            fs::read(file).unwrap() == before,
            "{call:?} changed the file"
        );
    }
}

#[test]
fn file_of_a_newer_release_is_refused_unchanged() {
    let env = Env::new();
    env.post("resize");
    // Checkpointed, so that the bytes of the file show every change.
    let newer = "PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)";
    env.database().execute_batch(newer).unwrap();
    is_left_alone(&env, &env.board(), "layout 99");
}

#[test]
fn database_of_another_program_is_refused_unchanged() {
    let env = Env::new();
    let file = env.file("other.db");
    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("CREATE TABLE job (name TEXT)").unwrap();
    is_left_alone(&env, &file, "another program's database");
}

#[test]
fn numbered_database_of_another_program_is_refused_unchanged() {
    let env = Env::new();
    let file = env.file("other.db");
    let other = rusqlite::Connection::open(&file).unwrap();
    let tables = "CREATE TABLE job (name TEXT); PRAGMA user_version = 7";
    other.execute_batch(tables).unwrap();
    is_left_alone(&env, &file, "another program's database");
}

#[test]
fn file_that_is_no_database_is_refused_unchanged() {
    let env = Env::new();
    let file = env.file("notes.txt");
    fs::write(&file, "remember the milk\n".repeat(100)).unwrap();
    is_left_alone(&env, &file, "not a database");
}

#[test]
fn reading_a_missing_board_creates_nothing_and_notes_it() {
    let env = Env::new();
    let outcome = |arguments: &[&str]| {
        let run = env.jobboard(arguments).run();
        assert!(!env.root().join("state/jobboard").exists(), "{arguments:?}");
        run
    };
    let listed = outcome(&["list"]);
    assert_eq!(listed.succeeded(), "");
    assert!(outcome(&["ping"]).stderr.contains("no job was ever posted"));
    assert_eq!(outcome(&["list", "--json"]).json(), serde_json::json!([]));
    assert_eq!(outcome(&["list", "--count"]).succeeded(), "0\n");
    outcome(&["show", "@1"]).failed(3);
    outcome(&["owner", "@1"]).failed(3);
    outcome(&["claim", "--next"]).failed(6);
    outcome(&["consume", "@1"]).failed(3);
    outcome(&["wait", "--any", "--timeout", "10ms"]).failed(124);
    outcome(&["conductors"]).succeeded();
    insta::assert_snapshot!(listed, @"
    exit code 0
    --- stdout
    --- stderr
    no job was ever posted on sqlite:ROOT/state/jobboard/board.db
    ");
}

#[test]
fn missing_directory_is_an_error_for_every_reader() {
    let env = Env::new();
    for call in [
        &["list"][..],
        &["status"],
        &["report"],
        &["dump"],
        &["ping"],
        &["wait", "--empty"],
        &["claim", "--next"],
        &["watch"],
    ] {
        let run = env
            .jobboard(&[call, &["--board", "sqlite:deep/er/jobs.db"]].concat())
            .run();
        assert!(
            run.failed(5)
                .contains("the directory deep/er does not exist"),
            "{run}"
        );
    }
    env.ok("list --board sqlite:jobs.db");
}

#[test]
fn removed_board_is_not_taken_for_an_empty_one() {
    let env = Env::new();
    env.post("resize");
    let mut waiting = env.jobboard(&["wait", "--empty"]).spawn();
    waiting.opens("board.db-wal");
    let copy = env.root().join("kept.db");
    env.database()
        .pragma_update(None, "wal_checkpoint", "truncate")
        .unwrap();
    fs::copy(env.board(), &copy).unwrap();
    for file in fs::read_dir(env.board().parent().unwrap()).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    waiting.says("the board file was removed");
    // `wait` polls ten times a second at first.
    let long = std::time::Duration::from_millis(600);
    stays("it waits", long, || {
        !waiting.has_ended() && !waiting.stderr().contains("reconnected to")
    });
    fs::rename(copy, env.board()).unwrap();
    waiting.says("reconnected to");
    env.ok("consume @1 --force --yes");
    waiting.ended().succeeded();
}

#[test]
fn empty_board_differs_from_a_missing_one() {
    let env = Env::new();
    env.post("resize");
    env.ok("consume @1 --force --yes");
    let stderr = |arguments: &[&str]| env.jobboard(arguments).run().stderr;
    assert_eq!(stderr(&["list"]), "");
    assert_eq!(stderr(&["ping"]), "");
}

#[test]
fn created_files_are_readable_by_the_owner_alone() {
    let env = Env::new();
    fs::remove_dir(env.root().join("state")).unwrap();
    let post = env.jobboard(&["post", "resize"]);
    post.in_shell("umask 0; exec \"$@\"").run().succeeded();
    env.claim("@1", "ada");
    assert_eq!(mode(&env.root().join("state/jobboard")), 0o700);
    let files = fs::read_dir(env.root().join("state/jobboard")).unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert!(files.contains(&env.board()));
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn board_url_names_the_file() {
    let env = Env::new();
    let board = ["--board", "sqlite:deep/er/jobs.db"];
    let post = |more: &[&str]| env.jobboard(&[&["post", "resize"], more, &board].concat());
    // A misspelt path creates nothing, and an existing directory is sufficient.
    let refused = post(&[]).run();
    assert!(!env.file("deep").exists());
    insta::assert_snapshot!(refused, @"
    exit code 5
    --- stdout
    --- stderr
    error: cannot post resize: cannot create the board sqlite:deep/er/jobs.db: the directory deep/er does not exist
    hint: add `--create` to create the directory
    ");
    post(&["--create"]).run().succeeded();
    env.ok("post resize --board sqlite:deep/jobs.db");
    assert!(env.file("deep/jobs.db").exists());
    assert!(env.file("deep/er/jobs.db").exists());
    assert!(!env.board().exists());
}

#[test]
fn path_that_sqlite_would_read_as_a_uri_is_the_name_of_a_file() {
    let env = Env::new();
    for name in ["file:jobs.db", "file::memory:"] {
        let url = format!("sqlite:{name}");
        let post = ["post", "resize", "--board", &url];
        env.jobboard(&post).run().succeeded();
        assert!(env.file(name).exists(), "{name}");
        let listed = env.jobboard(&["list", "--count", "--board", &url]).run();
        assert_eq!(listed.succeeded(), "1\n", "{name}");
    }
    assert!(!env.file("jobs.db").exists());
}

#[test]
fn board_file_with_an_impossible_version_is_refused() {
    let env = Env::new();
    env.post("resize");
    for version in [0, -1] {
        env.database()
            .pragma_update(None, "user_version", version)
            .unwrap();
        for command in ["list", "wait --empty", "post other", "doctor"] {
            let refused = env.run(command);
            assert!(refused.failed(1).contains("another program"), "{refused}");
        }
    }
}

#[test]
fn full_sync_can_be_selected() {
    let env = Env::new();
    let board = ["--board", "sqlite:jobs.db?sync=full"];
    let run = |call: &[&str]| env.jobboard(&[call, &board].concat()).run();
    run(&["post", "resize"]).succeeded();
    assert_eq!(run(&["list", "--count"]).succeeded(), "1\n");
}

#[test]
fn unavailable_board_kinds_are_unsupported() {
    let env = Env::new();
    for url in ["redis://localhost:1", "zk://localhost:1"] {
        let run = env.jobboard(&["list", "--board", url, "--json"]).run();
        let kind = run.error()["kind"].clone();
        // A supported kind is unreachable at that port.
        assert!(kind == "unsupported" || kind == "unreachable", "{run}");
    }
}

#[test]
fn locked_board_times_out() {
    let env = Env::new();
    env.post("resize");
    let database = env.database();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let impatient = |call: &[&str]| -> Outcome {
        env.jobboard(&[call, &["--op-timeout", "50ms", "--json"]].concat())
            .run()
    };
    let refused = impatient(&["post", "resize"]);
    assert_eq!(refused.code, 5);
    assert_eq!(refused.error()["kind"], "unreachable");
    assert_eq!(impatient(&["list"]).json().as_array().unwrap().len(), 1);
    database.execute_batch("ROLLBACK").unwrap();
    impatient(&["post", "resize"]).succeeded();
}

#[test]
fn special_files_are_refused() {
    let env = Env::new();
    let pipe = env.file("pipe");
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, 0o600.into(), 0).unwrap();
    for path in ["/dev/zero", "/dev/null", pipe.to_str().unwrap()] {
        for call in CALLS {
            let url = format!("sqlite:{path}");
            let run = env.jobboard(&[call, &["--board", &url]].concat()).run();
            assert!(
                run.failed(1).contains("the path is not a regular file"),
                "{run}"
            );
        }
    }
}

#[test]
fn unwritable_board_is_readable() {
    let env = Env::new();
    let job = env.post("in-the-log");
    // With all files next to the board, with the log alone, and with neither.
    let script = "set -e; folder=$(dirname \"$1\"); kept=$(mktemp -d); cp \"$1\"* $kept; \
                  mount -t tmpfs none \"$folder\"; cp $kept/* \"$folder\"; \
                  for gone in none shm wal; do \
                      mount -o remount,rw \"$folder\"; rm -f \"$1-$gone\"; \
                      mount -o remount,ro \"$folder\"; \
                      \"$2\" list; \"$2\" show \"$3\" > /dev/null || echo gone; \
                      \"$2\" post b 2>&1 || echo $?; \
                  done";
    let (board, program) = (env.board(), env!("CARGO_BIN_EXE_jobboard"));
    let unshare = |words: &[&str]| env.program(Path::new("unshare"), &[&["-m"], words].concat());
    if unshare(&["mount", "-t", "tmpfs", "none", "/mnt"])
        .run()
        .code
        != 0
    {
        eprintln!("skipped: this user cannot mount anything");
        return;
    }
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    for has_log in [true, false] {
        if !has_log {
            let ends = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            env.database().query_row(checkpoint, [], ends).unwrap();
        }
        let board = board.to_str().unwrap();
        let run = unshare(&["sh", "-c", script, "sh", board, program, &job]).run();
        let lines: Vec<_> = run.succeeded().lines().collect();
        let listed = lines.iter().filter(|line| line.contains("in-the-log"));
        // Without its log the board lacks one job.
        let count = if has_log { 2 } else { 3 };
        assert_eq!(listed.count(), count, "{run}");
        let gone = lines.iter().filter(|line| **line == "gone");
        assert_eq!(gone.count(), 3 - count, "{run}");
        assert!(lines.contains(&"5"), "{run}");
    }
}
