//! A record as the dashboard remembers it: all that a list shows; there may be a hundred thousand.

use std::{collections::HashSet, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use crate::{
    commands::parts::signature::signature,
    job::{
        Entry, Failure, History, Holding, Job, JobKey, Lease, Malformed, Origin, Owner, Priority,
        Remark, Shelf,
    },
};

/// A record, without what nobody sees in a list.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) shelf: Shelf,
    pub(super) key: Arc<str>,
    /// Its uuid, if that is another text than the key, and one that is written as uuids are.
    uuid: Option<Uuid>,
    pub(super) name: Arc<str>,
    pub(super) priority: Priority,
    pub(super) sequence: Option<i64>,
    pub(super) created_on: Option<DateTime<Utc>>,
    pub(super) claim: Option<Box<Claim>>,
    pub(super) attempts: u32,
    pub(super) is_malformed: bool,
    /// What few records have.
    rest: Option<Box<Rest>>,
    /// Whether the filters held when it was looked at.
    pub(super) is_admitted: bool,
    /// At which reading of the board it was looked at.
    pub(super) reading: u32,
}

/// A claim, as far as lists tell of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Claim {
    pub(super) owner: Option<Arc<Owner>>,
    lease: Lease,
    pub(super) since: Option<DateTime<Utc>>,
    pub(super) lapses_on: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Rest {
    /// What stands for a uuid, and is none.
    uuid: Option<Box<str>>,
    not_before: Option<DateTime<Utc>>,
    trashed_on: Option<DateTime<Utc>>,
    problem: Option<String>,
    remark: Option<Remark>,
    /// What the last failure says of itself.
    reason: Option<Box<str>>,
    failures: Vec<Failed>,
    size: u64,
}

/// That a job failed: when, and with what in common with others.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failed {
    pub(super) signature: Arc<str>,
    pub(super) on: DateTime<Utc>,
}

/// Texts that many records share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    texts: HashSet<Arc<str>>,
    owners: HashSet<Arc<Owner>>,
}

impl Shared {
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&text));
        text
    }

    fn owner(&mut self, owner: &Owner) -> Arc<Owner> {
        if let Some(known) = self.owners.get(owner) {
            return Arc::clone(known);
        }
        let owner = Arc::new(owner.clone());
        self.owners.insert(Arc::clone(&owner));
        owner
    }

    /// Forgets what nothing uses any more.
    pub(super) fn sweep(&mut self) {
        self.texts.retain(|text| Arc::strong_count(text) > 1);
        self.owners.retain(|owner| Arc::strong_count(owner) > 1);
    }
}

impl Row {
    pub(super) fn of(entry: &Entry, shelf: Shelf, shared: &mut Shared, now: DateTime<Utc>) -> Self {
        let claim = entry.holding().map(|holding| {
            Box::new(Claim {
                owner: holding.owner.as_ref().map(|owner| shared.owner(owner)),
                lease: holding.lease,
                since: match entry.job() {
                    Some(job) => job.held_since(),
                    None => holding.claimed_on,
                },
                lapses_on: (holding.expires_in)
                    .and_then(|left| now.checked_add_signed(TimeDelta::from_std(left).ok()?)),
            })
        });
        let key: Arc<str> = entry.key().as_str().into();
        let blank = Self {
            shelf,
            uuid: None,
            name: shared.text(entry.name()),
            priority: Priority::default(),
            sequence: None,
            created_on: None,
            claim,
            attempts: 0,
            is_malformed: true,
            rest: None,
            is_admitted: true,
            reading: 0,
            key,
        };
        match entry {
            Entry::Job(job) => Self {
                uuid: uuid(job),
                priority: job.priority,
                sequence: job.sequence,
                created_on: job.created_on,
                attempts: job.history.attempts,
                is_malformed: false,
                rest: Rest::of(job, shared),
                ..blank
            },
            Entry::Malformed(record) => Self {
                rest: Some(Box::new(Rest {
                    problem: Some(record.problem.clone()),
                    size: record.size,
                    ..Rest::default()
                })),
                ..blank
            },
        }
    }

