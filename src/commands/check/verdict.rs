//! The result of `check`: a state, a line with performance data, and findings.

use std::{borrow::Cow, cmp::Reverse};

use serde::{Serialize, Serializer};

use super::{
    metric::{BoardMeasures, Metric},
    range::Range,
};
use crate::{
    commands::parts::words::Words,
    exit::{PluginState, without_bars},
    problem::{Code, CodeCount, Problem},
    suggest::Suggestion,
};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Threshold {
    pub(super) metric: Metric,
    pub(super) range: Range,
}

impl Threshold {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let Some((name, range)) = text.split_once('=') else {
            return Err("use METRIC=RANGE, for example `oldest_unclaimed=15m`".to_owned());
        };
        let metric = Metric::read(name)?;
        let range = Range::read(range, metric.is_span())?;
        Ok(Self { metric, range })
    }
}

#[derive(Debug, Clone, clap::Args)]
pub(super) struct Thresholds {
    /// Warn if METRIC is outside this range
    #[arg(
        short,
        long,
        value_name = "METRIC=RANGE",
        value_parser = Words { all: Metric::names, read: Threshold::read }
    )]
    pub(super) warn: Vec<Threshold>,

    /// Report CRITICAL if METRIC is outside this range
    #[arg(
        short,
        long,
        value_name = "METRIC=RANGE",
        value_parser = Words { all: Metric::names, read: Threshold::read }
    )]
    pub(super) crit: Vec<Threshold>,
}

impl Thresholds {
    pub(super) fn is_empty(&self) -> bool {
        self.warn.is_empty() && self.crit.is_empty()
    }

    /// Returns these thresholds, or the usual ones if none was given.
    pub(super) fn or_usual(&self) -> Cow<'_, Self> {
        match self.is_empty() {
            true => Cow::Owned(Self::usual()),
            false => Cow::Borrowed(self),
        }
    }

    fn usual() -> Self {
        let zero = |metric| Threshold {
            metric,
            range: Range::zero(),
        };
        let wrong = [
            Metric::Unreadable,
            Metric::OwnerDead,
            Metric::OwnerStopped,
            Metric::NotRenewed,
            Metric::Exhausted,
            Metric::Failed,
        ];
        Self {
            warn: wrong.map(zero).to_vec(),
            crit: Vec::new(),
        }
    }

    pub(super) fn shown(&self) -> impl Iterator<Item = Metric> {
        let is_named = |metric| {
            [&self.warn, &self.crit]
                .iter()
                .any(|it| Self::of(it, metric).is_some())
        };
        let all = Metric::ALL.iter().copied();
        all.filter(move |it| it.is_usual() || is_named(*it))
    }

    fn of(all: &[Threshold], metric: Metric) -> Option<&Range> {
        let mut all = all.iter();
        let found = all.find(|threshold| threshold.metric == metric);
        found.map(|threshold| &threshold.range)
    }
}

#[derive(Debug, Serialize)]
struct MetricValue {
    name: Metric,
    #[serde(serialize_with = "number")]
    value: Option<f64>,
    #[serde(skip)]
    words: String,
    /// `s`, or empty for counts.
    unit: &'static str,
    warn: Option<String>,
    crit: Option<String>,
    state: PluginState,
    #[serde(skip)]
    outside: Option<String>,
    command: Suggestion,
}

#[expect(clippy::ref_option, reason = "serde's derive passes a reference")]
fn number<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) if value.fract() == 0.0 => serializer.serialize_u64(*value as u64),
        value => value.serialize(serializer),
    }
}

#[derive(Debug, Serialize)]
pub(super) struct CheckFinding {
    /// `None` if no code stands for it.
    #[serde(skip)]
    pub(super) count: Option<CodeCount>,
    /// The first cause, if a code stands for it.
    pub(super) summary: String,
    pub(super) state: PluginState,
    pub(super) command: Suggestion,
}

#[derive(Debug, Serialize)]
pub(super) struct CheckVerdict {
    pub(super) state: PluginState,
    pub(super) code: u8,
    summary: String,
    board: String,
    metrics: Vec<MetricValue>,
    findings: Vec<CheckFinding>,
}

