//! The command that is run for each event: one at a time, in order, fed with the event.

use std::{collections::VecDeque, ffi::OsString, time::Duration};

use super::{super::perform, happening::Happening};
use crate::{
    conductor::{
        clock::Boottime,
        front,
        performance::{Input, Performance},
        process::{Ended, Process},
    },
    context::Context,
    exit::CommandError,
    output::{Text, complain},
};

/// How many events may wait for their turn.
const WAITING: usize = 10_000;

/// How long a command may take to end when we do.
const GRACE: Duration = Duration::from_secs(5);

/// Runs a command for one event after the other.
#[derive(Debug)]
pub(super) struct Handler {
    performance: Performance,
    waiting: VecDeque<Happening>,
    running: Option<Process>,
    handled: usize,
    failed: usize,
}

impl Handler {
    /// Takes a command; one that cannot be found ends it here.
    pub(super) fn prepare(ctx: &Context, command: &[String]) -> anyhow::Result<Self> {
        let argv: Vec<OsString> = command.iter().map(OsString::from).collect();
        let search = ctx.environment.variable("PATH");
        let mut performance = Performance::here(&argv, search.as_deref())
            .map_err(|error| perform::not_run(ctx, error))?;
        for name in ctx.environment.secrets() {
            performance.unset(name);
        }
        performance.unset(front::MARK);
        Ok(Self {
            performance,
            waiting: VecDeque::new(),
            running: None,
            handled: 0,
            failed: 0,
        })
    }

    /// Has the command run for an event, once those before it are done.
    pub(super) fn take(&mut self, happening: Happening) {
        if self.waiting.len() >= WAITING {
            self.waiting.clear();
            self.waiting.push_back(Happening::resync());
        }
        self.waiting.push_back(happening);
    }

    pub(super) fn is_at_work(&self) -> bool {
        self.running.is_some() || !self.waiting.is_empty()
    }

    /// Starts the next command, or waits for the end of the present one; may be given up and called again.
    pub(super) async fn step(&mut self) -> anyhow::Result<()> {
        if let Some(process) = &self.running {
            let ended = process.ended().await?;
            self.running = None;
            self.judge(ended);
            return Ok(());
        }
        if let Some(happening) = self.waiting.pop_front() {
            let mut event = serde_json::to_vec(&happening)?;
            event.push(b'\n');
            self.performance.input = Input::Text(event);
            self.running = Some(Process::start(&self.performance)?);
        }
        Ok(())
    }

    fn judge(&mut self, ended: Ended) {
        self.handled += 1;
        if ended != Ended::Exit(0) {
            self.failed += 1;
            let what = ended;
            complain(&Text::from(format!(
                "error: an event was not handled: {what}"
            )));
        }
    }

    /// Ends what still runs, and says whether all went well, if nothing else is to be said.
    pub(super) async fn end(mut self, ended: anyhow::Result<()>) -> anyhow::Result<()> {
        if let Some(process) = self.running.take() {
            // It is gone in any case: what does not end is killed.
            let _ = process.stop(Boottime::now() + GRACE).await;
        }
        if ended.is_ok() && self.failed > 0 {
            let (failed, total) = (self.failed, self.handled);
            return Err(CommandError::Partly { failed, total }.into());
        }
        ended
    }
}
