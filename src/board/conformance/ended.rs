//! The contract of the history.

use chrono::{DateTime, Utc};

use super::{settling::failure, *};
use crate::{
    board::Settled,
    job::{AuditEntry, Book, Identity, Outcome, Purge, Settlement},
};

pub(crate) const ENDED: Query = Query {
    location: Location::History,
    ..WHOLE_BOARD
};

pub(super) fn audit(reason: &str) -> Option<AuditEntry> {
    Some(AuditEntry {
        by: "olga".to_owned(),
        action: Some("abandoned".to_owned()),
        on: DateTime::from_timestamp(1_790_000_000, 5_000),
        reason: Some(reason.to_owned()),
    })
}

/// Settles a claim by hand, so that the history keeps it.
pub(crate) async fn end(
    board: &Subject,
    key: &JobKey,
    decision: Decision,
    audit: Option<AuditEntry>,
) {
    let job = on_board(board, key).await;
    let authority = Authority::Owner(job.owner().unwrap().clone());
    let settlement = Settlement {
        job: Some(Identity::from(&job)),
        audit,
        ..Settlement::of(key.clone(), decision, authority)
    };
    let settled = board.settle(&[settlement]).await.unwrap().remove(0);
    assert_eq!(settled.unwrap().forgotten, None);
}

async fn purge(board: &Subject, key: &JobKey) -> Settled {
    let job = get(board, Location::Trash, key).await.unwrap();
    let purge = Purge {
        key: key.clone(),
        job: Some(Identity::from(&job)),
        audit: audit("too old"),
    };
    board.purge(&[purge]).await.unwrap().remove(0).unwrap()
}

/// Ends jobs by consuming and purging, and returns why the history lacks them.
pub(crate) async fn forgotten(board: &Subject) -> [Option<String>; 2] {
    let mut keys = Vec::new();
    for name in ["consumed", "purged"] {
        let key = post_claimed(board, name).await;
        keys.push(key);
    }
    end(board, &keys[1], Decision::Trash(Aftermath::None), None).await;
    let purged = purge(board, &keys[1]).await;
    assert_eq!(get(board, Location::Trash, &keys[1]).await, None);
    let job = on_board(board, &keys[0]).await;
    let settlement = Settlement {
        job: Some(Identity::from(&job)),
        ..Settlement::of(keys[0].clone(), Decision::Consume, by_name("ada"))
    };
    let consumed = board.settle(&[settlement]).await.unwrap().remove(0);
    assert_eq!(get(board, Location::Board, &keys[0]).await, None);
    [consumed.unwrap().forgotten, purged.forgotten]
}

async fn remembered(board: &Subject, uuid: &str) -> Job {
    let wanted = JobRef::Uuid(uuid.to_owned());
    let found = board.find(Location::History, &[wanted]).await.unwrap();
    let mut found = found.into_iter().flatten();
    match (found.next(), found.next()) {
        (Some(Entry::Job(job)), None) => *job,
        found => panic!("{found:?}"),
    }
}

pub(crate) async fn consumed_job_stays_in_the_history_unchanged(board: &Subject) {
    let before = Utc::now() - chrono::TimeDelta::seconds(1);
    let key = post(board, urgent("resize", Priority::High)).await;
    let claimed = board.claim_one(&key, &ada(), ATTEMPT).await.unwrap();
    let release = Decision::Abandon(Aftermath::Failed {
        failure: failure("no room"),
        not_before: None,
    });
    end(board, &key, release, None).await;
    board.claim_one(&key, &ada(), ATTEMPT).await.unwrap();
    end(board, &key, Decision::Consume, None).await;
    let kept = remembered(board, &claimed.job.uuid).await;
    assert_eq!(kept.state(), crate::job::State::Complete);
    assert_eq!(
        (kept.name.as_str(), kept.priority),
        ("resize", Priority::High)
    );
    assert_eq!(kept.sequence, claimed.job.sequence);
    assert_eq!(kept.attempts.count, 2);
    assert_eq!(kept.attempts.failures[0].reason, "no room");
    // Details may be long, or secret.
    assert_eq!(kept.details, None);
    let ended = kept.ended.as_ref().unwrap();
    assert_eq!(
        (ended.outcome, ended.has_succeeded),
        (Outcome::Consumed, false)
    );
    assert_eq!(ended.owner.as_ref(), Some(&ada().owner));
    assert!(ended.on > before && ended.on <= Utc::now());
    assert!(kept.took().is_some() && kept.waited().is_some(), "{kept:?}");
    assert_eq!(get(board, Location::Board, &key).await, None);
}

