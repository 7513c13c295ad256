//! Board events, the same for all boards.

use std::ops::ControlFlow;

use chrono::{DateTime, Utc};
use futures_util::{TryStreamExt, stream::BoxStream};
use serde::Serialize;

use super::BoardError;
use crate::{
    job::{AuditEntry, Entry, Fence, Job, JobKey, Outcome, Owner, Priority, Rank},
    names::named,
};

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
    pub(crate) enum EventKind ("event", str::eq) {
        Posted => "posted",
        Claimed => "claimed",
        Abandoned => "abandoned",
        Expired => "expired",
        Consumed => "consumed",
        Trashed => "trashed",
        Restored => "restored",
        Purged => "purged",
        Extended => "extended",
        ConductorJoined => "conductor-joined",
        ConductorLeft => "conductor-left",
        Paused => "paused",
        Resumed => "resumed",
        /// Some events may be missing: read the board again.
        Resync => "resync",
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    pub(crate) time: DateTime<Utc>,
    pub(crate) subject: Option<Subject>,
    pub(crate) names: Option<String>,
    pub(crate) owner: Option<Owner>,
    pub(crate) fence: Option<Fence>,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) audit: Option<AuditEntry>,
}

impl Event {
    /// Creates an event without a job, dated now.
    pub(crate) fn now(kind: EventKind) -> Self {
        Self {
            kind,
            time: Utc::now(),
            subject: None,
            names: None,
            owner: None,
            fence: None,
            outcome: None,
            audit: None,
        }
    }

    pub(crate) fn resync() -> Self {
        Self::now(EventKind::Resync)
    }

    /// Returns the end of a job in the history.
    pub(crate) fn ended(job: &Job) -> Option<Self> {
        let end = job.ended.as_ref()?;
        let kind = match end.outcome {
            Outcome::Purged => EventKind::Purged,
            Outcome::Consumed | Outcome::Failed | Outcome::Moved => EventKind::Consumed,
        };
        Some(Self {
            time: end.on,
            subject: Some(Subject::of(job)),
            outcome: Some(end.outcome),
            audit: job.sent_by().cloned(),
            ..Self::now(kind)
        })
    }

    /// Whether it is a resync that adds nothing to the last event.
    pub(crate) fn repeats(&self, last: Option<&Self>) -> bool {
        let is_same = |last: &Self| last.kind == self.kind && last.subject == self.subject;
        self.kind == EventKind::Resync && last.is_some_and(is_same)
    }

    /// Returns a resync after a job that was posted and ended unread.
    pub(crate) fn came_and_went(key: JobKey) -> Self {
        Self {
            subject: Some(Subject {
                key,
                uuid: String::new(),
                name: String::new(),
                sequence: None,
                rank: Rank::new(Priority::default(), None),
                not_before: None,
            }),
            ..Self::resync()
        }
    }
}

pub(crate) struct Events<'a> {
    /// It may merge events and never invents one; [`EventKind::Resync`] means that some may be missing. An `Err` is
    /// the last item.
    pub(crate) stream: BoxStream<'a, Result<Event, BoardError>>,
    /// Why some events come late or never; `None` if all are pushed.
    pub(crate) lack: Option<String>,
}

/// Receives the jobs that are present when a subscription starts.
pub(crate) struct InitialListing<'a> {
    /// Whether the sidecar of a job with this posting matters. If not, and the job is unclaimed, the posting alone is
    /// shown.
    pub(crate) needs_sidecar: &'a (dyn Fn(&Job) -> bool + Send + Sync),
    /// Receives an unclaimed record. On break, records that rank after this one are not needed.
    pub(crate) receive: &'a mut (dyn FnMut(Entry) -> ControlFlow<()> + Send),
}

/// Shows records until the receiver breaks off.
pub(crate) async fn show_entries(
    mut entries: BoxStream<'_, Result<Entry, BoardError>>,
    receive: &mut (dyn FnMut(Entry) -> ControlFlow<()> + Send),
) -> Result<(), BoardError> {
    while let Some(entry) = entries.try_next().await?
        && receive(entry).is_continue()
    {}
    Ok(())
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Subject {
    pub(crate) key: JobKey,
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) sequence: Option<i64>,
    pub(crate) rank: Rank,
    pub(crate) not_before: Option<DateTime<Utc>>,
}

impl Subject {
    pub(crate) fn of(job: &Job) -> Self {
        Self {
            key: job.key.clone(),
            uuid: job.uuid.clone(),
            name: job.name.clone(),
            sequence: job.sequence,
            rank: job.rank(),
            not_before: job.attempts.not_before,
        }
    }
}
