//! The contract of the initial jobs of a subscription.

use std::ops::ControlFlow;

use super::{
    events::{all_of, next},
    *,
};
use crate::board::{EventKind, InitialListing};

async fn begin<'a>(board: &'a Subject, wanted: &str) -> (super::events::Events<'a>, Vec<Job>) {
    let mut shown = Vec::new();
    let listing = InitialListing {
        needs_sidecar: &|job| job.name == wanted,
        receive: &mut |entry| match entry {
            Entry::Job(job) => {
                shown.push(*job);
                ControlFlow::Continue(())
            }
            Entry::Malformed(record) => panic!("{record:?}"),
        },
    };
    let events = board.events_and_jobs(listing).await.unwrap().stream;
    (events, shown)
}

pub(crate) async fn new_listener_is_shown_unclaimed_jobs(board: &Subject) {
    let [tried, left, held] = [
        post_one(board, "tried").await,
        post_one(board, "left").await,
        post_one(board, "held").await,
    ];
    for key in [&tried, &left] {
        let claimed = board.claim_one(key, &ada(), ATTEMPT).await;
        claimed.unwrap();
        settled(board, key, release(), by_name("ada")).await;
    }
    claim_one(board, &held, &ada()).await.unwrap();
    let (_, mut shown) = begin(board, "tried").await;
    shown.sort_by_key(|job| job.sequence);
    let names: Vec<_> = shown.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["tried", "left"]);
    assert_eq!(shown[0], on_board(board, &tried).await);
    assert_eq!(shown[1].details, on_board(board, &left).await.details);
}

pub(crate) async fn shown_job_has_events_even_if_filtered_out(board: &Subject) {
    use EventKind::{Abandoned, Claimed, Consumed, Posted};
    for (name, wanted) in [("one", "one"), ("two", "none"), ("three", "none")] {
        let key = post_one(board, name).await;
        if name == "three" {
            claim_one(board, &key, &ada()).await.unwrap();
            settled(board, &key, release(), by_name("ada")).await;
        }
        let (mut events, shown) = begin(board, wanted).await;
        assert_eq!(shown.len(), 1);
        claim_one(board, &key, &ada()).await.unwrap();
        assert_eq!(next(&mut events, 1).await, all_of(name, &[Claimed]));
        settled(board, &key, release(), by_name("ada")).await;
        assert_eq!(next(&mut events, 1).await, all_of(name, &[Abandoned]));
        claim_one(board, &key, &ada()).await.unwrap();
        settled(board, &key, Decision::Consume, by_name("ada")).await;
        let seen = next(&mut events, 2).await;
        assert_eq!(seen, all_of(name, &[Claimed, Consumed]));
        let posted = post_one(board, "new").await;
        assert_eq!(next(&mut events, 1).await, all_of("new", &[Posted]));
        let nobody = Authority::Force(crate::job::ExpectedState::Unclaimed);
        settled(board, &posted, Decision::Consume, nobody).await;
    }
}
