//! Runs one command in the foreground, on the terminal if possible, under a lease.

use std::{io, sync::Arc, time::Duration};

use rustix::process::Signal;
use thiserror::Error;

use super::{KeptLease, Lost};
use crate::process::{
    child::{Ended, Process},
    clock::Boottime,
    command::{Command, NotRun},
    guard::Guard,
    label::Label,
    signal::Signals,
    spawn::{Bonds, Spawner},
    terminal::Terminal,
};

/// How long a command may take to exit after its terminal is gone.
const GRACE: Duration = Duration::from_secs(5);
/// A second signal within this time is an echo of the first: a shell and the kernel may both send one.
const ECHO: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) enum Performed {
    /// It ended, perhaps after we passed an ending signal on.
    Ended {
        ended: Ended,
        interrupted: Option<Signal>,
    },
    Lost(Lost),
    /// The signal came before the start.
    NotStarted(Signal),
}

#[derive(Debug, Error)]
pub(crate) enum NotPerformed {
    #[error(transparent)]
    NotRun(#[from] NotRun),
    /// It was killed, or never started.
    #[error("jobboard cannot supervise the command")]
    Unwatched(#[from] io::Error),
}

/// Runs a command under this label, and returns once none of its processes remains.
///
/// `signals` must be caught since before the claim. The lease is renewed throughout and still held on return, unless
/// it was lost.
pub(crate) async fn perform_here(
    (spawner, command, label): (&Spawner, &Command, Label),
    lease: &mut KeptLease,
    guard: &Arc<Guard>,
    signals: &mut Signals,
    mut terminal: Option<&mut Terminal>,
) -> Result<Performed, NotPerformed> {
    Signals::heed_children()?;
    guard.check()?;
    if let Some(signal) = signals.pending().await {
        return Ok(Performed::NotStarted(signal));
    }
    lease.announce(guard, label)?;
    // Any delay since the claim counts: no command may start too late.
    if let Some(lost) = lease.lost_by_now() {
        guard.not_started();
        return Ok(Performed::Lost(lost));
    }
    if let Some(terminal) = &mut terminal
        && let Err(error) = terminal.step_aside()
    {
        guard.not_started();
        terminal.rejoin();
        return Err(error.into());
    }
    let started = start(spawner, command, label).await;
    if started.is_err() {
        guard.not_started();
    }
    if let (Err(_), Some(terminal)) = (&started, &terminal) {
        terminal.rejoin();
    }
    let process = started?;
    let mut watch = Watch {
        process: &process,
        label,
        lease,
        guard,
        terminal: terminal.as_deref_mut(),
        first: None,
    };
    let performed = watch.over(signals).await;
    if let Some(terminal) = terminal {
        let ended = match &performed {
            Ok(Performed::Ended { ended, .. }) => Some(*ended),
            _ => None,
        };
        terminal.take_back(process.group(), ended);
    }
    process.clear_away(guard).await;
    guard.flush();
    Ok(performed?)
}

async fn start(spawner: &Spawner, command: &Command, label: Label) -> Result<Process, NotRun> {
    let bonds = Bonds {
        label,
        at_our_death: Some(Signal::KILL),
    };
    let mut process = Process::start_with(spawner, command, Some(bonds))?;
    process.begun(command).await?;
    Ok(process)
}

struct Watch<'a> {
    process: &'a Process,
    label: Label,
    lease: &'a mut KeptLease,
    guard: &'a Arc<Guard>,
    terminal: Option<&'a mut Terminal>,
    /// The first ending signal, and its time.
    first: Option<(Signal, Boottime)>,
}

impl Watch<'_> {
    async fn over(&mut self, signals: &mut Signals) -> io::Result<Performed> {
        let group = self.process.group();
        self.lease.protect(self.guard, group, self.label)?;
        if let Some(terminal) = &self.terminal {
            terminal.lend(group);
        }
        let ended = loop {
            tokio::select! {
                biased;
                ended = self.process.ended() => break ended?,
                lost = self.lease.lost() => {
                    self.process.stop(lost.kill_at(), Some(self.guard)).await?;
                    return Ok(Performed::Lost(lost));
                }
                signal = signals.next() => {
                    if let Some(ended) = self.pass_on(signal).await? {
                        break ended;
                    }
                }
                event = event(&mut self.terminal) => {
                    if let Some(terminal) = &mut self.terminal {
                        terminal.attend(event, self.process).await;
                    }
                }
                never = self.guard.tend(drop) => match never {},
            }
        };
        // A command that ended too late leaves nothing for us to settle.
        if let Some(lost) = self.lease.lost_by_now() {
            return Ok(Performed::Lost(lost));
        }
        Ok(Performed::Ended {
            ended,
            interrupted: self.first.map(|(signal, _)| signal),
        })
    }

    /// Passes a signal on to the command. The second ending signal kills it.
    async fn pass_on(&mut self, signal: Signal) -> io::Result<Option<Ended>> {
        let group = self.process.group();
        // A key typed at a terminal that the command does not hold is meant for the command alone.
        let is_typed = matches!(signal, Signal::INT | Signal::QUIT);
        if self.terminal.is_some() && is_typed {
            group.signal(signal);
            return Ok(None);
        }
        let &mut (_, since) = self.first.get_or_insert((signal, Boottime::now()));
        if self.terminal.as_ref().is_some_and(|it| it.is_front_gone()) {
            let ended = self
                .process
                .stop(Boottime::now() + GRACE, Some(self.guard))
                .await?;
            return Ok(Some(ended));
        }
        let is_second = (since + ECHO).is_past();
        group.signal(if is_second { Signal::KILL } else { signal });
        Ok(None)
    }
}

async fn event(terminal: &mut Option<&mut Terminal>) -> Signal {
    match terminal {
        Some(terminal) => terminal.event().await,
        None => std::future::pending().await,
    }
}
