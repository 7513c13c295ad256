//! What a report says of a board: the same for every form in which it is printed.

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

/// How much of what shows a finding is told: each conductor may be in it.
const MOST_EVIDENCE: usize = 8;

#[derive(Debug, Default, Serialize)]
pub(super) struct Facts {
    pub(super) board: String,
    pub(super) server: String,
    pub(super) version: &'static str,
    pub(super) at: DateTime<Utc>,
    pub(super) sound: bool,
    /// What `doctor` finds, what is worst first.
    pub(super) findings: Vec<Told>,
    pub(super) more_findings: More,
    /// How many findings are worse than a note.
    #[serde(skip)]
    pub(super) wrong: usize,
    /// How many jobs will not run without help, by why.
    pub(super) stuck_jobs: Vec<Trouble>,
    /// The worst of these, as `explain` has them.
    pub(super) explained: Vec<Explanation>,
    pub(super) unseen: Vec<String>,
    #[serde(flatten)]
    pub(super) figures: Figures,
    pub(super) trashed: u64,
    /// How many of these have failed.
    pub(super) lost: u64,
    /// How many are alive; `None` where that cannot be seen.
    pub(super) conductors: Option<usize>,
    pub(super) silent: u64,
    pub(super) unsettled: u64,
    pub(super) pauses: Vec<Pause>,
    pub(super) more_pauses: More,
    /// What left the board in the last 24 hours.
    pub(super) history: Option<Departures>,
    /// What left it of which anything is remembered.
    pub(super) remembered: Option<Departures>,
    /// How long ago the jobs were posted that nobody has, those marked that are held back.
    pub(super) ages: Vec<Bucket>,
    /// For how long the others are held, those marked whose claims never lapse.
    pub(super) held: Vec<Bucket>,
    /// How often the jobs on the board were tried, those marked that nobody has and that were tried too often.
    pub(super) attempts: Vec<Bucket>,
    pub(super) names: Vec<ByName>,
    pub(super) more_names: More,
    pub(super) owners: Vec<ByOwner>,
    pub(super) more_owners: More,
    pub(super) failures: Vec<Alike>,
    pub(super) more_failures: More,
    pub(super) course: Vec<Interval>,
    /// How long the jobs that ended waited for their first claims.
    pub(super) waited: Option<Percentiles>,
    /// How long it took from their last claims to their ends.
    pub(super) took: Option<Percentiles>,
    pub(super) timeline: Timeline,
}

#[derive(Debug, Serialize)]
pub(super) struct Trouble {
    pub(super) code: explain::Code,
    pub(super) jobs: u64,
}

impl Facts {
    /// Returns how many findings are worse than a note, and how many jobs need help.
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

    /// Says why, between these words, if it is the same for each job that needs help.
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
    /// Returns them with all sentences of strangers as they are told.
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

    /// Returns a line for each figure, and for each of several; a run is one, and so is each finding of a job.
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
