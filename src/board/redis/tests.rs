//! Tests of the Redis board alone.

use std::{
    slice::from_ref,
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::Utc;
use futures_util::TryStreamExt;

use super::{Redis, testing::Server};
use crate::{
    board::{
        BoardError, BoardExt, ClaimRules, JobRef, Query, Result,
        conformance::{
            ATTEMPT, BY_HAND, LONG, Subject, WHOLE_BOARD, ada, by_name, claim_one, claimant,
            claiming::one_client_wins_a_job,
            draft, get, keeps_its_promises, post_claimed, post_one, release, settled,
            stored::{self, Record, SPOILED, Storage},
            trash::{purge, restore},
            urgent,
        },
        testing::needs::size,
        wire::posting::Limit,
    },
    job::{
        Aftermath, Authority, Claim, Decision, ExpectedState, Failure, HISTORY, Job, JobKey,
        Location, Priority, Settlement, Term,
    },
};

mod batch_isolation;
mod dead_conductors;
mod history;
mod limits;
mod permission;
mod restart;
mod unnamed_claims;

const OP_TIMEOUT: Duration = Duration::from_secs(5);

fn open() -> Option<(Subject, Server)> {
    let server = Server::start(&[])?;
    Some((board_of(&server, None), server))
}

fn board_of(server: &Server, user: Option<&str>) -> Subject {
    let user = user.map_or_else(String::new, |user| format!("{user}@"));
    let url = super::testing::redis_url(&format!("redis://{user}127.0.0.1:{}", server.port()));
    Arc::new(Redis::new(&url, None, OP_TIMEOUT, Limit::USUAL, HISTORY))
}

keeps_its_promises!(open, |server: &Server| board_of(server, None));

impl Storage for Server {
    async fn spoil(&self, record: Record<'_>) {
        let (hash, field) = match record {
            Record::Posting(key) => ("listings", key.to_string()),
            Record::Pause(names) => ("paused", names.to_owned()),
            Record::Move(key) => ("moves", key.to_owned()),
            Record::Sidecar(key) => {
                let key = format!("taskflow:{key}.jobboard");
                return self.run(&["SET", &key, SPOILED]);
            }
        };
        self.run::<()>(&["HSET", &format!("taskflow:{hash}"), &field, SPOILED]);
    }

    async fn expire_registration(&self, name: &str) {
        self.run::<()>(&["DEL", &format!("taskflow:conductor.{name}")]);
    }

    fn again(&self) -> Subject {
        board_of(self, None)
    }

    async fn all(&self) -> Vec<String> {
        let all = everything(self).into_iter();
        all.map(|entry| format!("{entry:?}")).collect()
    }
}

fn everything(server: &Server) -> Vec<(String, Vec<u8>, i64)> {
    let mut keys: Vec<String> = server.run(&["KEYS", "*"]);
    keys.sort();
    keys.into_iter()
        .map(|key| {
            let bytes = server.run(&["DUMP", &key]);
            let end = server.run(&["PEXPIRETIME", &key]);
            (key, bytes, end)
        })
        .collect()
}

#[tokio::test]
async fn faults_many_claimants_one_winner() {
    need!((_, server) = open());
    let boards: Vec<_> = (0..64).map(|_| board_of(&server, None)).collect();
    let (rounds, start) = (size(1000, 20), Instant::now());
    for _ in 0..rounds {
        one_client_wins_a_job(&boards).await;
    }
    eprintln!(
        "faults: 64 claimants after one job on Redis: one winner in each of {rounds} rounds, all \
         in {:.1?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn reading_keeps_a_claim_without_a_job() {
    need!((board, server) = open());
    server.run::<()>(&["SET", "taskflow:gone.owned", "ada"]);
    stored::reads_and_examinations_change_nothing(&board, &server).await;
}

#[tokio::test]
async fn small_and_large_boards_are_ranked_the_same() {
    need!((board, server) = open());
    server.run::<()>(&["HSET", "taskflow:listings", "bad", "nonsense"]);
    let mut posted = 0;
    // The last count exceeds the history limit.
    for count in [1, 150, 2000] {
        let drafts: Vec<_> = (0..count)
            .map(|number| urgent("resize", Priority::ALL[number % Priority::ALL.len()]))
            .collect();
        for answer in board.post(&drafts, None).await.unwrap() {
            answer.unwrap();
        }
        posted += count;
        let entries: Vec<_> = board.entries(WHOLE_BOARD).try_collect().await.unwrap();
        let mut ranks: Vec<_> = entries
            .iter()
            .map(|entry| entry.job().map(Job::rank))
            .collect();
        assert_eq!(ranks.pop(), Some(None), "unreadable records come last");
        assert_eq!(ranks.iter().flatten().count(), posted);
        assert!(ranks.is_sorted(), "{posted}");
    }
}

#[tokio::test]
async fn foreign_data_in_a_sidecar_affects_no_other_job() {
    need!((board, server) = open());
    let (odd, held) = (
        post_one(&board, "odd").await,
        post_one(&board, "held").await,
    );
    let free = post_one(&board, "free").await;
    let side = format!("taskflow:{odd}.jobboard");
    let owner = format!("taskflow:{held}.owned");
    for key in [&side, &owner] {
        let _: i64 = server.run(&["LPUSH", key, "x"]);
    }
    let keys = [held, free.clone(), odd];
    let answers = board.claim(&keys, &ada(), 2, BY_HAND).await.unwrap();
    let won: Vec<_> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(won, [false, true, true], "{answers:?}");
    assert_matches!(answers[0], Err(BoardError::AlreadyClaimed { owner: None }));
    let settlements = keys.map(|key| Settlement::of(key, Decision::Consume, by_name("ada")));
    let answers = board.settle(&settlements).await.unwrap();
    let settled: Vec<_> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(settled, [false, true, true], "{answers:?}");
}
