//! Repeated messages, and messages of other clients.

use super::*;

/// Returns an event as our clients announce it; without an owner if the name is empty.
fn event(kind: EventKind, owner: &str) -> Event {
    let subject = Subject {
        key: key(),
        uuid: KEY.to_owned(),
        name: "resize".to_owned(),
        sequence: None,
        rank: Rank::new(Priority::High, None),
        not_before: None,
    };
    Event {
        subject: Some(subject),
        owner: Owner::new(owner).ok(),
        ..Event::now(kind)
    }
}

fn heard(before: JobPlaces, event: Event) -> Reported {
    let mut picture = BoardPicture::default();
    picture.set(&key(), before);
    kinds_and_owners(picture.apply(event))
}

#[test]
fn announced_change_is_not_reported_again_when_observed() {
    let mut picture = BoardPicture::default();
    let steps = [
        (event(Posted, ""), free()),
        (event(Claimed, "ada"), ada()),
        (event(Extended, "ada"), on(for_a_while(60))),
        (event(Abandoned, "ada"), on(released(2))),
        (event(Claimed, "bob"), on(held("bob", 3))),
        (event(Trashed, "bob"), trashed()),
        (event(Restored, ""), on(released(4))),
        (event(Claimed, "ada"), on(held("ada", 5))),
        (event(Consumed, "ada"), gone()),
    ];
    for (event, seen) in steps {
        let kind = event.kind;
        assert_eq!(picture.apply(event).len(), 1, "{kind}");
        assert_eq!(picture.observe(&key(), seen, CLAIM, looked()), [], "{kind}");
    }
}

#[test]
fn changes_implied_by_an_event_are_reported_before_it() {
    let ends = [(Abandoned, "ada"), (Claimed, "bob"), (Consumed, "bob")];
    type Expected<'a> = &'a [(EventKind, &'a str)];
    let steps: [(JobPlaces, Event, Expected<'_>); 6] = [
        (
            gone(),
            event(Claimed, "ada"),
            &[(Posted, ""), (Claimed, "ada")],
        ),
        (ada(), event(Claimed, "bob"), &ends[..2]),
        (
            free(),
            event(Consumed, "ada"),
            &[(Claimed, "ada"), (Consumed, "ada")],
        ),
        // An operator forced it, though the job was unclaimed.
        (free(), event(Trashed, ""), &[(Trashed, "")]),
        (ada(), event(Consumed, "bob"), &ends),
        (free(), event(Posted, ""), &[(Resync, ""), (Posted, "")]),
    ];
    for (before, event, expected) in steps {
        let expected = owned(expected);
        assert_eq!(heard(before.clone(), event), expected, "{before:?}");
    }
}

#[test]
fn event_without_a_name_uses_the_known_one() {
    let mut picture = BoardPicture::default();
    picture.put(Location::Board, &key(), known(held("ada", 1)));
    let mut consumed = event(Consumed, "ada");
    consumed.subject.as_mut().unwrap().name = String::new();
    let subject = picture.apply(consumed).pop().unwrap().subject.unwrap();
    assert_eq!((subject.sequence, &*subject.name), (Some(1), "resize"));
}

#[test]
fn record_of_a_job_is_at_most_160_bytes() {
    let size = size_of::<(JobKey, CachedJob)>();
    assert!(size <= 160, "{size}");
}

#[test]
fn claims_are_due_once_at_their_deadline() {
    let mut picture = BoardPicture::default();
    let looked = looked();
    picture.put(Location::Board, &key(), known_at(for_a_while(30), looked));
    let deadline = picture.next_deadline().unwrap();
    assert!(deadline >= looked.answered + Duration::from_secs(30));
    assert_eq!(picture.due(deadline - Duration::from_millis(10)), []);
    assert_eq!(picture.due(deadline), [key()]);
    assert_eq!(picture.due(deadline), []);
    // It was renewed.
    picture.put(Location::Board, &key(), known_at(for_a_while(60), looked));
    assert!(picture.next_deadline() > Some(deadline));
    picture.put(Location::Board, &key(), known(held("ada", 1)));
    assert_eq!(picture.next_deadline(), None);
}
