//! The contract of board events.

use std::collections::BTreeMap;

use futures_util::{StreamExt, stream::BoxStream};

use super::{
    ended::audit,
    settling::failure,
    trash::{purge, restore},
    *,
};
use crate::{
    board::{BoardError, Event, EventKind},
    job::{AuditEntry, Claim, ExpectedState, Identity, Outcome, Settlement},
};

/// Whether every change publishes its own event. Subscribers of ZooKeeper compare successive reads, and may miss how a
/// short-lived job ended.
fn has_exact_events(board: &Subject) -> bool {
    board.capabilities().has_expiring_claims
}

pub(super) type Events<'a> = BoxStream<'a, Result<Event>>;

pub(super) async fn next(events: &mut Events<'_>, count: usize) -> Vec<(EventKind, String)> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let event = next_event(events).await;
        let name = match (&event.subject, &event.owner) {
            (Some(subject), _) => subject.name.clone(),
            (None, Some(owner)) => owner.to_string(),
            (None, None) => String::new(),
        };
        seen.push((event.kind, name));
    }
    seen
}

pub(super) async fn next_event(events: &mut Events<'_>) -> Event {
    tokio::time::timeout(Duration::from_secs(90), events.next())
        .await
        .expect("an event")
        .expect("the stream continues")
        .unwrap()
}

pub(super) fn all_of(name: &str, kinds: &[EventKind]) -> Vec<(EventKind, String)> {
    kinds.iter().map(|kind| (*kind, name.to_owned())).collect()
}

pub(crate) async fn each_verb_emits_its_event_in_order(board: &Subject) {
    use EventKind::{Abandoned, Claimed, Consumed, Posted, Purged, Restored, Trashed};
    let mut events = board.events().await.unwrap().stream;
    let key = post_one(board, "resize").await;
    let posted = next_event(&mut events).await;
    assert_eq!(posted.kind, Posted);
    assert_eq!(posted.subject.unwrap().key, key);
    let claimed = claim_one(board, &key, &ada()).await.unwrap();
    let event = next_event(&mut events).await;
    assert_eq!(
        (event.kind, event.owner, event.fence),
        (Claimed, Some(ada().owner), Some(claimed.fence))
    );
    settled(board, &key, release(), by_name("ada")).await;
    expect_kinds(&mut events, &[Abandoned]).await;
    for _ in 0..2 {
        claim_one(board, &key, &ada()).await.unwrap();
        expect_kinds(&mut events, &[Claimed]).await;
        trash_as_ada(board, &key).await;
        expect_kinds(&mut events, &[Trashed]).await;
        restore(board, &key).await.unwrap();
        expect_kinds(&mut events, &[Restored]).await;
    }
    claim_one(board, &key, &ada()).await.unwrap();
    expect_kinds(&mut events, &[Claimed]).await;
    trash_as_ada(board, &key).await;
    purge(board, &key).await.unwrap();
    expect_kinds(&mut events, &[Trashed, Purged]).await;
    let key = post_one(board, "resize").await;
    expect_kinds(&mut events, &[Posted]).await;
    claim_one(board, &key, &ada()).await.unwrap();
    expect_kinds(&mut events, &[Claimed]).await;
    settled(board, &key, Decision::Consume, by_name("ada")).await;
    expect_kinds(&mut events, &[Consumed]).await;
}

pub(crate) async fn forced_settlement_emits_the_event_of_its_outcome(board: &Subject) {
    use EventKind::{Consumed, Posted, Trashed};
    let mut events = board.events().await.unwrap().stream;
    for (decision, kind) in [
        (Decision::Consume, Consumed),
        (Decision::Trash(Aftermath::None), Trashed),
    ] {
        let key = post_one(board, "resize").await;
        expect_kinds(&mut events, &[Posted]).await;
        let nobody = Authority::Force(ExpectedState::Unclaimed);
        settled(board, &key, decision, nobody).await;
        expect_kinds(&mut events, &[kind]).await;
    }
}