pub(crate) async fn history_distinguishes_the_outcomes(board: &Subject) {
    let mut uuids = Vec::new();
    for name in ["done", "failed", "purged"] {
        let key = post_claimed(board, name).await;
        uuids.push(on_board(board, &key).await.uuid);
        match name {
            "done" => end(board, &key, Decision::Consume, audit("by hand")).await,
            "failed" => {
                end(
                    board,
                    &key,
                    Decision::ConsumeFailed(failure("no room")),
                    None,
                )
                .await
            }
            _ => {
                end(
                    board,
                    &key,
                    Decision::Trash(Aftermath::None),
                    audit("broken"),
                )
                .await;
                let trashed = get(board, Location::Trash, &key).await.unwrap();
                assert_eq!(trashed.attempts.audit, audit("broken"));
                assert_eq!(purge(board, &key).await, Settled::default());
            }
        }
    }
    let [done, failed, purged] = &uuids[..] else {
        unreachable!()
    };
    let done = remembered(board, done).await;
    assert_eq!(done.ended.unwrap().outcome, Outcome::Consumed);
    assert_eq!(done.attempts.audit, audit("by hand"));
    let failed = remembered(board, failed).await;
    assert_eq!(failed.ended.as_ref().unwrap().outcome, Outcome::Failed);
    assert_eq!(failed.last_exit(), Some((Some(1), None)));
    let purged = remembered(board, purged).await;
    assert_eq!(purged.ended.unwrap().outcome, Outcome::Purged);
    assert_eq!(purged.attempts.audit, audit("too old"));
}

/// For boards with separate history records: the length of a history record stays limited, unlike its texts.
pub(crate) async fn history_truncates_long_texts(board: &Subject) {
    let long = "\u{e4}".repeat(2_000);
    let book = Book {
        name: long.clone(),
        uuid: long.clone(),
    };
    let draft = Draft {
        book: Some(book),
        ..draft(&long)
    };
    let key = post(board, draft).await;
    claim_one(board, &key, &ada()).await.unwrap();
    let failure = crate::job::Failure::reported(&long, &long);
    let uuid = on_board(board, &key).await.uuid;
    end(board, &key, Decision::ConsumeFailed(failure), None).await;
    let kept = remembered(board, &uuid).await;
    let (book, failure) = (kept.book.unwrap(), kept.attempts.failures.last().unwrap());
    let texts = [
        &kept.name,
        &book.name,
        &book.uuid,
        &failure.reason,
        &failure.conductor,
    ];
    for text in texts {
        let is_cut = text.ends_with("\u{e4}…") && text.len() < 1100;
        assert!(is_cut, "{}", text.len());
    }
}

pub(crate) async fn history_lists_the_latest_end_first(board: &Subject) {
    for name in ["first", "second", "third"] {
        let key = post_claimed(board, name).await;
        end(board, &key, Decision::Consume, None).await;
    }
    assert_eq!(names(board, ENDED).await, ["third", "second", "first"]);
    assert_eq!(list(board, WHOLE_BOARD).await, []);
}

pub(crate) async fn abandoned_job_is_not_in_the_history(board: &Subject) {
    let key = post_claimed(board, "resize").await;
    let given_back = Decision::Abandon(Aftermath::None);
    end(board, &key, given_back, audit("wrong machine")).await;
    assert_eq!(list(board, ENDED).await, []);
    let job = on_board(board, &key).await;
    assert_eq!(job.attempts.audit, audit("wrong machine"));
    assert_eq!((&job.ended, job.took()), (&None, None));
}

/// More than a deletion batch, and than a page.
pub(crate) async fn history_of_many_ends_is_complete_without_duplicates(board: &Subject) {
    const JOBS: usize = 300;
    let drafts: Vec<_> = (0..JOBS)
        .map(|number| draft(&format!("job{number}")))
        .collect();
    let posted = board.post(&drafts, Some(&ada())).await.unwrap().into_iter();
    let keys: Vec<_> = posted.map(|posted| posted.unwrap().key).collect();
    let enders = keys.chunks(JOBS / 8 + 1).map(|keys| {
        let (board, keys) = (Arc::clone(board), keys.to_vec());
        tokio::spawn(async move {
            for key in keys {
                end(&board, &key, Decision::Consume, None).await;
            }
        })
    });
    for ender in enders.collect::<Vec<_>>() {
        ender.await.unwrap();
    }
    let ended = list(board, ENDED).await.into_iter();
    let mut uuids: Vec<_> = ended.map(|job| job.uuid).collect();
    uuids.sort_unstable();
    uuids.dedup();
    assert_eq!(uuids.len(), JOBS);
}

/// The history limit for [`history_is_limited_to_the_configured_length`].
pub(crate) const FEW: u32 = 20;

/// For boards that keep the history of [`FEW`] jobs, unlike those of the other tests.
pub(crate) async fn history_is_limited_to_the_configured_length(board: &Subject) {
    for number in 0..100 {
        let key = post_claimed(board, &format!("job{number}")).await;
        end(board, &key, Decision::Consume, None).await;
    }
    let last: Vec<_> = (80..100).map(|number| format!("job{number}")).collect();
    let kept = names(board, ENDED).await.into_iter().rev();
    assert_eq!(kept.collect::<Vec<_>>(), last);
}
