//! The contract of listings.

use std::collections::BTreeSet;

use super::*;

const COUNT: usize = 3000;

async fn post_many(board: &Subject, count: usize) -> BTreeSet<String> {
    let drafts: Vec<_> = (0..count)
        .map(|number| urgent("resize", Priority::ALL[number % Priority::ALL.len()]))
        .collect();
    for answer in board.post(&drafts, None).await.unwrap() {
        answer.unwrap();
    }
    let uuids = drafts.iter().map(|draft| draft.uuid.to_string());
    uuids.collect()
}

pub(crate) async fn each_job_is_listed_once(board: &Subject) {
    let posted = post_many(board, COUNT).await;
    for order in [Order::Any, Order::Rank] {
        let listed = list(board, in_order(order)).await;
        assert_eq!(listed.len(), COUNT);
        let listed: BTreeSet<_> = listed.into_iter().map(|job| job.uuid).collect();
        assert_eq!(listed, posted);
    }
}

pub(crate) async fn jobs_are_listed_by_rank_or_by_number(board: &Subject) {
    use Priority::{High, Low, Normal, VeryHigh, VeryLow};
    let priorities = [
        Normal, VeryLow, High, VeryHigh, Low, Normal, VeryHigh, Low, High, VeryLow,
    ];
    for (number, priority) in priorities.into_iter().enumerate() {
        post(board, urgent(&(number + 1).to_string(), priority)).await;
    }
    let ranked = ["4", "7", "3", "9", "1", "6", "5", "8", "2", "10"];
    assert_eq!(names(board, in_order(Order::Rank)).await, ranked);
    let posted: Vec<_> = (1..=10).map(|number| number.to_string()).collect();
    assert_eq!(names(board, in_order(Order::Posted)).await, posted);
}

pub(crate) async fn unclaimed_listing_excludes_claimed_jobs(board: &Subject) {
    let (free, held) = (post_one(board, "free").await, post_one(board, "held").await);
    let expired = post_one(board, "expired").await;
    claim_one(board, &held, &ada()).await.unwrap();
    let by = claimant("bob", Term::For(SHORT));
    if board.capabilities().has_expiring_claims {
        claim_one(board, &expired, &by).await.unwrap();
        until_free(board, &expired).await;
    }
    for order in [Order::Any, Order::Rank] {
        let query = Query {
            which: Which::Unclaimed,
            ..in_order(order)
        };
        let jobs = list(board, query).await.into_iter();
        let keys: BTreeSet<_> = jobs.map(|job| job.key).collect();
        assert_eq!(keys, BTreeSet::from([free.clone(), expired.clone()]));
    }
}

pub(crate) async fn details_are_read_only_on_request(board: &Subject) {
    post_one(board, "resize").await;
    let brief = Query {
        detail: Detail::Brief,
        ..WHOLE_BOARD
    };
    let brief = list(board, brief).await.remove(0);
    let whole = list(board, WHOLE_BOARD).await.remove(0);
    assert_eq!(brief.details, None);
    assert_eq!(whole.details, Some(draft("").details));
    assert_eq!(brief.size, whole.size);
    assert!(whole.size > 0);
}

pub(crate) async fn job_is_found_by_uuid_prefix_number_and_key(board: &Subject) {
    post_many(board, 50).await;
    let key = post_one(board, "wanted").await;
    let job = on_board(board, &key).await;
    let wanted = [
        JobRef::Uuid(job.uuid.clone()),
        JobRef::Uuid(job.uuid[..18].to_owned()),
        JobRef::Sequence(job.sequence.unwrap()),
        JobRef::Key(key.clone()),
        JobRef::Uuid("00000000-0000-4000-8000-000000000000".to_owned()),
        JobRef::Sequence(i64::MAX),
        JobRef::Key(JobKey::new("no such key")),
    ];
    let found = board.find(Location::Board, &wanted).await.unwrap();
    let keys = |entries: &Vec<Entry>| entries.iter().map(Entry::key).cloned().collect();
    let found: Vec<Vec<_>> = found.iter().map(keys).collect();
    let (it, nothing) = (vec![key], vec![]);
    assert_eq!(found[..4], [it.clone(), it.clone(), it.clone(), it]);
    assert_eq!(found[4..], [nothing.clone(), nothing.clone(), nothing]);
}

pub(crate) async fn ambiguous_prefix_returns_candidates(board: &Subject) {
    let uuid = |last: u128| Uuid::from_u128(0xabcd_1234_0000_4000_8000_0000_0000_0000 + last);
    for last in 0..3 {
        let twin = Draft {
            uuid: uuid(last),
            ..chosen("twin")
        };
        post(board, twin).await;
    }
    let refused = board
        .resolve_one(Location::Board, &JobRef::Uuid("abcd1234".into()))
        .await;
    let Err(crate::board::BoardError::Ambiguous { candidates, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(candidates.len(), 3);
    assert!(candidates[0].contains(&uuid(0).to_string()) && candidates[0].contains("twin"));
    let exact = JobRef::Uuid(uuid(1).to_string());
    let found = board.resolve_one(Location::Board, &exact).await.unwrap();
    assert_eq!(found.job().unwrap().uuid, uuid(1).to_string());
}

pub(crate) async fn board_and_trash_are_listed_separately(board: &Subject) {
    let kept = post_one(board, "kept").await;
    let trashed = post_claimed(board, "trashed").await;
    trash_as_ada(board, &trashed).await;
    assert_eq!(names(board, WHOLE_BOARD).await, ["kept"]);
    assert_eq!(names(board, IN_TRASH).await, ["trashed"]);
    assert_eq!(get(board, Location::Trash, &kept).await, None);
    assert_eq!(get(board, Location::Board, &trashed).await, None);
}

pub(crate) async fn listing_is_unaffected_by_concurrent_posts_and_ends(board: &Subject) {
    let posted = post_many(board, COUNT).await;
    let mut entries = board.entries(in_order(Order::Any));
    let first = entries.try_next().await.unwrap().unwrap();
    claim_one(board, first.key(), &ada()).await.unwrap();
    settled(board, first.key(), Decision::Consume, by_name("ada")).await;
    post_many(board, 10).await;
    let mut listed = BTreeSet::from([first.job().unwrap().uuid.clone()]);
    while let Some(entry) = entries.try_next().await.unwrap() {
        let is_new = listed.insert(entry.job().unwrap().uuid.clone());
        assert!(is_new, "listed twice");
    }
    assert!(listed.is_superset(&posted), "{} of {COUNT}", listed.len());
}
