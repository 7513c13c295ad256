//! Events derived from reads and messages.

mod announced;

use std::time::Duration;

use chrono::DateTime;

use super::*;
use crate::job::{ClaimEnd, Entry, Holding, Job, Malformed, Priority, Rank};

use EventKind::{
    Abandoned, Claimed, Consumed, Expired, Extended, Posted, Purged, Restored, Resync, Trashed,
};

const KEY: &str = "b7e6a1c2";

/// The traces of a peer's claim.
const CLAIM: Traces = Traces {
    claim: true,
    is_ours: false,
};

fn key() -> JobKey {
    JobKey::new(KEY)
}

#[derive(Debug, Clone, Copy, Default)]
struct Now {
    sequence: i64,
    owner: Option<&'static str>,
    fence: Option<&'static str>,
    /// In seconds, `None` for never.
    modified: Option<i64>,
    expires_in: Option<Duration>,
}

const FREE: Now = Now {
    sequence: 1,
    owner: None,
    fence: None,
    modified: None,
    expires_in: None,
};

/// Another job of the same uuid.
const NAMESAKE: Now = Now {
    sequence: 7,
    ..FREE
};

fn held(owner: &'static str, modified: i64) -> Now {
    Now {
        owner: Some(owner),
        modified: Some(modified),
        ..FREE
    }
}

fn released(modified: i64) -> Now {
    Now {
        modified: Some(modified),
        ..FREE
    }
}

fn looked() -> ReadTime {
    let now = Instant::now();
    ReadTime {
        asked: now,
        answered: now,
    }
}

fn known_at(now: Now, looked: ReadTime) -> CachedJob {
    let fence = now.fence.map(|fence| Fence(fence.to_owned()));
    let holding = now.owner.map(|owner| Holding {
        expires_in: now.expires_in,
        ..Holding::new(Owner::new(owner).ok(), ClaimEnd::Never, fence)
    });
    let job = Job {
        key: key(),
        uuid: KEY.to_owned(),
        priority: Priority::High,
        sequence: Some(now.sequence),
        last_modified: now
            .modified
            .map(|seconds| DateTime::from_timestamp(seconds, 0).unwrap()),
        holding,
        size: 1,
        ..Job::named("resize")
    };
    CachedJob::of(&Entry::Job(Box::new(job)), looked)
}

fn known(now: Now) -> CachedJob {
    known_at(now, looked())
}

fn place(board: Option<Now>, trash: Option<Now>) -> JobPlaces {
    JobPlaces {
        board: board.map(known),
        trash: trash.map(known),
    }
}

fn kinds_and_owners(events: Vec<Event>) -> Reported {
    let events = events.into_iter();
    events
        .map(|event| (event.kind, event.owner.map(|owner| owner.to_string())))
        .collect()
}

type Reported = Vec<(EventKind, Option<String>)>;

fn between(before: JobPlaces, after: JobPlaces, traces: Traces) -> Reported {
    let mut picture = BoardPicture::default();
    picture.set(&key(), before);
    kinds_and_owners(picture.observe(&key(), after, traces, looked()))
}

fn by(kind: EventKind, owner: &str) -> (EventKind, Option<String>) {
    (kind, Some(owner.to_owned()))
}

fn of(kind: EventKind) -> (EventKind, Option<String>) {
    (kind, None)
}

fn on(now: Now) -> JobPlaces {
    place(Some(now), None)
}

fn ada() -> JobPlaces {
    on(held("ada", 1))
}

fn free() -> JobPlaces {
    on(FREE)
}

fn trashed() -> JobPlaces {
    place(None, Some(FREE))
}

fn gone() -> JobPlaces {
    place(None, None)
}

/// Returns the events; one with an empty name has no owner.
fn owned(events: &[(EventKind, &str)]) -> Reported {
    let owner = |owner: &str| (!owner.is_empty()).then(|| owner.to_owned());
    events.iter().map(|it| (it.0, owner(it.1))).collect()
}

