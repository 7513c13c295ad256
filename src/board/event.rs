//! What can happen on a board; the one vocabulary of all boards.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Utc};
use futures_util::stream::BoxStream;
use serde::Serialize;
use thiserror::Error;

use super::BoardError;
use crate::job::{Departure, Fence, JobKey, Owner, Rank, Remark};

/// What kind of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EventKind {
    Posted,
    Claimed,
    Abandoned,
    Expired,
    Consumed,
    Trashed,
    Restored,
    Purged,
    Extended,
    ConductorJoined,
    ConductorLeft,
    /// Something may have been missed: look at the board again.
    Resync,
}

impl EventKind {
    const ALL: [Self; 12] = [
        Self::Posted,
        Self::Claimed,
        Self::Abandoned,
        Self::Expired,
        Self::Consumed,
        Self::Trashed,
        Self::Restored,
        Self::Purged,
        Self::Extended,
        Self::ConductorJoined,
        Self::ConductorLeft,
        Self::Resync,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Posted => "posted",
            Self::Claimed => "claimed",
            Self::Abandoned => "abandoned",
            Self::Expired => "expired",
            Self::Consumed => "consumed",
            Self::Trashed => "trashed",
            Self::Restored => "restored",
            Self::Purged => "purged",
            Self::Extended => "extended",
            Self::ConductorJoined => "conductor-joined",
            Self::ConductorLeft => "conductor-left",
            Self::Resync => "resync",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// There is no event of that name.
#[derive(Debug, Error)]
#[error("unknown event `{name}`: it is one of {}", EventKind::ALL.map(EventKind::name).join(", "))]
pub(crate) struct UnknownEvent {
    name: String,
}

impl FromStr for EventKind {
    type Err = UnknownEvent;

    fn from_str(text: &str) -> Result<Self, UnknownEvent> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| UnknownEvent {
                name: text.to_owned(),
            })
    }
}

/// Something that happened on a board.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    pub(crate) time: DateTime<Utc>,
    /// The job it happened to, as far as known.
    pub(crate) subject: Option<Subject>,
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
            owner: None,
            fence: None,
            departure: None,
            remark: None,
        }
    }

    /// Says that something may have been missed.
    pub(crate) fn resync() -> Self {
        Self::now(EventKind::Resync)
    }
}

/// What happens on a board, as it is told.
pub(crate) struct Events<'a> {
    /// It may merge events and never invents one; [`EventKind::Resync`] says that something may
    /// have been missed. An `Err` is the last item.
    pub(crate) stream: BoxStream<'a, Result<Event, BoardError>>,
    /// Why some are told late or not at all; none, if all of them are pushed.
    pub(crate) lack: Option<String>,
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
