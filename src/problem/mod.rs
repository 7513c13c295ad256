//! Problems: code, severity, evidence, and the command that helps.

mod codes;

use std::{cmp::Reverse, collections::BTreeMap};

use chrono::{DateTime, Utc};
use serde::Serialize;

pub(crate) use self::codes::{Code, Group, Severity, codes_of, no_job_code};
use crate::{duration, names::named, suggest::Suggestion};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Evidence {
    pub(crate) what: String,
    pub(crate) value: String,
    pub(crate) at: Option<DateTime<Utc>>,
}

named! {
    /// The risk of a fix, the lowest first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    pub(crate) enum Risk ("risk", str::eq) {
        Safe => "safe",
        /// Only an operator knows whether it is right.
        Decision => "decision",
        Destructive => "destructive",
    }
}

/// The effect of a suggested command on its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repair {
    /// Releases claims by force; `now` ends the wait of the conductors.
    Abandon {
        now: bool,
    },
    Trash {
        reason: Option<&'static str>,
    },
    /// `canary` tries one job first.
    Retry {
        canary: bool,
    },
}

/// The help for a problem: a command of ours that repairs it or shows more, or a step outside jobboard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Fix {
    /// Set if the command repairs all jobs of the problem, so that `doctor --fix` offers it.
    pub(crate) risk: Option<Risk>,
    pub(crate) text: Option<String>,
    pub(crate) command: Option<Suggestion>,
    /// The effect of the command; `None` if it only shows something.
    #[serde(skip)]
    pub(crate) repair: Option<Repair>,
    #[serde(skip)]
    pub(crate) is_ours: bool,
    /// Whether the command only shows information; the text then names the action.
    #[serde(skip)]
    pub(crate) shows: bool,
}

impl Fix {
    /// A command that only shows information.
    pub(crate) fn look(command: Suggestion) -> Self {
        Self {
            shows: true,
            ..Self::act(command)
        }
    }

    /// A command that performs the action in the text.
    pub(crate) fn act(command: Suggestion) -> Self {
        Self {
            is_ours: true,
            ..Self::elsewhere(command)
        }
    }

    pub(crate) fn show(reference: &str) -> Self {
        Self::look(Suggestion::of("show").with([reference]))
    }

    pub(crate) fn elsewhere(command: Suggestion) -> Self {
        Self {
            command: Some(command),
            ..Self::default()
        }
    }

    /// Something to do that no single command does.
    pub(crate) fn advice(text: impl Into<String>) -> Self {
        Self::default().because(text)
    }

    /// Returns the text before the command.
    pub(crate) fn lead(&self) -> Option<String> {
        let text = self.text.as_deref()?;
        Some(match self.shows {
            true => format!("{text}; see"),
            false => text.to_owned(),
        })
    }

    pub(crate) fn into_elsewhere(self) -> Option<Suggestion> {
        self.command.filter(|_| !self.is_ours)
    }

    pub(crate) fn because(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Example {
    pub(crate) job: String,
    pub(crate) name: String,
    pub(crate) since: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) severity: Severity,
    pub(crate) summary: String,
    /// The number of jobs; 0 for a problem that is about no job.
    pub(crate) jobs: u64,
    /// The value of `--problem` that selects these jobs.
    #[serde(skip)]
    pub(crate) selector: Option<String>,
    pub(crate) since: Option<DateTime<Utc>>,
    pub(crate) examples: Vec<Example>,
    pub(crate) impact: &'static str,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) fix: Option<Fix>,
}

impl Problem {
    pub(crate) fn new(code: Code, summary: impl Into<String>) -> Self {
        let (_, severity, impact) = code.meaning();
        Self {
            code,
            severity,
            summary: summary.into(),
            jobs: 0,
            selector: None,
            since: None,
            examples: Vec::new(),
            impact,
            evidence: Vec::new(),
            fix: None,
        }
    }

    pub(crate) fn fixed_by(mut self, fix: impl Into<Option<Fix>>) -> Self {
        self.fix = fix.into();
        self
    }

    pub(crate) fn seen(mut self, what: impl Into<String>, value: impl ToString) -> Self {
        self.evidence.push(Evidence {
            what: what.into(),
            value: value.to_string(),
            at: None,
        });
        self
    }

    pub(crate) fn seen_any(self, what: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.seen(what, value),
            None => self,
        }
    }

    pub(crate) fn at(self, what: &str, time: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Self {
        match time {
            Some(time) => self.seen_at(what, duration::from_now(time, now), time),
            None => self,
        }
    }

    pub(crate) fn seen_at(mut self, what: &str, value: String, time: DateTime<Utc>) -> Self {
        self.evidence.push(Evidence {
            what: what.to_owned(),
            value,
            at: Some(time),
        });
        self
    }

    pub(crate) fn on(mut self, program: &Suggestion) -> Self {
        let Some(fix) = &mut self.fix else {
            return self;
        };
        // The commands in the text reach the same board.
        let ours = |text: String| text.replace("`jobboard ", &format!("`{program} "));
        fix.text = fix.text.take().map(ours);
        if fix.is_ours {
            fix.command = fix.command.take().map(|command| command.on(program));
        }
        self
    }

    /// Removes a fix that changes the board.
    pub(crate) fn omit_change(&mut self) {
        self.fix.take_if(|fix| fix.is_ours && !fix.shows);
    }

    pub(crate) fn is_wrong(&self) -> bool {
        self.severity > Severity::Note
    }
}

/// The problems of one code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CodeCount {
    pub(crate) code: Code,
    /// The worst of them.
    pub(crate) severity: Severity,
    pub(crate) problems: u64,
    pub(crate) jobs: u64,
}

impl CodeCount {
    /// Returns the number of jobs, or of problems if they are about no job.
    pub(crate) fn cases(&self) -> u64 {
        self.jobs.max(self.problems)
    }

    /// Counts the problems by code, in the order in which all commands list them.
    pub(crate) fn of<'a>(problems: impl IntoIterator<Item = &'a Problem>) -> Vec<Self> {
        let mut counts = BTreeMap::new();
        for it in problems {
            let count = counts.entry(it.code).or_insert(Self {
                code: it.code,
                severity: it.severity,
                problems: 0,
                jobs: 0,
            });
            count.severity = count.severity.max(it.severity);
            count.problems += 1;
            count.jobs += it.jobs;
        }
        let mut counts: Vec<_> = counts.into_values().collect();
        counts.sort_by_key(|it| (Reverse(it.severity), Reverse(it.jobs), it.code.name()));
        counts
    }
}

/// Sorts problems as all commands list them: by severity, then the codes with the most jobs, then by code. Problems of one
/// code keep their order.
pub(crate) fn sort(problems: &mut [Problem]) {
    let counts = CodeCount::of(&*problems);
    let place = |code: Code| counts.iter().position(|it| it.code == code);
    problems.sort_by_key(|it| (Reverse(it.severity), place(it.code)));
}
