//! Reconstructs past events from the records of a board and its history.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::TryStreamExt;

use super::event_filter::EventFilter;
use crate::{
    board::{Board, Event, EventKind, Query, Result, event::Subject},
    context::Context,
    job::{AuditEntry, Entry, Failure, Job, JobKey, Location, Outcome, Owner},
};

/// The largest difference between two clocks for one event.
const SLACK: TimeDelta = TimeDelta::seconds(5);

/// How long after the replay an event from before the read may be dated; some boards date events on arrival.
const LATE: TimeDelta = TimeDelta::seconds(2);

#[derive(Debug, Default)]
pub(super) struct ReplayedEvents {
    events: HashMap<JobKey, Vec<Event>>,
    read: DateTime<Utc>,
    until: DateTime<Utc>,
}

impl ReplayedEvents {
    /// Keeps the events that the subscription may report again, now that they are printed.
    pub(super) fn new(events: Vec<Event>, read: DateTime<Utc>) -> Self {
        let mut by_job: HashMap<_, Vec<_>> = HashMap::new();
        for event in events {
            if let Some(subject) = &event.subject {
                let key = subject.key.clone();
                by_job.entry(key).or_default().push(event);
            }
        }
        Self {
            events: by_job,
            read,
            until: Utc::now() + LATE,
        }
    }

    /// Whether the event is printed already, since it happened before the read.
    pub(super) fn has(&mut self, event: &Event) -> bool {
        use EventKind::{Abandoned, Claimed, Consumed, Posted, Purged};
        if event.time > self.until {
            *self = Self::default();
            return false;
        }
        let Some(subject) = &event.subject else {
            return false;
        };
        let printed = self.events.get(&subject.key).map_or(&[][..], Vec::as_slice);
        let sequence = |event: &Event| event.subject.as_ref().and_then(|it| it.sequence);
        let mut same_job = printed
            .iter()
            .filter(|printed| sequence(printed) == sequence(event));
        let is_over = same_job.clone().any(|printed| printed.outcome.is_some());
        // The same may happen again within seconds.
        let is_near =
            |printed: &Event| event.time <= self.read && (printed.time - event.time).abs() <= SLACK;
        same_job.any(|printed| {
            let audits = (&printed.audit, &event.audit);
            printed.kind == event.kind
                && match (event.kind, audits) {
                    (Posted | Consumed | Purged, _) => true,
                    (Claimed, _) => is_over || printed.fence == event.fence,
                    (_, (Some(printed), Some(event))) => printed == event,
                    (Abandoned, _) => printed.owner == event.owner && is_near(printed),
                    _ => is_near(printed),
                }
        })
    }
}

/// Returns the events since then in order, and when they were read.
///
/// Requires a running subscription.
pub(super) async fn past_events(
    ctx: &Context,
    board: &dyn Board,
    filter: &mut EventFilter,
    since: DateTime<Utc>,
) -> Result<(Vec<Event>, DateTime<Utc>)> {
    let mut jobs = HashMap::new();
    // In the order in which jobs move; the subscription reports jobs that come back. The last read counts.
    for location in [Location::Board, Location::Trash, Location::History] {
        match read(board, location, filter, since, &mut jobs).await {
            Err(error) if location == Location::History && !error.is_retryable() => {
                ctx.out.note(format!("cannot read the history: {error}"));
            }
            read => read?,
        }
    }
    let read = Utc::now();
    let mut events: Vec<_> = jobs.into_values().flatten().collect();
    events.sort_by_key(|event| event.time);
    Ok((events, read))
}

async fn read(
    board: &dyn Board,
    location: Location,
    filter: &mut EventFilter,
    since: DateTime<Utc>,
    jobs: &mut HashMap<(JobKey, Option<i64>), Vec<Event>>,
) -> Result<()> {
    let mut entries = board.entries(Query::all(location, filter.detail()));
    while let Some(entry) = entries.try_next().await? {
        if !filter.follows(&entry) {
            continue;
        }
        if let Entry::Job(job) = entry {
            let events = events_of(&job).into_iter();
            let events: Vec<_> = events
                .filter(|event| event.time >= since && filter.asks_for(event.kind))
                .collect();
            if !events.is_empty() {
                jobs.insert((job.key, job.sequence), events);
            }
        }
    }
    Ok(())
}

