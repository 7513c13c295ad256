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
    let record = Entry::Malformed(Malformed::new(key(), String::new()));
    let (asked, answered) = (Instant::now(), Instant::now());
    let mut known = CachedJob::of(&record, ReadTime { asked, answered });
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

/// Reads changes such as `lock came, job went`.
fn changes(text: &str) -> Vec<NodeChange> {
    let event = |change| match change {
        "job came" => NodeEvent::JobCame,
        "job went" => NodeEvent::JobWent,
        "lock came" => NodeEvent::LockCame,
        "lock went" => NodeEvent::LockWent,
        "trash came" => NodeEvent::TrashCame,
        "trash went" => NodeEvent::TrashWent,
        "rewritten" => NodeEvent::Rewritten,
        _ => panic!("{change}"),
    };
    let changes = text.split(", ").map(event);
    changes.map(|it| NodeChange::OfJob(it, key())).collect()
}

fn queue(text: &str) -> NodeChanges {
    let mut queue = NodeChanges::default();
    changes(text).into_iter().for_each(|it| queue.push(it));
    queue
}

/// Reports the first changes, using the later ones as context: `claimed by ada, abandoned`.
fn first_events(picture: &mut NodePicture, text: &str, count: u64, seen: SeenNodes) -> String {
    picture.changes = queue(text);
    let mut observations = Observations::default();
    observations.add(key(), seen);
    let events = picture.events_before(count, &observations).into_iter();
    let events = events.map(|event| match event.owner {
        Some(owner) => format!("{} by {owner}", event.kind),
        None => event.kind.to_string(),
    });
    events.collect::<Vec<_>>().join(", ")
}

