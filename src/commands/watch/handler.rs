//! Runs the handler command for each event, one at a time and in order.

use std::{collections::VecDeque, ffi::OsString};

use anyhow::anyhow;

use super::printed_event::PrintedEvent;
use crate::{
    commands::parts::under_claim,
    context::Context,
    exit::{CommandError, ErrorPrinter, chain},
    process::{
        child::{CommandEnd, EXIT_GRACE, Process},
        clock::Boottime,
        command::{CommandSpec, Input},
    },
};

const WAITING: usize = 10_000;

#[derive(Debug)]
pub(super) struct Handler {
    command: CommandSpec,
    printer: ErrorPrinter,
    waiting: VecDeque<PrintedEvent>,
    /// How many of these come from before the watch; the limit excludes them.
    replayed: usize,
    /// Whether the last entry of the queue is the resync for the events beyond the limit.
    has_overflown: bool,
    running: Option<Process>,
    handled: usize,
    failed: usize,
}

impl Handler {
    pub(super) fn prepare(ctx: &Context, command: &[String]) -> anyhow::Result<Self> {
        let argv: Vec<OsString> = command.iter().map(OsString::from).collect();
        let search = ctx.environment.variable("PATH");
        let mut command = CommandSpec::here(&argv, search.as_deref())
            .map_err(|error| under_claim::not_run(ctx, error))?;
        for name in ctx.environment.withheld() {
            command.unset(name);
        }
        Ok(Self::new(command, ctx.printer().clone()))
    }

    fn new(command: CommandSpec, printer: ErrorPrinter) -> Self {
        Self {
            command,
            printer,
            waiting: VecDeque::new(),
            replayed: 0,
            has_overflown: false,
            running: None,
            handled: 0,
            failed: 0,
        }
    }

    /// Makes room for events from before the watch, which follow.
    pub(super) fn expect_replay(&mut self, events: usize) {
        self.replayed = events;
    }

    /// Queues an event.
    ///
    /// Returns `false` if a queued resync already stands for it.
    pub(super) fn take(&mut self, event: PrintedEvent) -> bool {
        if self.has_overflown {
            return false;
        }
        self.has_overflown = self.waiting.len() >= self.replayed.saturating_add(WAITING);
        self.waiting.push_back(match self.has_overflown {
            true => PrintedEvent::resync(),
            false => event,
        });
        true
    }

    pub(super) fn is_at_work(&self) -> bool {
        self.running.is_some() || !self.waiting.is_empty()
    }

    /// Starts the next command or waits for the present one; cancellation is safe.
    pub(super) async fn step(&mut self) -> anyhow::Result<()> {
        if let Some(process) = &self.running {
            let ended = process.ended().await?;
            self.running = None;
            let wrong = (ended != CommandEnd::Exit(0)).then(|| ended.to_string());
            self.record_result(wrong.as_deref());
            return Ok(());
        }
        if let Some(event) = self.waiting.pop_front() {
            self.replayed = self.replayed.saturating_sub(1);
            // The resync is the last entry.
            self.has_overflown &= !self.waiting.is_empty();
            let mut line = serde_json::to_vec(&event)?;
            line.push(b'\n');
            self.command.input = Input::Text(line);
            match Process::start(&self.command) {
                Ok(process) => self.running = Some(process),
                Err(error) => self.record_result(Some(&chain(&error))),
            }
        }
        Ok(())
    }

    fn record_result(&mut self, wrong: Option<&str>) {
        self.handled += 1;
        if let Some(wrong) = wrong {
            self.failed += 1;
            let error = anyhow!("the event handler failed: {wrong}");
            self.printer.print_error(&error);
        }
    }

    pub(super) async fn end(mut self, ended: anyhow::Result<()>) -> anyhow::Result<()> {
        if let Some(process) = self.running.take() {
            // A command that does not end is killed.
            let _ = process.stop(Boottime::now() + EXIT_GRACE, None).await;
        }
        ended.and(CommandError::partly("events", self.failed, self.handled))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::{
        board::{Event, EventKind},
        output::{Output, Style},
        suggest::Suggestion,
    };

    fn handler(program: &str) -> Handler {
        let argv = [OsString::from(program)];
        let printer =
            ErrorPrinter::new(&Output::new(Style::default()), Suggestion::default(), None);
        let command = CommandSpec::here(&argv, std::env::var_os("PATH").as_deref());
        Handler::new(command.unwrap(), printer)
    }

    #[test]
    fn queue_is_bounded_and_ends_with_a_resync() {
        let mut handler = handler("true");
        let posted = || PrintedEvent::of(&Event::now(EventKind::Posted));
        let taken = (0..WAITING + 5000).filter(|_| handler.take(posted()));
        assert_eq!(taken.count(), WAITING + 1);
        let kinds: Vec<_> = handler.waiting.iter().map(|it| it.event).collect();
        assert!(
            kinds[..WAITING]
                .iter()
                .all(|kind| *kind == EventKind::Posted)
        );
        assert_eq!(kinds[WAITING..], [EventKind::Resync]);
    }

    #[tokio::test]
    async fn events_from_before_the_watch_need_no_place_of_later_ones() {
        let mut handler = handler("true");
        handler.expect_replay(2);
        let taken = (0..WAITING + 5).filter(|_| handler.take(PrintedEvent::resync()));
        assert_eq!(taken.count(), WAITING + 3);
        handler.step().await.unwrap();
        assert_eq!(handler.replayed, 1);
    }

    #[tokio::test]
    async fn events_are_queued_again_after_a_resync() {
        let mut handler = handler("true");
        while handler.take(PrintedEvent::resync()) {}
        handler.waiting.drain(1..WAITING);
        assert!(!handler.take(PrintedEvent::resync()));
        for _ in 0..4 {
            handler.step().await.unwrap();
        }
        assert_eq!((handler.handled, handler.failed), (2, 0));
        assert!(handler.take(PrintedEvent::resync()));
    }

    #[tokio::test]
    async fn unstartable_command_fails_for_its_event_only() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        let write = || {
            fs::write(&script, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        };
        write();
        let mut handler = handler(script.to_str().unwrap());
        handler.take(PrintedEvent::resync());
        handler.take(PrintedEvent::resync());
        fs::remove_file(&script).unwrap();
        handler.step().await.unwrap();
        assert_eq!((handler.handled, handler.failed), (1, 1));
        write();
        while handler.is_at_work() {
            handler.step().await.unwrap();
        }
        assert_eq!((handler.handled, handler.failed), (2, 1));
    }
}
