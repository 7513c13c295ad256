//! The contract of moves.

use std::slice;

use chrono::Utc;

use super::*;
use crate::{
    board::BoardError,
    job::{AuditEntry, Former, Identity, MoveRecord, Outcome, Settlement, Stage},
};

const MOVER: &str = "move:ada@h:h:1:c0ffee01";

fn begun(to: &str) -> MoveRecord {
    let (to, on) = (to.to_owned(), Utc::now());
    MoveRecord {
        owner: owner(MOVER),
        stage: Stage::Begun { to, on },
    }
}

fn transferred() -> Draft {
    let mut job = Job::named("resize");
    job.attempts.count = 2;
    job.attempts.postponed = 1;
    job.attempts.audit = Some(AuditEntry::now(
        AuditEntry::RECEIVED,
        "ada",
        Some("moved from x"),
    ));
    Draft {
        chosen: true,
        former: Some(Box::new(Former::of(&job, Vec::new()))),
        ..draft("resize")
    }
}

pub(crate) async fn copied_job_is_posted_claimed_and_counts_no_attempt(board: &Subject) {
    let draft = transferred();
    let mover = claimant(MOVER, Term::Indefinite);
    let posted = board
        .post(slice::from_ref(&draft), Some(&mover))
        .await
        .unwrap();
    let posted = posted.into_iter().next().unwrap().unwrap();
    let job = on_board(board, &posted.key).await;
    let holding = job.holding.as_ref().unwrap();
    assert_eq!(holding.owner, Some(owner(MOVER)));
    assert_eq!(
        (&holding.fence, posted.fence.is_some()),
        (&posted.fence, true)
    );
    assert_eq!(holding.expires_in, None);
    assert_eq!((job.attempts.count, job.attempts.postponed), (2, 1));
    assert_eq!(job.attempts.first_claimed_on, None);
    assert_eq!(job.moved_from().as_deref(), Some("x"));
    let refused = claim_one(board, &posted.key, &bob()).await;
    assert_matches!(refused, Err(BoardError::AlreadyClaimed { .. }));
    settled(board, &posted.key, release(), by_name(MOVER)).await;
    let free = on_board(board, &posted.key).await;
    assert_eq!((free.holding, free.attempts.count), (None, 2));
    claim_one(board, &posted.key, &bob()).await.unwrap();
    let again = board.post(&[draft], Some(&mover)).await.unwrap();
    assert_matches!(again[0], Err(BoardError::Exists { .. }));
}

pub(crate) async fn copied_job_keeps_its_number_or_gets_the_next(board: &Subject) {
    let mut last: Option<i64> = None;
    for wanted in [Some(7), None, Some(3), Some(20)] {
        let mut draft = transferred();
        if let Some(former) = &mut draft.former {
            former.sequence = wanted;
        }
        let posted = board.post(&[draft], None).await.unwrap().remove(0).unwrap();
        let next = last.map(|last| last + 1);
        let is_kept = Some(posted.sequence) == wanted && wanted > last;
        // The first number of a board is its own choice.
        let is_next = next.is_none_or(|next| posted.sequence == next);
        assert!(
            is_kept || is_next,
            "{posted:?}, not {wanted:?} after {last:?}"
        );
        assert_eq!(
            on_board(board, &posted.key).await.sequence,
            Some(posted.sequence)
        );
        last = Some(posted.sequence);
    }
}

pub(crate) async fn copied_job_is_refused_if_its_uuid_is_in_the_trash(board: &Subject) {
    let draft = transferred();
    let posted = board.post(slice::from_ref(&draft), None).await.unwrap();
    let key = posted.into_iter().next().unwrap().unwrap().key;
    claim_one(board, &key, &ada()).await.unwrap();
    trash_as_ada(board, &key).await;
    let refused = board.post(&[draft], None).await.unwrap().remove(0);
    assert_matches!(refused, Err(BoardError::Exists { .. }));
    assert_eq!(list(board, WHOLE_BOARD).await, []);
}

pub(crate) async fn jobs_with_and_without_their_state_are_posted_together(board: &Subject) {
    let drafts = [draft("new"), transferred(), draft("newer")];
    let posted = board.post(&drafts, None).await.unwrap();
    let mut found = Vec::new();
    for posted in posted {
        let job = on_board(board, &posted.unwrap().key).await;
        found.push((job.name.clone(), job.attempts.count));
    }
    let found: Vec<_> = found.iter().map(|(name, n)| (&name[..], *n)).collect();
    assert_eq!(found, [("new", 0), ("resize", 2), ("newer", 0)]);
}

pub(crate) async fn move_record_is_written_together_with_the_end_of_the_job(board: &Subject) {
    board.begin_move(&begun("sqlite:b.db")).await.unwrap();
    board.begin_move(&begun("sqlite:c.db")).await.unwrap();
    let (moved, kept) = (
        post_one(board, "moved").await,
        post_one(board, "kept").await,
    );
    let mut settlements = Vec::new();
    let mut records = Vec::new();
    for (key, by) in [(&moved, MOVER), (&kept, "bob")] {
        let claimed = claim_one(board, key, &claimant(by, Term::Indefinite))
            .await
            .unwrap();
        let record = MoveRecord::commit(&owner(MOVER), &claimed.job.uuid);
        settlements.push(Settlement {
            job: Some(Identity::from(&claimed.job)),
            audit: Some(AuditEntry::now(AuditEntry::MOVED, MOVER, None)),
            commit: Some(record.clone()),
            ..Settlement::of(
                key.clone(),
                Decision::Consume,
                Authority::Claim(owner(MOVER), claimed.fence),
            )
        });
        records.push(record);
    }
    let settled = board.settle(&settlements).await.unwrap();
    assert!(settled[0].is_ok() && settled[1].is_err(), "{settled:?}");
    assert!(get(board, Location::Board, &moved).await.is_none());
    let ended = get(board, Location::History, &moved).await.unwrap();
    let end = ended.ended.unwrap();
    assert_eq!((end.outcome, end.has_succeeded), (Outcome::Moved, false));
    assert!(get(board, Location::Board, &kept).await.is_some());
    let found = board.moves().await.unwrap();
    assert!(
        found.contains(&records[0]) && !found.contains(&records[1]),
        "{found:?}"
    );
    assert_eq!(
        found.len(),
        2,
        "one of the move, and one of its job: {found:?}"
    );
    board
        .end_moves(&[records[0].clone(), records[1].clone()])
        .await
        .unwrap();
    let left = board.moves().await.unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    board.end_moves(&[begun("")]).await.unwrap();
    assert_eq!(board.moves().await.unwrap(), []);
}

pub(crate) async fn board_without_moved_jobs_has_no_records(board: &Subject) {
    assert_eq!(board.moves().await.unwrap(), []);
    board.end_moves(&[begun("x")]).await.unwrap();
    post_one(board, "a").await;
    assert_eq!(board.moves().await.unwrap(), []);
    board.end_moves(&[begun("x")]).await.unwrap();
}
