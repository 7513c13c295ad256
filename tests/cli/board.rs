//! Which files are boards, and when files are created.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use crate::support::{Env, Outcome, play, stays};

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
        let run = env.run([call, &["--board", &url]].concat());
        run.fails(1, reason);
        assert!(
            fs::read(file).unwrap() == before,
            "{call:?} changed the file"
        );
    }
}

/// Creates a database with these statements.
fn database(file: &Path, statements: &str) {
    let other = rusqlite::Connection::open(file).unwrap();
    other.execute_batch(statements).unwrap();
}

#[test]
fn unusable_files_are_refused_unchanged() {
    let env = Env::new();
    env.post("resize");
    // Checkpointed, so that the bytes of the file show every change.
    let newer = "PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)";
    env.database().execute_batch(newer).unwrap();
    is_left_alone(&env, &env.board(), "layout 99");
    let other = "CREATE TABLE job (name TEXT)";
    for statements in [other, &format!("{other}; PRAGMA user_version = 7")] {
        let file = env.file(&format!("{}.db", statements.len()));
        database(&file, statements);
        is_left_alone(&env, &file, "another program's database");
    }
    let file = env.file("notes.txt");
    fs::write(&file, "remember the milk\n".repeat(100)).unwrap();
    is_left_alone(&env, &file, "not a database");
}

#[test]
fn removed_board_is_not_taken_for_an_empty_one() {
    let env = Env::new();
    env.post("resize");
    let mut waiting = env.jobboard(&["wait", "--empty"]).spawn();
    // The last of the board's files that it opens: before, the board may be gone when it begins.
    waiting.opens("board.db-shm");
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
fn locked_board_times_out() {
    let env = Env::new();
    env.post("resize");
    let database = env.database();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let impatient = |call: &[&str]| -> Outcome {
        env.run([call, &["--op-timeout", "50ms", "--json"]].concat())
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
            let run = env.run([call, &["--board", &url]].concat());
            run.fails(1, "the path is not a regular file");
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

#[test]
fn missing_and_unusable_boards() {
    play(
        r#"
        # a missing directory is an error for every reader and for a post
        5 list --board sqlite:deep/er/jobs.db => the directory deep/er does not exist
        5 status --board sqlite:deep/er/jobs.db => the directory deep/er does not exist
        5 report --board sqlite:deep/er/jobs.db => the directory deep/er does not exist
        5 dump --board sqlite:deep/er/jobs.db => the directory deep/er does not exist
        5 ping --board sqlite:deep/er/jobs.db => the directory deep/er does not exist
        5 wait --empty --board sqlite:deep/er/jobs.db => the directory deep/er does not exist
        5 claim --next --board sqlite:deep/er/jobs.db => the directory deep/er does not exist
        5 watch --board sqlite:deep/er/jobs.db => the directory deep/er does not exist
        5 post resize --board sqlite:deep/er/jobs.db => cannot post resize: cannot create the board sqlite:deep/er/jobs.db: the directory deep/er does not exist\nhint: add `--create` to create the directory
        5 list --board sqlite:deep/jobs.db
        0 list --board sqlite:jobs.db
        0 post resize --create --board sqlite:deep/er/jobs.db
        0 post resize --board sqlite:deep/jobs.db
        0 list --count --board sqlite:deep/er/jobs.db == 1
        0 list --count --board sqlite:deep/jobs.db == 1
        none

        # full sync can be selected
        0 post resize --board sqlite:jobs.db?sync=full
        0 list --count --board sqlite:jobs.db?sync=full == 1

        # an empty board differs from a missing one
        0 list => no job was ever posted on sqlite:ROOT/state/jobboard/board.db
        0 post resize
        0 consume @1 --force --yes
        0 list !> no job was ever posted
        0 ping !> no job was ever posted

        # servers that do not respond are unreachable
        5 list --board redis://localhost:1 --json => {"error":{"code":5,"kind":"unreachable"
        5 list --board zk://localhost:1 --json => {"error":{"code":5,"kind":"unreachable"

        # a board file with an impossible version is refused
        0 post resize
        sql PRAGMA user_version = 0
        1 list => another program
        1 wait --empty => another program
        1 post other => another program
        1 doctor => another program
        sql PRAGMA user_version = -1
        1 list => another program
        1 wait --empty => another program
        1 post other => another program
        1 doctor => another program

        # reading a missing board creates nothing, and notes it
        0 list == (nothing) => no job was ever posted on sqlite:ROOT/state/jobboard/board.db
        0 ping => no job was ever posted
        0 list --json == []
        0 list --count == 0
        3 show @1
        3 owner @1
        6 claim --next
        3 consume @1
        124 wait --any --timeout 10ms
        0 conductors
        none

        # a path that SQLite would read as a URI is the name of a file
        0 post resize --board sqlite:file:jobs.db
        0 list --count --board sqlite:file:jobs.db == 1
        0 post resize --board sqlite:file::memory:
        0 list --count --board sqlite:file::memory: == 1
        0 list --count --board sqlite:jobs.db == 0
        "#,
    );
}
