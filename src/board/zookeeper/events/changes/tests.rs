//! Events derived from node changes alone.

use tokio::time::Instant;

use super::*;
use crate::{
    board::cached_job::ReadTime,
    job::{Entry, Fence, Malformed, Owner},
};

fn key() -> JobKey {
    JobKey::new("job0000000001")
}

fn known(owner: Option<&str>) -> CachedJob {
    let record = Entry::Malformed(Malformed {
        is_cut: false,
        is_denied: false,
        key: key(),
        problem: String::new(),
        size: 0,
        raw: Vec::new(),
        holding: None,
        origin: crate::job::Origin::Here,
    });
    let now = Instant::now();
    let mut known = CachedJob::of(
        &record,
        ReadTime {
            asked: now,
            answered: now,
        },
    );
    known.set_claim(owner.map(claim));
    known
}

fn claim(owner: &str) -> (Option<Owner>, Option<Fence>) {
    let fence = Fence(format!("fence of {owner}"));
    (Some(Owner::new(owner).unwrap()), Some(fence))
}

fn lock_of(owner: &str) -> SeenLock {
    let (owner, fence) = claim(owner);
    SeenLock::Held(owner, fence)
}

fn locked(lock: SeenLock) -> SeenNodes {
    SeenNodes {
        lock,
        ..SeenNodes::default()
    }
}

fn there() -> SeenNodes {
    SeenNodes {
        job: Some(known(None)),
        ..SeenNodes::default()
    }
}

fn gone() -> SeenNodes {
    SeenNodes::default()
}

const NAME: &str = "job0000000001";

fn job_came() -> NodeChange {
    NodeChange::OfJob(NodeEvent::JobCame, key())
}

fn job_went() -> NodeChange {
    NodeChange::OfJob(NodeEvent::JobWent, key())
}

fn lock_came() -> NodeChange {
    NodeChange::OfJob(NodeEvent::LockCame, key())
}

fn lock_went() -> NodeChange {
    NodeChange::OfJob(NodeEvent::LockWent, key())
}

fn trash_came() -> NodeChange {
    NodeChange::OfJob(NodeEvent::TrashCame, key())
}

fn trash_went() -> NodeChange {
    NodeChange::OfJob(NodeEvent::TrashWent, key())
}

type Reported = Vec<(EventKind, String)>;

fn queue(changes: &[NodeChange]) -> NodeChanges {
    let mut queue = NodeChanges::default();
    changes.iter().for_each(|change| queue.push(change.clone()));
    queue
}

/// Reports the first changes, using the later ones as context.
fn events_of(
    picture: &mut NodePicture,
    changes: &[NodeChange],
    count: u64,
    seen: SeenNodes,
) -> Reported {
    picture.changes = queue(changes);
    let mut observations = Observations::default();
    observations.add(JobKey::new(NAME), seen);
    let events = picture.events_before(count, &observations);
    let owner = |event: Event| event.owner.map_or(String::new(), |owner| owner.to_string());
    events
        .into_iter()
        .map(|event| (event.kind, owner(event)))
        .collect()
}

fn board(owner: Option<&str>) -> NodePicture {
    let mut picture = NodePicture::default();
    picture.board.insert(key(), known(owner));
    picture
}

fn trash() -> NodePicture {
    let mut picture = NodePicture::default();
    picture.trash.insert(key(), known(None));
    picture
}

fn events_on_a_board(owner: Option<&str>, changes: &[NodeChange], seen: SeenNodes) -> Reported {
    let all = changes.len() as u64;
    events_of(&mut board(owner), changes, all, seen)
}

fn by(kind: EventKind, owner: &str) -> (EventKind, String) {
    (kind, owner.to_owned())
}

