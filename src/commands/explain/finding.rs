//! The explanation of a job: a verdict, its evidence, and the command that helps.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{
    duration,
    names::named,
    output::{Page, Record, Report, Tone, rfc3339, short},
    suggest::Suggestion,
};

named! {
    /// Why a job is as it is; each has its paragraph in `docs/troubleshooting.md`, and its meaning never changes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    pub(crate) enum Code ("code", str::eq) {
        Claimable => "ready",
        Postponed => "backing-off",
        Exhausted => "retries-exhausted",
        NoConductor => "no-conductor",
        NoTaker => "no-matching-conductor",
        NotRunnable => "no-command",
        PolicyRefuses => "conductor-refuses",
        Outranked => "waiting",
        Paused => "paused",
        Held => "running",
        Unsettled => "unsettled-job",
        HeldForever => "claim-never-expires",
        HeldByDead => "owner-dead",
        Lapsing => "claim-expires-soon",
        NotRenewed => "claim-not-renewed",
        UnfinishedMove => "unfinished-move",
        LockBroken => "broken-lock",
        Malformed => "unreadable-record",
        Unfit => "unreadable-sidecar",
        HiddenFromPeers => "breaks-peers",
        ForeignUuid => "uuid-mismatch",
        Trashed => "trashed",
        Ended => "ended",
        NotKnown => "unknown-job",
        BlocksPosters => "blocks-posters",
        RunsUnclaimed => "flow-without-claim",
        ClockSkew => "clock-skew",
        Unseen => "unavailable",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    Ok,
    Warning,
    Error,
}

impl Severity {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) code: Code,
    pub(crate) severity: Severity,
    pub(crate) summary: String,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) remedy: Option<Remedy>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Evidence {
    pub(crate) what: String,
    pub(crate) value: String,
    pub(crate) at: Option<DateTime<Utc>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Remedy {
    pub(crate) text: String,
    pub(crate) command: Suggestion,
}

impl Finding {
    pub(crate) fn new(code: Code, severity: Severity, summary: impl Into<String>) -> Self {
        Self {
            code,
            severity,
            summary: summary.into(),
            evidence: Vec::new(),
            remedy: None,
        }
    }

    pub(crate) fn seen(mut self, what: impl Into<String>, value: impl Into<String>) -> Self {
        self.note(what, value);
        self
    }

    pub(super) fn note(&mut self, what: impl Into<String>, value: impl Into<String>) {
        self.evidence.push(Evidence {
            what: what.into(),
            value: value.into(),
            at: None,
        });
    }

    pub(crate) fn at(
        mut self,
        what: &str,
        time: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Self {
        self.evidence.extend(time.map(|time| Evidence {
            what: what.to_owned(),
            value: match (now - time).to_std() {
                Ok(ago) => format!("{} ago", duration::brief(ago)),
                Err(_) => format!("in {}", duration::between(now, time)),
            },
            at: Some(time),
        }));
        self
    }

    pub(crate) fn mend(mut self, text: impl Into<String>, command: Suggestion) -> Self {
        self.remedy = Some(Remedy {
            text: text.into(),
            command,
        });
        self
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    /// The reference of the job.
    pub(crate) job: String,
    #[serde(skip)]
    pub(crate) name: String,
    pub(crate) verdict: Code,
    /// Whether the job runs, will run without help, or has ended well.
    pub(crate) will_run: bool,
    /// The first is the verdict.
    pub(crate) findings: Vec<Finding>,
    pub(crate) unseen: Vec<String>,
    /// An earlier job with the same explanation, so that people need not read it twice.
    #[serde(skip)]
    pub(crate) like: Option<String>,
}

impl Explanation {
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.name, short(&self.job))
    }

    pub(super) fn needs_help(&self) -> bool {
        let is_error = |it: &Finding| it.severity == Severity::Error;
        !self.will_run || self.findings.iter().any(is_error)
    }

    pub(crate) fn trouble(&self) -> Option<&Finding> {
        let is_trouble = |it: &&Finding| it.severity > Severity::Ok || !self.will_run;
        self.findings.iter().find(is_trouble)
    }
}

impl Record for Explanation {
    fn fields(&self) -> Vec<String> {
        self.lines().concat()
    }

    /// Returns a line per finding: job, code, severity, message, and command.
    fn lines(&self) -> Vec<Vec<String>> {
        let lines = self.findings.iter().map(|finding| {
            let remedy = finding.remedy.as_ref();
            vec![
                self.job.clone(),
                finding.code.name().to_owned(),
                finding.severity.name().to_owned(),
                finding.summary.clone(),
                remedy.map_or_else(String::new, |remedy| remedy.command.to_string()),
            ]
        });
        lines.collect()
    }
}

const MOST_FACTS: usize = 4;

impl Report for Explanation {
    const IS_TEXT: bool = true;

    fn human(&self, page: &mut Page) {
        for (at, finding) in self.findings.iter().enumerate() {
            let tone = match finding.severity {
                Severity::Ok => Tone::Good,
                Severity::Warning => Tone::Busy,
                Severity::Error => Tone::Bad,
            };
            if at == 0 {
                let line = page.line().add(Tone::Strong, self.title()).plain("  ");
                let line = line.add(tone, finding.code.name());
                if let Some(like) = &self.like {
                    line.add(Tone::Faint, format!("  like {like}"));
                    return;
                }
                drop(line);
                page.sentence(2).plain("  ").plain(&finding.summary);
            } else {
                let line = page.sentence(4).plain("  ");
                let line = line.add(tone, finding.code.name());
                line.plain(": ").plain(&finding.summary);
            }
            // Findings after the verdict are shortened.
            let most = if at == 0 { MOST_FACTS } else { 1 };
            for evidence in finding.evidence.iter().take(most) {
                let time = evidence.at.map(|at| format!(" ({})", rfc3339(at)));
                let value = format!("{}{}", evidence.value, time.unwrap_or_default());
                page.fact(&format!("  {}", evidence.what), &value);
            }
            if let Some(remedy) = &finding.remedy {
                page.fact("  next", &remedy.text);
                page.command("  ", &remedy.command);
            }
        }
        for unseen in &self.unseen {
            page.fact("  not checked", unseen);
        }
    }
}
