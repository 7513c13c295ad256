//! Boards whose file is removed or replaced while clients use it.

use std::{fs, path::Path};

use serde_json::json;

use super::{Stage, stage::set_mode};
use crate::support::wait_until;

/// Removes the board with all files next to it.
fn remove(stage: &Stage) {
    for entry in fs::read_dir(stage.env.board().parent().unwrap()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
}

#[test]
fn conductor_continues_with_a_replaced_board() {
    need!(stage = Stage::embedded());
    stage.post("a", "echo started >> log; sleep 600");
    let conductor = stage.start(&["-j2", "--lease", "9s"]);
    stage.logged(1);
    remove(&stage);
    stage.says(&conductor, "the board file was removed");
    stage.post("b", "echo ran >> log");
    stage.logged(2);
    // Its claims belonged to the removed board.
    stage.says(&conductor, "claim_lost");
    conductor.stops();
    assert_eq!(stage.log(), ["started", "ran"]);
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
}

/// Moves all changes into the board file, and removes its log.
fn remove_log(board: &Path) {
    let database = rusqlite::Connection::open(board).unwrap();
    let ends = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
    database
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], ends)
        .unwrap();
    drop(database);
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{suffix}", board.display()));
    }
}

#[test]
fn conductor_without_its_log_opens_the_board_again() {
    need!(stage = Stage::embedded());
    stage.post("a", "echo a >> log; until [ -e go ]; do sleep 0.02; done");
    let conductor = stage.start(&["-j2", "--lease", "6s"]);
    stage.logged(1);
    remove_log(&stage.env.board());
    // The next client begins another log, which the conductor would not read.
    let job = stage.post("b", "echo b >> log");
    stage.says(&conductor, "the board file was removed");
    stage.logged(2);
    fs::write(stage.env.file("go"), "").unwrap();
    stage.env.run(format!("wait {job}")).succeeded();
    conductor.stops();
    assert_eq!(stage.log(), ["a", "b"]);
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
}

#[test]
fn conductor_runs_nothing_from_a_writable_replacement() {
    need!(stage = Stage::embedded());
    let other = stage.env.file("other.db");
    let url = format!("sqlite:{}", other.display());
    let post = format!("post a --board {url} -- touch ran");
    stage.env.ok(post);
    remove_log(&other);
    set_mode(&other, 0o666);
    let mut conductor = stage.start(&[]);
    // The log of the former file must not be applied to the new one.
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{suffix}", stage.env.board().display()));
    }
    fs::rename(&other, stage.env.board()).unwrap();
    wait_until("it has ended", || conductor.has_ended());
    conductor.ended().fails(5, "that other users can write to");
    assert!(!stage.env.file("ran").exists());
}

#[test]
fn watcher_reports_a_replaced_board() {
    need!(stage = Stage::embedded());
    stage.post("a", "true");
    let watching = stage.env.jobboard(&["watch", "--count", "2"]).spawn();
    watching.says("watching ");
    remove(&stage);
    watching.says("the board file was removed");
    stage.post("b", "true");
    assert!(watching.prints(1)[0].contains("resync"));
    stage.post("c", "true");
    assert!(watching.prints(2)[1].contains("\tposted\t"));
    watching.ended().succeeded();
}
