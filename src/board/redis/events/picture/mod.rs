//! A cached picture of a board, which the event watcher compares with the board.
//!
//! It begins with one full read, follows the messages, and is compared with later reads. The differences become
//! events. `compare` derives them; `board/cached_job` defines a cached job.

mod compare;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use tokio::time::Instant;

use self::compare::compare;
pub(crate) use self::compare::{JobPlaces, Traces};
use crate::{
    board::{
        Event, EventKind,
        cached_job::{CachedJob, Expiration, Held, Modified, ReadTime},
        event::Subject,
    },
    job::{Fence, JobKey, Location, Owner},
};

#[derive(Debug, Default)]
pub(super) struct BoardPicture {
    board: HashMap<JobKey, CachedJob>,
    trash: HashMap<JobKey, CachedJob>,
    /// The claims that expire, and when at the latest.
    deadlines: BTreeSet<(Instant, JobKey)>,
}

impl BoardPicture {
    pub(super) fn len(&self, location: Location) -> usize {
        self.location(location).map_or(0, HashMap::len)
    }

    pub(super) fn has(&self, location: Location, key: &JobKey) -> bool {
        let location = self.location(location);
        location.is_some_and(|location| location.contains_key(key))
    }

    pub(super) fn keys(&self, location: Location) -> impl Iterator<Item = &JobKey> {
        self.location(location).into_iter().flat_map(HashMap::keys)
    }

