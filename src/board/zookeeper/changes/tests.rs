//! What is told of a board, by its nodes alone.

use super::*;
use crate::job::{Lease, Malformed};

fn key() -> JobKey {
    JobKey::new("job0000000001")
}

/// A record as a reader of the board sees it.
fn entry(owner: Option<&str>) -> Entry {
    Entry::Malformed(Malformed {
        key: key(),
        problem: String::new(),
        size: 0,
        raw: Vec::new(),
        holding: owner.map(holding),
    })
}

fn holding(owner: &str) -> Holding {
    Holding {
        owner: Some(Owner::new(owner).unwrap()),
        lease: Lease::None,
        expires_in: None,
        claimed_on: None,
        fence: Some(Fence(format!("fence of {owner}"))),
    }
}

fn job_came() -> Change {
    Change::JobCame(key(), Some(Box::new(entry(None))))
}

fn lock_came(owner: &str) -> Change {
    Change::LockCame(key(), Some(holding(owner)))
}

fn job_went() -> Change {
    Change::JobWent(key())
}

fn lock_went() -> Change {
    Change::LockWent(key())
}

/// Tells some changes and looks at those behind them; what is left must be those.
fn tell(picture: &mut Picture, now: &[Change], ahead: &[Change]) -> Vec<(EventKind, String)> {
    let mut changes: VecDeque<_> = now.iter().chain(ahead).cloned().collect();
    let events = picture.tell(&mut changes, now.len());
    let owner = |event: Event| event.owner.map_or(String::new(), |owner| owner.to_string());
    events
        .into_iter()
        .map(|event| (event.kind, owner(event)))
        .collect()
}

/// Tells changes of a board with one job, which somebody may hold.
fn told(owner: Option<&str>, changes: &[Change]) -> Vec<(EventKind, String)> {
    let mut picture = Picture::default();
    picture.add_to_board(&entry(owner));
    tell(&mut picture, changes, &[])
}

fn by(kind: EventKind, owner: &str) -> (EventKind, String) {
    (kind, owner.to_owned())
}

#[test]
fn what_follows_a_change_tells_what_it_was() {
    use EventKind::{Abandoned, Claimed, Consumed, Trashed};
    let trash_came = Change::TrashCame(key());
    type Case<'a> = (Option<&'a str>, &'a [Change], &'a [(EventKind, String)]);
    let cases: [Case<'_>; 8] = [
        (None, &[lock_came("ada")], &[by(Claimed, "ada")]),
        (Some("ada"), &[lock_went()], &[by(Abandoned, "ada")]),
        (
            Some("ada"),
            &[lock_went(), job_went()],
            &[by(Consumed, "ada")],
        ),
        (
            Some("ada"),
            &[lock_went(), job_went(), trash_came.clone()],
            &[by(Trashed, "ada")],
        ),
        // The watch on the trash may be heard before the one on the board.
        (
            Some("ada"),
            &[trash_came, lock_went(), job_went()],
            &[by(Trashed, "ada")],
        ),
        // Whoever forces a job that nobody has proves that nobody has it.
        (
            None,
            &[Change::LockCame(key(), None), job_went(), lock_went()],
            &[by(Consumed, "")],
        ),
        (
            Some("ada"),
            &[lock_went(), lock_came("bob")],
            &[by(Abandoned, "ada"), by(Claimed, "bob")],
        ),
        (None, &[job_went()], &[by(Consumed, "")]),
    ];
    for (owner, changes, expected) in cases {
        assert_eq!(told(owner, changes), expected, "{changes:?}");
    }
}

#[test]
fn a_claim_that_nobody_saw_is_no_event_but_something_missed() {
    use EventKind::Resync;
    let claim = [Change::LockCame(key(), None), lock_went()];
    assert_eq!(told(None, &claim), [by(Resync, "")]);
    let mut picture = Picture::default();
    let came_and_went = [Change::JobCame(key(), None), job_went()];
    assert_eq!(tell(&mut picture, &came_and_went, &[]), [by(Resync, "")]);
}

#[test]
fn what_is_known_already_is_not_told_again() {
    assert_eq!(told(Some("ada"), &[job_came(), lock_came("ada")]), []);
    assert_eq!(told(None, &[lock_went()]), []);
    // A lock of another job, or of none.
    let mut picture = Picture::default();
    assert_eq!(
        tell(&mut picture, &[lock_came("ada"), lock_went()], &[]),
        []
    );
    assert_eq!(tell(&mut picture, &[job_went()], &[]), []);
    // The trash is shared with boards beside this one.
    let theirs = [Change::TrashCame(key()), Change::TrashWent(key())];
    assert_eq!(tell(&mut picture, &theirs, &[]), []);
}

#[test]
fn a_job_that_leaves_the_trash_is_restored_or_purged() {
    use EventKind::{Posted, Purged, Restored};
    let trash_went = Change::TrashWent(key());
    let trash = || {
        let mut picture = Picture::default();
        picture.add_to_trash(&entry(None));
        picture
    };
    let restored = [by(Restored, "")];
    let in_either_order = [
        [job_came(), trash_went.clone()],
        [trash_went.clone(), job_came()],
    ];
    for changes in in_either_order {
        assert_eq!(tell(&mut trash(), &changes, &[]), restored);
        // Half of it may only just have been heard.
        assert_eq!(tell(&mut trash(), &changes[..1], &changes[1..]), restored);
    }
    assert_eq!(tell(&mut trash(), &[trash_went], &[]), [by(Purged, "")]);
    assert_eq!(
        tell(&mut Picture::default(), &[job_came()], &[]),
        [by(Posted, "")]
    );
}

#[test]
fn changes_that_are_only_looked_at_are_told_later() {
    use EventKind::{Abandoned, Claimed, Consumed};
    let mut picture = Picture::default();
    picture.add_to_board(&entry(Some("ada")));
    let mut changes = VecDeque::from([lock_went(), lock_came("bob"), lock_went(), job_went()]);
    let kinds = |events: Vec<Event>| -> Vec<_> { events.iter().map(|event| event.kind).collect() };
    assert_eq!(kinds(picture.tell(&mut changes, 2)), [Abandoned, Claimed]);
    assert_eq!(kinds(picture.tell(&mut changes, 2)), [Consumed]);
    assert!(changes.is_empty());
}
