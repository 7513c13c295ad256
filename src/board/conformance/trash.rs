//! The contract of the trash.

use super::*;
use crate::{
    board::{BoardError, Settled},
    job::{Purge, Revision, State},
};

async fn trash(board: &Subject, key: &JobKey) -> Settled {
    board.claim_one(key, &ada(), ATTEMPT).await.unwrap();
    board
        .settle_one(key, Decision::Trash(Aftermath::None), by_name("ada"))
        .await
        .unwrap()
}

pub(crate) async fn restore(board: &Subject, key: &JobKey) -> Result<()> {
    let restore = Revision::from_trash(key.clone(), None);
    board.revise(&[restore]).await?.remove(0)
}

pub(crate) async fn purge(board: &Subject, key: &JobKey) -> Result<()> {
    let purge = Purge::of(key.clone());
    board.purge(&[purge]).await?.remove(0).map(drop)
}

pub(crate) async fn trashed_job_keeps_its_data(board: &Subject) {
    let key = post(board, urgent("resize", Priority::Low)).await;
    let before = on_board(board, &key).await;
    let settled = trash(board, &key).await;
    assert!(!settled.replaced_namesake);
    let after = get(board, Location::Trash, &key).await.unwrap();
    assert_eq!(after.state(), State::Trashed);
    let kept = |job: Job| (job.uuid, job.name, job.priority, job.sequence, job.details);
    assert_eq!(after.holding, None);
    assert!(after.trashed_on.is_some());
    assert_eq!(after.attempts.count, 1);
    assert_eq!(kept(after), kept(before));
}

pub(crate) async fn trashing_replaces_the_same_uuid_and_reports_it(board: &Subject) {
    let [first, second] = two_of_one_uuid();
    let key = post(board, first).await;
    trash(board, &key).await;
    let key = post(board, second).await;
    let settled = trash(board, &key).await;
    assert!(settled.replaced_namesake);
    assert_eq!(names(board, IN_TRASH).await, ["second"]);
}

pub(crate) async fn restored_job_has_no_attempts(board: &Subject) {
    let key = post_one(board, "resize").await;
    let before = on_board(board, &key).await;
    trash(board, &key).await;
    restore(board, &key).await.unwrap();
    let after = on_board(board, &key).await;
    assert_eq!(after.state(), State::Unclaimed);
    assert_eq!((after.trashed_on, after.attempts.count), (None, 0));
    let kept = |job: Job| (job.details, job.sequence);
    assert_eq!(kept(after), kept(before));
    assert_eq!(get(board, Location::Trash, &key).await, None);
    claim_one(board, &key, &bob()).await.unwrap();
}

pub(crate) async fn same_uuid_on_the_board_blocks_a_restore(board: &Subject) {
    let draft = chosen("resize");
    let key = post(board, draft.clone()).await;
    trash(board, &key).await;
    post(board, draft).await;
    let refused = restore(board, &key).await;
    assert_matches!(refused, Err(BoardError::Exists { .. }));
    assert!(get(board, Location::Trash, &key).await.is_some());
}

pub(crate) async fn purged_job_is_deleted(board: &Subject) {
    let key = post_one(board, "resize").await;
    trash(board, &key).await;
    purge(board, &key).await.unwrap();
    assert_eq!(get(board, Location::Trash, &key).await, None);
    let again = purge(board, &key).await;
    assert_matches!(again, Err(BoardError::NoSuchJob));
}

pub(crate) async fn only_trashed_jobs_can_be_restored_or_purged(board: &Subject) {
    let key = post_one(board, "resize").await;
    for refused in [restore(board, &key).await, purge(board, &key).await] {
        assert_matches!(refused, Err(BoardError::NoSuchJob));
    }
    assert_eq!(on_board(board, &key).await.state(), State::Unclaimed);
}
