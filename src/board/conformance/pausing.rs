//! The contract of pauses.

use chrono::{TimeDelta, Utc};
use futures_util::future::try_join_all;

use super::{events::next_event, *};
use crate::{
    board::{Event, EventKind, filter::Filters},
    job::{AuditEntry, MAX_PAUSES, Pause},
};

fn pause(names: &str, until: Option<TimeDelta>) -> Pause {
    let audit = AuditEntry::now("paused", "olga", Some("the volume is full"));
    let until = until.map(|ahead| Utc::now() + ahead);
    Pause::new(names.to_owned(), until, audit)
}

async fn kept(board: &Subject) -> Vec<Pause> {
    let mut pauses = board.pauses().await.unwrap();
    pauses.sort_by(|one, other| one.names.cmp(&other.names));
    pauses
}

pub(crate) async fn pause_is_stored_until_it_is_ended(board: &Subject) {
    assert!(kept(board).await.is_empty());
    let (all, some) = (
        pause("*", None),
        pause("a/b %\u{e4}*", Some(TimeDelta::hours(1))),
    );
    board.pause(&all).await.unwrap();
    board.pause(&some).await.unwrap();
    assert_eq!(kept(board).await, [all.clone(), some.clone()]);
    let longer = pause(&some.names, None);
    board.pause(&longer).await.unwrap();
    assert_eq!(kept(board).await, [all, longer]);
    let audit = AuditEntry::now("resumed", "olga", None);
    assert!(board.resume("*", &audit).await.unwrap());
    assert!(!board.resume("*", &audit).await.unwrap());
    assert!(board.resume(&some.names, &audit).await.unwrap());
    assert!(kept(board).await.is_empty());
}

pub(crate) async fn pausing_and_resuming_emit_events(board: &Subject) {
    let mut events = board.events().await.unwrap().stream;
    let some = pause("a/b %*", None);
    let mut tells = async |kind: EventKind| {
        let Event {
            kind: found, names, ..
        } = next_event(&mut events).await;
        assert_eq!((found, names.as_deref()), (kind, Some("a/b %*")));
    };
    board.pause(&some).await.unwrap();
    tells(EventKind::Paused).await;
    board
        .pause(&pause(&some.names, Some(TimeDelta::hours(1))))
        .await
        .unwrap();
    tells(EventKind::Paused).await;
    let audit = AuditEntry::now("resumed", "olga", None);
    board.resume(&some.names, &audit).await.unwrap();
    tells(EventKind::Resumed).await;
}

pub(crate) async fn paused_job_is_no_candidate_until_its_pause_ends(board: &Subject) {
    post_one(board, "backup").await;
    post_one(board, "resize").await;
    let candidates = async || {
        let filters = Filters::default();
        let found = board
            .candidates(&filters, 10, &Default::default())
            .await
            .unwrap();
        let names: Vec<_> = found.jobs.into_iter().map(|job| job.name).collect();
        (names, found.next_not_before)
    };
    let (both, none) = (["backup", "resize"].map(str::to_owned).to_vec(), None);
    let some = pause("back*", Some(TimeDelta::hours(1)));
    board
        .pause(&pause("resize", Some(TimeDelta::seconds(-1))))
        .await
        .unwrap();
    assert_eq!(candidates().await, (both, none));
    board.pause(&some).await.unwrap();
    assert_eq!(candidates().await, (vec!["resize".to_owned()], some.until));
    board.pause(&pause("*", None)).await.unwrap();
    assert_eq!(candidates().await.0, [""; 0]);
}

pub(crate) async fn too_many_pauses_pause_all_jobs_until_one_is_ended(board: &Subject) {
    post_one(board, "resize").await;
    let pauses = (0..=MAX_PAUSES).map(|number| pause(&number.to_string(), None));
    let pauses: Vec<_> = pauses.collect();
    for some in pauses.chunks(50) {
        let paused = some.iter().map(|pause| board.pause(pause));
        try_join_all(paused).await.unwrap();
    }
    let of_all = |found: &[Pause]| found.iter().filter(|it| it.names == "*").count();
    let found = kept(board).await;
    assert!(found.len() <= MAX_PAUSES + 1, "{}", found.len());
    assert_eq!(of_all(&found), 1);
    let (filters, none) = (Filters::default(), Default::default());
    let candidates = board.candidates(&filters, 10, &none).await.unwrap();
    assert!(candidates.jobs.is_empty());
    let audit = AuditEntry::now("resumed", "olga", None);
    assert!(board.resume("0", &audit).await.unwrap());
    let found = kept(board).await;
    assert_eq!((found.len(), of_all(&found)), (MAX_PAUSES, 0));
}