#[test]
fn change_is_interpreted_by_the_changes_that_follow() {
    use EventKind::{Abandoned, Claimed, Consumed, Trashed};
    type Case<'a> = (
        Option<&'a str>,
        &'a [NodeChange],
        SeenNodes,
        &'a [(EventKind, String)],
    );
    let ada = Some("ada");
    let cases: [Case<'_>; 8] = [
        (
            None,
            &[lock_came()],
            locked(lock_of("ada")),
            &[by(Claimed, "ada")],
        ),
        (ada, &[lock_went()], there(), &[by(Abandoned, "ada")]),
        (
            ada,
            &[lock_went(), job_went()],
            gone(),
            &[by(Consumed, "ada")],
        ),
        (
            ada,
            &[lock_went(), job_went(), trash_came()],
            gone(),
            &[by(Trashed, "ada")],
        ),
        // The watch on the trash may fire before the one on the board.
        (
            ada,
            &[trash_came(), lock_went(), job_went()],
            gone(),
            &[by(Trashed, "ada")],
        ),
        // Forcing an unclaimed job proves that it is unclaimed.
        (
            None,
            &[lock_came(), job_went(), lock_went()],
            gone(),
            &[by(Consumed, "")],
        ),
        (
            ada,
            &[lock_went(), lock_came()],
            SeenNodes {
                job: Some(known(None)),
                ..locked(lock_of("bob"))
            },
            &[by(Abandoned, "ada"), by(Claimed, "bob")],
        ),
        (None, &[job_went()], gone(), &[by(Consumed, "")]),
    ];
    for (owner, changes, seen, expected) in cases {
        assert_eq!(
            events_on_a_board(owner, changes, seen),
            expected,
            "{changes:?}"
        );
    }
}

#[test]
fn unobserved_claim_is_reported_without_an_owner() {
    use EventKind::{Abandoned, Claimed, Consumed};
    let ended = [lock_came(), lock_went()];
    assert_eq!(
        events_on_a_board(None, &ended, gone()),
        [by(Claimed, ""), by(Abandoned, "")]
    );
    let consumed = [lock_came(), lock_went(), job_went()];
    assert_eq!(
        events_on_a_board(None, &consumed, gone()),
        [by(Claimed, ""), by(Consumed, "")]
    );
    // The lock seen is the last one; the owner of the earlier one is unknown.
    let again = [lock_came(), lock_went(), lock_came()];
    let expected = [by(Claimed, ""), by(Abandoned, ""), by(Claimed, "bob")];
    assert_eq!(
        events_on_a_board(None, &again, locked(lock_of("bob"))),
        expected
    );
}

#[test]
fn unobserved_job_is_a_resync() {
    let came_and_went = [job_came(), lock_came(), lock_went(), job_went()];
    let mut picture = NodePicture::default();
    assert_eq!(
        events_of(&mut picture, &came_and_went, 4, gone()),
        [by(EventKind::Resync, "")]
    );
    // Each job is named once.
    let mut twice = NodePicture {
        changes: queue(&[came_and_went.clone(), came_and_went.clone()].concat()),
        ..NodePicture::default()
    };
    let events = twice.events_before(8, &Observations::default());
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].subject.as_ref().unwrap().key, key());
    // Unless it is found in the trash.
    let trashed = [&came_and_went[..], &[trash_came()]].concat();
    let seen = SeenNodes {
        trashed: Some(known(None)),
        ..gone()
    };
    use EventKind::{Claimed, Posted, Trashed};
    assert_eq!(
        events_of(&mut picture, &trashed, 5, seen),
        [by(Posted, ""), by(Claimed, ""), by(Trashed, "")]
    );
}

#[test]
fn known_state_is_not_reported_again() {
    let ada = Some("ada");
    let seen = SeenNodes {
        job: Some(known(None)),
        ..locked(lock_of("ada"))
    };
    assert_eq!(events_on_a_board(ada, &[job_came(), lock_came()], seen), []);
    assert_eq!(events_on_a_board(None, &[lock_went()], there()), []);
    // It was seen before its event, and has ended since.
    let ended = [lock_came(), lock_went()];
    assert_eq!(
        events_on_a_board(ada, &ended, gone()),
        [by(EventKind::Abandoned, "ada")]
    );
    // A lock of another job, or of none.
    let mut picture = NodePicture::default();
    assert_eq!(events_of(&mut picture, &ended, 2, gone()), []);
    assert_eq!(events_of(&mut picture, &[job_went()], 1, gone()), []);
}