/// Returns the provable events of a job in order, which may not be all.
fn events_of(job: &Job) -> Vec<Event> {
    let at = |kind: EventKind, time: Option<DateTime<Utc>>| {
        time.map(|time| Event {
            time,
            subject: Some(Subject::of(job)),
            ..Event::now(kind)
        })
    };
    let attempts = &job.attempts;
    let last_claim = match (&job.ended, &job.holding) {
        (Some(end), _) => end.claimed_on,
        (None, holding) => holding.as_ref().and_then(|holding| holding.claimed_on),
    };
    // Both may be the same claim, timed by two clocks.
    let is_last = |first: DateTime<Utc>| last_claim.is_some_and(|last| last - first <= SLACK);
    let first_claim = attempts.first_claimed_on.filter(|time| !is_last(*time));
    let claimed = at(EventKind::Claimed, last_claim).map(|event| Event {
        owner: job.owner().cloned(),
        fence: job.holding.as_ref().and_then(|it| it.fence.clone()),
        ..event
    });
    let failed = returning_failures(job).iter().filter_map(|failure| {
        let owner = Some(Owner::from_stored(failure.conductor.as_str()));
        let event = at(EventKind::Abandoned, Some(failure.time))?;
        Some(Event { owner, ..event })
    });
    let trashed = at(EventKind::Trashed, job.trashed_on).map(|event| Event {
        audit: job.sent_by().cloned(),
        ..event
    });
    let by_hand = attempts.audit.as_ref().and_then(|audit| {
        let event = at(kind_of(audit)?, audit.on)?;
        Some(Event {
            audit: Some(audit.clone()),
            ..event
        })
    });
    let single = [
        at(EventKind::Posted, job.created_on),
        at(EventKind::Claimed, first_claim),
        by_hand,
        claimed,
        trashed,
        Event::ended(job),
    ];
    let mut events: Vec<_> = failed.chain(single.into_iter().flatten()).collect();
    events.sort_by_key(|event| event.time);
    events
}

/// Returns the event of an audit entry, for a job that has not moved since.
fn kind_of(audit: &AuditEntry) -> Option<EventKind> {
    match audit.action.as_deref() {
        Some("abandoned") => Some(EventKind::Abandoned),
        Some("restored" | "retried" | "changed") => Some(EventKind::Restored),
        // Its present location shows the event.
        _ => None,
    }
}

