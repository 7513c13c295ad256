//! Derives the events of one job between two reads of it; pure.

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use crate::{
    board::{
        Event, EventKind,
        cached_job::{CachedJob, Held, Modified},
    },
    job::JobKey,
};

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct JobPlaces {
    pub(crate) board: Option<CachedJob>,
    pub(crate) trash: Option<CachedJob>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traces {
    pub(crate) claim: bool,
    /// One of our clients did it, and they announce everything but routine.
    pub(crate) is_ours: bool,
}

impl Traces {
    pub(crate) fn add(&mut self, more: Self) {
        self.claim |= more.claim;
        self.is_ours |= more.is_ours;
    }
}

/// Compares a cached job with a later read, and returns the events in their necessary order.
pub(super) fn compare(
    key: &JobKey,
    before: &JobPlaces,
    after: &JobPlaces,
    traces: Traces,
    at: Instant,
) -> Vec<Event> {
    let mut change = ObservedChange {
        key,
        traces,
        at,
        time: Utc::now(),
        events: Vec::new(),
        is_more: false,
    };
    let is_same = |one: &Option<CachedJob>, other: &Option<CachedJob>| match (one, other) {
        (Some(one), Some(other)) => one.is_same_job(other),
        _ => false,
    };
    let was_trashed = is_same(&before.board, &after.trash) && !is_same(&before.trash, &after.trash);
    let was_restored =
        is_same(&before.trash, &after.board) && !is_same(&before.trash, &after.trash);
    match (&before.board, &after.board) {
        (Some(known), Some(seen)) if known.is_same_job(seen) => change.compare_claims(known, seen),
        (known, seen) => {
            if let Some(known) = known {
                let end = match was_trashed {
                    true => EventKind::Trashed,
                    false => EventKind::Consumed,
                };
                change.end(known, end);
            }
            if let Some(seen) = seen {
                let beginning = match was_restored {
                    true => EventKind::Restored,
                    false => EventKind::Posted,
                };
                change.begin(seen, beginning);
            }
        }
    }
    if let Some(known) = &before.trash
        && !is_same(&before.trash, &after.trash)
        && !was_restored
        // A trashed namesake replaces it, which is no purge.
        && after.trash.is_none()
    {
        change.step(EventKind::Purged, known, None);
    }
    if let Some(seen) = &after.trash
        && !is_same(&before.trash, &after.trash)
        && !was_trashed
    {
        change.came_and_went(seen);
    }
    let more = change.is_more.then(Event::resync);
    change.events.extend(more);
    change.events
}

struct ObservedChange<'a> {
    key: &'a JobKey,
    traces: Traces,
    at: Instant,
    time: DateTime<Utc>,
    events: Vec<Event>,
    /// Whether more happened than can be reported.
    is_more: bool,
}

impl ObservedChange<'_> {
    fn step(&mut self, kind: EventKind, known: &CachedJob, claim: Option<&Held>) {
        self.events.push(Event {
            time: self.time,
            subject: Some(known.subject(self.key)),
            owner: claim.and_then(|claim| claim.owner.clone()),
            fence: claim.and_then(|claim| claim.fence.clone()),
            ..Event::now(kind)
        });
    }

    fn compare_claims(&mut self, known: &CachedJob, seen: &CachedJob) {
        let is_modified = match (known.modified, seen.modified) {
            (Modified::Unknown, _) | (_, Modified::Unknown) => None,
            (before, after) => Some(before != after),
        };
        match (known.claim.as_deref(), seen.claim.as_deref()) {
            // It was claimed and released in between.
            (None, None) => self.is_more |= is_modified == Some(true),
            (None, Some(claim)) => self.step(EventKind::Claimed, seen, Some(claim)),
            (Some(claim), None) => {
                // An abandoning client leaves a modification time; an expiry does not.
                let end = match is_modified {
                    Some(true) => EventKind::Abandoned,
                    Some(false) => EventKind::Expired,
                    None => claim.end(self.at),
                };
                self.step(end, seen, Some(claim));
            }
            (Some(before), Some(after))
                if before.is_same_claim(after.owner.as_ref(), after.fence.as_ref()) =>
            {
                if after.expiration.has_moved(before.expiration) && !self.traces.is_ours {
                    self.step(EventKind::Extended, seen, Some(after));
                }
            }
            (Some(before), Some(after)) => {
                self.step(before.end(self.at), seen, Some(before));
                self.step(EventKind::Claimed, seen, Some(after));
            }
        }
    }

    fn end(&mut self, known: &CachedJob, end: EventKind) {
        if known.claim.is_none() {
            // Apart from operators and foreign clients, only its owner can remove it.
            match self.traces.claim {
                true => self.step(EventKind::Claimed, known, None),
                false => self.is_more = true,
            }
        }
        let claim = known.claim.as_deref();
        match end {
            // Some readers delete records that they cannot read.
            EventKind::Consumed if !known.is_job => self.is_more = true,
            _ => self.step(end, known, claim),
        }
    }

    fn begin(&mut self, seen: &CachedJob, beginning: EventKind) {
        self.step(beginning, seen, None);
        match &seen.claim {
            Some(claim) => self.step(EventKind::Claimed, seen, Some(claim)),
            // A post alone modifies nothing: the job was claimed and released.
            None => {
                let is_modified = matches!(seen.modified, Modified::At(_));
                self.is_more |= is_modified && beginning == EventKind::Posted;
            }
        }
    }

    fn came_and_went(&mut self, seen: &CachedJob) {
        self.step(EventKind::Posted, seen, None);
        match self.traces.claim {
            true => self.step(EventKind::Claimed, seen, None),
            false => self.is_more = true,
        }
        self.step(EventKind::Trashed, seen, None);
    }
}
