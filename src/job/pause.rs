//! Pauses: rules that keep jobs from being claimed by name.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use regex::{RegexSet, RegexSetBuilder};
use serde::{Deserialize, Serialize};

use super::AuditEntry;
use crate::glob::translate;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pause {
    pub(crate) names: String,
    pub(crate) until: Option<DateTime<Utc>>,
    #[serde(flatten)]
    pub(crate) audit: AuditEntry,
    /// An unreadable pause applies to no job.
    #[serde(skip)]
    pub(crate) is_unreadable: bool,
}

/// The most pauses on a board. Beyond it, no job is claimed.
pub(crate) const MAX_PAUSES: usize = 1000;

/// The most memory for all compiled globs, in bytes.
const GLOBS: usize = 1 << 20;

/// The longest globs together, in bytes: compiling takes a few hundred times as much memory.
const MAX_GLOB_BYTES: usize = 64 << 10;

impl Pause {
    pub(crate) fn new(names: String, until: Option<DateTime<Utc>>, audit: AuditEntry) -> Self {
        Self {
            names,
            until,
            audit,
            is_unreadable: false,
        }
    }

    /// Returns the pauses of a board that has `count` of them. If they are too many to read, it adds a pause of all
    /// jobs: an unread one could apply to any job.
    pub(crate) fn bounded(mut first: Vec<Self>, count: usize) -> Vec<Self> {
        if count > MAX_PAUSES {
            let reason = format!("the board has {count} pauses, too many to read");
            first.truncate(MAX_PAUSES);
            first.push(Self::of_all(&reason));
        }
        first
    }

    /// A pause of all jobs, for a reason other than an operator's.
    pub(crate) fn of_all(reason: &str) -> Self {
        let audit = AuditEntry::now("paused", "jobboard", Some(reason));
        Self::new("*".to_owned(), None, audit)
    }

    pub(crate) fn is_over(&self, now: DateTime<Utc>) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unreadable {
            return write!(
                f,
                "{} is an unreadable pause, which pauses no job",
                self.names
            );
        }
        write!(f, "{} is paused by {}", self.names, self.audit.by)?;
        if let Some(until) = self.until {
            let until = until.to_rfc3339_opts(SecondsFormat::Secs, true);
            write!(f, " until {until}")?;
        }
        match &self.audit.reason {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Pauses {
    lasting: Vec<Pause>,
    globs: RegexSet,
    unreadable: Option<String>,
}

impl Pauses {
    /// Takes the active pauses. An unreadable one or an invalid glob matches nothing.
    pub(crate) fn new(mut pauses: Vec<Pause>, now: DateTime<Utc>) -> Self {
        pauses.retain(|pause| !pause.is_unreadable);
        let is_long = pauses.iter().map(|pause| pause.names.len()).sum::<usize>() > MAX_GLOB_BYTES;
        let lasting = pauses.into_iter().filter(|pause| !pause.is_over(now));
        let lasting = lasting.filter(|_| !is_long);
        let read = lasting.filter_map(|pause| Some((translate(&pause.names).ok()?, pause)));
        let (globs, mut lasting): (Vec<_>, Vec<_>) = read.unzip();
        let globs = RegexSetBuilder::new(globs).size_limit(GLOBS).build();
        let globs = globs.ok().filter(|_| !is_long);
        let globs = globs.unwrap_or_else(|| {
            lasting = vec![Pause::of_all("the pauses are too long to read")];
            RegexSet::new(["^"]).unwrap_or_default()
        });
        Self {
            lasting,
            globs,
            unreadable: None,
        }
    }

    /// For unreadable pauses: they pause no job.
    pub(crate) fn unseen_for(problem: String) -> Self {
        Self {
            unreadable: Some(problem),
            ..Self::default()
        }
    }

    pub(crate) fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    pub(crate) fn of(&self, name: &str, now: DateTime<Utc>) -> Option<&Pause> {
        let fitting = self.globs.matches(name).into_iter();
        let fitting = fitting.map(|at| &self.lasting[at]);
        let end = |pause: &Pause| pause.until.unwrap_or(DateTime::<Utc>::MAX_UTC);
        fitting
            .filter(|pause| !pause.is_over(now))
            .max_by_key(|pause| end(pause))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Pause> {
        self.lasting.iter()
    }

    pub(crate) fn first_end(&self) -> Option<DateTime<Utc>> {
        self.lasting.iter().filter_map(|pause| pause.until).min()
    }

    pub(crate) fn are(&self, others: &Self) -> bool {
        self.all().eq(others.all())
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::{
        glob::literal,
        untrusted::{Answer, Bounds, Corpus, refused, same},
    };

    fn pause(names: &str, until: Option<DateTime<Utc>>) -> Pause {
        Pause::new(
            names.to_owned(),
            until,
            AuditEntry::now("paused", "olga", None),
        )
    }

    #[test]
    fn longest_active_pause_counts() {
        let now = Utc::now();
        let soon = now + TimeDelta::seconds(5);
        let pauses = Pauses::new(
            vec![
                pause("*", Some(soon)),
                pause("backup-*", None),
                pause("old", Some(now)),
                pause("[", None),
            ],
            now,
        );
        let names = |name, at| pauses.of(name, at).map(|pause| pause.names.as_str());
        assert_eq!(names("backup-7", now), Some("backup-*"));
        assert_eq!(names("old", now), Some("*"));
        assert_eq!(names("old", soon), None);
        assert_eq!(names("backup-7", soon), Some("backup-*"));
        assert_eq!(pauses.first_end(), Some(soon));
    }

    #[test]
    fn pauses_too_long_to_read_pause_all_jobs() {
        let now = Utc::now();
        let long = |count: usize| vec![pause(&"a".repeat(60), None); count];
        assert_eq!(Pauses::new(long(100), now).of("b", now), None);
        let all = Pauses::new(long(1_100), now);
        assert_eq!(all.of("b", now).map(|it| it.names.as_str()), Some("*"));
    }

    #[test]
    fn untrusted_pauses_round_trip_and_names_match_themselves() {
        let pauses = [
            r#"{"names":"backup-*","until":"2036-01-01T00:00:00Z","by":"olga","action":"paused",
                "on":"2026-01-01T00:00:00Z","reason":"the disk is full"}"#,
            r#"{"names":"[!a-c]?x[]]","until":null,"by":"o"}"#,
        ];
        let bounds = Bounds {
            inputs: 300,
            longest: 1024,
            // A glob is compiled to a regular expression.
            memory: (1 << 20, 64 << 10),
            ..Bounds::STORED
        };
        Corpus::of(bounds, pauses).hold(|input| {
            let pause: Pause = match serde_json::from_slice(input) {
                Ok(pause) => pause,
                Err(error) => return refused(&error),
            };
            let again = serde_json::to_vec(&pause).map_err(|it| it.to_string())?;
            let again = serde_json::from_slice(&again).map_err(|it| it.to_string());
            same("written again", &Ok(pause.clone()), &again)?;
            let exact = Pause {
                names: literal(&pause.names),
                until: None,
                ..pause.clone()
            };
            let exact = Pauses::new(vec![exact], Utc::now());
            let is_paused = exact.of(&pause.names, Utc::now()).is_some();
            same("its name fits itself", &is_paused, &true)?;
            let _ = Pauses::new(vec![pause], Utc::now()).of("backup-7", Utc::now());
            Ok(Answer::Read)
        });
    }
}
