//! Tests of the embedded board alone.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, TryStreamExt};
use rusqlite::Connection;

use super::{Embedded, FileOptions};
use crate::{
    board::{
        BoardError, EventKind,
        conformance::{
            ATTEMPT, LONG, Subject, WHOLE_BOARD, ada, by_name, claim_one, claimant, ended,
            histories, keeps_its_promises, on_board, owner, post_claimed, post_one, registry,
            settled,
            stored::{Record, SPOILED, Storage},
        },
        error::OPEN,
        wire::posting::Limit,
    },
    job::{Decision, Entry, HISTORY, MAX_RECORDS, MoveRecord, Term},
    tests::rows,
};

fn board_in(directory: &tempfile::TempDir) -> Subject {
    remembering(directory, HISTORY)
}

pub(super) fn options(directory: &tempfile::TempDir) -> FileOptions {
    FileOptions {
        path: directory.path().join("board.db"),
        makes_directory: false,
        sync_full: false,
        op_timeout: Duration::from_secs(5),
        limit: Limit::USUAL,
        history: HISTORY,
    }
}

fn remembering(directory: &tempfile::TempDir, history: u32) -> Subject {
    Arc::new(Embedded::new(FileOptions {
        history,
        ..options(directory)
    }))
}

fn open() -> (Subject, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (board_in(&directory), directory)
}

fn sqlite(directory: &tempfile::TempDir) -> Connection {
    Connection::open(directory.path().join("board.db")).unwrap()
}

fn some() -> Option<(Subject, tempfile::TempDir)> {
    Some(open())
}

keeps_its_promises!(some, board_in);

impl Storage for tempfile::TempDir {
    async fn spoil(&self, record: Record<'_>) {
        let (sql, key) = match record {
            Record::Posting(key) => ("UPDATE job SET details = ?2 WHERE uuid = ?1", key.text()),
            Record::Sidecar(key) => ("UPDATE job SET failures = ?2 WHERE uuid = ?1", key.text()),
            Record::Pause(names) => (
                "INSERT INTO pause (names, pause) VALUES (?1, ?2)",
                names.into(),
            ),
            Record::Move(key) => ("INSERT INTO moves (key, value) VALUES (?1, ?2)", key.into()),
        };
        let file = sqlite(self);
        file.execute_batch("PRAGMA ignore_check_constraints = 1")
            .unwrap();
        file.execute(sql, [&*key, SPOILED]).unwrap();
    }

    async fn expire_registration(&self, _: &str) {
        expire_registrations(self);
    }

    fn again(&self) -> Subject {
        board_in(self)
    }

    async fn all(&self) -> Vec<String> {
        if !options(self).path.exists() {
            return Vec::new();
        }
        let file = sqlite(self);
        let rows = |sql: &str| -> Vec<String> {
            let mut statement = file.prepare(sql).unwrap();
            let columns = statement.column_count();
            let row = |row: &rusqlite::Row<'_>| {
                let values = (0..columns).map(|at| row.get_ref(at).unwrap());
                Ok(format!("{:?}", values.collect::<Vec<_>>()))
            };
            let rows = statement.query_map([], row).unwrap();
            rows.map(Result::unwrap).collect()
        };
        let tables = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
        let mut tables = file.prepare(tables).unwrap();
        let names = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let all = names.flat_map(|name| rows(&format!("SELECT * FROM {}", name.unwrap())));
        all.collect()
    }
}

/// The model detects a board that loses data, and shows it in a handful of acts.
#[test]
fn model_comparison_detects_a_board_that_drops_owners() {
    let (board, directory) = open();
    histories::agree(1, || Some((board, &directory)), |it| board_in(it));
    // Only temporary triggers run.
    let forgetful = "CREATE TEMP TRIGGER forgetful AFTER UPDATE OF owner ON job WHEN NEW.owner IS NULL \
        BEGIN UPDATE job SET attempts = 0 WHERE sequence = NEW.sequence; END";
    let forgetful_board = |directory: &tempfile::TempDir| -> Subject {
        let board = Embedded::new(options(directory));
        let planted = board.file.write(|change| change.run(forgetful, []));
        planted.now_or_never().unwrap().unwrap();
        Arc::new(board)
    };
    let board = forgetful_board(&directory);
    let (acts, how) =
        histories::difference(100, || Some((board, &directory)), |it| forgetful_board(it))
            .expect("it differs");
    let shortest = ["post", "claim", "give back"];
    assert_eq!(acts.len(), shortest.len(), "{how}, after {acts:#?}");
}

#[tokio::test]
async fn triggers_views_and_foreign_keys_in_the_file_are_ignored() {
    let (board, directory) = open();
    let job = post_one(&board, "resize").await;
    sqlite(&directory)
        .execute_batch(
            "CREATE TRIGGER greedy AFTER UPDATE ON job BEGIN DELETE FROM job; END;
            CREATE VIEW pretended AS SELECT load_extension('nothing');
            CREATE TABLE pin (job INTEGER REFERENCES job (sequence));
            INSERT INTO pin SELECT sequence FROM job;",
        )
        .unwrap();
    let board = board_in(&directory);
    claim_one(&board, &job, &ada()).await.unwrap();
    let entries: Vec<_> = board.entries(WHOLE_BOARD).try_collect().await.unwrap();
    assert_eq!(entries.len(), 1);
    settled(&board, &job, Decision::Consume, by_name("ada")).await;
}

