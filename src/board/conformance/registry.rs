//! The contract of the registry and of health.

use super::{
    events::{all_of, next},
    stored::Storage,
    *,
};
use crate::{
    board::{BoardError, EventKind, own_entry::MAX_CONDUCTORS},
    job::{Conductor, ConductorReport, Unsettled},
};

fn conductor(name: &str) -> Conductor {
    Conductor::named(name)
}

pub(crate) async fn register_with_lease(board: &Subject, name: &str) {
    let conductor = Conductor {
        report: leased(),
        ..conductor(name)
    };
    board.register(&conductor).await.unwrap();
}

fn leased() -> ConductorReport {
    ConductorReport {
        lease: Some(3600.0),
        ..ConductorReport::default()
    }
}

async fn registered(board: &Subject) -> Vec<Conductor> {
    let mut conductors = board.conductors().await.unwrap();
    for conductor in &mut conductors {
        let now = chrono::Utc::now();
        assert!((now - conductor.since).num_seconds().abs() < 60);
        conductor.since = now;
        assert!(conductor.silence.take().unwrap().as_secs() < 60);
    }
    conductors
}

pub(crate) async fn conductors_register_and_leave(board: &Subject) {
    post_one(board, "resize").await;
    let mut events = board.events().await.unwrap().stream;
    let night = Conductor {
        report: leased(),
        ..conductor("night")
    };
    board.register(&night).await.unwrap();
    let known: Vec<_> = registered(board)
        .await
        .into_iter()
        .map(|known| Conductor {
            since: night.since,
            ..known
        })
        .collect();
    assert_eq!(known, [night]);
    board.close().await;
    assert_eq!(registered(board).await, []);
    let received = next(&mut events, 2).await;
    let (joined, left) = (EventKind::ConductorJoined, EventKind::ConductorLeft);
    assert_eq!(received, all_of("night", &[joined, left]));
}

pub(crate) async fn status_of_a_conductor_is_stored_with_its_name(board: &Subject) {
    post_one(board, "resize").await;
    let report = |slots| ConductorReport {
        slots: Some(slots),
        unsettled: vec![Unsettled {
            uuid: "u".to_owned(),
            name: "resize".to_owned(),
            reason: "it cannot go".to_owned(),
        }],
        ..ConductorReport::default()
    };
    let night = Conductor {
        report: report(1),
        ..conductor("night")
    };
    board.register(&night).await.unwrap();
    assert_eq!(registered(board).await[0].report, report(1));
    for report in [report(2), ConductorReport::default()] {
        board.publish(&report).await.unwrap();
        assert_eq!(registered(board).await[0].report, report);
    }
    board.close().await;
}

pub(crate) async fn publishing_without_a_registration_does_nothing(board: &Subject) {
    board.publish(&leased()).await.unwrap();
    assert_eq!(registered(board).await, []);
    board.register(&conductor("night")).await.unwrap();
    board.close().await;
    board.publish(&leased()).await.unwrap();
    assert_eq!(registered(board).await, []);
}

pub(crate) async fn name_of_a_running_conductor_is_taken(board: &Subject) {
    board.register(&conductor("night")).await.unwrap();
    let refused = board.register(&conductor("night")).await;
    assert_matches!(refused, Err(BoardError::NameTaken { .. }));
    board.close().await;
    board.register(&conductor("night")).await.unwrap();
}

pub(crate) async fn publishing_after_another_took_the_name_does_nothing(
    board: &Subject,
    storage: &impl Storage,
) {
    let successor = &storage.again();
    board.register(&conductor("night")).await.unwrap();
    let taken = successor.register(&conductor("night")).await;
    assert_matches!(taken, Err(BoardError::NameTaken { .. }));
    storage.expire_registration("night").await;
    register_with_lease(successor, "night").await;
    board.publish(&ConductorReport::default()).await.unwrap();
    assert_eq!(registered(successor).await[0].report, leased());
    board.close().await;
    assert_eq!(registered(successor).await[0].report, leased());
}

pub(crate) async fn killed_conductor_is_listed_while_its_claims_may_last(
    board: &Subject,
    storage: &impl Storage,
) {
    let successor = storage.again();
    let mut events = board.events().await.unwrap().stream;
    let killed = Conductor {
        report: leased(),
        ..conductor("night")
    };
    board.register(&killed).await.unwrap();
    let (joined, left) = (EventKind::ConductorJoined, EventKind::ConductorLeft);
    assert_eq!(next(&mut events, 1).await, all_of("night", &[joined]));
    storage.expire_registration("night").await;
    // An embedded board detects the end with the next change.
    post_one(board, "resize").await;
    let mut received = next(&mut events, 2).await;
    received.retain(|(kind, _)| *kind != EventKind::Posted);
    assert_eq!(received, all_of("night", &[left]));

    let seen = board.conductors().await.unwrap();
    if !board.capabilities().has_expiring_claims {
        // Its claims ended with its session.
        assert_eq!(seen, []);
    } else {
        let [seen] = seen.try_into().unwrap();
        assert!(seen.has_left && seen.is_overdue(), "{seen:?}");
        assert!(seen.silence.unwrap().as_secs() >= 30, "{seen:?}");
        assert_eq!(
            (&seen.host, seen.pid, &seen.owner, &seen.report),
            (&killed.host, killed.pid, &killed.owner, &killed.report)
        );
    }

    let next = Conductor {
        pid: 4712,
        ..killed
    };
    successor.register(&next).await.unwrap();
    let [seen] = board.conductors().await.unwrap().try_into().unwrap();
    assert_eq!((seen.pid, seen.has_left), (4712, false));
    successor.close().await;
    assert_eq!(registered(board).await, []);
}

pub(crate) async fn too_many_conductors_are_counted(board: &Subject) {
    for number in 0..=MAX_CONDUCTORS {
        board
            .register(&conductor(&number.to_string()))
            .await
            .unwrap();
    }
    let crowded = board.conductors().await;
    let Err(BoardError::Crowded { known, more }) = crowded else {
        panic!("{crowded:?}");
    };
    assert!(known.len() <= MAX_CONDUCTORS);
    assert_eq!(known.len() + more, MAX_CONDUCTORS + 1);
}

pub(crate) async fn health_counts_jobs(board: &Subject) {
    let health = board.health().await.unwrap();
    assert_eq!((health.jobs, health.trashed, health.is_used), (0, 0, false));
    for name in ["one", "two"] {
        post_one(board, name).await;
    }
    let key = post_claimed(board, "three").await;
    trash_as_ada(board, &key).await;
    let health = board.health().await.unwrap();
    assert_eq!((health.jobs, health.trashed, health.is_used), (2, 1, true));
}
