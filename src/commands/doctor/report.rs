//! The report of `doctor`: groups, findings, consequences and fixes.

use serde::{Serialize, Serializer};

use super::fix::Step;

use crate::{
    board::examine::{Code, Evidence, Finding, Group, Remedy, Severity},
    output::{Page, Record, Report, Tone},
    suggest::Suggestion,
};

/// The number of jobs named on a line.
pub(super) const FIT: usize = 20;

#[derive(Debug, Serialize)]
pub(crate) struct Diagnosis {
    pub(super) board: String,
    pub(super) server: Option<String>,
    /// In seconds.
    pub(super) round_trip: Option<f64>,
    /// Whether no finding is above a note.
    pub(crate) sound: bool,
    pub(super) groups: Vec<GroupState>,
    pub(crate) findings: Vec<Told>,
    pub(crate) unseen: Vec<Unseen>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fixed: Option<Vec<Step>>,
    #[serde(skip)]
    pub(super) program: Suggestion,
}

#[derive(Debug, Serialize)]
pub(crate) struct GroupState {
    group: Group,
    /// `ok`, the worst of its findings, or `unknown`.
    state: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct Unseen {
    pub(super) group: Group,
    pub(crate) what: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Told {
    pub(crate) code: Code,
    group: Group,
    pub(crate) severity: Severity,
    pub(crate) summary: String,
    pub(crate) impact: &'static str,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) remedy: Mending,
}

#[derive(Debug, Serialize)]
pub(crate) struct Mending {
    pub(crate) command: Suggestion,
    pub(crate) fix: bool,
    /// All jobs of the finding; a line has room for some.
    #[serde(skip)]
    jobs: Vec<String>,
}

impl Told {
    /// `program` starts each command.
    pub(crate) fn new(finding: Finding, program: &Suggestion) -> Self {
        let (group, severity, impact) = finding.code.meaning();
        let fix = matches!(finding.remedy, Remedy::Mends(..));
        let (command, jobs) = match finding.remedy {
            Remedy::Mends(words, jobs) => (words.with(jobs.iter().take(FIT)).on(program), jobs),
            Remedy::Shows(words) => (words.on(program), Vec::new()),
            Remedy::Elsewhere(command) => (command, Vec::new()),
        };
        Self {
            code: finding.code,
            group,
            severity,
            summary: finding.summary,
            impact,
            evidence: finding.evidence,
            remedy: Mending { command, fix, jobs },
        }
    }

    /// Whether it is above a note.
    pub(crate) fn is_wrong(&self) -> bool {
        self.severity > Severity::Note
    }

    /// Returns the command that fixes it, and its jobs, if `jobboard` runs it.
    pub(super) fn step(&self) -> Option<(&[String], &[String])> {
        let Mending {
            command, fix, jobs, ..
        } = &self.remedy;
        let words = command.words().len().saturating_sub(jobs.len().min(FIT));
        fix.then_some((command.words().get(..words)?, jobs))
    }
}

impl Diagnosis {
    pub(super) fn judge(&mut self, groups: &[Group]) {
        let state = |group: Group| {
            let mut of = self.findings.iter().filter(|it| it.group == group);
            let is_unseen = self.unseen.iter().any(|it| it.group == group);
            match of.by_ref().map(|it| it.severity).max() {
                Some(severity) if severity > Severity::Note || !is_unseen => severity.name(),
                _ if is_unseen => "unknown",
                _ => "ok",
            }
        };
        let states = groups.iter().map(|group| GroupState {
            group: *group,
            state: state(*group),
        });
        self.groups = states.collect();
        self.sound = !self.findings.iter().any(Told::is_wrong);
    }
}

impl Record for Diagnosis {
    fn fields(&self) -> Vec<String> {
        self.lines().concat()
    }

    /// Returns a line for each group, each finding and each gap.
    fn lines(&self) -> Vec<Vec<String>> {
        let words = |words: [&str; 6]| words.map(str::to_owned).to_vec();
        let groups = self.groups.iter();
        let groups = groups.map(|it| words([it.group.name(), "", it.state, "", "", ""]));
        let findings = self.findings.iter().map(|it| {
            let (group, code, severity) = (it.group.name(), it.code.name(), it.severity.name());
            words([
                group,
                code,
                severity,
                &it.summary,
                it.impact,
                &it.remedy.command.to_string(),
            ])
        });
        let unseen = self.unseen.iter();
        let unseen = unseen.map(|it| words([it.group.name(), "", "unseen", &it.what, "", ""]));
        groups.chain(findings).chain(unseen).collect()
    }
}

impl Report for Diagnosis {
    const IS_TEXT: bool = true;

    fn human(&self, page: &mut Page) {
        page.line().add(Tone::Strong, &self.board);
        if let Some(server) = &self.server {
            page.fact("backend", server);
        }
        if let Some(round_trip) = self.round_trip {
            page.fact("round trip", format!("{:.2} ms", round_trip * 1e3));
        }
        for GroupState { group, state } in &self.groups {
            page.fact_with(group.name(), tone(state), state, None);
            let of = self.findings.iter().filter(|it| it.group == *group);
            of.for_each(|it| it.human(page));
            for it in self.unseen.iter().filter(|it| it.group == *group) {
                page.sentence(4).plain("  not checked: ").plain(&it.what);
            }
        }
        let (all, notes) = (self.findings.len(), self.findings.iter());
        let notes = notes.filter(|it| it.severity == Severity::Note).count();
        let fixable = self.findings.iter().filter(|it| it.remedy.fix).count();
        let wrong = match all - notes {
            0 => "No problems found.".to_owned(),
            1 => "1 problem found.".to_owned(),
            wrong => format!("{wrong} problems found."),
        };
        page.line();
        let line = page.line().plain(wrong);
        if fixable > 0 {
            let fix = Suggestion::of("doctor --fix").on(&self.program);
            let line = line.plain(" ").add(Tone::Strong, format!("`{fix}`"));
            line.plain(" fixes what it can.");
        }
    }
}

impl Told {
    pub(crate) fn human(&self, page: &mut Page) {
        let line = page.sentence(4).plain("  ");
        let line = line.add(tone(self.severity.name()), self.severity.name());
        line.plain(": ")
            .plain(&self.summary)
            .add(Tone::Faint, format!("  [{}]", self.code));
        for Evidence { what, value } in &self.evidence {
            page.sentence(6)
                .add(Tone::Faint, format!("    {what}: "))
                .plain(value);
        }
        page.sentence(6)
            .add(Tone::Faint, "    impact: ")
            .plain(self.impact);
        let word = if self.remedy.fix {
            "    fix: "
        } else {
            "    run: "
        };
        page.command(word, &self.remedy.command);
    }
}

fn tone(state: &str) -> Tone {
    match state {
        "ok" => Tone::Good,
        "note" => Tone::Plain,
        "error" => Tone::Bad,
        _ => Tone::Busy,
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Check {
    #[serde(serialize_with = "name")]
    pub(crate) code: Code,
    group: Group,
    severity: Severity,
    impact: &'static str,
}

fn name<S: Serializer>(code: &Code, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.name())
}

impl Check {
    pub(super) fn of(code: Code) -> Self {
        let (group, severity, impact) = code.meaning();
        Self {
            code,
            group,
            severity,
            impact,
        }
    }
}

impl Record for Check {
    fn fields(&self) -> Vec<String> {
        let (group, severity) = (self.group.name(), self.severity.name());
        [group, self.code.name(), severity, self.impact]
            .map(str::to_owned)
            .to_vec()
    }
}

impl crate::output::Row for Check {
    fn cells(&self) -> Vec<crate::output::Cell> {
        self.fields()
            .into_iter()
            .map(crate::output::Cell::new)
            .collect()
    }
}