#[tokio::test]
async fn files_with_foreign_expressions_are_refused() {
    for [statement, name] in rows(
        "
        ALTER TABLE job ADD COLUMN slow TEXT AS (hex(details)) => job
        CREATE INDEX slow ON event (hex(name)) => slow
        CREATE TABLE moves (key TEXT, value TEXT AS (hex(key))) => moves
        ",
    ) {
        let (board, directory) = open();
        post_one(&board, "resize").await;
        let file = sqlite(&directory);
        // An unrelated table is left alone.
        file.execute_batch("CREATE TABLE notes (text TEXT)")
            .unwrap();
        board_in(&directory).health().await.unwrap();
        file.execute_batch(statement).unwrap();
        let error = board_in(&directory).health().await.unwrap_err();
        let error = format!("{:#}", anyhow::Error::from(error));
        let expected = format!("added or changed the table or index {name}");
        assert!(error.contains(&expected), "{error}");
    }
}

/// Values that SQLite refuses to load do not hide or block the jobs beside them.
#[tokio::test]
async fn page_with_a_huge_value_is_complete() {
    let (board, directory) = open();
    for _ in 0..100 {
        post_one(&board, "resize").await;
    }
    let huge = "UPDATE job SET name = hex(zeroblob(10000000)) WHERE sequence IN (30, 70)";
    sqlite(&directory).execute_batch(huge).unwrap();
    let entries: Vec<_> = board.entries(WHOLE_BOARD).try_collect().await.unwrap();
    let keys: std::collections::HashSet<_> = entries.iter().map(Entry::key).collect();
    assert_eq!((entries.len(), keys.len()), (100, 100));
    let unread = entries.iter().filter_map(|entry| match entry {
        Entry::Malformed(record) => Some(record.problem.as_str()),
        Entry::Job(_) => None,
    });
    let unread: Vec<_> = unread.collect();
    assert_eq!(unread, ["the name has 20000000 bytes"; 2]);
}

#[tokio::test]
async fn old_history_entries_are_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let board = remembering(&directory, ended::FEW);
    ended::history_is_limited_to_the_configured_length(&board).await;
    let kept: i64 = sqlite(&directory)
        .query_row("SELECT count(*) FROM past", [], |row| row.get(0))
        .unwrap();
    assert!((20..90).contains(&kept), "{kept}");
}

#[tokio::test]
async fn excess_move_records_are_not_read() {
    let (board, directory) = open();
    let record = MoveRecord::commit(&owner("move:ada@h:h:1:c0ffee01"), "3f9a");
    board.begin_move(&record).await.unwrap();
    let more = format!(
        "WITH RECURSIVE more (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM more LIMIT {MAX_RECORDS})
         INSERT INTO moves SELECT n || key, value FROM moves, more"
    );
    sqlite(&directory).execute_batch(&more).unwrap();
    assert_eq!(board.moves().await.unwrap().len(), MAX_RECORDS);
}

#[tokio::test]
async fn row_with_odd_values_does_not_block_its_batch() {
    for odd in [
        "attempts = 9223372036854775807",
        "attempts = -5",
        "postponed = 4294967296",
        "failures = 'x'",
        "failures = CAST(x'ff' AS TEXT)",
        "name = CAST(x'ff' AS TEXT)",
        "book_name = CAST(x'ff' AS TEXT), book_uuid = 'b'",
    ] {
        let (board, directory) = open();
        let mut keys = Vec::new();
        for name in ["first", "second", "third"] {
            keys.push(post_one(&board, name).await);
        }
        let update = format!("UPDATE job SET {odd} WHERE uuid = ?1");
        let file = sqlite(&directory);
        file.execute(&update, [keys[1].text()]).unwrap();
        let by = claimant("ada", Term::Lease(LONG));
        let answers = board.claim(&keys, &by, 3, ATTEMPT).await.unwrap();
        assert_matches!(
            &answers[..],
            [
                Ok(_),
                Err(BoardError::Unclaimable { .. } | BoardError::Malformed { .. }),
                Ok(_)
            ],
            "{odd}"
        );
        let all: Vec<_> = board.entries(WHOLE_BOARD).try_collect().await.unwrap();
        let entry = all.iter().find(|entry| *entry.key() == keys[1]).unwrap();
        assert!(entry.holding().is_none(), "{odd}");
        assert!(entry.job().is_none_or(|job| job.is_unfit), "{odd}");
    }
}

