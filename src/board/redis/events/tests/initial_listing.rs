//! The cost of subscribing with an initial listing.

use std::ops::ControlFlow;

use futures_util::TryStreamExt;

use super::*;
use crate::{
    board::{Detail, InitialListing, Query},
    job::{Entry, Location},
};

async fn begin(board: &Redis) -> (Events<'_>, Vec<JobKey>) {
    let mut shown = Vec::new();
    let listing = InitialListing {
        needs_sidecar: &|_| false,
        receive: &mut |entry: Entry| {
            shown.push(entry.key().clone());
            ControlFlow::Continue(())
        },
    };
    let events = board.events_and_jobs(listing).await.unwrap();
    (events, shown)
}

#[tokio::test]
async fn one_walk_serves_listing_and_events_without_reading_unwanted_jobs() {
    need!((board, server) = open(&[]));
    let mut keys = fill(&board, 3000).await;
    let walk = Query::all(Location::Board, Detail::Brief);
    let walked: Vec<_> = board.entries(walk).try_collect().await.unwrap();
    assert_eq!(walked.len(), 3000);
    let (walk, looks) = (calls(&server, "hscan"), calls(&server, "mget"));
    let (_events, mut shown) = begin(&board).await;
    // And one for the trash, which is empty.
    assert_eq!(calls(&server, "hscan"), 2 * walk + 1);
    assert_eq!(calls(&server, "mget"), looks);
    keys.sort_by_key(JobKey::to_string);
    shown.sort_by_key(JobKey::to_string);
    assert_eq!(shown, keys);
}

#[tokio::test]
async fn unread_job_has_the_same_events() {
    need!((board, server) = open(&[]));
    let key = fill(&board, 1).await.remove(0);
    let companions = |what: &str| format!("taskflow:{key}.{what}");
    // The job was claimed and released.
    server.run::<()>(&["SET", &companions("last_modified"), "long ago"]);
    let (mut events, shown) = begin(&board).await;
    assert_eq!(shown, std::slice::from_ref(&key));
    let before = calls(&server, "pttl");
    server.run::<()>(&["SET", &companions("last_modified"), "long ago"]);
    // The first read of a job is no event.
    let is_seen = until_so("it is looked at", || calls(&server, "pttl") > before);
    tokio::select! {
        event = next(&mut events) => panic!("{event:?}"),
        () = is_seen => {}
    }
    server.run::<()>(&["SET", &companions("owned"), "bob"]);
    let claimed = next(&mut events).await;
    assert_eq!(claimed.kind, EventKind::Claimed);
    assert_eq!(claimed.subject.unwrap().key, key);
    server.run::<()>(&["DEL", &companions("owned")]);
    assert_eq!(next(&mut events).await.kind, EventKind::Expired);
}

#[tokio::test]
async fn claimed_jobs_are_read_even_if_unwanted() {
    need!((board, server) = open(&[]));
    let keys = fill(&board, 2).await;
    let owner = format!("taskflow:{}.owned", keys[1]);
    server.run::<()>(&["SET", &owner, "ada"]);
    let (mut events, shown) = begin(&board).await;
    assert_eq!(shown, keys[..1]);
    server.run::<()>(&["DEL", &owner]);
    let freed = next(&mut events).await;
    assert_eq!(
        (freed.kind, freed.owner.unwrap().to_string()),
        (EventKind::Expired, "ada".to_owned())
    );
}
