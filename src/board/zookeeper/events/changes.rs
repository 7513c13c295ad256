//! Derives job events from the nodes that came and went.
//!
//! The nodes of one transaction come and go together, in the order of its steps. So a later change explains an
//! earlier one: a lock that goes right before its job was not released, and a job that moves from the trash to the
//! board was restored. This records each step; a comparison of two reads, as in `board/redis/events/picture`, has to
//! guess.

use std::collections::{HashMap, HashSet};

use chrono::Utc;

use super::{
    observation::{Observations, SeenLock, SeenNodes},
    queue::{NodeChange, NodeChanges, NodeEvent},
};
use crate::{
    board::{
        Event, EventKind,
        cached_job::{CachedJob, ReadTime},
    },
    job::{Entry, JobKey, Location, Owner},
};

#[derive(Debug, Default)]
pub(crate) struct NodePicture {
    board: HashMap<JobKey, CachedJob>,
    trash: HashMap<JobKey, CachedJob>,
    /// Unclaimed jobs that cannot be claimed.
    blocked: HashSet<JobKey>,
    pub(crate) changes: NodeChanges,
}

impl NodePicture {
    pub(crate) fn add(&mut self, location: Location, entry: &Entry, looked: ReadTime) {
        let (key, known) = (entry.key().clone(), CachedJob::of(entry, looked));
        if entry.job().is_some_and(|job| job.is_blocked) {
            self.blocked.insert(key.clone());
        }
        match location {
            Location::Board => _ = self.board.insert(key, known),
            Location::Trash => _ = self.trash.insert(key, known),
            Location::History => {}
        }
    }

