//! Interrupted loads that are repeated.

use super::boards::Boards;
use crate::support::wait_until;

/// More than a load stores between two of its results.
const JOBS: usize = 1300;

/// Kills loads after several numbers of results, then repeats the load to its end.
fn is_identical_after_kills(boards: &Boards, board: &str) {
    for printed in [1, 600, JOBS - 1] {
        let mut run = boards.on(board, &["load", "it"]).spawn();
        wait_until("it has come so far", || {
            run.has_ended() || run.stdout().lines().count() >= printed
        });
        run.kill();
    }
    boards.ok(board, "load it");
}

#[test]
fn killed_load_can_be_repeated() {
    let boards = Boards::new();
    for kind in boards.kinds() {
        let (from, to) = (boards.another(kind), boards.another(kind));
        boards.post_many(&from, JOBS);
        boards.ok(&from, "dump it");
        is_identical_after_kills(&boards, &to);
        let (before, after) = (boards.dumped(&from), boards.dumped(&to));
        assert_eq!((before.len(), after.len()), (JOBS, JOBS), "{kind}");
        for (one, other) in before.iter().zip(&after) {
            assert_eq!(one["raw"], other["raw"], "{kind}");
            assert_eq!(one["created_on"], other["created_on"], "{kind}");
        }
    }
}