fn events(picture: &mut NodePicture, text: &str, seen: SeenNodes) -> String {
    first_events(picture, text, u64::MAX, seen)
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

/// A job with a claim.
fn held(owner: &str) -> SeenNodes {
    SeenNodes {
        lock: lock_of(owner),
        ..there()
    }
}

#[test]
fn change_is_interpreted_by_the_changes_that_follow() {
    let ada = Some("ada");
    for (owner, text, seen, expected) in [
        (None, "lock came", locked(lock_of("ada")), "claimed by ada"),
        (ada, "lock went", there(), "abandoned by ada"),
        (ada, "lock went, job went", gone(), "consumed by ada"),
        (
            ada,
            "lock went, job went, trash came",
            gone(),
            "trashed by ada",
        ),
        // The watch on the trash may fire before the one on the board.
        (
            ada,
            "trash came, lock went, job went",
            gone(),
            "trashed by ada",
        ),
        // Forcing an unclaimed job proves that it is unclaimed.
        (None, "lock came, job went, lock went", gone(), "consumed"),
        (
            ada,
            "lock went, lock came",
            held("bob"),
            "abandoned by ada, claimed by bob",
        ),
        (None, "job went", gone(), "consumed"),
    ] {
        assert_eq!(events(&mut board(owner), text, seen), expected, "{text}");
    }
}

#[test]
fn unobserved_claim_is_reported_without_an_owner() {
    for (text, seen, expected) in [
        ("lock came, lock went", gone(), "claimed, abandoned"),
        (
            "lock came, lock went, job went",
            gone(),
            "claimed, consumed",
        ),
        // The lock seen is the last one; the owner of the earlier one is unknown.
        (
            "lock came, lock went, lock came",
            locked(lock_of("bob")),
            "claimed, abandoned, claimed by bob",
        ),
    ] {
        assert_eq!(events(&mut board(None), text, seen), expected, "{text}");
    }
}

#[test]
fn unobserved_job_is_a_resync() {
    let came_and_went = "job came, lock came, lock went, job went";
    let mut picture = NodePicture::default();
    assert_eq!(events(&mut picture, came_and_went, gone()), "resync");
    // Each job is named once.
    let mut twice = NodePicture {
        changes: queue(&format!("{came_and_went}, {came_and_went}")),
        ..NodePicture::default()
    };
    let reported = twice.events_before(8, &Observations::default());
    assert_eq!(reported.len(), 1);
    assert_eq!(reported[0].subject.as_ref().unwrap().key, key());
    // Unless it is found in the trash.
    let seen = SeenNodes {
        trashed: Some(known(None)),
        ..gone()
    };
    let text = format!("{came_and_went}, trash came");
    let reported = events(&mut picture, &text, seen);
    assert_eq!(reported, "posted, claimed, trashed");
}

#[test]
fn known_state_is_not_reported_again() {
    let ada = || board(Some("ada"));
    let again = events(&mut ada(), "job came, lock came", held("ada"));
    assert_eq!(again, "");
    assert_eq!(events(&mut board(None), "lock went", there()), "");
    // It was seen before its event, and has ended since.
    let ended = "lock came, lock went";
    assert_eq!(events(&mut ada(), ended, gone()), "abandoned by ada");
    // A lock of another job, or of none.
    let mut picture = NodePicture::default();
    assert_eq!(events(&mut picture, ended, gone()), "");
    assert_eq!(events(&mut picture, "job went", gone()), "");
}

#[test]
fn vacant_lock_is_no_claim_but_its_end_frees_the_job() {
    let mut picture = board(None);
    let came = events(&mut picture, "lock came", locked(SeenLock::Vacant));
    assert_eq!(came, "");
    let freed = |picture: &mut NodePicture| events(picture, "lock went", there());
    assert_eq!(freed(&mut picture), "abandoned");
    picture.board.insert(key(), known(None));
    picture.blocked.insert(key());
    assert_eq!(freed(&mut picture), "abandoned");
    assert_eq!(freed(&mut picture), "");
}

#[test]
fn foreign_write_to_a_node_is_a_resync() {
    let mut picture = board(Some("ada"));
    assert_eq!(events(&mut picture, "rewritten", held("bob")), "resync");
    let freed = events(&mut picture, "lock went", there());
    assert_eq!(freed, "abandoned by bob");
}

#[test]
fn write_under_a_short_lock_is_a_retry() {
    for end in 1..=3 {
        let retried = "lock came, rewritten, lock went";
        let events = first_events(&mut board(None), retried, end, there());
        assert_eq!(events, "restored", "{end}");
    }
    let claimed = events(&mut board(None), "lock came, lock went", there());
    assert_eq!(claimed, "claimed, abandoned");
}

#[test]
fn job_leaving_the_trash_is_restored_or_purged() {
    for text in ["job came, trash went", "trash went, job came"] {
        // Half of it may only just have arrived.
        for count in [2, 1] {
            let events = first_events(&mut trash(), text, count, there());
            assert_eq!(events, "restored", "{count} of {text}");
        }
    }
    assert_eq!(events(&mut trash(), "trash went", gone()), "purged");
    let mut empty = NodePicture::default();
    assert_eq!(events(&mut empty, "job came", there()), "posted");
}

#[test]
fn trash_changes_of_another_board_are_ignored() {
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
    let ended = "trash came, lock went, job went";
    let reported = events(&mut board(Some("ada")), ended, trashed());
    assert_eq!(reported, "consumed by ada");
    // A restore or purge on this board still finds it.
    let mut picture = NodePicture::default();
    assert_eq!(events(&mut picture, "trash came", trashed()), "");
    let both = events(&mut picture, "trash went, job came", there());
    assert_eq!(both, "purged, posted");
}

#[test]
fn partly_read_changes_are_reported_later() {
    use EventKind::{Abandoned, Claimed, Consumed};
    let mut picture = board(Some("ada"));
    picture.changes = queue("lock went, lock came, lock went, job went");
    let kinds = |events: Vec<Event>| -> Vec<_> { events.iter().map(|event| event.kind).collect() };
    let observations = Observations::default();
    let first = picture.events_before(2, &observations);
    assert!(first.iter().all(|event| event.time == first[0].time));
    assert_eq!(kinds(first), [Abandoned, Claimed]);
    assert_eq!(kinds(picture.events_before(4, &observations)), [Consumed]);
    assert!(picture.changes.is_empty());
}
