//! Interrupted loads that are repeated.

use super::boards::Boards;
use crate::support::env::{Env, wait_until};

const JOBS: usize = 4000;

/// Kills loads after several numbers of results, then repeats the load to its end.
fn is_identical_after_kills(boards: &Boards, board: &str) {
    for printed in [1, 600, 1900, 3999] {
        let mut run = boards.on(board, &["load", "it"]).spawn();
        wait_until("it has come so far", || {
            run.has_ended() || run.stdout().lines().count() >= printed
        });
        run.kill();
    }
    boards.run(board, &["load", "it"]).succeeded();
}

fn post_many(env: &Env, url: &str) {
    let lines: String = (0..JOBS)
        .map(|number| format!("{{\"name\":\"job-{number}\",\"details\":{{\"n\":{number}}}}}\n"))
        .collect();
    let words = ["--board", url, "post", "--from", "-"];
    env.jobboard(&words).stdin(lines).run().succeeded();
}

#[test]
fn killed_load_can_be_repeated() {
    let boards = Boards::new();
    for kind in boards.kinds() {
        let (from, to) = (boards.another(kind), boards.another(kind));
        post_many(&boards.env, &boards.url(&from));
        boards.run(&from, &["dump", "it"]).succeeded();
        is_identical_after_kills(&boards, &to);
        let (before, after) = (boards.dumped(&from), boards.dumped(&to));
        assert_eq!((before.len(), after.len()), (JOBS, JOBS), "{kind}");
        for (one, other) in before.iter().zip(&after) {
            assert_eq!(one["raw"], other["raw"], "{kind}");
            assert_eq!(one["created_on"], other["created_on"], "{kind}");
        }
    }
}
