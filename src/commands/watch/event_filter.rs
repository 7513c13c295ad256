//! Selects the events to print, by kind and by the filters on their job.

use std::collections::HashSet;

use chrono::Utc;

use super::printed_event::PrintedEvent;
use crate::{
    board::{Board, Detail, Event, EventKind, JobRef, Result, event::Subject, filter::Filters},
    job::{Attempts, ClaimEnd, Entry, Holding, Job, JobKey, Location},
};

#[derive(Debug)]
pub(super) struct EventFilter {
    kinds: Vec<EventKind>,
    filters: Filters,
    admitted: HashSet<JobKey>,
}

impl EventFilter {
    pub(super) fn new(kinds: Vec<EventKind>, filters: Filters) -> Self {
        Self {
            kinds,
            filters,
            admitted: HashSet::new(),
        }
    }

    pub(super) fn asks_for(&self, kind: EventKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    pub(super) fn detail(&self) -> Detail {
        self.filters.detail()
    }

    /// Whether a job matches now; a match is followed from now on.
    pub(super) fn follows(&mut self, entry: &Entry) -> bool {
        let holds = self.filters.matches(entry, Utc::now());
        let may_change = entry
            .job()
            .is_some_and(|job| job.location != Location::History);
        if holds && may_change && !self.filters.is_empty() {
            self.admitted.insert(entry.key().clone());
        }
        holds
    }

    /// Returns the event to print, if any: a resync if the job cannot be looked up.
    pub(super) async fn admit(&mut self, board: &dyn Board, event: &Event) -> Option<PrintedEvent> {
        // Events that are not printed also keep the job current.
        let is_meant = match self.filters.is_empty() {
            true => Ok(true),
            false => self.matches_job(board, event).await,
        };
        match is_meant {
            _ if !self.asks_for(event.kind) => None,
            Ok(is_meant) => is_meant.then(|| PrintedEvent::of(event)),
            Err(_) => Some(PrintedEvent::resync()),
        }
    }

    async fn matches_job(&mut self, board: &dyn Board, event: &Event) -> Result<bool> {
        if event.kind == EventKind::Resync {
            return Ok(true);
        }
        let Some(subject) = &event.subject else {
            return Ok(false);
        };
        let (found, is_gone) = self.look(board, event, subject).await?;
        let entry = job_after(event, subject, found);
        let holds = self.filters.matches(&entry, Utc::now());
        Ok(match (is_gone, holds) {
            (false, true) => {
                self.admitted.insert(subject.key.clone());
                true
            }
            (false, false) => {
                self.admitted.remove(&subject.key);
                false
            }
            // A deleted job cannot be looked up any more.
            (true, holds) => self.admitted.remove(&subject.key) || holds,
        })
    }

    async fn look(
        &self,
        board: &dyn Board,
        event: &Event,
        subject: &Subject,
    ) -> Result<(Option<Job>, bool)> {
        let locations = match event.kind {
            EventKind::Consumed | EventKind::Purged => return Ok((None, true)),
            // A malformed record has no name.
            _ if self.filters.are_answered_by_events() && !subject.name.is_empty() => {
                return Ok((None, false));
            }
            EventKind::Trashed => [Location::Trash, Location::Board],
            _ => Location::LIVE,
        };
        let found = look_up(board, subject, locations).await?;
        let is_gone = found.is_none();
        Ok((found, is_gone))
    }
}

async fn look_up(
    board: &dyn Board,
    subject: &Subject,
    locations: [Location; 2],
) -> Result<Option<Job>> {
    let wanted = [JobRef::Key(subject.key.clone())];
    for location in locations {
        let found = board.find(location, &wanted).await?;
        let job = found.into_iter().flatten().find_map(|entry| match entry {
            Entry::Job(job) if subject.sequence.is_none() || job.sequence == subject.sequence => {
                Some(*job)
            }
            _ => None,
        });
        if job.is_some() {
            return Ok(job);
        }
    }
    Ok(None)
}

fn job_after(event: &Event, subject: &Subject, found: Option<Job>) -> Entry {
    let mut job = found.unwrap_or_else(|| job_of(subject));
    job.location = match event.kind {
        EventKind::Trashed | EventKind::Purged => Location::Trash,
        _ => Location::Board,
    };
    let is_of_this_claim = job.owner() == event.owner.as_ref();
    match event.kind {
        EventKind::Claimed | EventKind::Extended if !is_of_this_claim => {
            job.holding = Some(Holding::new(
                event.owner.clone(),
                ClaimEnd::Never,
                event.fence.clone(),
            ));
        }
        EventKind::Claimed | EventKind::Extended => {}
        // Filters by owner mean the last owner.
        EventKind::Consumed | EventKind::Trashed => {
            job.holding = event
                .owner
                .is_some()
                .then(|| Holding::new(event.owner.clone(), ClaimEnd::Never, event.fence.clone()))
        }
        _ => job.holding = None,
    }
    Entry::Job(Box::new(job))
}

fn job_of(subject: &Subject) -> Job {
    let (key, uuid, name) = (&subject.key, &subject.uuid, &subject.name);
    Job {
        priority: subject.rank.priority(),
        sequence: subject.sequence,
        attempts: Attempts {
            not_before: subject.not_before,
            ..Attempts::default()
        },
        ..Job::new(key.clone(), uuid.clone(), name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::testing::scripted::{Scripted, event};

    fn event_filter(kinds: &[EventKind], filter: &str) -> EventFilter {
        EventFilter::new(kinds.to_vec(), Filters::new(vec![filter.parse().unwrap()]))
    }

    async fn admitted(
        filter: &mut EventFilter,
        board: &Scripted,
        event: &Event,
    ) -> Option<EventKind> {
        Some(filter.admit(board, event).await?.event)
    }

    #[tokio::test]
    async fn failed_lookup_is_reported_as_missed() {
        let board = Scripted::new();
        let job = board.post("large", Some(3));
        let mut filter = event_filter(&[], "details.size>2");
        let posted = event(EventKind::Posted, &job);
        assert_eq!(
            admitted(&mut filter, &board, &posted).await,
            Some(EventKind::Posted)
        );
        board.fails_next(&[]);
        let claimed = event(EventKind::Claimed, &job);
        assert_eq!(
            admitted(&mut filter, &board, &claimed).await,
            Some(EventKind::Resync)
        );
        let consumed = event(EventKind::Consumed, &job);
        assert_eq!(
            admitted(&mut filter, &board, &consumed).await,
            Some(EventKind::Consumed)
        );
    }

    #[tokio::test]
    async fn unwanted_event_is_not_reported_as_missed() {
        let board = Scripted::new();
        let job = board.post("large", Some(3));
        let mut filter = event_filter(&[EventKind::Consumed], "details.size>2");
        board.fails_next(&[]);
        let posted = event(EventKind::Posted, &job);
        assert_eq!(admitted(&mut filter, &board, &posted).await, None);
    }

    #[tokio::test]
    async fn event_with_enough_data_needs_no_lookup() {
        let board = Scripted::new();
        let job = board.post("large", None);
        for (text, expected) in [
            ("name=large", Some(EventKind::Posted)),
            ("state=claimed", None),
            ("priority=normal", Some(EventKind::Posted)),
        ] {
            let mut filter = event_filter(&[], text);
            let posted = event(EventKind::Posted, &job);
            assert_eq!(
                admitted(&mut filter, &board, &posted).await,
                expected,
                "{text}"
            );
        }
        assert_eq!(board.finds(), 0);
    }
}
