//! Runs a command in the foreground, on the terminal if possible.

use std::io;

use rustix::process::Signal;

use super::{HeldJob, NotPerformed, Worker};
use crate::{
    lease::KeptLease,
    optional::or_never,
    process::{
        child::{CommandEnd, EXIT_GRACE, Process},
        clock::Boottime,
        command::CommandSpec,
        guard::Guard,
        signal::{ECHO, Signals},
        terminal::Terminal,
    },
};

/// Runs a command, and returns how it ended once none of its processes remains, and whether we passed an ending signal
/// on.
///
/// `signals` must be caught since before the claim. The lease is renewed throughout.
pub(crate) async fn perform_here(
    worker: &Worker,
    held: &mut HeldJob,
    command: &mut CommandSpec,
    signals: &mut Signals,
    mut terminal: Option<&mut Terminal>,
) -> Result<(CommandEnd, bool), NotPerformed> {
    worker.guard.check()?;
    worker.end_leftovers(held).await;
    if let Some(signal) = signals.pending().await {
        return Err(NotPerformed::Stopped(signal));
    }
    let aside = terminal.as_mut().map_or(Ok(()), |it| it.step_aside());
    let started = match aside {
        Ok(()) => worker.launch(held, command, Signal::KILL),
        Err(error) => Err(error.into()),
    };
    if let (Err(_), Some(terminal)) = (&started, &terminal) {
        terminal.rejoin();
    }
    let process = started?;
    let mut watch = ForegroundWatch {
        process: &process,
        guard: &worker.guard,
        terminal: terminal.as_deref_mut(),
        first: None,
    };
    let ended = watch.until_end(&mut held.lease, signals).await;
    let is_interrupted = watch.first.is_some();
    if let Some(terminal) = terminal {
        terminal.reclaim_foreground(process.group(), ended.as_ref().ok().copied());
    }
    let ended = worker.finish(held, process, ended).await;
    worker.guard.flush();
    Ok((ended?, is_interrupted))
}

struct ForegroundWatch<'a> {
    process: &'a Process,
    guard: &'a Guard,
    terminal: Option<&'a mut Terminal>,
    /// When the first ending signal was passed on.
    first: Option<Boottime>,
}

impl ForegroundWatch<'_> {
    async fn until_end(
        &mut self,
        lease: &mut KeptLease,
        signals: &mut Signals,
    ) -> Result<CommandEnd, NotPerformed> {
        if let Some(terminal) = &self.terminal {
            terminal.give_foreground(self.process.group());
        }
        loop {
            tokio::select! {
                biased;
                ended = self.process.ended() => return Ok(ended?),
                lost = lease.lost() => {
                    self.process.stop(lost.kill_at(), Some(self.guard)).await?;
                    return Err(lost.into());
                }
                signal = signals.next() => {
                    if let Some(ended) = self.pass_on(signal).await? {
                        return Ok(ended);
                    }
                }
                event = or_never(self.terminal.as_mut().map(|it| it.event())) => {
                    if let Some(terminal) = &mut self.terminal {
                        terminal.handle_signal(event, self.process).await;
                    }
                }
                never = self.guard.keep_alive(drop) => match never {},
            }
        }
    }

    /// Passes a signal on to the command. The second ending signal kills it.
    async fn pass_on(&mut self, signal: Signal) -> io::Result<Option<CommandEnd>> {
        let group = self.process.group();
        // A key typed at a terminal that the command does not hold is meant for the command alone.
        let is_typed = matches!(signal, Signal::INT | Signal::QUIT);
        if self.terminal.is_some() && is_typed {
            group.signal(signal);
            return Ok(None);
        }
        let since = *self.first.get_or_insert_with(Boottime::now);
        if self.terminal.as_ref().is_some_and(|it| it.is_front_gone()) {
            let kill_at = Boottime::now() + EXIT_GRACE;
            return self.process.stop(kill_at, Some(self.guard)).await.map(Some);
        }
        let is_second = (since + ECHO).is_past();
        group.signal(if is_second { Signal::KILL } else { signal });
        Ok(None)
    }
}