    /// Returns the record as far as it is known.
    pub(super) fn entry(&self, now: DateTime<Utc>) -> Entry {
        let rest = self.rest.as_deref();
        let holding = self.claim.as_ref().map(|claim| claim.holding(now));
        let problem = rest.and_then(|rest| rest.problem.clone());
        let key = JobKey::new(&*self.key);
        if self.is_malformed {
            return Entry::Malformed(Malformed {
                is_denied: false,
                key,
                problem: problem.unwrap_or_default(),
                size: rest.map_or(0, |rest| rest.size),
                raw: Vec::new(),
                holding,
                origin: Origin::Here,
            });
        }
        Entry::Job(Box::new(Job {
            uuid: match (&self.uuid, rest.and_then(|rest| rest.uuid.as_ref())) {
                (Some(uuid), _) => uuid.to_string(),
                (None, Some(text)) => text.to_string(),
                (None, None) => self.key.to_string(),
            },
            key,
            name: self.name.to_string(),
            priority: self.priority,
            sequence: self.sequence,
            created_on: self.created_on,
            last_modified: None,
            holding,
            is_blocked: false,
            is_unfit: false,
            is_denied: false,
            raw: Vec::new(),
            trashed_on: rest.and_then(|rest| rest.trashed_on),
            ended: None,
            shelf: self.shelf,
            origin: Origin::Here,
            book: None,
            details: None,
            history: History {
                attempts: self.attempts,
                not_before: rest.and_then(|rest| rest.not_before),
                failures: rest.map_or_else(Vec::new, Rest::failures),
                remark: rest.and_then(|rest| rest.remark.clone()),
                ..History::default()
            },
            size: 0,
            problem,
        }))
    }

    pub(super) fn trashed_on(&self) -> Option<DateTime<Utc>> {
        self.rest.as_ref()?.trashed_on
    }

    pub(super) fn failures(&self) -> &[Failed] {
        self.rest.as_ref().map_or(&[], |rest| &rest.failures)
    }

    /// Whether it is claimed for a time that is renewed, perhaps, without anybody being told.
    pub(super) fn is_timed(&self) -> bool {
        self.claim.as_ref().is_some_and(|it| it.lapses_on.is_some())
    }
}

/// Returns the uuid of a job, if it is one, and not the key.
fn uuid(job: &Job) -> Option<Uuid> {
    let known = Uuid::try_parse(&job.uuid).ok();
    known.filter(|uuid| job.uuid != job.key.as_str() && uuid.to_string() == job.uuid)
}

impl Claim {
    fn holding(&self, now: DateTime<Utc>) -> Holding {
        let left = self.lapses_on.map(|on| (on - now).to_std());
        Holding {
            owner: self.owner.as_deref().cloned(),
            lease: self.lease,
            expires_in: left.map(Result::unwrap_or_default),
            outlives: None,
            claimed_on: self.since,
            fence: None,
        }
    }
}

impl Rest {
    /// Returns what a job has of it, if anything.
    fn of(job: &Job, shared: &mut Shared) -> Option<Box<Self>> {
        let failures = &job.history.failures;
        let is_odd = job.uuid != job.key.as_str() && uuid(job).is_none();
        let times = (job.history.not_before, job.trashed_on);
        let texts = (&job.problem, &job.history.remark);
        if times == (None, None) && texts == (&None, &None) && failures.is_empty() && !is_odd {
            return None;
        }
        let failed = failures.iter().map(|failure| Failed {
            signature: shared.text(&signature(failure)),
            on: failure.time,
        });
        Some(Box::new(Self {
            uuid: is_odd.then(|| job.uuid.as_str().into()),
            not_before: job.history.not_before,
            trashed_on: job.trashed_on,
            problem: job.problem.clone(),
            remark: job.history.remark.clone(),
            reason: failures.last().map(|last| last.reason.as_str().into()),
            failures: failed.collect(),
            size: 0,
        }))
    }

    fn failures(&self) -> Vec<Failure> {
        let failures = self.failures.iter().map(|failed| Failure {
            time: failed.on,
            ..Failure::told(self.reason.as_deref().unwrap_or_default(), "")
        });
        failures.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::testing::scripted::Scripted;

    #[test]
    fn a_row_shows_what_its_record_does() {
        let now = Utc::now();
        let board = Scripted::new();
        let mut job = board.post("resize", None);
        job.details = None;
        job.uuid = Uuid::new_v4().to_string();
        job.history.attempts = 3;
        job.history.not_before = Some(now);
        job.problem = Some("odd".to_owned());
        job.holding = Some(Holding {
            owner: Some(Owner::new("ada").unwrap()),
            lease: Lease::Timed,
            expires_in: Some(std::time::Duration::from_secs(7)),
            outlives: None,
            claimed_on: Some(now),
            fence: None,
        });
        let entry = Entry::Job(Box::new(job));
        let row = Row::of(&entry, Shelf::Board, &mut Shared::default(), now);
        assert_eq!(row.entry(now), entry);
    }

    #[test]
    fn a_row_takes_little_room() {
        assert!(size_of::<Row>() <= 120, "{}", size_of::<Row>());
    }
}