impl CheckVerdict {
    /// Judges the measurements; `command` completes a command for the same board.
    pub(super) fn new(
        board: &str,
        measured: &BoardMeasures,
        thresholds: &Thresholds,
        findings: Vec<CheckFinding>,
        command: impl Fn((Suggestion, bool)) -> Suggestion,
    ) -> Self {
        let judge = |metric: Metric| {
            let value = metric.value(measured);
            let warn = Thresholds::of(&thresholds.warn, metric);
            let crit = Thresholds::of(&thresholds.crit, metric);
            let is_outside = |range: &&Range| value.is_some_and(|value| !range.admits(value));
            let broken = crit.filter(is_outside).or(warn.filter(is_outside));
            let state = match (value, broken, crit.filter(is_outside)) {
                (None, ..) if warn.is_some() || crit.is_some() => PluginState::Unknown,
                (_, _, Some(_)) => PluginState::Critical,
                (_, Some(_), None) => PluginState::Warning,
                _ => PluginState::Ok,
            };
            MetricValue {
                name: metric,
                value,
                words: value.map_or("unknown".to_owned(), |it| metric.words(it)),
                unit: if metric.is_span() { "s" } else { "" },
                warn: warn.map(Range::numbers),
                crit: crit.map(Range::numbers),
                state,
                outside: broken.map(|range| range.text.clone()),
                command: command(metric.command(broken)),
            }
        };
        let metrics: Vec<_> = thresholds.shown().map(judge).collect();
        let states = metrics.iter().map(|it| it.state);
        let states = states.chain(findings.iter().map(|it| it.state));
        let state = states.max_by_key(|state| state.severity());
        let state = state.unwrap_or(PluginState::Ok);
        Self {
            state,
            code: state.code(),
            summary: summary(state, &metrics, &findings, &measured.problems),
            board: board.to_owned(),
            metrics,
            findings,
        }
    }

    pub(super) fn lines(&self, is_verbose: bool) -> Vec<String> {
        let first = format!("{} - {}", self.state, self.summary);
        let perfdata = self.metrics.iter().filter_map(MetricValue::perfdata);
        let perfdata: Vec<_> = perfdata.collect();
        let shown = self.metrics.iter();
        let shown = shown.filter(|it| is_verbose || it.state != PluginState::Ok);
        let findings = self.findings.iter().map(|it| (it.state, it.line()));
        let lines = findings.chain(shown.map(|it| (it.state, it.line())));
        let mut lines: Vec<_> = lines.collect();
        lines.sort_by_key(|(state, _)| Reverse(state.severity()));
        let lines = lines.into_iter().map(|(_, line)| line);
        let first = format!("{} | {}", without_bars(&first), perfdata.join(" "));
        [first].into_iter().chain(lines).collect()
    }
}

/// Lists the alerts, the worst first, with the cause of that one.
fn summary(
    state: PluginState,
    metrics: &[MetricValue],
    findings: &[CheckFinding],
    problems: &[Problem],
) -> String {
    if state == PluginState::Ok {
        let shown = [
            Metric::Unclaimed,
            Metric::OldestUnclaimed,
            Metric::Claimed,
            Metric::Trashed,
        ];
        let words = metrics.iter().filter(|it| shown.contains(&it.name));
        let words = words.map(|it| match it.name {
            Metric::OldestUnclaimed => format!("oldest {}", it.words),
            name => format!("{} {name}", it.words),
        });
        return words.collect::<Vec<_>>().join(", ");
    }
    let values = metrics.iter().map(|it| {
        (
            it.state,
            format!("{} {}", it.title(), it.words),
            it.name.code(),
        )
    });
    let code = |it: &CheckFinding| it.count.as_ref().map(|of| of.code);
    let findings = findings.iter().map(|it| (it.state, it.title(), code(it)));
    let mut wrong: Vec<_> = values.chain(findings).collect();
    wrong.retain(|(state, ..)| *state != PluginState::Ok);
    let first = |code: &Option<Code>| problems.iter().find(|it| Some(it.code) == *code);
    wrong.sort_by_key(|(state, _, code)| {
        Reverse((state.severity(), first(code).map(|it| it.severity)))
    });
    if let Some((_, words, code)) = wrong.first_mut()
        && let Some(first) = first(code)
    {
        *words += &format!(" ({})", first.summary);
    }
    let wrong: Vec<_> = wrong.into_iter().map(|(_, words, _)| words).collect();
    wrong.join(", ")
}

impl MetricValue {
    /// Returns the code that `doctor` prints, or else the name of the metric.
    fn title(&self) -> &'static str {
        let code = self.name.code();
        code.map_or(self.name.name(), Code::name)
    }

    fn perfdata(&self) -> Option<String> {
        let (name, unit, value) = (self.name, self.unit, self.value?);
        let [warn, crit] = [&self.warn, &self.crit].map(|it| it.as_deref().unwrap_or_default());
        Some(format!("{name}={value}{unit};{warn};{crit};0"))
    }

    fn line(&self) -> String {
        let (state, name, words) = (self.state, self.title(), &self.words);
        let outside = self.outside.as_ref();
        let outside = outside.map(|range| match range.strip_prefix('@') {
            Some(range) => format!(", inside {range}"),
            None => format!(", outside the range {range}"),
        });
        let outside = outside.unwrap_or_default();
        format!("{state}: {name} is {words}{outside}: {}", self.command)
    }
}

impl CheckFinding {
    fn title(&self) -> String {
        match &self.count {
            Some(of) => format!("{} {}", of.code, of.cases()),
            None => self.summary.clone(),
        }
    }

    fn line(&self) -> String {
        let what = match &self.count {
            Some(of) => format!("{} is {}: {}", of.code, of.cases(), self.summary),
            None => self.summary.clone(),
        };
        format!("{}: {}: {}", self.state, without_bars(&what), self.command)
    }
}