pub(crate) async fn event_states_its_actor_and_reason(board: &Subject) {
    let mut events = board.events().await.unwrap().stream;
    let key = post_claimed(board, "resize").await;
    next(&mut events, 2).await;
    let mut tells = async |outcome: Option<Outcome>, audit: &Option<AuditEntry>| {
        let event = next_event(&mut events).await;
        // Deleted nodes do not show the outcome.
        if outcome.is_none() || has_exact_events(board) {
            assert_eq!((event.outcome, &event.audit), (outcome, audit), "{event:?}");
        }
    };
    let settle_by_force = async |decision: Decision, why: &str| {
        let job = on_board(board, &key).await;
        let expected = ExpectedState::of(&Entry::Job(Box::new(job.clone())));
        let settlement = Settlement {
            job: Some(Identity::from(&job)),
            audit: audit(why),
            ..Settlement::of(key.clone(), decision, Authority::Force(expected))
        };
        board
            .settle(&[settlement])
            .await
            .unwrap()
            .remove(0)
            .unwrap();
        audit(why)
    };
    let freed = settle_by_force(release(), "ada is ill").await;
    tells(None, &freed).await;
    // Later acts must not repeat earlier events.
    claim_one(board, &key, &ada()).await.unwrap();
    tells(None, &None).await;
    settled(board, &key, release(), by_name("ada")).await;
    tells(None, &None).await;
    let trashed = settle_by_force(Decision::Trash(Aftermath::None), "broken").await;
    tells(None, &trashed).await;
    let restored = audit("mended");
    let restore = crate::job::Revision::from_trash(key.clone(), restored.clone());
    board.revise(&[restore]).await.unwrap();
    tells(None, &restored).await;
    assert_eq!(on_board(board, &key).await.attempts.audit, restored);
    let failed = settle_by_force(Decision::ConsumeFailed(failure("no room")), "no use").await;
    tells(Some(Outcome::Failed), &failed).await;
}

async fn expect_kinds(events: &mut Events<'_>, kinds: &[EventKind]) {
    assert_eq!(next(events, kinds.len()).await, all_of("resize", kinds));
}

pub(crate) async fn expired_claim_is_reported_at_its_deadline(board: &Subject) {
    // Elsewhere `claiming::timed_claim_expires` checks that the board refuses the claim.
    if !board.capabilities().has_expiring_claims {
        return;
    }
    let key = post_one(board, "resize").await;
    let by = claimant("ada", Term::For(SHORT));
    claim_one(board, &key, &by).await.unwrap();
    let mut events = board.events().await.unwrap().stream;
    let expired = next_event(&mut events).await;
    assert_eq!(expired.kind, EventKind::Expired);
    assert_eq!(expired.owner, Some(by.owner));
    assert_eq!(on_board(board, &key).await.holding, None);
    // The real release now is not reported a second time.
    claim_one(board, &key, &bob()).await.unwrap();
    assert_eq!(next_event(&mut events).await.kind, EventKind::Claimed);
}

pub(crate) async fn renewal_emits_no_event_but_an_extension_does(board: &Subject) {
    let key = post_one(board, "resize").await;
    let by = claimant("ada", Term::Lease(LONG));
    let claimed = claim_one(board, &key, &by).await.unwrap();
    let mut events = board.events().await.unwrap().stream;
    let kept = Claim {
        key: key.clone(),
        owner: by.owner,
        fence: Some(claimed.fence),
        term: LONG,
    };
    let by_hand = Claim {
        fence: None,
        ..kept.clone()
    };
    let renewed = board.renew(&[kept]).await.unwrap().remove(0);
    renewed.unwrap();
    let extended = board.renew(&[by_hand]).await.unwrap().remove(0);
    let mut expected = vec![(EventKind::Posted, "next".to_owned())];
    match board.capabilities().has_expiring_claims {
        true => expected.insert(0, (EventKind::Extended, "resize".to_owned())),
        false => assert_matches!(extended, Err(BoardError::Unsupported(_))),
    }
    post_one(board, "next").await;
    assert_eq!(next(&mut events, expected.len()).await, expected);
}

pub(crate) async fn short_lived_job_has_complete_events(board: &Subject) {
    use EventKind::{Claimed, Consumed, Posted};
    let mut events = board.events().await.unwrap().stream;
    for name in ["one", "two"] {
        let key = post_claimed(board, name).await;
        settled(board, &key, Decision::Consume, by_name("ada")).await;
    }
    let kinds = [Posted, Claimed, Consumed];
    let whole = [all_of("one", &kinds), all_of("two", &kinds)].concat();
    let mut seen = next(&mut events, 1).await;
    let resync = all_of("", &[EventKind::Resync]);
    while seen.len() < whole.len() && !seen.ends_with(&resync) {
        seen.extend(next(&mut events, 1).await);
    }
    if !has_exact_events(board) && seen.ends_with(&resync) {
        for name in ["one", "two"] {
            let own = seen.iter().filter(|(_, it)| it == name);
            let own: Vec<_> = own.map(|(kind, _)| *kind).collect();
            assert!(kinds.starts_with(&own), "{seen:?}");
        }
        // A read after the resync shows the rest, and later events follow.
        assert_eq!(list(board, WHOLE_BOARD).await, []);
        post_one(board, "last").await;
        while next(&mut events, 1).await != all_of("last", &[Posted]) {}
        return;
    }
    assert_eq!(seen, whole);
}

