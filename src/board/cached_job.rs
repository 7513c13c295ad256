//! A job in the event cache: only what events need.

use chrono::{DateTime, Utc};
use compact_str::CompactString;
use tokio::time::{Duration, Instant};

use super::{EventKind, event::Subject};
use crate::job::{AuditEntry, Entry, Fence, Holding, JobKey, Owner, Priority, Rank, brief};

/// The resolution of the servers' durations.
const GRAIN: Duration = Duration::from_millis(1);

/// A cached record; there may be a hundred thousand.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CachedJob {
    /// `None` if it equals the key.
    uuid: Option<Box<str>>,
    /// Nearly every name fits inline.
    name: CompactString,
    pub(super) sequence: Option<i64>,
    priority: Priority,
    pub(super) is_job: bool,
    pub(super) modified: Modified,
    pub(super) claim: Option<Box<Held>>,
    extras: Option<Box<Extras>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Extras {
    not_before: Option<DateTime<Utc>>,
    audit: Option<AuditEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Modified {
    Never,
    At(DateTime<Utc>),
    /// It changed, and was not read again yet.
    Unknown,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Held {
    pub(super) owner: Option<Owner>,
    pub(super) fence: Option<Fence>,
    pub(super) expiration: Expiration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expiration {
    Never,
    /// Between these two times: a reply takes a while.
    Between(Instant, Instant),
    /// It changed, and was not read again yet.
    Unknown,
}

/// The time of a read, from before the request to after the reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadTime {
    pub(super) asked: Instant,
    pub(super) answered: Instant,
}

impl CachedJob {
    pub(super) fn of(entry: &Entry, looked: ReadTime) -> Self {
        let claim = entry.holding().map(|it| Box::new(Held::of(it, looked)));
        match entry {
            Entry::Job(job) => Self {
                uuid: other_than(&job.key, &job.uuid),
                name: (*job.brief_name()).into(),
                sequence: job.sequence,
                priority: job.priority,
                is_job: true,
                modified: job.last_modified.map_or(Modified::Never, Modified::At),
                claim,
                extras: Extras::of(job.attempts.not_before, job.attempts.audit.clone()),
            },
            Entry::Malformed(_) => Self {
                uuid: Some("".into()),
                name: "".into(),
                sequence: None,
                priority: Priority::default(),
                is_job: false,
                modified: Modified::Unknown,
                claim,
                extras: None,
            },
        }
    }

    pub(super) fn of_event(subject: &Subject) -> Self {
        Self {
            uuid: other_than(&subject.key, &subject.uuid),
            name: subject.name.as_str().into(),
            sequence: subject.sequence,
            priority: subject.rank.priority(),
            is_job: !subject.uuid.is_empty(),
            modified: Modified::Unknown,
            claim: None,
            extras: Extras::of(subject.not_before, None),
        }
    }

    pub(super) fn subject(&self, key: &JobKey) -> Subject {
        Subject {
            key: key.clone(),
            uuid: match &self.uuid {
                Some(uuid) => uuid.to_string(),
                None => key.to_string(),
            },
            name: self.name.to_string(),
            sequence: self.sequence,
            rank: Rank::new(self.priority, self.sequence),
            not_before: self.extras.as_ref().and_then(|extras| extras.not_before),
        }
    }

    /// Whether two records under one key are the same job, and not a later namesake.
    pub(super) fn is_same_job(&self, other: &Self) -> bool {
        match (self.sequence, other.sequence) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }

    pub(super) fn audit_since(&self, later: &Self) -> Option<AuditEntry> {
        let audit = later.audit();
        audit.filter(|_| self.audit() != audit).cloned()
    }

    pub(super) fn audit(&self) -> Option<&AuditEntry> {
        self.extras.as_ref()?.audit.as_ref()
    }

    pub(super) fn claim(&self) -> Option<(Option<&Owner>, Option<&Fence>)> {
        let held = self.claim.as_deref()?;
        Some((held.owner.as_ref(), held.fence.as_ref()))
    }

    pub(super) fn set_claim(&mut self, claim: Option<(Option<Owner>, Option<Fence>)>) {
        let held = claim.map(|(owner, fence)| Held {
            owner: owner.map(Owner::into_brief),
            fence,
            expiration: Expiration::Never,
        });
        self.claim = held.map(Box::new);
    }

    /// Returns the latest time at which the claim expires, if it does.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.claim.as_ref()?.expiration {
            Expiration::Between(_, latest) => Some(latest),
            Expiration::Never | Expiration::Unknown => None,
        }
    }
}

impl Extras {
    fn of(not_before: Option<DateTime<Utc>>, audit: Option<AuditEntry>) -> Option<Box<Self>> {
        let extras = Self { not_before, audit };
        (extras != Self::default()).then(|| Box::new(extras))
    }
}

impl Held {
    fn of(holding: &Holding, looked: ReadTime) -> Self {
        Self {
            owner: holding.owner.as_ref().map(|it| it.brief().into_owned()),
            fence: holding.fence.clone(),
            expiration: holding.expires_in.map_or(Expiration::Never, |left| {
                let earliest = looked.asked + left.saturating_sub(GRAIN);
                Expiration::Between(earliest, looked.answered + left + GRAIN)
            }),
        }
    }

    /// Whether both may be the same claim; a renewed claim is the same.
    pub(super) fn is_same_claim(&self, owner: Option<&Owner>, fence: Option<&Fence>) -> bool {
        let is_same_fence = match (&self.fence, fence) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        let is_same_owner = match (&self.owner, owner) {
            (Some(one), Some(other)) => one.is(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        is_same_owner && is_same_fence
    }

    /// Returns how the claim ended by then, if only its end is known.
    pub(super) fn end(&self, by: Instant) -> EventKind {
        match self.expiration {
            Expiration::Between(earliest, _) if earliest <= by => EventKind::Expired,
            _ => EventKind::Abandoned,
        }
    }
}

impl Expiration {
    /// Whether the expiry certainly changed.
    pub(super) fn has_moved(self, before: Self) -> bool {
        match (before, self) {
            (Self::Never, Self::Between(..)) => true,
            (Self::Between(from, to), Self::Between(earliest, latest)) => {
                earliest > to || latest < from
            }
            _ => false,
        }
    }
}

fn other_than(key: &JobKey, uuid: &str) -> Option<Box<str>> {
    (key.text() != uuid).then(|| (*brief(uuid)).into())
}
