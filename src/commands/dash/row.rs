//! A record in compact form: there may be a hundred thousand of them.

use std::{borrow::Cow, collections::HashSet, hash::Hash, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use compact_str::CompactString;

use crate::{
    diagnosis::signature,
    job::{
        Entry, Failure, History, Holding, Job, JobKey, Lease, Malformed, Origin, Owner, Priority,
        Remark, Shelf,
    },
};

pub(super) type RowPlace = (Shelf, JobKey);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct DashRow {
    /// The uuid, unless it equals the key.
    uuid: Option<Box<str>>,
    pub(super) name: CompactString,
    pub(super) sequence: Option<i64>,
    pub(super) created_on: Option<DateTime<Utc>>,
    pub(super) claim: Option<Box<RowClaim>>,
    extras: Option<Box<RowExtras>>,
    pub(super) attempts: u32,
    /// The reading of the board that saw it last.
    pub(super) reading: u32,
    pub(super) priority: Priority,
    pub(super) is_malformed: bool,
    is_misnamed: bool,
    /// Whether the filters matched at the last lookup.
    pub(super) is_admitted: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RowClaim {
    pub(super) owner: Option<Arc<Owner>>,
    lease: Lease,
    pub(super) since: Option<DateTime<Utc>>,
    pub(super) lapses_on: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct RowExtras {
    not_before: Option<DateTime<Utc>>,
    trashed_on: Option<DateTime<Utc>>,
    problem: Option<String>,
    remark: Option<Remark>,
    reason: Option<Box<str>>,
    failures: Vec<DatedSignature>,
    size: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct DatedSignature {
    pub(super) signature: Arc<String>,
    pub(super) on: DateTime<Utc>,
}

#[derive(Debug, Default)]
pub(super) struct Interner {
    signatures: HashSet<Arc<String>>,
    owners: HashSet<Arc<Owner>>,
}

impl Interner {
    pub(super) fn sweep(&mut self) {
        self.signatures.retain(|text| Arc::strong_count(text) > 1);
        self.owners.retain(|owner| Arc::strong_count(owner) > 1);
    }
}

fn interned<T: Clone + Eq + Hash>(known: &mut HashSet<Arc<T>>, value: &T) -> Arc<T> {
    if let Some(known) = known.get(value) {
        return Arc::clone(known);
    }
    let value = Arc::new(value.clone());
    known.insert(Arc::clone(&value));
    value
}

impl DashRow {
    pub(super) fn of(entry: &Entry, interner: &mut Interner, now: DateTime<Utc>) -> Self {
        let claim = entry.holding().map(|holding| {
            Box::new(RowClaim {
                owner: (holding.owner.as_ref()).map(|it| interned(&mut interner.owners, it)),
                lease: holding.lease,
                since: match entry.job() {
                    Some(job) => job.held_since(),
                    None => holding.claimed_on,
                },
                lapses_on: (holding.expires_in)
                    .and_then(|left| now.checked_add_signed(TimeDelta::from_std(left).ok()?)),
            })
        });
        let blank = Self {
            uuid: None,
            is_misnamed: false,
            name: entry.name().into(),
            sequence: None,
            created_on: None,
            claim,
            extras: None,
            attempts: 0,
            reading: 0,
            priority: Priority::default(),
            is_malformed: true,
            is_admitted: true,
        };
        match entry {
            Entry::Job(job) => Self {
                uuid: (job.uuid != job.key.text()).then(|| job.uuid.as_str().into()),
                is_misnamed: job.is_misnamed,
                sequence: job.sequence,
                created_on: job.created_on,
                extras: RowExtras::of(job, interner),
                attempts: job.history.attempts,
                priority: job.priority,
                is_malformed: false,
                ..blank
            },
            Entry::Malformed(record) => Self {
                extras: Some(Box::new(RowExtras {
                    problem: Some(record.problem.clone()),
                    size: record.size,
                    ..RowExtras::default()
                })),
                ..blank
            },
        }
    }

    pub(super) fn entry(&self, (shelf, key): &RowPlace, now: DateTime<Utc>) -> Entry {
        let extras = self.extras.as_deref().cloned().unwrap_or_default();
        let holding = self.claim.as_ref().map(|claim| claim.holding(now));
        if self.is_malformed {
            return Entry::Malformed(Malformed {
                size: extras.size,
                holding,
                ..Malformed::new(key.clone(), extras.problem.unwrap_or_default())
            });
        }
        Entry::Job(Box::new(Job {
            uuid: match &self.uuid {
                Some(uuid) => uuid.to_string(),
                None => key.to_string(),
            },
            is_misnamed: self.is_misnamed,
            key: key.clone(),
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
            trashed_on: extras.trashed_on,
            ended: None,
            shelf: *shelf,
            origin: Origin::Here,
            book: None,
            details: None,
            history: History {
                attempts: self.attempts,
                not_before: extras.not_before,
                failures: extras.failures(),
                remark: extras.remark,
                ..History::default()
            },
            size: 0,
            problem: extras.problem,
        }))
    }

    pub(super) fn trashed_on(&self) -> Option<DateTime<Utc>> {
        self.extras.as_ref()?.trashed_on
    }

    pub(super) fn failures(&self) -> &[DatedSignature] {
        self.extras.as_ref().map_or(&[], |extras| &extras.failures)
    }

    pub(super) fn failed_on(&self) -> Option<DateTime<Utc>> {
        self.failures().last().map(|failed| failed.on)
    }

    /// Whether it has an expiring claim, which may be renewed without an event.
    pub(super) fn is_timed(&self) -> bool {
        self.claim.as_ref().is_some_and(|it| it.lapses_on.is_some())
    }
}

impl RowClaim {
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

impl RowExtras {
    fn of(job: &Job, interner: &mut Interner) -> Option<Box<Self>> {
        let failures = &job.history.failures;
        let failed = failures.iter().map(|failure| DatedSignature {
            signature: interned(&mut interner.signatures, &signature(failure)),
            on: failure.time,
        });
        let extras = Self {
            not_before: job.history.not_before,
            trashed_on: job.trashed_on,
            problem: job.problem.clone(),
            remark: job.history.remark.clone().map(|remark| Remark {
                reason: job.history.reason().map(Cow::into_owned),
                ..remark
            }),
            reason: failures.last().map(|last| last.headline().into()),
            failures: failed.collect(),
            size: 0,
        };
        (extras != Self::default()).then(|| Box::new(extras))
    }

    fn failures(&self) -> Vec<Failure> {
        let failures = self.failures.iter().map(|failed| Failure {
            time: failed.on,
            ..Failure::reported(self.reason.as_deref().unwrap_or_default(), "")
        });
        failures.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::testing::scripted::Scripted;

    #[test]
    fn row_shows_the_facts_of_its_record() {
        let now = Utc::now();
        let board = Scripted::new();
        let mut job = board.post("resize", None);
        job.details = None;
        job.uuid = uuid::Uuid::new_v4().to_string();
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
        let row = DashRow::of(&entry, &mut Interner::default(), now);
        let place = (Shelf::Board, entry.key().clone());
        assert_eq!(row.entry(&place, now), entry);
    }

    #[test]
    fn row_is_at_most_96_bytes() {
        assert!(size_of::<DashRow>() <= 96, "{}", size_of::<DashRow>());
    }
}
