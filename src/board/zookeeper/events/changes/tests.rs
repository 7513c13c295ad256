//! Events derived from node changes alone.

use tokio::time::Instant;

use super::*;
use crate::{
    board::known::Looked,
    job::{Entry, Fence, Malformed, Owner},
};

fn key() -> JobKey {
    JobKey::new("job0000000001")
}

/// A record as a reader sees it, claimed or not.
fn known(owner: Option<&str>) -> Known {
    let record = Entry::Malformed(Malformed {
        is_denied: false,
        key: key(),
        problem: String::new(),
        size: 0,
        raw: Vec::new(),
        holding: None,
        origin: crate::job::Origin::Here,
    });
    let now = Instant::now();
    let mut known = Known::of(
        &record,
        Looked {
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

/// A lock of this owner.
fn lock_of(owner: &str) -> SeenLock {
    let (owner, fence) = claim(owner);
    SeenLock::Held(owner, fence)
}

fn locked(lock: SeenLock) -> Seen {
    Seen {
        lock,
        ..Seen::default()
    }
}

fn there() -> Seen {
    Seen {
        job: Some(known(None)),
        ..Seen::default()
    }
}

fn gone() -> Seen {
    Seen::default()
}

const NAME: &str = "job0000000001";

fn job_came() -> Change {
    Change::OfJob(Step::JobCame, key())
}

fn job_went() -> Change {
    Change::OfJob(Step::JobWent, key())
}

fn lock_came() -> Change {
    Change::OfJob(Step::LockCame, key())
}

fn lock_went() -> Change {
    Change::OfJob(Step::LockWent, key())
}

fn trash_came() -> Change {
    Change::OfJob(Step::TrashCame, key())
}

fn trash_went() -> Change {
    Change::OfJob(Step::TrashWent, key())
}

type Told = Vec<(EventKind, String)>;

fn queue(changes: &[Change]) -> Changes {
    let mut queue = Changes::default();
    changes.iter().for_each(|change| queue.push(change.clone()));
    queue
}

/// Reports the first changes, using the later ones as context.
fn tell(picture: &mut Picture, changes: &[Change], count: u64, seen: Seen) -> Told {
    let mut changes = queue(changes);
    let mut observations = Observations::default();
    observations.add(JobKey::new(NAME), seen);
    let events = picture.tell(&mut changes, count, &observations);
    let owner = |event: Event| event.owner.map_or(String::new(), |owner| owner.to_string());
    events
        .into_iter()
        .map(|event| (event.kind, owner(event)))
        .collect()
}

fn board(owner: Option<&str>) -> Picture {
    let mut picture = Picture::default();
    picture.add_to_board(key(), known(owner), false);
    picture
}

fn trash() -> Picture {
    let mut picture = Picture::default();
    picture.add_to_trash(key(), known(None));
    picture
}

/// Reports changes of a board with one job.
fn told(owner: Option<&str>, changes: &[Change], seen: Seen) -> Told {
    let all = changes.len() as u64;
    tell(&mut board(owner), changes, all, seen)
}

fn by(kind: EventKind, owner: &str) -> (EventKind, String) {
    (kind, owner.to_owned())
}

#[test]
fn what_follows_a_change_tells_what_it_was() {
    use EventKind::{Abandoned, Claimed, Consumed, Trashed};
    type Case<'a> = (
        Option<&'a str>,
        &'a [Change],
        Seen,
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
            Seen {
                job: Some(known(None)),
                ..locked(lock_of("bob"))
            },
            &[by(Abandoned, "ada"), by(Claimed, "bob")],
        ),
        (None, &[job_went()], gone(), &[by(Consumed, "")]),
    ];
    for (owner, changes, seen, expected) in cases {
        assert_eq!(told(owner, changes, seen), expected, "{changes:?}");
    }
}

#[test]
fn a_claim_that_nobody_saw_is_told_without_its_owner() {
    use EventKind::{Abandoned, Claimed, Consumed};
    let ended = [lock_came(), lock_went()];
    assert_eq!(
        told(None, &ended, gone()),
        [by(Claimed, ""), by(Abandoned, "")]
    );
    let consumed = [lock_came(), lock_went(), job_went()];
    assert_eq!(
        told(None, &consumed, gone()),
        [by(Claimed, ""), by(Consumed, "")]
    );
    // The lock seen is the last one; the owner of the earlier one is unknown.
    let again = [lock_came(), lock_went(), lock_came()];
    let expected = [by(Claimed, ""), by(Abandoned, ""), by(Claimed, "bob")];
    assert_eq!(told(None, &again, locked(lock_of("bob"))), expected);
}

#[test]
fn a_job_that_nobody_saw_is_something_missed() {
    let came_and_went = [job_came(), lock_came(), lock_went(), job_went()];
    let mut picture = Picture::default();
    assert_eq!(
        tell(&mut picture, &came_and_went, 4, gone()),
        [by(EventKind::Resync, "")]
    );
    // Each job is named once.
    let mut changes = queue(&[came_and_went.clone(), came_and_went.clone()].concat());
    let events = Picture::default().tell(&mut changes, 8, &Observations::default());
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].subject.as_ref().unwrap().key, key());
    // Unless it is found in the trash.
    let trashed = [&came_and_went[..], &[trash_came()]].concat();
    let seen = Seen {
        trashed: Some(known(None)),
        ..gone()
    };
    use EventKind::{Claimed, Posted, Trashed};
    assert_eq!(
        tell(&mut picture, &trashed, 5, seen),
        [by(Posted, ""), by(Claimed, ""), by(Trashed, "")]
    );
}

