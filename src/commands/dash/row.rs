//! A record in compact form: there may be a hundred thousand of them.

use std::{borrow::Cow, collections::HashSet, hash::Hash, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use compact_str::CompactString;

use crate::{
    diagnosis::{Cause, signature},
    job::{
        Attempts, AuditEntry, ClaimEnd, Entry, Failure, Fence, Holding, Job, JobKey, Location,
        Malformed, Outcome, Owner, Pauses, Priority, brief,
    },
    problem::{Code, Severity},
    secret::covered_text,
};

pub(super) type RowPlace = (Location, JobKey);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct DashRow {
    /// The uuid, unless it equals the key.
    uuid: Option<Box<str>>,
    pub(super) name: CompactString,
    pub(super) sequence: Option<i64>,
    pub(super) created_on: Option<DateTime<Utc>>,
    pub(super) claim: Option<Box<RowClaim>>,
    extras: Option<Arc<RowExtras>>,
    /// The verdict first, as of the last lookup.
    pub(super) causes: Arc<Vec<Cause>>,
    pub(super) attempts: u32,
    /// The reading of the board that saw it last.
    pub(super) reading: u32,
    pub(super) priority: Priority,
    pub(super) is_malformed: bool,
    pub(super) has_command: bool,
    /// Whether the filters matched at the last lookup.
    pub(super) is_admitted: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RowClaim {
    pub(super) owner: Option<Arc<Owner>>,
    end: ClaimEnd,
    fence: Option<Fence>,
    pub(super) since: Option<DateTime<Utc>>,
    pub(super) lapses_on: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct RowExtras {
    not_before: Option<DateTime<Utc>>,
    trashed_on: Option<DateTime<Utc>>,
    problem: Option<String>,
    audit: Option<AuditEntry>,
    reason: Option<Box<str>>,
    is_misnamed: bool,
    is_unfit: bool,
    is_blocked: bool,
    is_denied: bool,
    failed_on: Option<DateTime<Utc>>,
    group: Option<Arc<String>>,
    size: u64,
}

#[derive(Debug, Default)]
pub(super) struct Interner {
    groups: HashSet<Arc<String>>,
    owners: HashSet<Arc<Owner>>,
    causes: HashSet<Arc<Vec<Cause>>>,
    /// Of unreadable records, which are much alike.
    extras: HashSet<Arc<RowExtras>>,
}

impl Interner {
    pub(super) fn sweep(&mut self) {
        self.groups.retain(|text| Arc::strong_count(text) > 1);
        self.owners.retain(|owner| Arc::strong_count(owner) > 1);
        self.causes.retain(|causes| Arc::strong_count(causes) > 1);
        self.extras.retain(|extras| Arc::strong_count(extras) > 1);
    }

    pub(super) fn causes(&mut self, causes: Vec<Cause>) -> Arc<Vec<Cause>> {
        interned(&mut self.causes, &causes)
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
    pub(super) fn of(
        entry: &Entry,
        causes: Vec<Cause>,
        interner: &mut Interner,
        now: DateTime<Utc>,
    ) -> Self {
        let claim = entry.holding().map(|holding| {
            Box::new(RowClaim {
                owner: (holding.owner.as_ref())
                    .map(|it| interned(&mut interner.owners, &it.brief())),
                end: holding.end,
                fence: holding.fence.clone(),
                since: match entry.job() {
                    Some(job) => job.held_since(),
                    None => holding.claimed_on,
                },
                lapses_on: (holding.expires_in)
                    .and_then(|left| now.checked_add_signed(TimeDelta::from_std(left).ok()?)),
            })
        });
        let job = entry.job();
        let uuid = job.filter(|job| job.uuid != job.key.text());
        let details = job.and_then(|job| job.details.as_ref());
        Self {
            uuid: uuid.map(|job| (*brief(&job.uuid)).into()),
            name: match job {
                Some(job) => (*job.brief_name()).into(),
                None => entry.name().into(),
            },
            sequence: job.and_then(|job| job.sequence),
            created_on: job.and_then(|job| job.created_on),
            claim,
            extras: RowExtras::of(entry, interner),
            causes: interner.causes(causes),
            attempts: job.map_or(0, |job| job.attempts.count),
            reading: 0,
            priority: job.map_or_else(Priority::default, |job| job.priority),
            is_malformed: job.is_none(),
            has_command: details.is_some_and(|details| details.get("command").is_some()),
            is_admitted: true,
        }
    }

    pub(super) fn entry(&self, (location, key): &RowPlace, now: DateTime<Utc>) -> Entry {
        let extras = self.extras.as_deref().cloned().unwrap_or_default();
        let holding = self.claim.as_ref().map(|claim| claim.holding(now));
        if self.is_malformed {
            return Entry::Malformed(Malformed {
                size: extras.size,
                is_denied: extras.is_denied,
                holding,
                ..Malformed::new(key.clone(), extras.problem.unwrap_or_default())
            });
        }
        let uuid = match &self.uuid {
            Some(uuid) => uuid.to_string(),
            None => key.to_string(),
        };
        Entry::Job(Box::new(Job {
            is_misnamed: extras.is_misnamed,
            priority: self.priority,
            sequence: self.sequence,
            created_on: self.created_on,
            holding,
            is_blocked: extras.is_blocked,
            is_unfit: extras.is_unfit,
            is_denied: extras.is_denied,
            trashed_on: extras.trashed_on,
            location: *location,
            attempts: Attempts {
                count: self.attempts,
                not_before: extras.not_before,
                failures: extras.failures(),
                audit: extras.audit,
                ..Attempts::default()
            },
            problem: extras.problem,
            ..Job::new(key.clone(), uuid, self.name.to_string())
        }))
    }

    pub(super) fn trashed_on(&self) -> Option<DateTime<Utc>> {
        self.extras.as_ref()?.trashed_on
    }

    pub(super) fn failed_on(&self) -> Option<DateTime<Utc>> {
        self.extras.as_ref()?.failed_on
    }

    pub(super) fn group(&self) -> &str {
        let group = self.extras.as_ref().and_then(|it| it.group.as_ref());
        group.map_or("unreadable", |it| it.as_str())
    }

    /// Whether its wait has ended since the last lookup.
    pub(super) fn is_due(&self, pauses: &Pauses, now: DateTime<Utc>) -> bool {
        match self.verdict() {
            Some(Code::BackingOff) => {
                let until = self.extras.as_ref().and_then(|it| it.not_before);
                until.is_none_or(|until| until <= now)
            }
            Some(Code::Paused) => pauses.of(&self.name, now).is_none(),
            _ => false,
        }
    }

    pub(super) fn verdict(&self) -> Option<Code> {
        self.causes.first().map(|cause| cause.code)
    }

    pub(super) fn severity(&self) -> Severity {
        let problems = self.causes.iter().filter(|it| it.code.is_problem());
        let severities = problems.map(|it| it.code.severity());
        severities.max().unwrap_or(Severity::Ok)
    }
}

impl RowClaim {
    fn holding(&self, now: DateTime<Utc>) -> Holding {
        let left = self.lapses_on.map(|on| (on - now).to_std());
        Holding {
            owner: self.owner.as_deref().cloned(),
            end: self.end,
            expires_in: left.map(Result::unwrap_or_default),
            outlives: None,
            claimed_on: self.since,
            fence: self.fence.clone(),
        }
    }
}

impl RowExtras {
    /// Returns `None` for an ordinary job, which has no extras.
    fn of(entry: &Entry, interner: &mut Interner) -> Option<Arc<Self>> {
        let extras = match entry {
            Entry::Job(job) => {
                let failure = job.attempts.failures.last();
                let is_trash = job.location == Location::Trash;
                Self {
                    is_misnamed: job.is_misnamed,
                    is_unfit: job.is_unfit,
                    is_blocked: job.is_blocked,
                    is_denied: job.is_denied,
                    not_before: job.attempts.not_before,
                    trashed_on: job.trashed_on,
                    problem: job.problem.clone(),
                    audit: job.attempts.audit.clone().map(|audit| AuditEntry {
                        reason: job.reason().map(Cow::into_owned),
                        ..audit
                    }),
                    reason: failure.map(|it| it.headline().into()),
                    failed_on: failure.map(|it| it.time),
                    group: is_trash.then(|| interned(&mut interner.groups, &reason(entry))),
                    size: 0,
                }
            }
            Entry::Malformed(record) => Self {
                is_denied: record.is_denied,
                problem: Some(record.problem.clone()),
                size: record.size,
                ..Self::default()
            },
        };
        match entry {
            Entry::Malformed(_) => Some(interned(&mut interner.extras, &extras)),
            Entry::Job(_) => (extras != Self::default()).then(|| Arc::new(extras)),
        }
    }

    fn failures(&self) -> Vec<Failure> {
        let failures = self.failed_on.iter().map(|time| Failure {
            time: *time,
            ..Failure::reported(self.reason.as_deref().unwrap_or_default(), "")
        });
        failures.collect()
    }
}

/// Returns the reason why a job is in the trash or in the history, without the parts that differ from job to job.
pub(super) fn reason(entry: &Entry) -> String {
    let Some(job) = entry.job() else {
        return "unreadable".to_owned();
    };
    let failure = job.attempts.failures.last();
    // An operator's reason outweighs an earlier failure.
    let by_hand = job.sent_by().and_then(|it| it.reason.as_deref());
    let by_hand = by_hand.filter(|reason| failure.is_none_or(|it| it.reason != *reason));
    match (by_hand, failure, job.ended.as_ref().map(|it| it.outcome)) {
        (Some(reason), ..) => covered_text(reason),
        (_, Some(failure), None | Some(Outcome::Failed)) => signature(failure),
        (.., Some(outcome)) => outcome.name().to_owned(),
        (.., None) => "trashed".to_owned(),
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
        job.attempts.count = 3;
        job.attempts.not_before = Some(now);
        job.problem = Some("odd".to_owned());
        job.holding = Some(Holding {
            owner: Some(Owner::new("ada").unwrap()),
            end: ClaimEnd::Timed,
            expires_in: Some(std::time::Duration::from_secs(7)),
            outlives: None,
            claimed_on: Some(now),
            fence: None,
        });
        let entry = Entry::Job(Box::new(job));
        let row = DashRow::of(&entry, Vec::new(), &mut Interner::default(), now);
        let place = (Location::Board, entry.key().clone());
        assert_eq!(row.entry(&place, now), entry);
    }

    #[test]
    fn row_is_at_most_104_bytes() {
        assert!(size_of::<DashRow>() <= 104, "{}", size_of::<DashRow>());
    }
}
