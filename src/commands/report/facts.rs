//! The content of a report, the same for every format.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    guard::tell,
    lanes::Timeline,
    measure::{Bucket, Interval, Percentiles},
    words::{More, jobs},
};
use crate::{
    commands::{
        doctor::Told,
        explain::{self, Evidence, Explanation},
        parts::{
            json::lines,
            signature::Alike,
            tally::{ByName, ByOwner, Departures, Figures},
        },
    },
    job::{Pause, Remark},
    output::{Record, Text},
};

/// The evidence kept per finding: it may list every conductor.
const MOST_EVIDENCE: usize = 8;

#[derive(Debug, Default, Serialize)]
pub(super) struct Facts {
    pub(super) board: String,
    pub(super) server: String,
    pub(super) version: &'static str,
    pub(super) at: DateTime<Utc>,
    pub(super) sound: bool,
    /// The findings of `doctor`, the worst first.
    pub(super) findings: Vec<Told>,
    pub(super) more_findings: More,
    /// The number of findings above a note.
    #[serde(skip)]
    pub(super) wrong: usize,
    /// The jobs that need help, by problem.
    pub(super) stuck_jobs: Vec<Trouble>,
    /// The worst of these jobs, explained.
    pub(super) explained: Vec<Explanation>,
    pub(super) unseen: Vec<String>,
    #[serde(flatten)]
    pub(super) figures: Figures,
    pub(super) trashed: u64,
    /// The failed ones among them.
    pub(super) lost: u64,
    /// The running conductors; `None` if unreadable.
    pub(super) conductors: Option<usize>,
    pub(super) silent: u64,
    pub(super) unsettled: u64,
    pub(super) pauses: Vec<Pause>,
    pub(super) more_pauses: More,
    /// The departures of the last 24 hours.
    pub(super) history: Option<Departures>,
    pub(super) remembered: Option<Departures>,
    /// The ages of unclaimed jobs; delayed ones are marked.
    pub(super) ages: Vec<Bucket>,
    /// The ages of claims; claims without expiry are marked.
    pub(super) held: Vec<Bucket>,
    /// The attempts of jobs on the board; unclaimed ones at their retry limit are marked.
    pub(super) attempts: Vec<Bucket>,
    pub(super) names: Vec<ByName>,
    pub(super) more_names: More,
    pub(super) owners: Vec<ByOwner>,
    pub(super) more_owners: More,
    pub(super) failures: Vec<Alike>,
    pub(super) more_failures: More,
    pub(super) course: Vec<Interval>,
    /// The time from posting to the first claim.
    pub(super) waited: Option<Percentiles>,
    /// The time from the last claim to the end.
    pub(super) took: Option<Percentiles>,
    pub(super) timeline: Timeline,
}

#[derive(Debug, Serialize)]
pub(super) struct Trouble {
    pub(super) code: explain::Code,
    pub(super) jobs: u64,
}

impl Facts {
    /// Returns the number of findings above a note, and of jobs that need help.
    pub(super) fn wrong(&self) -> (usize, u64) {
        (self.wrong, self.stuck_jobs.iter().map(|it| it.jobs).sum())
    }

    pub(super) fn verdict(&self) -> String {
        let (wrong, trouble) = self.wrong();
        let and = match (wrong, trouble) {
            (0, 1..) => "but",
            _ => "and",
        };
        let wrong = match wrong {
            0 => "No problems found on the board".to_owned(),
            1 => "1 problem found on the board".to_owned(),
            wrong => format!("{wrong} problems found on the board"),
        };
        let trouble = match trouble {
            0 => "no job needs help".to_owned(),
            1 => format!("1 job needs help{}", self.reason(": ", "")),
            count => {
                let reason = self.reason(" (each: ", ")");
                format!("{} need help{reason}", jobs(count))
            }
        };
        let lost = match self.lost {
            0 => String::new(),
            count => format!(" The trash holds {} that failed.", jobs(count)),
        };
        format!("{wrong}, {and} {trouble}.{lost}")
    }

    /// Returns the common reason of the jobs that need help, between these words.
    fn reason(&self, before: &str, behind: &str) -> String {
        let mut said = self.explained.iter().filter(|it| it.like.is_none());
        let (one, other) = (said.next().and_then(Explanation::trouble), said.next());
        match (self.stuck_jobs.len(), one, other) {
            (1, Some(one), None) => {
                let summary = Text::from(&one.summary).shortened(160);
                format!("{before}{summary}{behind}")
            }
            _ => String::new(),
        }
    }
}

impl Facts {
    /// Masks and shortens the texts of other authors.
    pub(super) fn guarded(mut self) -> Self {
        for pause in &mut self.pauses {
            let Remark {
                by, action, reason, ..
            } = &mut pause.remark;
            let texts = [&mut pause.names, by]
                .into_iter()
                .chain(action)
                .chain(reason);
            texts.for_each(tell);
        }
        for it in &mut self.findings {
            tell(&mut it.summary);
            it.evidence.iter_mut().for_each(|it| tell(&mut it.value));
            it.remedy.command.each_word(tell);
        }
        self.explained.iter_mut().for_each(explained);
        self.unseen.iter_mut().for_each(tell);
        self
    }
}

fn explained(of: &mut Explanation) {
    for finding in &mut of.findings {
        let more = More::than(&mut finding.evidence, MOST_EVIDENCE, false);
        if more.count > 0 {
            finding.evidence.push(Evidence {
                what: "and more".to_owned(),
                value: more.to_string(),
                at: None,
            });
        }
        let evidence = finding.evidence.iter_mut();
        evidence
            .flat_map(|it| [&mut it.what, &mut it.value])
            .for_each(tell);
        if let Some(remedy) = &mut finding.remedy {
            remedy.command.each_word(tell);
            tell(&mut remedy.text);
        }
        tell(&mut finding.summary);
    }
    let texts = [&mut of.name, &mut of.job].into_iter();
    texts
        .chain(&mut of.unseen)
        .chain(&mut of.like)
        .for_each(tell);
}

impl Record for Facts {
    fn fields(&self) -> Vec<String> {
        self.lines().concat()
    }

    /// Returns a line per number; a run and a finding are one line each.
    fn lines(&self) -> Vec<Vec<String>> {
        let told =
            |line: &Vec<String>| !["findings", "explained", "timeline"].contains(&line[0].as_str());
        let figures = lines(self).into_iter().filter(told);
        let findings = self.findings.iter().map(|it| {
            let (code, severity) = (it.code.name(), it.severity.name());
            let command = it.remedy.command.to_string();
            ["findings", code, severity, &it.summary, &command]
                .map(str::to_owned)
                .to_vec()
        });
        let explained = self.explained.iter().flat_map(Record::lines);
        let explained = explained.map(|line| [vec!["explained".to_owned()], line].concat());
        let all = figures.chain(findings).chain(explained);
        all.chain(self.timeline.lines()).collect()
    }
}
