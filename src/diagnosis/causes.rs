//! Causes: jobs with the same code and the same subject are one problem, which a selector can choose.

use std::{
    borrow::Borrow,
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    fmt,
    hash::Hash,
    str::FromStr,
};

use chrono::{DateTime, TimeDelta, Utc};
use regex::Regex;

use super::{Snapshot, holder::Death};
use crate::{
    glob::translate,
    job::{Entry, Job, Owner, octavia, shortened},
    problem::{Code, Example, Severity},
    retry::NO_FAILURE,
};

/// A claim without expiry that is older than this is a cause for worry.
const LONG: TimeDelta = TimeDelta::hours(1);

const MAX_EXAMPLES: usize = 3;

/// A code and what it is about: jobs with equal causes are one problem with one fix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cause {
    pub(crate) code: Code,
    pub(crate) about: CauseSubject,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum CauseSubject {
    #[default]
    Nothing,
    Owner(Owner),
    /// The machine of dead owners.
    Host(String, Death),
    /// A job name, a reason or a board.
    Text(String),
    Refusal(Box<RefusedJob>),
    /// All attempts ended without a recorded failure.
    NoFailure,
    /// Several of these, for a person.
    Several(String),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RefusedJob {
    pub(super) conductor: String,
    pub(super) reason: String,
    pub(super) remedy: String,
}

pub(super) const NO_OWNER: &str = "no owner";

/// The cause of an unreadable record with an owner.
pub(super) const CLAIMED: &str = "claimed";

impl Cause {
    pub(super) fn new(code: Code, about: CauseSubject) -> Self {
        Self { code, about }
    }

    pub(super) fn of(code: Code) -> Self {
        Self::new(code, CauseSubject::Nothing)
    }

    pub(super) fn text(code: Code, text: impl Into<String>) -> Self {
        Self::new(code, CauseSubject::Text(text.into()))
    }

    /// Returns the severity for claims that began at `since`.
    pub(super) fn severity(&self, since: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Severity {
        match self.code {
            Code::ClaimNeverExpires if since.is_some_and(|it| now - it < LONG) => Severity::Note,
            code => code.severity(),
        }
    }

    pub(crate) fn not_renewed(entry: &Entry) -> Self {
        let owner = entry.holding().and_then(|it| it.owner.clone());
        let owner = owner.map(Owner::into_brief);
        let about = owner.map_or(CauseSubject::Nothing, CauseSubject::Owner);
        Self::new(Code::ClaimNotRenewed, about)
    }
}

impl CauseSubject {
    pub(super) fn is(&self, text: &str) -> bool {
        matches!(self, Self::Text(it) if it == text)
    }

    /// Differs for different causes of a code.
    pub(super) fn exact(&self) -> String {
        match self {
            Self::Host(host, Death::Certain) => format!("{host}:gone"),
            Self::Host(host, Death::Stopped(pid)) => format!("{host}:{pid}"),
            Self::Host(host, Death::Unproven) => format!("{host}:silent"),
            Self::Nothing
            | Self::Owner(_)
            | Self::Text(_)
            | Self::Refusal(_)
            | Self::NoFailure
            | Self::Several(_) => self.to_string(),
        }
    }
}

impl fmt::Display for CauseSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::NoFailure => f.write_str(NO_FAILURE),
            Self::Owner(owner) => owner.fmt(f),
            Self::Host(text, _) | Self::Text(text) | Self::Several(text) => f.write_str(text),
            Self::Refusal(it) => write!(f, "{}: {}", it.conductor, it.reason),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Cases {
    pub(crate) count: u64,
    pub(crate) since: Option<DateTime<Utc>>,
    /// The oldest ones, the oldest first; a record without a time is older than all.
    pub(crate) examples: Vec<Example>,
    pub(crate) owners: BTreeSet<String>,
    pub(crate) has_more_owners: bool,
    pub(crate) expires: Option<DateTime<Utc>>,
    /// The jobs that have a more urgent cause, too.
    pub(crate) secondary: u64,
    /// The jobs that only a handler could run.
    pub(crate) without_command: u64,
    /// The longest distance to a time in the future.
    pub(crate) ahead: Option<TimeDelta>,
}

impl Cases {
    pub(super) fn add(&mut self, entry: &Entry, now: DateTime<Utc>) {
        self.count += 1;
        let job = entry.job();
        self.without_command += u64::from(job.is_some_and(Job::has_no_command));
        let since = job.and_then(|job| job.trashed_on.or(job.held_since()).or(job.created_on));
        self.since = earlier(self.since, since);
        if self.examples.len() < MAX_EXAMPLES
            || self.examples.last().is_some_and(|it| since < it.since)
        {
            let at = self.examples.partition_point(|it| it.since <= since);
            self.examples.insert(at, example(entry, since));
            self.examples.truncate(MAX_EXAMPLES);
        }
        if let Some(owner) = entry.holding().and_then(|it| it.owner.as_ref()) {
            let owner = owner.brief().to_string();
            let is_new = !self.owners.contains(&owner);
            self.has_more_owners |= is_new && self.owners.len() >= MAX_EXAMPLES;
            if is_new && self.owners.len() < MAX_EXAMPLES {
                self.owners.insert(owner);
            }
        }
        let left = entry.holding().and_then(|it| it.expires_in);
        self.expires = self.expires.max(left.map(|left| now + left));
    }

    pub(super) fn join(&mut self, other: Self) {
        self.count += other.count;
        self.secondary += other.secondary;
        self.without_command += other.without_command;
        self.since = earlier(self.since, other.since);
        self.examples.extend(other.examples);
        self.examples.sort_by_key(|it| it.since);
        self.examples.truncate(MAX_EXAMPLES);
        self.has_more_owners |= other.has_more_owners;
        self.owners.extend(other.owners);
        while self.owners.len() > MAX_EXAMPLES {
            self.owners.pop_last();
            self.has_more_owners = true;
        }
        self.expires = self.expires.max(other.expires);
        self.ahead = self.ahead.max(other.ahead);
    }

    /// Names the owners: `dead1, dead2 and others`.
    pub(super) fn names(&self) -> String {
        let names: Vec<_> = self.owners.iter().map(String::as_str).collect();
        match self.has_more_owners {
            true => format!("{} and others", names.join(", ")),
            false => names.join(", "),
        }
    }
}

fn example(entry: &Entry, since: Option<DateTime<Utc>>) -> Example {
    let title = entry.job().and_then(octavia::title);
    Example {
        job: entry.reference().into_owned(),
        name: title.unwrap_or_else(|| shortened(&entry.name())),
        since,
    }
}

/// `CODE`, or `CODE=CAUSE` with a glob for the cause.
#[derive(Debug, Clone)]
pub(crate) struct ProblemSelector {
    pub(crate) text: String,
    pub(crate) code: Code,
    cause: Option<Regex>,
}

impl FromStr for ProblemSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (code, cause) = match text.split_once('=') {
            Some((code, cause)) => (code, Some(cause)),
            None => (text, None),
        };
        let known = code.parse().ok().filter(|code: &Code| code.is_problem());
        let wrong = || format!("unknown code `{code}`; `jobboard doctor --list` lists the codes");
        let code = known.ok_or_else(wrong)?;
        let regex = |cause: &str| {
            Regex::new(&translate(cause).map_err(|error| error.to_string())?)
                .map_err(|error| error.to_string())
        };
        Ok(Self {
            text: text.to_owned(),
            code,
            cause: cause.map(regex).transpose()?,
        })
    }
}