#[test]
fn what_is_known_already_is_not_told_again() {
    let ada = Some("ada");
    let seen = Seen {
        job: Some(known(None)),
        ..locked(lock_of("ada"))
    };
    assert_eq!(told(ada, &[job_came(), lock_came()], seen), []);
    assert_eq!(told(None, &[lock_went()], there()), []);
    // It was seen before its event, and has ended since.
    let ended = [lock_came(), lock_went()];
    assert_eq!(told(ada, &ended, gone()), [by(EventKind::Abandoned, "ada")]);
    // A lock of another job, or of none.
    let mut picture = Picture::default();
    assert_eq!(tell(&mut picture, &ended, 2, gone()), []);
    assert_eq!(tell(&mut picture, &[job_went()], 1, gone()), []);
}

#[test]
fn a_lock_that_names_nobody_is_no_claim_but_its_end_sets_the_job_free() {
    let mut picture = board(None);
    let vacant = || locked(SeenLock::Vacant);
    assert_eq!(tell(&mut picture, &[lock_came()], 1, vacant()), []);
    let freed = [by(EventKind::Abandoned, "")];
    assert_eq!(tell(&mut picture, &[lock_went()], 1, there()), freed);
    picture.add_to_board(key(), known(None), true);
    assert_eq!(tell(&mut picture, &[lock_went()], 1, there()), freed);
    assert_eq!(tell(&mut picture, &[lock_went()], 1, there()), []);
}

#[test]
fn a_node_that_was_written_to_is_looked_at_again() {
    let mut picture = board(Some("ada"));
    let seen = Seen {
        job: Some(known(None)),
        ..locked(lock_of("bob"))
    };
    let meddled = [Change::OfJob(Step::Meddled, key())];
    assert_eq!(
        tell(&mut picture, &meddled, 1, seen),
        [by(EventKind::Resync, "")]
    );
    let abandoned = [by(EventKind::Abandoned, "bob")];
    assert_eq!(tell(&mut picture, &[lock_went()], 1, there()), abandoned);
}

#[test]
fn a_job_that_is_written_to_under_a_passing_lock_is_tried_again() {
    use EventKind::{Abandoned, Claimed, Restored};
    let retried = [
        lock_came(),
        Change::OfJob(Step::Meddled, key()),
        lock_went(),
    ];
    for end in 1..=3 {
        let told = tell(&mut board(None), &retried, end, there());
        assert_eq!(told, [by(Restored, "")], "{end}");
    }
    let claimed = [lock_came(), lock_went()];
    let told = told(None, &claimed, there());
    assert_eq!(told, [by(Claimed, ""), by(Abandoned, "")]);
}

#[test]
fn a_job_that_leaves_the_trash_is_restored_or_purged() {
    use EventKind::{Posted, Purged, Restored};
    let restored = [by(Restored, "")];
    for changes in [[job_came(), trash_went()], [trash_went(), job_came()]] {
        assert_eq!(tell(&mut trash(), &changes, 2, there()), restored);
        // Half of it may only just have arrived.
        assert_eq!(tell(&mut trash(), &changes, 1, there()), restored);
    }
    assert_eq!(
        tell(&mut trash(), &[trash_went()], 1, gone()),
        [by(Purged, "")]
    );
    assert_eq!(
        tell(&mut Picture::default(), &[job_came()], 1, there()),
        [by(Posted, "")]
    );
}

#[test]
fn what_a_board_beside_this_one_does_in_the_trash_is_not_done_to_its_namesakes_here() {
    use EventKind::{Consumed, Posted, Purged};
    let theirs = || {
        let subject = crate::board::event::Subject {
            uuid: "theirs".to_owned(),
            ..known(None).subject(&key())
        };
        Known::told(&subject)
    };
    let trashed = || Seen {
        trashed: Some(theirs()),
        ..gone()
    };
    let ended = [trash_came(), lock_went(), job_went()];
    assert_eq!(told(Some("ada"), &ended, trashed()), [by(Consumed, "ada")]);
    // A restore or purge on this board still finds it.
    let mut picture = Picture::default();
    assert_eq!(tell(&mut picture, &[trash_came()], 1, trashed()), []);
    let both = [trash_went(), job_came()];
    assert_eq!(
        tell(&mut picture, &both, 2, there()),
        [by(Purged, ""), by(Posted, "")]
    );
}

#[test]
fn changes_that_are_only_looked_at_are_told_later() {
    use EventKind::{Abandoned, Claimed, Consumed};
    let mut picture = board(Some("ada"));
    let mut changes = queue(&[lock_went(), lock_came(), lock_went(), job_went()]);
    let kinds = |events: Vec<Event>| -> Vec<_> { events.iter().map(|event| event.kind).collect() };
    let observations = Observations::default();
    let first = picture.tell(&mut changes, 2, &observations);
    assert!(first.iter().all(|event| event.time == first[0].time));
    assert_eq!(kinds(first), [Abandoned, Claimed]);
    assert_eq!(
        kinds(picture.tell(&mut changes, 4, &observations)),
        [Consumed]
    );
    assert!(changes.is_empty());
}
