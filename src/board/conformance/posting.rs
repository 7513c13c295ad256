//! The contract of posting.

use futures_util::future::join_all;
use serde_json::json;

use super::*;
use crate::{
    board::BoardError,
    job::{Book, State},
};

pub(crate) async fn posted_job_is_read_back_unchanged(board: &Subject) {
    let draft = Draft {
        priority: Priority::VeryHigh,
        book: Some(Book {
            name: "atlas".into(),
            uuid: Uuid::new_v4().to_string(),
        }),
        details: json!({"deep": {"list": [1, -1, 1.5, u64::MAX, null, true, "\u{7}\"\\"]}}).into(),
        ..draft("resize")
    };
    let key = post(board, draft.clone()).await;
    let job = on_board(board, &key).await;
    assert_eq!(job.uuid, draft.uuid.to_string());
    assert_eq!(job.name, draft.name);
    assert_eq!(job.priority, draft.priority);
    assert_eq!(job.book, draft.book);
    assert_eq!(job.details, Some(draft.details));
    assert_eq!(job.state(), State::Unclaimed);
    assert_eq!((job.attempts.count, job.trashed_on), (0, None));
    let age = chrono::Utc::now() - job.created_on.expect("a time of creation");
    assert!(age.num_seconds().abs() < 60, "{age}");
}

pub(crate) async fn posts_are_numbered_in_order(board: &Subject) {
    let drafts: Vec<_> = (0..20)
        .map(|number| draft(&format!("job{number}")))
        .collect();
    let posted = board.post(&drafts, None).await.unwrap().into_iter();
    let numbers: Vec<_> = posted.map(|answer| answer.unwrap().sequence).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let given: Vec<_> = drafts.into_iter().map(|draft| draft.name).collect();
    assert_eq!(names(board, WHOLE_BOARD).await, given);
}

pub(crate) async fn uuid_is_unique_on_the_board(board: &Subject) {
    let [first, second] = two_of_one_uuid();
    let key = post(board, first).await;
    let refused = board.post(&[second], None).await.unwrap().pop().unwrap();
    assert_matches!(refused, Err(BoardError::Exists { .. }));
    assert_eq!(on_board(board, &key).await.name, "first");
    assert_eq!(list(board, WHOLE_BOARD).await.len(), 1);
}

pub(crate) async fn refused_draft_does_not_block_the_others(board: &Subject) {
    let taken = chosen("taken");
    post(board, taken.clone()).await;
    let drafts = [draft("one"), taken, draft("two")];
    let answers = board.post(&drafts, None).await.unwrap();
    let posted: Vec<_> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(posted, [true, false, true]);
    assert_eq!(list(board, WHOLE_BOARD).await.len(), 3);
}

pub(crate) async fn same_uuid_in_the_trash_does_not_block_a_post(board: &Subject) {
    let draft = chosen("resize");
    let key = post(board, draft.clone()).await;
    claim_one(board, &key, &ada()).await.unwrap();
    trash_as_ada(board, &key).await;
    let key = post(board, draft).await;
    let job = on_board(board, &key).await;
    assert_eq!(job.state(), State::Unclaimed);
    assert_eq!(job.last_modified.max(job.created_on), job.created_on);
}

pub(crate) async fn a_job_can_be_posted_already_claimed(board: &Subject) {
    let by = claimant("ada:host:1:x", Term::Lease(LONG));
    let answers = board.post(&[draft("resize")], Some(&by)).await.unwrap();
    let posted = answers.into_iter().next().unwrap().unwrap();
    let job = on_board(board, &posted.key).await;
    assert_eq!(job.owner(), Some(&by.owner));
    assert_eq!(job.attempts.count, 1);
    let fence = posted.fence.expect("a fence");
    assert_eq!(job.holding.unwrap().fence.as_ref(), Some(&fence));
    let authority = Authority::Claim(by.owner, fence);
    settled(board, &posted.key, Decision::Consume, authority).await;
}

pub(crate) async fn twenty_posts_of_one_uuid_one_succeeds(board: &Subject) {
    let draft = chosen("resize");
    let posts = (0..20).map(|_| {
        let (board, draft) = (Arc::clone(board), draft.clone());
        async move { board.post(&[draft], None).await.unwrap().pop().unwrap() }
    });
    let answers = join_all(posts).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    for answer in answers {
        assert_matches!(answer, Ok(_) | Err(BoardError::Exists { .. }));
    }
    assert_eq!(list(board, WHOLE_BOARD).await.len(), 1);
}

pub(crate) async fn one_call_posts_1200_jobs(board: &Subject) {
    let drafts: Vec<_> = (0..1200)
        .map(|number| draft(&format!("job{number}")))
        .collect();
    let answers = board.post(&drafts, None).await.unwrap();
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(list(board, WHOLE_BOARD).await.len(), drafts.len());
}
