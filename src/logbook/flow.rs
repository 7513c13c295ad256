//! A flow and its atoms, as its engine last stored them.

use std::{borrow::Cow, time::Duration};

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{duration, secret::covered_text};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) uuid: String,
    pub(crate) name: String,
    /// TaskFlow's name for the state; `None` before the engine first starts.
    pub(crate) state: Option<String>,
    pub(crate) created: Option<DateTime<Utc>>,
    /// For a running flow: the start of this run.
    pub(crate) updated: Option<DateTime<Utc>>,
    pub(crate) factory: Option<String>,
    /// Its load balancer, where Octavia names one in the factory's arguments.
    pub(crate) load_balancer: Option<String>,
    pub(crate) amphora: Option<String>,
    /// In the order of creation; empty before the engine first starts.
    pub(crate) atoms: Vec<Atom>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Atom {
    pub(crate) name: String,
    pub(crate) kind: AtomKind,
    /// TaskFlow's name for the state.
    pub(crate) state: String,
    /// Whether it will be reverted or never run after a failure.
    #[serde(rename = "will_revert")]
    pub(crate) is_to_be_reverted: bool,
    /// Whether it will be retried together with its part of the flow.
    #[serde(skip)]
    pub(crate) is_to_be_retried: bool,
    /// The latest possible start of its state.
    pub(crate) since: Option<DateTime<Utc>>,
    /// Why it failed, even if it was reverted since.
    pub(crate) failure: Option<AtomFailure>,
    #[serde(rename = "revert_failure")]
    pub(crate) undo_failure: Option<AtomFailure>,
    pub(crate) attempts: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AtomKind {
    Task,
    Retry,
}

/// TaskFlow's names for the states of flows and atoms; newer versions may add some.
pub(crate) mod flow_state {
    pub(crate) const PENDING: &str = "PENDING";
    pub(crate) const RUNNING: &str = "RUNNING";
    pub(crate) const RESUMING: &str = "RESUMING";
    pub(crate) const SUSPENDING: &str = "SUSPENDING";
    pub(crate) const SUSPENDED: &str = "SUSPENDED";
    pub(crate) const SUCCESS: &str = "SUCCESS";
    pub(crate) const FAILURE: &str = "FAILURE";
    pub(crate) const REVERTING: &str = "REVERTING";
    pub(crate) const REVERTED: &str = "REVERTED";
    pub(crate) const REVERT_FAILURE: &str = "REVERT_FAILURE";
    pub(crate) const RETRYING: &str = "RETRYING";
    pub(crate) const IGNORE: &str = "IGNORE";
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct AtomFailure {
    /// The type of the exception, without its module.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) text: String,
}

impl AtomFailure {
    pub(super) fn of(kind: Option<String>, text: Option<String>) -> Option<Self> {
        if kind.is_none() && text.is_none() {
            return None;
        }
        let kind = kind.unwrap_or_default();
        let kind = kind.rsplit('.').next().unwrap_or_default().to_owned();
        // An error about a key may contain the key.
        let text = covered_text(&text.unwrap_or_default());
        Some(Self { kind, text })
    }

    pub(crate) fn line(&self) -> String {
        let text = self.text.lines().next().unwrap_or_default();
        match text {
            "" => self.kind.clone(),
            text if self.kind.is_empty() => text.to_owned(),
            text => format!("{}: {text}", self.kind),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct FlowProgress {
    /// Finished atoms; in a reverting flow, reverted atoms.
    pub(crate) done: usize,
    /// All atoms; in a reverting flow, all atoms to revert.
    pub(crate) all: usize,
    pub(crate) reverting: bool,
}

impl Atom {
    /// Returns a readable name: a class without its modules; for a flow within the flow, only its subject.
    pub(crate) fn title(&self) -> Cow<'_, str> {
        let Some((flow, task)) = self.name.split_once("-subflow-") else {
            let is_class = !self.name.contains(['-', ' ']);
            let class = self.name.rsplit('.').next().filter(|_| is_class);
            return class.unwrap_or(&self.name).into();
        };
        let task = task.strip_prefix("octavia-").unwrap_or(task);
        let (whose, _) = flow.split_once('-').unwrap_or((flow, ""));
        match whose.bytes().all(|byte| byte.is_ascii_uppercase()) {
            true => format!("{task} ({whose})").into(),
            false => task.into(),
        }
    }

    /// Whether it is finished in the direction of its flow.
    fn is_behind(&self, goes_back: bool) -> bool {
        match goes_back {
            true => matches!(
                &*self.state,
                flow_state::REVERTED | flow_state::REVERT_FAILURE
            ),
            false => matches!(&*self.state, flow_state::SUCCESS | flow_state::IGNORE),
        }
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.state == flow_state::PENDING
    }

    pub(crate) fn is_at_work(&self) -> bool {
        matches!(
            &*self.state,
            flow_state::RUNNING | flow_state::REVERTING | flow_state::RETRYING
        )
    }

    pub(crate) fn lasts(&self, now: DateTime<Utc>) -> Option<Duration> {
        (now - self.since?).to_std().ok()
    }
}

impl Flow {
    pub(crate) fn at_work(&self) -> Vec<&Atom> {
        let atoms = self.atoms.iter().filter(|it| it.is_at_work());
        let mut atoms: Vec<_> = atoms.collect();
        atoms.sort_by_key(|atom| atom.since);
        atoms
    }

    /// Whether its engine has started but not finished it.
    pub(crate) fn is_under_way(&self) -> bool {
        let state = self.state.as_deref();
        state.is_some_and(|it| {
            matches!(
                it,
                flow_state::RUNNING | flow_state::RESUMING | flow_state::SUSPENDING
            )
        })
    }

    pub(crate) fn changed(&self) -> Option<DateTime<Utc>> {
        let of_atoms = self.atoms.iter().map(|atom| atom.since);
        of_atoms.chain([self.updated]).flatten().max()
    }

    pub(crate) fn failed(&self) -> Option<(&Atom, &AtomFailure)> {
        let failed = self
            .atoms
            .iter()
            .filter_map(|it| Some((it, it.failure.as_ref()?)));
        failed.min_by_key(|(atom, _)| atom.since)
    }

    pub(crate) fn progress(&self) -> FlowProgress {
        let is_undone = |it: &Atom| {
            it.is_to_be_reverted
                || matches!(&*it.state, flow_state::REVERTING | flow_state::REVERTED)
        };
        // A retry reverts first and then runs again.
        let is_retried = |it: &Atom| it.is_to_be_retried || it.state == flow_state::RETRYING;
        let goes_back = self.atoms.iter().any(is_undone) && !self.atoms.iter().any(is_retried);
        // An atom that never started needs no reverting.
        let counts = |atom: &&Atom| !goes_back || !atom.is_pending();
        let done = self.atoms.iter().filter(|it| it.is_behind(goes_back));
        FlowProgress {
            done: done.count(),
            all: self.atoms.iter().filter(counts).count(),
            reverting: goes_back,
        }
    }
}

pub(crate) fn position(flow: &Flow, now: DateTime<Utc>) -> String {
    let progress = flow.progress();
    let goes_back = progress.reverting;
    let done = if goes_back { "reverted" } else { "done" };
    let counted = format!("{} of {} {done}", progress.done, progress.all);
    let because = match flow.failed() {
        Some((atom, failure)) => {
            let when = if goes_back { "since" } else { "after" };
            format!(", {when} {} failed with {}", atom.title(), failure.line())
        }
        None => String::new(),
    };
    match flow.state.as_deref() {
        None | Some(flow_state::PENDING) if flow.atoms.is_empty() => {
            "the flow has not started".to_owned()
        }
        Some(flow_state::RUNNING) if flow.atoms.is_empty() => {
            "the flow has started, but none of its tasks".to_owned()
        }
        Some(flow_state::SUCCESS) => format!("the flow has succeeded, {counted}"),
        Some(flow_state::REVERTED) => format!("the flow was reverted{because}"),
        Some(flow_state::FAILURE) => format!("the flow has failed, {counted}{because}"),
        Some(flow_state::SUSPENDED | flow_state::SUSPENDING) => {
            format!("the flow is suspended, {counted}{because}")
        }
        _ if goes_back => {
            format!("the flow is reverting{}, {counted}{because}", at(flow, now))
        }
        _ => format!("the flow is{}, {counted}{because}", at(flow, now)),
    }
}

fn at(flow: &Flow, now: DateTime<Utc>) -> String {
    let at_work = flow.at_work();
    let Some((first, others)) = at_work.split_first() else {
        return " between two tasks".to_owned();
    };
    let long = first
        .lasts(now)
        .map(|long| format!(" for {}", duration::brief(long)));
    let doing = match &*first.state {
        flow_state::RETRYING => " at retrying ",
        _ => " at ",
    };
    let more = match others.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{doing}{}{}{more}", first.title(), long.unwrap_or_default())
}
