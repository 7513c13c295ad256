//! The release of another owner's claim: when conductors may retry the job.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    liveness::{is_nobody_s, is_silent},
    select::count,
    under_claim::LEASE,
};
use crate::{
    board::Board,
    duration,
    job::{Aftermath, Conductor, Entry, Failure, Lease, Owner},
    process::{label::Label, lineage::Processes},
};

/// Decides whether conductors have to wait until the old command has certainly ended.
#[derive(Debug)]
pub(crate) enum Release {
    /// The operator says that the command has ended.
    Now,
    /// Conductors wait unless the owner's process and all processes of the command are gone.
    Checked {
        conductors: Vec<Conductor>,
        /// The jobs whose labelled processes run on this machine.
        running: HashSet<u32>,
    },
}

impl Release {
    /// Looks for the owners and their commands. An unreadable registry proves nothing.
    pub(crate) async fn checked(board: &dyn Board) -> Self {
        let conductors = board.conductors().await.unwrap_or_default();
        // After the registry: a dead conductor starts no command.
        let labelled = Processes::now().bearers(|_| true);
        let running = labelled.into_iter().map(|(_, label)| label.job()).collect();
        Self::Checked {
            conductors,
            running,
        }
    }

    /// Returns the result of the attempt that ends with the claim.
    pub(crate) fn aftermath(&self, entry: &Entry) -> Aftermath {
        let Some(left) = left(entry) else {
            return Aftermath::None;
        };
        let owner = entry.holding().and_then(|it| it.owner.as_ref());
        let owner = owner.map_or_else(String::new, Owner::to_string);
        let failure = Failure::told("the claim was released by force", &owner);
        let doubt = self.doubt(entry);
        Aftermath::Failed {
            not_before: doubt.and_then(|_| failure.time.checked_add_signed(left)),
            failure,
        }
    }

    /// Returns the reason why a command of this claim may still run.
    fn doubt(&self, entry: &Entry) -> Option<String> {
        let Self::Checked {
            conductors,
            running,
        } = self
        else {
            return None;
        };
        let (job, holding) = (entry.job()?, entry.holding()?);
        let Some(owner) = &holding.owner else {
            return Some("the owner is unreadable".to_owned());
        };
        let is_owner = |it: &&Conductor| it.owner == *owner;
        if is_nobody_s(holding, conductors) {
            let is_running = running.contains(&Label::of_job(&job.uuid));
            is_running.then(|| format!("a process of {} is still running", job.name))
        } else if conductors.iter().filter(is_owner).any(|it| !is_silent(it)) {
            Some(format!("{owner} is still running"))
        } else {
            Some(format!("{owner}'s process cannot be checked from here"))
        }
    }

    /// Reports how long conductors wait, and the reason; one sentence for all jobs.
    pub(crate) fn warning<'a>(&self, entries: impl Iterator<Item = &'a Entry>) -> Option<String> {
        let waits = entries.filter_map(|entry| Some((left(entry)?, self.doubt(entry)?)));
        let waits: Vec<_> = waits.collect();
        let (left, doubt) = waits.iter().max_by_key(|(left, _)| left)?;
        let until = clock(Utc::now(), *left)?;
        let jobs = match waits.len() {
            1 => String::new(),
            jobs => format!(" for {}, the last of them", count(jobs as u64)),
        };
        Some(format!(
            "{doubt}: conductors wait{jobs} until {until}; --now ends the wait"
        ))
    }
}

/// Returns a time today, or else with its date, and the time left.
fn clock(now: DateTime<Utc>, left: TimeDelta) -> Option<String> {
    let until = now.checked_add_signed(left)?;
    let format = match until.date_naive() == now.date_naive() {
        true => "%H:%M UTC",
        false => "%Y-%m-%d %H:%M UTC",
    };
    let left = duration::brief(left.to_std().ok()?);
    Some(format!("{} ({left})", until.format(format)))
}

/// Returns how long the claim of a started job lasts if its owner stops renewing it.
fn left(entry: &Entry) -> Option<TimeDelta> {
    let job = entry.job().filter(|job| job.history.attempts > 0)?;
    let holding = job.holding.as_ref().filter(|it| it.fence.is_some())?;
    let left = match holding.lease {
        Lease::None => return None,
        Lease::Timed | Lease::Session => holding.expires_in.or(holding.outlives),
    };
    TimeDelta::from_std(left.unwrap_or(LEASE)).ok()
}
