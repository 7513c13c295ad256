//! Foreign values under a job's keys.

use super::*;
use crate::{
    board::Which,
    job::{Entry, Job},
};

pub(super) async fn jobs(board: &Subject) -> Vec<Job> {
    let entries: Vec<_> = board.entries(WHOLE_BOARD).try_collect().await.unwrap();
    let jobs = entries.into_iter().map(|entry| match entry {
        Entry::Job(job) => *job,
        malformed => panic!("{malformed:?}"),
    });
    jobs.collect()
}

#[tokio::test]
async fn unnamed_claim_counts_as_claim() {
    need!((board, server) = open());
    let key = post_one(&board, "resize").await;
    let owner = format!("taskflow:{key}.owned");
    let puts: [&[&str]; 3] = [
        &["SET", &owner, ""],
        &["LPUSH", &owner, "ada"],
        &["HSET", &owner, "owner", "ada"],
    ];
    for (put, life) in puts
        .into_iter()
        .flat_map(|put| [None, Some("60000")].map(|life| (put, life)))
    {
        server.run::<redis::Value>(put);
        if let Some(life) = life {
            server.run::<()>(&["PEXPIRE", &owner, life]);
        }
        let listed = jobs(&board).await.remove(0);
        let found = get(&board, Location::Board, &key).await.unwrap();
        assert_eq!(found.problem, listed.problem);
        let holding = listed.holding.clone().unwrap();
        assert_eq!(holding.owner, None);
        assert_eq!(holding.expires_in.is_some(), life.is_some());
        assert!(
            listed.problem.as_ref().unwrap().contains("owner"),
            "{listed:?}"
        );
        let unclaimed = Query {
            which: Which::Unclaimed,
            ..WHOLE_BOARD
        };
        let free: Vec<_> = board.entries(unclaimed).try_collect().await.unwrap();
        assert_eq!(free, []);
        let refused = claim_one(&board, &key, &ada()).await;
        assert_matches!(refused, Err(BoardError::AlreadyClaimed { owner: None }));
        let seen = Authority::Force(ExpectedState::of(&Entry::Job(Box::new(listed))));
        settled(&board, &key, release(), seen).await;
        assert_eq!(jobs(&board).await[0].holding, None);
        assert_eq!(server.run::<u32>(&["EXISTS", &owner]), 0);
    }
}