fn returning_failures(job: &Job) -> &[Failure] {
    let failures = &job.attempts.failures[..];
    let has_ended_it = failures.last().is_some_and(|last| match &job.ended {
        Some(end) => matches!(end.outcome, Outcome::Failed | Outcome::Purged),
        None => (job.trashed_on).is_some_and(|trashed| (trashed - last.time).abs() <= SLACK),
    });
    match job.location {
        // A restored job keeps its failures, and the last one ended in the trash.
        Location::Board => &failures[failures.len().saturating_sub(job.attempts.count as usize)..],
        Location::Trash | Location::History => {
            &failures[..failures.len() - usize::from(has_ended_it)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{board::testing::scripted::Scripted, job::Fence};

    fn failed_twice() -> Job {
        let mut job = Scripted::new().post("resize", Some(1));
        job.created_on = Some(Utc::now() - TimeDelta::hours(1));
        job.attempts.count = 2;
        job.attempts.failures = [40, 20]
            .map(|minutes| Failure {
                time: Utc::now() - TimeDelta::minutes(minutes),
                ..Failure::reported("no room", "ada")
            })
            .to_vec();
        job
    }

    fn kinds(job: &Job) -> Vec<EventKind> {
        events_of(job).iter().map(|event| event.kind).collect()
    }

    #[test]
    fn final_failure_is_not_reported_as_a_release() {
        use EventKind::{Abandoned, Posted, Trashed};
        let mut job = failed_twice();
        assert_eq!(kinds(&job), [Posted, Abandoned, Abandoned]);
        job.location = Location::Trash;
        job.trashed_on = Some(job.attempts.failures[1].time);
        assert_eq!(kinds(&job), [Posted, Abandoned, Trashed]);
        // Trashed by hand, long after it failed.
        job.trashed_on = Some(Utc::now());
        assert_eq!(kinds(&job), [Posted, Abandoned, Abandoned, Trashed]);
        // Restored: its failures stay, and its attempts start from zero.
        job.location = Location::Board;
        (job.trashed_on, job.attempts.count) = (None, 0);
        assert_eq!(kinds(&job), [Posted]);
    }

    #[test]
    fn audit_entry_proves_a_release() {
        use EventKind::{Abandoned, Posted, Restored};
        let mut job = failed_twice();
        job.attempts.failures.clear();
        job.attempts.audit = Some(AuditEntry::now("abandoned", "olga", Some("ada is ill")));
        let events = events_of(&job);
        assert_eq!(kinds(&job), [Posted, Abandoned]);
        assert_eq!(events[1].audit, job.attempts.audit);
        job.attempts.audit = Some(AuditEntry::now("retried", "olga", None));
        assert_eq!(kinds(&job), [Posted, Restored]);
    }

    fn event_of(job: &Job, kind: EventKind) -> Event {
        Event {
            subject: Some(Subject::of(job)),
            ..Event::now(kind)
        }
    }

    #[test]
    fn known_events_are_not_repeated() {
        let job = failed_twice();
        let mut printed = ReplayedEvents::new(events_of(&job), Utc::now());
        assert!(printed.has(&event_of(&job, EventKind::Posted)));
        assert!(!printed.has(&event_of(&job, EventKind::Consumed)));
        assert!(!printed.has(&event_of(&job, EventKind::Abandoned)));
        let claimed = |fence: &str| Event {
            fence: Some(Fence(fence.to_owned())),
            ..event_of(&job, EventKind::Claimed)
        };
        let mut printed = ReplayedEvents::new(vec![claimed("7")], Utc::now());
        assert!(printed.has(&claimed("7")));
        assert!(!printed.has(&claimed("8")));
    }

    #[test]
    fn later_event_of_a_printed_kind_is_new() {
        let job = failed_twice();
        let changed = |action: &str, kind: EventKind, reason: &str| Event {
            audit: Some(AuditEntry::now(action, "olga", Some(reason))),
            ..event_of(&job, kind)
        };
        for (action, kind) in [
            ("changed", EventKind::Restored),
            ("trashed", EventKind::Trashed),
            ("abandoned", EventKind::Abandoned),
        ] {
            let old = changed(action, kind, "old");
            let mut printed = ReplayedEvents::new(vec![old.clone()], Utc::now());
            assert!(printed.has(&old), "{kind}");
            assert!(!printed.has(&changed(action, kind, "new")), "{kind}");
        }
        // A failure has no audit entry.
        let failed = event_of(&job, EventKind::Abandoned);
        let mut printed = ReplayedEvents::new(vec![failed.clone()], failed.time);
        assert!(printed.has(&failed));
        assert!(!printed.has(&event_of(&job, EventKind::Abandoned)));
    }

    #[tokio::test(start_paused = true)]
    async fn known_event_is_not_repeated_when_it_is_taken_late() {
        let job = failed_twice();
        let posted = event_of(&job, EventKind::Posted);
        let mut printed = ReplayedEvents::new(vec![posted.clone()], Utc::now());
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        assert!(printed.has(&posted));
        let later = Event {
            time: Utc::now() + SLACK,
            ..posted
        };
        assert!(!printed.has(&later));
        assert!(printed.events.is_empty());
    }
}