pub(crate) async fn event_identifies_its_job_and_claim(board: &Subject) {
    let old = post_one(board, "old").await;
    let mut events = board.events().await.unwrap().stream;
    let mut other = board.events().await.unwrap().stream;
    // The initial state is not reported.
    use EventKind::{Abandoned, Claimed, Consumed};
    let steps = [
        (Claimed, ada(), None),
        (Abandoned, ada(), Some(release())),
        (Claimed, bob(), None),
        (Consumed, bob(), Some(Decision::Consume)),
    ];
    for (kind, by, decision) in steps {
        match decision {
            None => drop(claim_one(board, &old, &by).await.unwrap()),
            Some(decision) => {
                let authority = Authority::Owner(by.owner.clone());
                settled(board, &old, decision, authority).await;
            }
        }
        let event = next_event(&mut events).await;
        assert_eq!(event.kind, kind);
        assert_eq!(event.owner, Some(by.owner), "{kind}");
        let subject = event.subject.clone().unwrap();
        assert_eq!(
            (&subject.key, subject.name.as_str()),
            (&old, "old"),
            "{kind}"
        );
        assert!(subject.sequence.is_some(), "{kind}");
        // Every subscriber receives the same.
        assert_eq!(next_event(&mut other).await.subject, event.subject);
    }
}

async fn work(board: Subject, number: usize) {
    for round in 0..5 {
        let key = post_claimed(&board, &format!("job-{number}-{round}")).await;
        let decision = match (number + round) % 4 {
            0 => continue,
            1 => release(),
            2 => Decision::Consume,
            _ => Decision::Trash(Aftermath::None),
        };
        settled(&board, &key, decision, by_name("ada")).await;
    }
}

async fn holders(board: &Subject) -> BTreeMap<JobKey, Option<Owner>> {
    let jobs = list(board, WHOLE_BOARD).await.into_iter();
    jobs.map(|job| (job.key.clone(), job.owner().cloned()))
        .collect()
}

#[derive(Default)]
struct Followed {
    holders: BTreeMap<JobKey, Option<Owner>>,
    /// How often the board was read instead.
    resyncs: usize,
}

impl Followed {
    async fn follow(&mut self, event: Event, board: &Subject) {
        use EventKind::{Abandoned, Claimed, Consumed, Expired, Posted, Restored, Resync, Trashed};
        let key = event.subject.map(|subject| subject.key);
        match (event.kind, key) {
            (Posted | Restored | Abandoned | Expired, Some(key)) => {
                self.holders.insert(key, None);
            }
            (Claimed, Some(key)) => _ = self.holders.insert(key, event.owner),
            (Consumed | Trashed, Some(key)) => _ = self.holders.remove(&key),
            (Resync, _) => {
                self.holders = holders(board).await;
                self.resyncs += 1;
            }
            (kind, _) => panic!("unexpected event: {kind}"),
        }
    }
}

pub(crate) async fn events_lead_to_the_same_state_as_a_listing(board: &Subject) {
    let mut events = board.events().await.unwrap().stream;
    let workers = (0..4).map(|number| tokio::spawn(work(Arc::clone(board), number)));
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    let listed = holders(board).await;
    let mut followed = Followed::default();
    while followed.holders != listed {
        let event = next_event(&mut events).await;
        followed.follow(event, board).await;
    }
    // This job stays claimable, and even a resync does not hide a post.
    let last = post_one(board, "last").await;
    let with_last = holders(board).await;
    let mut has_come = false;
    while !has_come {
        let event = next_event(&mut events).await;
        let subject = event.subject.as_ref();
        has_come = event.kind == EventKind::Posted && subject.is_some_and(|it| it.key == last);
        followed.follow(event, board).await;
    }
    assert_eq!(followed.holders, with_last);
    let most = match has_exact_events(board) {
        true => 0,
        false => listed.len(),
    };
    assert!(followed.resyncs <= most, "{}", followed.resyncs);
}
