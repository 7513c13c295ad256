//! Registers a conductor, waits for its name if that is taken, and publishes its status.

use std::{sync::Arc, time::Duration};

use tokio::time::{self, Instant};

use super::{
    Settings,
    log::Note,
    policy::ExecutionPolicy,
    shared::{Shared, Shutdown},
};
use crate::{
    board::{Board, BoardError, Result},
    duration,
    job::{Conductor, ConductorReport, Course, PublishedPolicy},
    process::group::process_start,
};

/// A dead conductor's entry is gone after this long.
const NAME_TIMEOUT: Duration = Duration::from_secs(45);

const NAME_PAUSE: Duration = Duration::from_secs(1);

const PUBLISH_PAUSE: Duration = Duration::from_secs(1);

/// How often to look at the handlers without a word of a change.
const POLICY_INTERVAL: Duration = Duration::from_secs(10);

pub(super) fn initial_entry(settings: &Settings) -> ConductorReport {
    let course = match settings.until.drained {
        true => Course::Draining,
        false => Course::Working,
    };
    ConductorReport {
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        process: process_start(),
        slots: Some(settings.jobs),
        lease: Some(settings.lease.as_secs_f64()),
        running: Some(0),
        course,
        takes: Some(published_policy(settings, &settings.policy)),
        ..ConductorReport::default()
    }
}

fn published_policy(settings: &Settings, policy: &ExecutionPolicy) -> PublishedPolicy {
    PublishedPolicy {
        filters: settings.filters.texts(),
        ..policy.published(&settings.retry)
    }
}

/// Publishes changes forever, at a limited rate.
pub(super) async fn publish(shared: Arc<Shared>, mut last: ConductorReport) {
    let mut policy = shared.policy.subscribe();
    let (course, mut takes) = (last.course, last.takes.clone());
    let (mut looked, mut heard) = (Instant::now(), Instant::now());
    loop {
        time::sleep(PUBLISH_PAUSE).await;
        let mut entry = last.clone();
        entry.course = match *shared.shutdown.borrow() {
            Shutdown::NotYet => course,
            Shutdown::Quiet => Course::Quiet,
            Shutdown::Finish | Shutdown::Abort(_) | Shutdown::Leave => Course::Ending,
        };
        shared.status.publish_in(&mut entry);
        if looked.elapsed() >= POLICY_INTERVAL || policy.has_changed().unwrap_or_default() {
            let seen = published_policy(&shared.settings, &policy.borrow_and_update());
            if takes.replace(seen) != takes {
                // A handler came or was mended: skipped jobs are looked at again.
                shared.policy.send_modify(|_| ());
            }
            looked = Instant::now();
        }
        entry.takes.clone_from(&takes);
        if entry == last && heard.elapsed() < shared.settings.refresh() {
            continue;
        }
        let answer = shared.board.publish(&entry).await;
        shared.status.contact.published(&answer);
        match answer {
            Ok(()) => (last, heard) = (entry, Instant::now()),
            Err(error) => {
                // Other parts may have no reason to contact the board.
                if error.is_away() {
                    shared.status.contact.record_failure(&error);
                }
                time::sleep(shared.settings.refresh()).await;
            }
        }
    }
}

pub(super) async fn register(
    conductor: &Conductor,
    shared: &Shared,
    lease_term: &mut LeaseTerm,
) -> Result<(), BoardError> {
    let board = &*shared.board;
    let mut outage = shared.outage();
    let mut taken_since = None;
    loop {
        let entered = async {
            // First of all: the entry may share the session that keeps the claims.
            lease_term.ask(shared).await?;
            board.register(conductor).await
        };
        match entered.await {
            Ok(()) => {
                outage.end();
                return Ok(());
            }
            Err(error @ BoardError::NameTaken { .. }) => {
                outage.end();
                if taken_since.is_none() {
                    shared.status.log(taken(board, &conductor.name).await);
                }
                let since = *taken_since.get_or_insert_with(Instant::now);
                if since.elapsed() > NAME_TIMEOUT {
                    return Err(error);
                }
                time::sleep(NAME_PAUSE).await;
            }
            Err(error) if error.is_fatal_at_start() => return Err(error),
            Err(error) => {
                outage.begin(&error);
                outage.pause().await;
            }
        }
    }
}

async fn taken(board: &dyn Board, name: &str) -> Note {
    let note = Note::new("name_taken").with("conductor", name);
    let conductors = board.conductors().await.unwrap_or_default();
    let mut registered = conductors.into_iter().filter(|other| !other.has_left);
    let other = registered.find(|other| other.name == name);
    let (host, pid) = other.map(|other| (other.host, other.pid)).unzip();
    let note = note.with_any("host", host).with_any("pid", pid);
    note.with("waiting", duration::exact(NAME_TIMEOUT))
}

#[derive(Debug)]
pub(super) struct LeaseTerm {
    pub(super) wanted: Duration,
    granted: Duration,
}

impl LeaseTerm {
    pub(super) fn new(wanted: Duration) -> Self {
        Self {
            wanted,
            granted: wanted,
        }
    }

    pub(super) async fn ask(&mut self, shared: &Shared) -> Result<Duration> {
        let granted = shared.board.lease_term(self.wanted).await?;
        if std::mem::replace(&mut self.granted, granted) != granted {
            let note = Note::new("lease_granted")
                .with("wanted", duration::exact(self.wanted))
                .with("granted", duration::exact(granted));
            shared.status.log(note);
        }
        Ok(granted)
    }
}