    /// Turns the changes before this number into events; later ones only help to explain them.
    pub(crate) fn events_before(&mut self, end: u64, observations: &Observations) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        while let Some(change) = self.changes.pop_before(end) {
            let event = match change {
                NodeChange::OfJob(kind, key) => {
                    let seen = observations.of(&key);
                    self.event_of(kind, key, seen)
                }
                NodeChange::Event(event) => Some(*event),
            };
            events.extend(event.filter(|event| !event.repeats(events.last())));
        }
        // One read saw them all; their order is known only within one parent node.
        let time = Utc::now();
        for event in &mut events {
            event.time = time;
        }
        events
    }

    fn event_of(&mut self, kind: NodeEvent, key: JobKey, seen: SeenNodes) -> Option<Event> {
        match kind {
            NodeEvent::JobCame => {
                let is_restored =
                    self.is_trashed(&key, &seen) && self.changes.take(NodeEvent::TrashWent, &key);
                self.came(key, seen, is_restored)
            }
            NodeEvent::JobWent => self.job_went(key, seen),
            NodeEvent::LockCame => self.lock_came(key, seen),
            NodeEvent::LockWent => self.lock_went(&key, seen),
            NodeEvent::TrashCame => {
                if self.changes.of(&key).any(|kind| kind == NodeEvent::JobWent) {
                    // It belongs to the job that leaves the board for the trash; wait for that.
                    self.changes.push(NodeChange::OfJob(kind, key));
                } else if let Some(known) = seen.trashed {
                    // Sibling boards share the trash.
                    self.trash.insert(key, known);
                }
                None
            }
            NodeEvent::TrashWent => {
                if self.is_trashed(&key, &seen) && self.changes.take(NodeEvent::JobCame, &key) {
                    return self.came(key, seen, true);
                }
                let known = self.trash.remove(&key)?;
                Some(event(EventKind::Purged, &key, &known))
            }
            NodeEvent::Rewritten => self.rewritten(key, seen),
        }
    }

    fn is_trashed(&self, key: &JobKey, seen: &SeenNodes) -> bool {
        match (self.trash.get(key), &seen.job) {
            (Some(trashed), Some(job)) => is_same(key, trashed, job),
            _ => true,
        }
    }

    fn came(&mut self, key: JobKey, seen: SeenNodes, is_restored: bool) -> Option<Event> {
        if self.board.contains_key(&key) {
            return None;
        }
        let from_trash = is_restored.then(|| self.trash.remove(&key)).flatten();
        let audit = (seen.job.as_ref()).and_then(|job| job.audit().cloned());
        // A job that is already gone may be in the trash.
        let Some(known) = seen.job.or(from_trash).or(seen.trashed) else {
            return Some(Event::came_and_went(key));
        };
        let kind = match is_restored {
            true => EventKind::Restored,
            false => EventKind::Posted,
        };
        let mut event = event(kind, &key, &known);
        event.audit = audit.filter(|_| is_restored);
        self.board.insert(key, known);
        Some(event)
    }

    fn job_went(&mut self, key: JobKey, seen: SeenNodes) -> Option<Event> {
        self.blocked.remove(&key);
        // Without the earlier state, there is no event.
        let mut known = self.board.remove(&key)?;
        let trashed = seen.trashed;
        let is_ours = |trashed: &CachedJob| is_same(&key, &known, trashed);
        if trashed.as_ref().is_none_or(is_ours) && self.changes.take(NodeEvent::TrashCame, &key) {
            let event = Event {
                audit: trashed.and_then(|trashed| known.audit_since(&trashed)),
                ..event(EventKind::Trashed, &key, &known)
            };
            known.set_claim(None);
            self.trash.insert(key, known);
            return Some(event);
        }
        Some(event(EventKind::Consumed, &key, &known))
    }

    fn lock_came(&mut self, key: JobKey, seen: SeenNodes) -> Option<Event> {
        let known = self.board.get_mut(&key)?;
        if let Some(job) = seen.job
            && is_retry(&key, &mut self.changes)
        {
            *known = job;
            let audit = known.audit().cloned();
            return Some(Event {
                audit,
                ..event(EventKind::Restored, &key, known)
            });
        }
        let next = self.changes.next_on_board(&key);
        // The observed lock is the last one that came, if it still exists.
        let lock = match next {
            None => seen.lock,
            Some(_) => SeenLock::Gone,
        };
        let claim = match lock {
            SeenLock::Vacant => {
                self.blocked.insert(key);
                return None;
            }
            // The lock only proved that the job was unclaimed.
            SeenLock::Gone if next == Some(NodeEvent::JobWent) => return None,
            // Two locks never coexist: this one was known before its event.
            SeenLock::Gone if known.claim().is_some() => return None,
            SeenLock::Gone => (None, None),
            SeenLock::Held(owner, fence) => (owner.map(Owner::into_brief), fence),
        };
        if known.claim() == Some((claim.0.as_ref(), claim.1.as_ref())) {
            return None;
        }
        known.set_claim(Some(claim));
        Some(event(EventKind::Claimed, &key, known))
    }

    fn lock_went(&mut self, key: &JobKey, seen: SeenNodes) -> Option<Event> {
        if self.changes.next_on_board(key) == Some(NodeEvent::JobWent) {
            return None;
        }
        let was_blocked = self.blocked.remove(key);
        let known = self.board.get_mut(key)?;
        if known.claim().is_none() && !was_blocked {
            return None;
        }
        let mut event = event(EventKind::Abandoned, key, known);
        // The abandoning client may have delayed the job.
        if let Some(job) = seen.job {
            event.audit = known.audit_since(&job);
            event.subject = Some(job.subject(key));
            *known = job;
        }
        known.set_claim(None);
        Some(event)
    }

    fn rewritten(&mut self, key: JobKey, seen: SeenNodes) -> Option<Event> {
        if let (Some(known), Some(mut job)) = (self.board.get_mut(&key), seen.job) {
            self.blocked.remove(&key);
            match seen.lock {
                SeenLock::Gone => {}
                SeenLock::Vacant => _ = self.blocked.insert(key),
                SeenLock::Held(owner, fence) => job.set_claim(Some((owner, fence))),
            }
            *known = job;
        }
        Some(Event::resync())
    }
}

/// Whether a new lock only retries the delayed job now. Such a lock goes again with only a write to the job in
/// between. Removes these changes.
fn is_retry(key: &JobKey, ahead: &mut NodeChanges) -> bool {
    let kinds = [NodeEvent::Rewritten, NodeEvent::LockWent];
    let is_retry = ahead.of(key).take(2).eq(kinds);
    is_retry && kinds.iter().all(|kind| ahead.take(*kind, key))
}

/// Whether both are one job: sibling boards use the same numbers.
fn is_same(key: &JobKey, one: &CachedJob, other: &CachedJob) -> bool {
    let (one, other) = (one.subject(key).uuid, other.subject(key).uuid);
    one == other
}

fn event(kind: EventKind, key: &JobKey, known: &CachedJob) -> Event {
    let (owner, fence) = known.claim().unwrap_or_default();
    Event {
        subject: Some(known.subject(key)),
        owner: owner.cloned(),
        fence: fence.cloned(),
        ..Event::now(kind)
    }
}

#[cfg(test)]
mod tests;