/// The places of a job before and after a step, and the events with their owners.
type Step<'a> = (JobPlaces, JobPlaces, &'a [(EventKind, &'a str)]);

/// Requires the events of each step, given the traces of a claim.
fn are_reported<const STEPS: usize>(traces: Traces, steps: [Step<'_>; STEPS]) {
    for (before, after, expected) in steps {
        let seen = between(before.clone(), after.clone(), traces);
        assert_eq!(seen, owned(expected), "{before:?} {after:?}");
    }
}

#[test]
fn single_step_is_reported_exactly() {
    let steps: [Step<'_>; 8] = [
        (gone(), free(), &[(Posted, "")]),
        (free(), ada(), &[(Claimed, "ada")]),
        (ada(), on(released(2)), &[(Abandoned, "ada")]),
        (ada(), on(released(1)), &[(Expired, "ada")]),
        (ada(), gone(), &[(Consumed, "ada")]),
        (ada(), trashed(), &[(Trashed, "ada")]),
        (trashed(), on(released(3)), &[(Restored, "")]),
        (trashed(), gone(), &[(Purged, "")]),
    ];
    are_reported(CLAIM, steps);
}

#[test]
fn unchanged_state_emits_no_event() {
    let beside = place(Some(released(1)), Some(NAMESAKE));
    for same in [gone(), free(), beside, ada(), trashed()] {
        assert_eq!(between(same.clone(), same, CLAIM), []);
    }
}

#[test]
fn observed_difference_is_reported_in_the_only_possible_order() {
    let posted_again = Now {
        sequence: 2,
        ..held("bob", 5)
    };
    let bob = || on(held("bob", 2));
    let (again, beside) = (on(posted_again), place(Some(posted_again), Some(FREE)));
    let steps: [Step<'_>; 8] = [
        (gone(), ada(), &[(Posted, ""), (Claimed, "ada")]),
        (free(), gone(), &[(Claimed, ""), (Consumed, "")]),
        (free(), trashed(), &[(Claimed, ""), (Trashed, "")]),
        (
            gone(),
            trashed(),
            &[(Posted, ""), (Claimed, ""), (Trashed, "")],
        ),
        (ada(), bob(), &[(Abandoned, "ada"), (Claimed, "bob")]),
        (trashed(), bob(), &[(Restored, ""), (Claimed, "bob")]),
        (
            ada(),
            again,
            &[(Consumed, "ada"), (Posted, ""), (Claimed, "bob")],
        ),
        (
            ada(),
            beside,
            &[(Trashed, "ada"), (Posted, ""), (Claimed, "bob")],
        ),
    ];
    are_reported(CLAIM, steps);
}

#[test]
fn ambiguous_difference_is_a_resync() {
    // Claimed and released by an unknown client.
    let claimed: [Step<'_>; 2] = [
        (free(), on(released(1)), &[(Resync, "")]),
        (gone(), on(released(1)), &[(Posted, ""), (Resync, "")]),
    ];
    are_reported(CLAIM, claimed);
    // Removed without a touched claim.
    let removed: [Step<'_>; 2] = [
        (free(), gone(), &[(Consumed, ""), (Resync, "")]),
        (
            gone(),
            trashed(),
            &[(Posted, ""), (Trashed, ""), (Resync, "")],
        ),
    ];
    are_reported(Traces::default(), removed);
}

#[test]
fn same_uuid_in_the_trash_does_not_mean_trashed() {
    let before = place(Some(held("ada", 1)), Some(NAMESAKE));
    let consumed = between(before.clone(), place(None, Some(NAMESAKE)), CLAIM);
    assert_eq!(consumed, [by(Consumed, "ada")]);
    // It is replaced by the job, not purged.
    let trashed = between(before, place(None, Some(FREE)), CLAIM);
    assert_eq!(trashed, [by(Trashed, "ada")]);
}

#[test]
fn job_trashed_between_the_first_reads_is_not_reported_as_consumed() {
    for (trashed, events) in [(FREE, &[][..]), (NAMESAKE, &[by(Consumed, "ada")])] {
        let mut picture = BoardPicture::default();
        picture.put(Location::Board, &key(), known(held("ada", 1)));
        picture.put(Location::Trash, &key(), known(trashed));
        let place = place(None, Some(trashed));
        let seen = picture.observe(&key(), place, CLAIM, looked());
        assert_eq!(kinds_and_owners(seen), events);
    }
}

#[test]
fn unreadable_record_is_not_reported_as_consumed() {
    let malformed = Malformed::new(key(), "truncated".to_owned());
    let before = JobPlaces {
        board: Some(CachedJob::of(&Entry::Malformed(malformed), looked())),
        trash: None,
    };
    assert_eq!(between(before, gone(), Traces::default()), [of(Resync)]);
}

fn for_a_while(seconds: u64) -> Now {
    Now {
        expires_in: Some(Duration::from_secs(seconds)),
        ..held("ada", 1)
    }
}

#[test]
fn longer_claim_was_extended_unless_renewed_by_us() {
    let before = || on(for_a_while(30));
    let after = || on(for_a_while(60));
    let steps: [Step<'_>; 3] = [
        (before(), after(), &[(Extended, "ada")]),
        (after(), before(), &[(Extended, "ada")]),
        (ada(), after(), &[(Extended, "ada")]),
    ];
    are_reported(CLAIM, steps);
    let renewal = Traces {
        claim: true,
        is_ours: true,
    };
    assert_eq!(between(before(), after(), renewal), []);
}

#[test]
fn slow_reply_is_no_extension() {
    let now = Instant::now();
    let [slow, later] = [(0, 2), (3, 3)].map(|(asked, answered)| ReadTime {
        asked: now + Duration::from_secs(asked),
        answered: now + Duration::from_secs(answered),
    });
    let mut picture = BoardPicture::default();
    picture.put(Location::Board, &key(), known_at(for_a_while(30), slow));
    let after = JobPlaces {
        board: Some(known_at(for_a_while(28), later)),
        trash: None,
    };
    assert_eq!(picture.observe(&key(), after, CLAIM, later), []);
}

#[test]
fn peer_claiming_its_own_job_again_emits_no_event() {
    assert_eq!(between(ada(), on(held("ada", 9)), CLAIM), []);
}

#[test]
fn new_fence_of_the_same_owner_is_another_claim() {
    let with = |fence| Now {
        fence: Some(fence),
        ..held("ada", 1)
    };
    let seen = between(on(with("1")), on(with("2")), CLAIM);
    assert_eq!(seen, [by(Abandoned, "ada"), by(Claimed, "ada")]);
}
