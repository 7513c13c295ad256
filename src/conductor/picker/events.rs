//! Receives board events, and waits for them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::{FutureExt, StreamExt, stream::BoxStream};
use tokio::time::{self, Instant};

use super::{EVENT_PAUSE, Picker};
use crate::{
    board::{BoardError, Event, EventKind, Result, backlog::BacklogChange},
    conductor::slots::Slots,
    job::Outcome,
    optional::or_never,
    process::clock,
};

/// How often to check what no event reports.
const RECHECK: Duration = Duration::from_secs(5);

impl Picker<'_> {
    /// Waits for free slots, and keeps the backlog current meanwhile.
    pub(super) async fn wait_for_slots(&mut self, slots: &Slots) -> Result<usize> {
        self.record_queue_length();
        let free = slots.some();
        let mut free = std::pin::pin!(free);
        if let Some(free) = free.as_mut().now_or_never() {
            return Ok(free);
        }
        self.outage.set_waiting(false);
        loop {
            let next_batch = self.events_read + EVENT_PAUSE;
            let next_event = async {
                time::sleep_until(next_batch).await;
                next(&mut self.events).await
            };
            tokio::select! {
                biased;
                free = &mut free => return Ok(free),
                event = next_event => {
                    self.receive(event)?;
                    self.read_pending_events()?;
                    self.record_queue_length();
                }
            }
        }
    }

    pub(super) async fn wait_for_more(&mut self) -> Result<()> {
        self.outage.set_waiting(false);
        self.shared.has_looked.send_replace(true);
        let next_due = self.backlog.next_not_before();
        let end_of_pause = self.pauses.first_end();
        let others_work = self.shared.settings.until.drained && self.shared.in_flight.are_empty();
        let may_age_in = self.shared.settings.filters.change_with_time();
        tokio::select! {
            biased;
            candidate = self.returned.recv() => {
                if let Some(candidate) = candidate {
                    self.backlog.offer(candidate, clock::wall());
                }
            }
            event = next(&mut self.events) => self.receive(event)?,
            () = or_never(next_due.map(at)) => {}
            () = or_never(end_of_pause.map(at)) => if end_of_pause <= Some(clock::wall()) {
                self.listed = None;
            },
            () = time::sleep(RECHECK), if self.misses_events => {}
            () = self.shared.in_flight.empty(), if self.shared.settings.until.drained && !others_work => {}
            () = time::sleep_until(self.next_count), if others_work && self.has_news => {}
            () = time::sleep(RECHECK), if others_work => self.has_news = true,
            // No event reports that a job has become old enough.
            () = time::sleep(RECHECK), if may_age_in => self.listed = None,
        }
        Ok(())
    }

    pub(super) fn read_pending_events(&mut self) -> Result<()> {
        while let Some(event) = next(&mut self.events).now_or_never() {
            self.receive(event)?;
        }
        self.events_read = Instant::now();
        Ok(())
    }

    fn receive(&mut self, event: Option<Result<Event>>) -> Result<()> {
        let event = event.unwrap_or_else(|| {
            let why = "the event stream ended";
            Err(BoardError::unreachable(self.shared.board.url(), why))
        })?;
        if let Some(subject) = &event.subject {
            // The event may mean that the record was repaired.
            self.unreadable.remove(&subject.key);
            if matches!(event.kind, EventKind::Consumed | EventKind::Trashed) {
                self.unanswered.remove(&subject.key);
            }
            if event.kind == EventKind::Consumed && event.outcome != Some(Outcome::Failed) {
                self.shared.status.ended(&subject.key);
            }
        }
        if event.kind == EventKind::Paused {
            // The pause may apply to jobs in the backlog. An empty backlog is listed again, and the pauses are read.
            self.backlog.clear();
        }
        if let (EventKind::Claimed, Some(job)) = (event.kind, &event.subject) {
            self.check_claim_event(&job.key, event.owner.as_ref());
        }
        match self.backlog.apply(&event, clock::wall()) {
            BacklogChange::Resync => self.listed = None,
            BacklogChange::More | BacklogChange::Less => self.has_news = true,
            BacklogChange::Nothing => {}
        }
        Ok(())
    }
}

async fn next(events: &mut Option<BoxStream<'_, Result<Event>>>) -> Option<Result<Event>> {
    or_never(events.as_mut().map(StreamExt::next)).await
}

async fn at(moment: DateTime<Utc>) {
    let ahead = (moment - clock::wall()).to_std().unwrap_or_default();
    // Looks again after a minute at most, because the clock may be set.
    let pause = match planted!(ReadsTheClockOnce) {
        true => ahead,
        false => ahead.min(Duration::from_secs(60)),
    };
    time::sleep(pause).await;
}
