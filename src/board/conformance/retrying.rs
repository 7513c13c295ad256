//! The contract of retries.

use futures_util::future::{join, join_all};

use super::{
    ended::audit,
    events::{all_of, next, next_event},
    settling::failure,
    *,
};
use crate::{
    board::{BoardError, EventKind},
    job::{Edit, JobChange, Revision, State},
};

async fn retry(board: &Subject, key: &JobKey, keeps_attempts: bool) -> Result<()> {
    let retry = Revision {
        location: Location::Board,
        change: match keeps_attempts {
            true => JobChange::Continue,
            false => JobChange::Restart,
        },
        ..Revision::from_trash(key.clone(), audit("mended"))
    };
    board.revise(&[retry]).await.unwrap().pop().unwrap()
}

async fn fail(board: &Subject, key: &JobKey) {
    let rules = ClaimRules {
        is_attempt: true,
        ..BY_HAND
    };
    board.claim_one(key, &ada(), rules).await.unwrap();
    let failed = Decision::Abandon(Aftermath::Failed {
        failure: failure("no room"),
        not_before: Some(chrono::Utc::now() + LONG),
    });
    settled(board, key, failed, by_name("ada")).await;
}

pub(crate) async fn delayed_job_can_be_retried_immediately(board: &Subject) {
    let key = post_one(board, "resize").await;
    let before = on_board(board, &key).await;
    fail(board, &key).await;
    let mut events = board.events().await.unwrap().stream;
    retry(board, &key, true).await.unwrap();
    let event = next_event(&mut events).await;
    assert_eq!(event.kind, EventKind::Restored, "{event:?}");
    assert_eq!(event.audit, audit("mended"));
    assert_eq!(event.subject.unwrap().not_before, None);
    let kept = on_board(board, &key).await.attempts;
    assert_eq!((kept.count, kept.not_before), (1, None));
    fail(board, &key).await;
    assert_eq!(
        next(&mut events, 2).await,
        all_of("resize", &[EventKind::Claimed, EventKind::Abandoned])
    );
    retry(board, &key, false).await.unwrap();
    assert_eq!(next_event(&mut events).await.kind, EventKind::Restored);
    let after = on_board(board, &key).await;
    assert_eq!(after.state(), State::Unclaimed);
    assert_eq!(after.attempts.count, 0);
    assert_eq!(after.attempts.failures.len(), 2);
    assert_eq!(after.attempts.audit, audit("mended"));
    let kept = |job: Job| (job.sequence, job.details, job.created_on);
    assert_eq!(kept(after), kept(before));
    board.claim_one(&key, &bob(), ATTEMPT).await.unwrap();
    assert_eq!(next_event(&mut events).await.kind, EventKind::Claimed);
}

pub(crate) async fn only_unclaimed_delayed_jobs_can_be_retried(board: &Subject) {
    let key = post_one(board, "resize").await;
    let before = on_board(board, &key).await;
    let refused = retry(board, &key, false).await;
    assert_matches!(refused, Err(BoardError::NotDelayed));
    assert_eq!(on_board(board, &key).await, before);
    let claimed = board.claim_one(&key, &ada(), ATTEMPT).await.unwrap();
    let before = on_board(board, &key).await;
    let refused = retry(board, &key, false).await;
    assert_matches!(refused, Err(BoardError::AlreadyClaimed { owner }) if *owner == Some(ada().owner));
    let after = on_board(board, &key).await;
    assert_eq!(after.attempts, before.attempts);
    assert_eq!(after.holding.unwrap().fence, Some(claimed.fence));
    // It was tried once by now, and still restarts from zero.
    settled(board, &key, release(), by_name("ada")).await;
    let refused = retry(board, &key, true).await;
    assert_matches!(refused, Err(BoardError::NotDelayed));
    retry(board, &key, false).await.unwrap();
    assert_eq!(on_board(board, &key).await.attempts.count, 0);
    let other = post_one(board, "other").await;
    trash(board, &other).await;
    let refused = retry(board, &other, false).await;
    assert_matches!(refused, Err(BoardError::NoSuchJob));
}

pub(crate) async fn restored_job_can_keep_its_attempts(board: &Subject) {
    let key = post_one(board, "resize").await;
    trash(board, &key).await;
    let restore = Revision {
        change: JobChange::Continue,
        ..Revision::from_trash(key.clone(), None)
    };
    board.revise(&[restore]).await.unwrap().remove(0).unwrap();
    let after = on_board(board, &key).await;
    assert_eq!(after.state(), State::Unclaimed);
    assert_eq!(after.attempts.count, 1);
}

fn edit(key: &JobKey, edit: Edit) -> Revision {
    Revision {
        location: Location::Board,
        change: JobChange::Edit(edit),
        ..Revision::from_trash(key.clone(), audit("renamed"))
    }
}