    fn location(&self, location: Location) -> Option<&HashMap<JobKey, CachedJob>> {
        match location {
            Location::Board => Some(&self.board),
            Location::Trash => Some(&self.trash),
            Location::History => None,
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Returns the jobs whose claims should have expired, each once until it is read again.
    pub(super) fn due(&mut self, now: Instant) -> Vec<JobKey> {
        let mut due = Vec::new();
        while self.next_deadline().is_some_and(|at| at <= now)
            && let Some((_, key)) = self.deadlines.pop_first()
        {
            due.push(key);
        }
        due
    }

    pub(super) fn put(&mut self, location: Location, key: &JobKey, known: CachedJob) {
        let mut after = self.places(key);
        match location {
            Location::Board => after.board = Some(known),
            Location::Trash => {
                // The trash is read last: the job has left the board meanwhile.
                let is_it =
                    |job: &CachedJob| job.sequence.is_some() && job.sequence == known.sequence;
                after.board = after.board.filter(|job| !is_it(job));
                after.trash = Some(known);
            }
            Location::History => {}
        }
        self.set(key, after);
    }

    pub(super) fn observe(
        &mut self,
        key: &JobKey,
        seen: JobPlaces,
        traces: Traces,
        looked: ReadTime,
    ) -> Vec<Event> {
        let events = compare(key, &self.places(key), &seen, traces, looked.answered);
        self.set(key, seen);
        events
    }

    fn places(&self, key: &JobKey) -> JobPlaces {
        JobPlaces {
            board: self.board.get(key).cloned(),
            trash: self.trash.get(key).cloned(),
        }
    }

    fn set(&mut self, key: &JobKey, place: JobPlaces) {
        let deadline = |known: Option<&CachedJob>| known.and_then(CachedJob::deadline);
        if let Some(at) = deadline(self.board.get(key)) {
            self.deadlines.remove(&(at, key.clone()));
        }
        if let Some(at) = deadline(place.board.as_ref()) {
            self.deadlines.insert((at, key.clone()));
        }
        for (location, known) in [
            (&mut self.board, place.board),
            (&mut self.trash, place.trash),
        ] {
            match known {
                Some(known) => _ = location.insert(key.clone(), known),
                None => _ = location.remove(key),
            }
        }
    }

    /// Applies an event, and returns it after the events that it proves.
    pub(super) fn apply(&mut self, mut event: Event) -> Vec<Event> {
        let Some(subject) = &mut event.subject else {
            return vec![event];
        };
        let key = subject.key.clone();
        let mut place = self.places(&key);
        let location = match event.kind {
            EventKind::Restored if place.board.is_none() => &place.trash,
            EventKind::Purged => &place.trash,
            EventKind::Posted => &None,
            _ => &place.board,
        };
        if let Some(known) = location {
            complete(subject, known);
        }
        let mut events = Vec::new();
        self.prove(&event, &mut place, &mut events);
        follow(&event, &mut place);
        self.set(&key, place);
        events.push(event);
        events
    }

    /// Adds the events that must have preceded this one.
    fn prove(&self, event: &Event, place: &mut JobPlaces, events: &mut Vec<Event>) {
        use EventKind::{
            Abandoned, Claimed, Consumed, Expired, Extended, Posted, Restored, Trashed,
        };
        let Some(subject) = &event.subject else {
            return;
        };
        let mut before = |kind, owner: Option<Owner>, fence: Option<Fence>| {
            events.push(Event {
                time: event.time,
                subject: Some(subject.clone()),
                owner,
                fence,
                ..Event::now(kind)
            });
        };
        match event.kind {
            // The end of the earlier job can no longer be read.
            Posted if place.board.is_some() => events.push(Event::resync()),
            // The job is then unclaimed.
            Restored => {
                let claim = place.board.as_mut().and_then(|known| known.claim.take());
                if let Some(held) = claim {
                    before(held.end(Instant::now()), held.owner, held.fence);
                }
            }
            Claimed | Abandoned | Expired | Extended | Consumed | Trashed => {
                let is_new = place.board.is_none();
                let known = place
                    .board
                    .get_or_insert_with(|| CachedJob::of_event(subject));
                if is_new {
                    before(Posted, None, None);
                }
                let owner = event.owner.as_ref().filter(|_| event.kind != Claimed);
                // A client that ends an unclaimed job names no owner.
                let is_free = matches!(event.kind, Consumed | Trashed) && owner.is_none();
                if let Some(held) = &known.claim
                    && (event.kind == Claimed
                        || is_free && held.owner.is_some()
                        || owner.is_some() && !held.is_same_claim(owner, event.fence.as_ref()))
                {
                    let end = held.end(Instant::now());
                    before(end, held.owner.clone(), held.fence.clone());
                    known.claim = None;
                }
                if known.claim.is_none() && owner.is_some() {
                    before(Claimed, event.owner.clone(), event.fence.clone());
                }
            }
            _ => {}
        }
    }
}

fn complete(subject: &mut Subject, known: &CachedJob) {
    let remembered = known.subject(&subject.key);
    if subject.sequence.is_none() {
        subject.sequence = remembered.sequence;
        subject.rank = remembered.rank;
    }
    if subject.name.is_empty() {
        subject.name = remembered.name;
    }
    if subject.uuid.is_empty() {
        subject.uuid = remembered.uuid;
    }
}

fn follow(event: &Event, place: &mut JobPlaces) {
    let Some(subject) = &event.subject else {
        return;
    };
    let known = || CachedJob::of_event(subject);
    match event.kind {
        EventKind::Posted => place.board = Some(known()),
        EventKind::Restored => {
            // A job delayed on the board is not related to the trash.
            if place.board.is_none() {
                place.trash = None;
            }
            place.board = Some(known());
        }
        EventKind::Consumed => place.board = None,
        EventKind::Trashed => {
            place.board = None;
            place.trash = Some(known());
        }
        EventKind::Purged => place.trash = None,
        EventKind::Claimed => {
            let board = place.board.get_or_insert_with(known);
            board.modified = Modified::Unknown;
            board.claim = Some(Box::new(Held {
                owner: event.owner.clone().map(Owner::into_brief),
                fence: event.fence.clone(),
                expiration: Expiration::Unknown,
            }));
        }
        EventKind::Extended => {
            if let Some(held) = place.board.as_mut().and_then(|board| board.claim.as_mut()) {
                held.expiration = Expiration::Unknown;
            }
        }
        EventKind::Abandoned | EventKind::Expired => {
            let board = place.board.get_or_insert_with(known);
            board.modified = Modified::Unknown;
            board.claim = None;
        }
        EventKind::ConductorJoined
        | EventKind::ConductorLeft
        | EventKind::Paused
        | EventKind::Resumed
        | EventKind::Resync => {}
    }
}
