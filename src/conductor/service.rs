//! A conductor as a service: notifications to the service manager, and signals from it.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use rustix::{
    process::Signal,
    time::{ClockId, clock_gettime},
};
use serde_json::json;
use tokio::time::{self, Instant};

use super::{
    log::Note,
    policy::{ExecutionPolicy, excerpt},
    shared::{Shared, Shutdown},
};
use crate::process::{child::EXIT_GRACE, signal::Signals};

const READY: &str = "READY=1";

const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// How long the shutdown may continue after the last notification.
const EXTENSION: &str = "EXTEND_TIMEOUT_USEC=15000000";

pub(crate) fn not_notified(error: &io::Error) -> Note {
    Note::new("not_notified").with("reason", error.to_string())
}

pub(crate) struct Steering<'a> {
    /// SIGUSR1, SIGUSR2, and SIGHUP where that does not end it.
    pub(crate) signals: Signals,
    pub(crate) reload: &'a dyn Fn() -> Result<Reloaded, String>,
}

pub(crate) struct Reloaded {
    pub(crate) policy: ExecutionPolicy,
    /// Settings that have changed and require a restart.
    pub(crate) needs_restart: Vec<String>,
}

pub(super) struct Service<'a> {
    shared: &'a Shared,
    steering: Steering<'a>,
    /// The longest extension of the shutdown, and its start.
    end: (Duration, Option<Instant>),
    sent: Vec<String>,
    contact: Option<Instant>,
    not_reloaded: Option<String>,
    has_complained: bool,
}

impl<'a> Service<'a> {
    pub(super) fn new(shared: &'a Shared, steering: Steering<'a>) -> Self {
        let settings = &shared.settings;
        Self {
            shared,
            steering,
            // By then every claim has been settled or has expired.
            end: (settings.grace + EXIT_GRACE + settings.lease, None),
            sent: Vec::new(),
            contact: None,
            not_reloaded: None,
            has_complained: false,
        }
    }

    pub(super) async fn run(&mut self) -> Infallible {
        let mut registered = self.shared.status.registered.subscribe();
        let mut shutdown = self.shared.shutdown.subscribe();
        loop {
            self.notify();
            tokio::select! {
                _ = registered.changed() => {}
                _ = shutdown.changed() => {}
                () = time::sleep(STATUS_INTERVAL), if self.shared.settings.service_manager.is_some() => {}
                signal = self.steering.signals.next() => self.handle_signal(signal),
            }
        }
    }

    fn handle_signal(&mut self, signal: Signal) {
        match signal {
            Signal::USR1 => self.turn_quiet(),
            Signal::HUP => self.reload(),
            _ => self.shared.status.log_all(),
        }
    }

    fn turn_quiet(&self) {
        self.shared.shutdown.send_if_modified(|shutdown| {
            let (next, event) = match shutdown {
                Shutdown::NotYet => (Shutdown::Quiet, "quiet"),
                Shutdown::Quiet => (Shutdown::NotYet, "quiet_over"),
                Shutdown::Finish | Shutdown::Abort(_) | Shutdown::Leave => return false,
            };
            *shutdown = next;
            self.shared.status.log(Note::new(event));
            true
        });
    }

    /// Reloads the execution policy. An unreadable or untrusted one changes nothing.
    fn reload(&mut self) {
        if self.shared.shutdown.borrow().is_ending() {
            return;
        }
        let is_ready = |line: &String| line == READY;
        if let Some(manager) = &self.shared.settings.service_manager
            && self.sent.iter().any(is_ready)
        {
            let now = clock_gettime(ClockId::Monotonic);
            let now = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
            let lines = ["RELOADING=1".to_owned(), format!("MONOTONIC_USEC={now}")];
            // Without it the manager ignores the end of the reload.
            let _ = manager.notify(&lines);
            self.sent.retain(|line| !is_ready(line));
        }
        let read = (self.steering.reload)();
        let note = match &read {
            Ok(read) if read.needs_restart.is_empty() => Note::new("reloaded"),
            Ok(read) => Note::new("reloaded").with("needs_restart", json!(read.needs_restart)),
            Err(reason) => Note::new("not_reloaded").with("reason", reason.as_str()),
        };
        self.shared.status.log(note);
        let policy = read.map(|read| self.shared.policy.send_replace(Arc::new(read.policy)));
        self.not_reloaded = policy.err();
    }

    pub(super) fn leave(&mut self) {
        self.shared.shutdown.send_replace(Shutdown::Finish);
        self.notify();
    }

    fn notify(&mut self) {
        let Some(manager) = &self.shared.settings.service_manager else {
            return;
        };
        let contact = self.shared.status.contact.last();
        let is_ready = *self.shared.status.registered.borrow();
        let is_stopping = self.shared.shutdown.borrow().is_ending();
        let state = [
            is_ready.then(|| READY.to_owned()),
            is_stopping.then(|| "STOPPING=1".to_owned()),
            Some(format!("STATUS={}", self.status())),
        ];
        let state: Vec<_> = state.into_iter().flatten().collect();
        let news = state.iter().filter(|line| !self.sent.contains(line));
        let mut lines: Vec<_> = news.cloned().collect();
        if is_stopping && self.end.1.get_or_insert_with(Instant::now).elapsed() < self.end.0 {
            lines.push(EXTENSION.to_owned());
        }
        // Only contact with the board is a sign of life: a conductor without a board runs no jobs.
        if manager.watchdog.is_some() && contact > self.contact {
            lines.push("WATCHDOG=1".to_owned());
        }
        if lines.is_empty() {
            return;
        }
        match manager.notify(&lines) {
            Ok(()) => (self.sent, self.contact) = (state, contact),
            // The next notification follows in a moment.
            Err(error) if !std::mem::replace(&mut self.has_complained, true) => {
                self.shared.status.log(not_notified(&error));
            }
            Err(_) => {}
        }
    }

    fn status(&self) -> String {
        let status = &self.shared.status;
        let (running, (jobs, or_more)) = status.work(|work| (work.runs.len(), work.queue));
        let lost = status.contact.problem();
        let running = format!("{running} of {} running", self.shared.settings.jobs);
        let is_registered = *status.registered.borrow();
        let work = match *self.shared.shutdown.borrow() {
            _ if !is_registered => "not registered yet".to_owned(),
            Shutdown::NotYet => match (jobs, or_more) {
                (0, _) => format!("{running}, no runnable jobs"),
                (jobs, false) => format!("{running}, {jobs} runnable"),
                (jobs, true) => format!("{running}, {jobs} or more runnable"),
            },
            Shutdown::Quiet => format!("quiet, {running}"),
            Shutdown::Finish | Shutdown::Abort(_) | Shutdown::Leave => format!("ending, {running}"),
        };
        let not_reloaded = self.not_reloaded.as_ref();
        let not_reloaded = not_reloaded.map(|why| format!("not reloaded: {}", excerpt(why)));
        let parts = lost.into_iter().chain([work]).chain(not_reloaded);
        let status = parts.collect::<Vec<_>>().join(", ");
        status.replace(char::is_control, " ")
    }
}