/// An edit of the name, and of a member of the details.
fn numbered(number: usize) -> Edit {
    Edit {
        name: Some(format!("job{number}")),
        set: vec![("size".to_owned(), number.into())],
        ..Edit::default()
    }
}

pub(crate) async fn edited_job_keeps_its_delay(board: &Subject) {
    let key = post_one(board, "resize").await;
    fail(board, &key).await;
    let before = on_board(board, &key).await;
    let mut events = board.events().await.unwrap().stream;
    let change = Edit {
        priority: Some(Priority::High),
        ..numbered(7)
    };
    let edited = board.revise(&[edit(&key, change)]).await.unwrap();
    assert_matches!(edited.as_slice(), [Ok(())]);
    let received = next(&mut events, 1).await;
    assert_eq!(received, all_of("job7", &[EventKind::Restored]));
    let after = on_board(board, &key).await;
    assert_eq!((&*after.name, after.priority), ("job7", Priority::High));
    let details = json!({"size": 7, "note": "héllo ☃"});
    assert_eq!(after.details, Some(details.into()));
    let kept = |job: &Job| {
        let attempts = job.attempts.clone();
        let failures = (attempts.count, attempts.not_before, attempts.failures);
        (job.sequence, job.created_on, job.state(), failures)
    };
    assert_eq!(kept(&after), kept(&before));
    assert!(after.attempts.not_before.is_some());
    assert_eq!(after.attempts.audit, audit("renamed"));
    let refused = board.claim_one(&key, &bob(), ATTEMPT).await;
    assert_matches!(refused, Err(BoardError::Delayed { .. }));
}

pub(crate) async fn edit_in_the_trash_does_not_change_the_same_uuid_on_the_board(board: &Subject) {
    let [first, second] = two_of_one_uuid();
    let trashed = post(board, first).await;
    trash(board, &trashed).await;
    let key = post(board, second).await;
    claim_one(board, &key, &ada()).await.unwrap();
    let before = on_board(board, &key).await;
    let change = Revision {
        location: Location::Trash,
        ..edit(&trashed, numbered(7))
    };
    board.revise(&[change]).await.unwrap().remove(0).unwrap();
    assert_eq!(names(board, IN_TRASH).await, ["job7"]);
    assert_eq!(on_board(board, &key).await, before);
}

pub(crate) async fn refused_edit_changes_nothing(board: &Subject) {
    let list = Draft {
        details: json!([1]).into(),
        ..draft("list")
    };
    let (odd, held) = (post(board, list).await, post_one(board, "held").await);
    claim_one(board, &held, &ada()).await.unwrap();
    let before = (on_board(board, &odd).await, on_board(board, &held).await);
    let gone = JobKey::new("gone");
    let edits = [&odd, &held, &gone].map(|key| edit(key, numbered(7)));
    let refused = board.revise(&edits).await.unwrap();
    assert_matches!(
        refused.as_slice(),
        [
            Err(BoardError::Malformed { .. }),
            Err(BoardError::AlreadyClaimed { .. }),
            Err(BoardError::NoSuchJob)
        ]
    );
    let after = (on_board(board, &odd).await, on_board(board, &held).await);
    assert_eq!(after.0, before.0);
    let unlike = |job: Job| Job {
        holding: None,
        ..job
    };
    assert_eq!(unlike(after.1), unlike(before.1));
}

pub(crate) async fn concurrent_edits_leave_one_of_them_whole(board: &Subject) {
    let key = post_one(board, "job12").await;
    let read = async || {
        let job = on_board(board, &key).await;
        let size = job.details.unwrap().value()["size"].clone();
        assert_eq!(job.name, format!("job{size}"));
    };
    let edits = (0..20).map(|number| {
        let edit = edit(&key, numbered(number));
        async move { board.revise(&[edit]).await.unwrap().remove(0) }
    });
    let reads = (0..20).map(|_| read());
    let (answers, _) = join(join_all(edits), join_all(reads)).await;
    assert!(answers.iter().any(Result::is_ok), "{answers:?}");
    let is_right = |it: &Result<()>| matches!(it, Ok(()) | Err(BoardError::Changed));
    assert!(answers.iter().all(is_right), "{answers:?}");
    read().await;
}

/// Twenty clients retry a job and one claims it; each result is correct.
pub(crate) async fn twenty_retries_of_a_job_one_succeeds(board: &Subject) {
    let key = post_one(board, "resize").await;
    fail(board, &key).await;
    let tries = (0..20).map(|_| retry(board, &key, false));
    let answers = join_all(tries).await;
    let won = answers.iter().filter(|it| it.is_ok()).count();
    assert_eq!(won, 1, "{answers:?}");
    let is_right = |it: &Result<()>| matches!(it, Ok(()) | Err(BoardError::NotDelayed));
    assert!(answers.iter().all(is_right), "{answers:?}");
}

async fn trash(board: &Subject, key: &JobKey) {
    board.claim_one(key, &ada(), ATTEMPT).await.unwrap();
    trash_as_ada(board, key).await;
}
