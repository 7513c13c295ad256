//! What can happen on a board; the one vocabulary of all boards.

use std::ops::ControlFlow;

use chrono::{DateTime, Utc};
use futures_util::stream::BoxStream;
use serde::Serialize;

use super::BoardError;
use crate::{
    job::{Departure, Entry, Fence, Job, JobKey, Owner, Priority, Rank, Remark},
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
        /// Jobs of some names are to be left alone.
        Paused => "paused",
        Resumed => "resumed",
        /// Something may have been missed: look at the board again.
        Resync => "resync",
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    pub(crate) time: DateTime<Utc>,
    /// The job it happened to, as far as known.
    pub(crate) subject: Option<Subject>,
    /// A glob for the names that are paused by it, or are not any more.
    pub(crate) names: Option<String>,
    pub(crate) owner: Option<Owner>,
    pub(crate) fence: Option<Fence>,
    /// How the job ended, if it did by this, as far as known.
    pub(crate) departure: Option<Departure>,
    /// Who did it and why, if it was not its ordinary course, as far as known.
    pub(crate) remark: Option<Remark>,
}

impl Event {
    /// Makes an event of this moment that is about no job.
    pub(crate) fn now(kind: EventKind) -> Self {
        Self {
            kind,
            time: Utc::now(),
            subject: None,
            names: None,
            owner: None,
            fence: None,
            departure: None,
            remark: None,
        }
    }

    pub(crate) fn resync() -> Self {
        Self::now(EventKind::Resync)
    }

    /// Whether it is a resync that says no more than the last event.
    pub(crate) fn repeats(&self, last: Option<&Self>) -> bool {
        let is_same = |last: &Self| last.kind == self.kind && last.subject == self.subject;
        self.kind == EventKind::Resync && last.is_some_and(is_same)
    }

    /// Returns a resync after a job that was posted and ended before it could be read.
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
    /// It may merge events and never invents one; [`EventKind::Resync`] says that something may
    /// have been missed. An `Err` is the last item.
    pub(crate) stream: BoxStream<'a, Result<Event, BoardError>>,
    /// Why some are told late or not at all; none, if all of them are pushed.
    pub(crate) lack: Option<String>,
}

/// Whoever begins to listen, and is shown what there is to be had as it begins.
pub(crate) struct Onlooker<'a> {
    /// Whether it matters what stands beside a job of which the posting is known. Where it does not, and
    /// nobody has the job, it may be shown as it was posted.
    pub(crate) wants: &'a (dyn Fn(&Job) -> bool + Send + Sync),
    /// Takes a record that nobody has; broken off, it needs none that ranks behind this one.
    pub(crate) sees: &'a mut (dyn FnMut(Entry) -> ControlFlow<()> + Send),
}

/// The job an event is about, with all that ranking it takes.
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
            not_before: job.history.not_before,
        }
    }
}