impl ProblemSelector {
    pub(crate) fn is_of(&self, entry: &Entry, snapshot: &Snapshot) -> bool {
        let judged = snapshot.judge(entry);
        if self.code == Code::ClaimNotRenewed {
            // A second look would be needed to know.
            return judged.pause.is_some();
        }
        judged.causes().any(|cause| self.fits(cause))
    }

    pub(crate) fn fits(&self, cause: &Cause) -> bool {
        let texts = || [cause.about.to_string(), cause.about.exact()];
        let fits = |glob: &Regex| texts().iter().any(|text| glob.is_match(text));
        cause.code == self.code && self.cause.as_ref().is_none_or(fits)
    }
}

/// Adds to the value of a key, with one search for a known key.
pub(crate) fn count<Q, K, V>(all: &mut HashMap<K, V>, key: &Q, add: impl FnOnce(&mut V))
where
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    K: Borrow<Q> + Hash + Eq,
    V: Default,
{
    if let Some(known) = all.get_mut(key) {
        return add(known);
    }
    add(all.entry(key.to_owned()).or_default());
}

/// Keeps the most frequent values in bounded memory: drops the rarest beyond twice as many, and returns whether it did.
pub(super) fn keep_most<K, V>(
    all: &mut HashMap<K, V>,
    most: usize,
    count: impl Fn(&V) -> u64,
) -> bool {
    if all.len() <= 2 * most {
        return false;
    }
    let mut counts: Vec<_> = all.values().map(&count).collect();
    counts.sort_unstable_by_key(|count| Reverse(*count));
    let least = counts[most];
    all.retain(|_, of| count(of) > least);
    true
}

/// Returns the smaller of two values; an unknown one does not count.
pub(super) fn earlier<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    [one, other].into_iter().flatten().min()
}
