//! Runs jobs under renewed claims.
//!
//! Nothing here prints or parses arguments. The caller supplies the execution policy and receives the results;
//! `process/spawn` copies the environment.
//!
//! A running conductor has concurrent parts, joined here: `picker` finds and claims jobs, `attempt` runs one,
//! `settler` reports the outcomes to the board, `lease` renews the claims. `releaser` releases claims without an
//! attempt, and `guard` lets no command outlive its claim.

pub(crate) mod admission;
mod attempt;
mod contact;
mod in_flight;
pub(crate) mod log;
pub(crate) mod meter;
#[cfg(test)]
mod model;
mod picker;
pub(crate) mod policy;
mod registration;
mod service;
mod settler;
mod shared;
#[cfg(test)]
mod simulation;
mod skipped;
mod slots;
mod spans;
mod status;
mod supervisor;

use std::{io, sync::Arc, time::Duration};

use thiserror::Error;

pub(crate) use self::{
    attempt::capture::Destination,
    service::{Reloaded, Steering, not_notified},
    spans::SpanFile,
    status::{ConductorStatus, WorkSummary},
};
use self::{
    log::Note, policy::ExecutionPolicy, registration::LeaseTerm, service::Service, shared::Shared,
    supervisor::Supervisor,
};
use crate::{
    board::{Board, BoardError, REFRESH, filter::Filters},
    job::Conductor,
    process::{service_manager::ServiceManager, signal::Signals},
    retry::RetryPolicy,
};

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) conductor: Conductor,
    /// The guard finds its commands by this mark, unique on this machine.
    pub(crate) mark: String,
    pub(crate) jobs: usize,
    pub(crate) lease: Duration,
    pub(crate) filters: Filters,
    pub(crate) until: StopCondition,
    pub(crate) policy: ExecutionPolicy,
    pub(crate) retry: RetryPolicy,
    pub(crate) output: Destination,
    pub(crate) time_limit: TimeLimit,
    pub(crate) grace: Duration,
    pub(crate) status: Arc<ConductorStatus>,
    pub(crate) spans: Option<SpanFile>,
    /// Variables of ours that no command may inherit.
    pub(crate) withheld: Vec<&'static str>,
    pub(crate) service_manager: Option<ServiceManager>,
}

impl Settings {
    /// The longest time between two heartbeats, and the pause after a failed one.
    fn refresh(&self) -> Duration {
        let manager = self.service_manager.as_ref();
        let patience = manager.and_then(|manager| manager.watchdog);
        patience.map_or(REFRESH, |patience| REFRESH.min(patience / 3))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimit {
    /// For jobs without their own timeout.
    pub(crate) usual: Option<Duration>,
    /// The upper bound for all jobs.
    pub(crate) most: Option<Duration>,
}

impl TimeLimit {
    fn of(self, own: Option<Duration>) -> Option<Duration> {
        let wanted = own.or(self.usual);
        wanted.into_iter().chain(self.most).min()
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct StopCondition {
    pub(crate) drained: bool,
    pub(crate) jobs: Option<u64>,
    pub(crate) idle: Option<Duration>,
}

impl StopCondition {
    fn has_end(self) -> bool {
        self.is_of_work() || self.idle.is_some()
    }

    /// Whether a limited amount of work ends it.
    fn is_of_work(self) -> bool {
        self.drained || self.jobs.is_some()
    }
}

#[derive(Debug, Error)]
pub(crate) enum Halted {
    #[error(transparent)]
    Board(#[from] BoardError),
    #[error("jobboard cannot supervise commands")]
    Unwatched(#[from] io::Error),
    #[error("a task of the conductor failed")]
    Broken,
}

/// The `signals` that end it must be caught before the first claim.
pub(crate) async fn conduct(
    board: Arc<dyn Board>,
    settings: Settings,
    signals: &mut Signals,
    steering: Steering<'_>,
) -> Result<(), Halted> {
    let shared = Arc::new(Shared::new(board, settings)?);
    let mut service = Service::new(&shared, steering);
    let done = tokio::select! {
        biased;
        never = service.run() => match never {},
        done = work(&shared, signals) => done,
    };
    service.leave();
    done
}

async fn work(shared: &Arc<Shared>, signals: &mut Signals) -> Result<(), Halted> {
    let settings = &shared.settings;
    let mut lease_term = LeaseTerm::new(settings.lease);
    let conductor = Conductor {
        report: registration::initial_entry(settings),
        ..settings.conductor.clone()
    };
    let registered = registration::register(&conductor, shared, &mut lease_term);
    tokio::select! {
        biased;
        _ = signals.next() => return Ok(()),
        registered = registered => registered?,
    }
    shared.status.registered.send_replace(true);
    let name = settings.conductor.name.as_str();
    let note = Note::new("conducting")
        .with("conductor", name)
        .with("board", shared.board.url());
    shared.status.log(note.with("jobs", settings.jobs));
    Supervisor::start(Arc::clone(shared), lease_term, conductor.report)
        .lead(signals)
        .await
}