#[tokio::test]
async fn odd_row_with_an_expired_claim_does_not_block_writes() {
    let (board, directory) = open();
    post_claimed(&board, "odd").await;
    sqlite(&directory)
        .execute_batch("UPDATE job SET uuid = CAST(x'ff' AS TEXT), expires_boot = -1")
        .unwrap();
    let other = post_claimed(&board, "resize").await;
    assert_eq!(on_board(&board, &other).await.owner(), Some(&owner("ada")));
}

#[tokio::test]
async fn closing_a_moved_board_keeps_the_log_of_its_successor() {
    let (old, directory) = open();
    post_one(&old, "old").await;
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    sqlite(&directory)
        .query_row(checkpoint, [], |_| Ok(()))
        .unwrap();
    let file = directory.path().join("board.db");
    std::fs::rename(&file, directory.path().join("moved.db")).unwrap();
    let new = board_in(&directory);
    // Long enough for an exiting process to truncate the log.
    for _ in 0..60 {
        post_one(&new, "new").await;
    }
    old.close().await;
    for board in [&new, &board_in(&directory)] {
        assert_eq!(board.health().await.unwrap().jobs, 60);
    }
}

#[tokio::test]
async fn other_layout_is_refused_unchanged() {
    for layout in [1, 3, 5, 99] {
        let (board, directory) = open();
        post_one(&board, "resize").await;
        board.close().await;
        let file = sqlite(&directory);
        file.pragma_update(None, "user_version", layout).unwrap();
        drop(file);
        let read = || std::fs::read(directory.path().join("board.db")).unwrap();
        let before = read();
        for refused in [
            board.health().await.map(|_| ()),
            board.post(&[], None).await.map(|_| ()),
        ] {
            assert_matches!(
                refused,
                Err(BoardError::Failed { doing: OPEN, .. }),
                "{layout}"
            );
        }
        board.close().await;
        assert_eq!(read(), before);
    }
}

#[tokio::test]
async fn claim_keeps_its_deadline_after_a_reboot() {
    let (board, directory) = open();
    let key = post_one(&board, "resize").await;
    let by = claimant("ada", Term::For(LONG));
    claim_one(&board, &key, &by).await.unwrap();
    // Simulates a reboot: another boot id and a clock that restarted.
    sqlite(&directory)
        .execute_batch(
            "UPDATE board SET boot = 'another';
             UPDATE job SET expires_boot = expires_boot + 1000000000",
        )
        .unwrap();
    let left = async || {
        let holding = on_board(&board, &key).await.holding.unwrap();
        holding.expires_in.unwrap()
    };
    assert!(left().await <= LONG && left().await > LONG / 2);
    post_one(&board, "any change").await;
    assert!(left().await <= LONG && left().await > LONG / 2);
}

/// Ends all registrations, as if the last heartbeat were half a minute old.
fn expire_registrations(directory: &tempfile::TempDir) {
    let now = super::store::clock::BoardClock::now();
    sqlite(directory)
        .execute("UPDATE conductor SET alive_boot = ?1", [now.boot])
        .unwrap();
}

#[tokio::test]
async fn killed_conductor_is_listed_until_its_lease_ends_even_after_a_reboot() {
    let (board, directory) = open();
    registry::register_with_lease(&board, "night").await;
    let listed = async || {
        let conductors = board.conductors().await.unwrap();
        conductors.iter().map(|it| it.has_left).collect::<Vec<_>>()
    };
    assert_eq!(listed().await, [false]);
    expire_registrations(&directory);
    assert_eq!(listed().await, [true]);
    post_one(&board, "any change").await;
    assert_eq!(listed().await, [true]);
    sqlite(&directory)
        .execute_batch("UPDATE board SET boot = 'another'; UPDATE conductor_seen SET kept_boot = 0")
        .unwrap();
    assert_eq!(listed().await, [true]);
    post_one(&board, "any change").await;
    assert_eq!(listed().await, [true]);
    let now = super::store::clock::BoardClock::now();
    sqlite(&directory)
        .execute("UPDATE conductor_seen SET kept_boot = ?1", [now.boot])
        .unwrap();
    assert!(listed().await.is_empty());
    // A conductor that leaves late removes its record.
    board.close().await;
    let kept: i64 = sqlite(&directory)
        .query_row("SELECT count(*) FROM conductor_seen", [], |row| row.get(0))
        .unwrap();
    assert_eq!(kept, 0);
}

#[tokio::test]
async fn slow_watcher_gets_a_resync() {
    let (board, directory) = open();
    let key = post_one(&board, "resize").await;
    let mut events = board.events().await.unwrap().stream;
    claim_one(&board, &key, &ada()).await.unwrap();
    // The next event triggers the trimming, which keeps the last 10,000.
    sqlite(&directory)
        .execute_batch("UPDATE sqlite_sequence SET seq = 40 * 256 - 1 WHERE name = 'event'")
        .unwrap();
    settled(&board, &key, Decision::Consume, by_name("ada")).await;
    let event = events.try_next().await.unwrap().unwrap();
    assert_eq!(event.kind, EventKind::Resync);
    post_one(&board, "next").await;
    let event = events.try_next().await.unwrap().unwrap();
    assert_eq!(event.kind, EventKind::Posted);
}
