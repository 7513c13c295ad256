//! The guard of a simulated conductor, and the pipe between them.

use std::{future::Future, io};

use rustix::process::Signal;
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        watch,
    },
    task::AbortHandle,
};

use super::{
    End,
    machine::machine,
    part::part_of,
    program::{current, guard_of},
};
use crate::process::child::CommandEnd;

/// The conductor's end of the pipe to its guard.
#[derive(Debug)]
pub(crate) struct Mailbox {
    lines: UnboundedSender<String>,
    guard: AbortHandle,
}

impl Mailbox {
    pub(crate) fn write(&self, lines: &str) -> io::Result<()> {
        let sent = self.lines.send(lines.to_owned());
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    pub(crate) fn is_read(&self) -> bool {
        !self.lines.is_closed()
    }

    pub(crate) fn kill(&self) {
        self.guard.abort();
    }
}

/// Starts a guard that survives its conductor. `label` is the number in the labels of its commands.
pub(crate) fn start_guard<F>(
    label: u32,
    guard: impl FnOnce(UnboundedReceiver<String>) -> F,
) -> Option<(End, Mailbox)>
where
    F: Future<Output = ()> + Send + 'static,
{
    let machine = machine()?;
    let (lines, received) = unbounded_channel();
    let (sender, end) = watch::channel(None);
    let conductor = current();
    let guarding = part_of(conductor.map(guard_of), guard(received));
    let guard = tokio::spawn(async move {
        // However it ends, the conductor learns of it.
        let _end = EndOnDrop(sender);
        guarding.await;
    });
    let guard = guard.abort_handle();
    if let Some(conductor) = conductor {
        machine.add_guard(conductor, (guard.clone(), label));
    }
    Some((end, Mailbox { lines, guard }))
}

struct EndOnDrop(watch::Sender<Option<CommandEnd>>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0
            .send_replace(Some(CommandEnd::Signal(Signal::KILL.as_raw())));
    }
}