#[test]
fn vacant_lock_is_no_claim_but_its_end_frees_the_job() {
    let mut picture = board(None);
    let vacant = || locked(SeenLock::Vacant);
    assert_eq!(events_of(&mut picture, &[lock_came()], 1, vacant()), []);
    let freed = [by(EventKind::Abandoned, "")];
    assert_eq!(events_of(&mut picture, &[lock_went()], 1, there()), freed);
    picture.board.insert(key(), known(None));
    picture.blocked.insert(key());
    assert_eq!(events_of(&mut picture, &[lock_went()], 1, there()), freed);
    assert_eq!(events_of(&mut picture, &[lock_went()], 1, there()), []);
}

#[test]
fn foreign_write_to_a_node_is_a_resync() {
    let mut picture = board(Some("ada"));
    let seen = SeenNodes {
        job: Some(known(None)),
        ..locked(lock_of("bob"))
    };
    let rewritten = [NodeChange::OfJob(NodeEvent::Rewritten, key())];
    assert_eq!(
        events_of(&mut picture, &rewritten, 1, seen),
        [by(EventKind::Resync, "")]
    );
    let abandoned = [by(EventKind::Abandoned, "bob")];
    assert_eq!(
        events_of(&mut picture, &[lock_went()], 1, there()),
        abandoned
    );
}

#[test]
fn write_under_a_short_lock_is_a_retry() {
    use EventKind::{Abandoned, Claimed, Restored};
    let retried = [
        lock_came(),
        NodeChange::OfJob(NodeEvent::Rewritten, key()),
        lock_went(),
    ];
    for end in 1..=3 {
        let events = events_of(&mut board(None), &retried, end, there());
        assert_eq!(events, [by(Restored, "")], "{end}");
    }
    let claimed = [lock_came(), lock_went()];
    let events = events_on_a_board(None, &claimed, there());
    assert_eq!(events, [by(Claimed, ""), by(Abandoned, "")]);
}

#[test]
fn job_leaving_the_trash_is_restored_or_purged() {
    use EventKind::{Posted, Purged, Restored};
    let restored = [by(Restored, "")];
    for changes in [[job_came(), trash_went()], [trash_went(), job_came()]] {
        assert_eq!(events_of(&mut trash(), &changes, 2, there()), restored);
        // Half of it may only just have arrived.
        assert_eq!(events_of(&mut trash(), &changes, 1, there()), restored);
    }
    assert_eq!(
        events_of(&mut trash(), &[trash_went()], 1, gone()),
        [by(Purged, "")]
    );
    assert_eq!(
        events_of(&mut NodePicture::default(), &[job_came()], 1, there()),
        [by(Posted, "")]
    );
}

#[test]
fn trash_changes_of_another_board_are_ignored() {
    use EventKind::{Consumed, Posted, Purged};
    let theirs = || {
        let subject = crate::board::event::Subject {
            uuid: "theirs".to_owned(),
            ..known(None).subject(&key())
        };
        CachedJob::of_event(&subject)
    };
    let trashed = || SeenNodes {
        trashed: Some(theirs()),
        ..gone()
    };
    let ended = [trash_came(), lock_went(), job_went()];
    assert_eq!(
        events_on_a_board(Some("ada"), &ended, trashed()),
        [by(Consumed, "ada")]
    );
    // A restore or purge on this board still finds it.
    let mut picture = NodePicture::default();
    assert_eq!(events_of(&mut picture, &[trash_came()], 1, trashed()), []);
    let both = [trash_went(), job_came()];
    assert_eq!(
        events_of(&mut picture, &both, 2, there()),
        [by(Purged, ""), by(Posted, "")]
    );
}

#[test]
fn partly_read_changes_are_reported_later() {
    use EventKind::{Abandoned, Claimed, Consumed};
    let mut picture = board(Some("ada"));
    picture.changes = queue(&[lock_went(), lock_came(), lock_went(), job_went()]);
    let kinds = |events: Vec<Event>| -> Vec<_> { events.iter().map(|event| event.kind).collect() };
    let observations = Observations::default();
    let first = picture.events_before(2, &observations);
    assert!(first.iter().all(|event| event.time == first[0].time));
    assert_eq!(kinds(first), [Abandoned, Claimed]);
    assert_eq!(kinds(picture.events_before(4, &observations)), [Consumed]);
    assert!(picture.changes.is_empty());
}
