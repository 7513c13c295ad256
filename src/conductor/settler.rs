//! Settles jobs in batches, and retries until the board answers.

pub(super) mod refused;
pub(super) mod releaser;

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender},
        watch,
    },
    time::{Instant, timeout_at},
};

use self::refused::RefusedSettlements;
use super::{
    attempt::{FinishedAttempt, JobAttempt, capture::Destination},
    contact::Outage,
    log::Note,
    meter::CountedEnd,
    shared::{Shared, Shutdown, left},
};
use crate::{
    board::{BoardError, backlog::Candidate, chain},
    job::{Aftermath, Decision, Failure, Settlement},
    lease::Lost,
    worker::{HeldJob, settling::Earlier},
};

const MAX_SETTLEMENTS_PER_BATCH: usize = 256;

/// How long due jobs wait for more.
const COLLECT_TIME: Duration = Duration::from_millis(10);

pub(super) struct Settler {
    shared: Arc<Shared>,
    finished: UnboundedReceiver<FinishedAttempt>,
    returned: UnboundedSender<Candidate>,
    refused: RefusedSettlements,
    has_reported_forgetting: bool,
}

pub(super) struct DueSettlement {
    pub(super) attempt: JobAttempt,
    pub(super) decision: Decision,
    max_attempts: u32,
    seconds: Option<f64>,
    /// Whether the board may have settled it without our receiving the reply.
    is_unconfirmed: bool,
}

impl Settler {
    pub(super) fn new(
        shared: Arc<Shared>,
        finished: UnboundedReceiver<FinishedAttempt>,
        returned: UnboundedSender<Candidate>,
    ) -> Self {
        Self {
            shared,
            finished,
            returned,
            refused: RefusedSettlements::default(),
            has_reported_forgetting: false,
        }
    }

    /// Returns only errors that no retry can fix. Unsettled claims expire.
    pub(super) async fn run(mut self) -> Result<(), BoardError> {
        let mut due: Vec<DueSettlement> = Vec::new();
        let mut outage = self.shared.outage();
        let mut shutdown = self.shared.shutdown.subscribe();
        let mut is_open = true;
        loop {
            let is_left = *shutdown.borrow() == Shutdown::Leave;
            if is_left {
                while let Ok(finished) = self.finished.try_recv() {
                    due.extend(self.take(finished));
                }
            }
            if is_left || !is_open && due.is_empty() && self.refused.is_hopeless() {
                self.leave(due, "a further signal ended the wait for the board");
                return Ok(());
            }
            if due.is_empty() {
                tokio::select! {
                    biased;
                    finished = self.finished.recv(), if is_open => match finished {
                        Some(finished) => due.extend(self.take(finished)),
                        None => is_open = false,
                    },
                    () = self.refused.due() => {}
                    () = left(&mut shutdown) => continue,
                }
            }
            self.gather(&mut due).await;
            due = self.drop_lost(due);
            let refused = self.refused.take_due();
            let refused = self.drop_lost(refused);
            let is_idle = due.is_empty() && refused.is_empty();
            let mut settled = self.settle(&mut due).await;
            // A rejected settlement must not block the others.
            for refused in refused {
                let mut one = vec![refused];
                // Each request to an absent board would take its whole time limit.
                if !settled.as_ref().is_err_and(BoardError::is_away) {
                    settled = self.settle(&mut one).await.and(settled);
                }
                due.append(&mut one);
            }
            self.set_aside();
            match settled {
                Ok(()) if is_idle => outage.set_waiting(false),
                Ok(()) if due.is_empty() => outage.end(),
                // Every job got an answer, but not all as expected: retry later.
                Ok(()) => pause(&mut outage, &mut shutdown).await,
                Err(error) if error.is_denied() => {
                    self.leave(due, &chain(&error));
                    return Err(error);
                }
                Err(error) => {
                    outage.begin(&error);
                    pause(&mut outage, &mut shutdown).await;
                }
            }
        }
    }

    /// Waits a moment for more, if other jobs are running: each exchange is as expensive as a job.
    async fn gather(&mut self, due: &mut Vec<DueSettlement>) {
        let end = Instant::now() + COLLECT_TIME;
        while due.len() < MAX_SETTLEMENTS_PER_BATCH && self.shared.in_flight.count() > due.len() {
            match timeout_at(end, self.finished.recv()).await {
                Ok(Some(finished)) => due.extend(self.take(finished)),
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn take(&mut self, finished: FinishedAttempt) -> Option<DueSettlement> {
        let attempt = finished.attempt;
        if let Some(took) = finished.took {
            (self.shared.status).work(|work| work.measured.runs.add(took));
        }
        let decision = match finished.decision {
            Err(lost) => {
                self.lose(&attempt, &lost);
                return None;
            }
            Ok(decision) => decision,
        };
        let is_unused = matches!(decision, Decision::Abandon(Aftermath::Interrupted));
        if finished.took.is_none() && is_unused {
            self.shared.status.work(|work| work.unused_claims += 1);
        }
        let rounded = |took: Duration| (took.as_secs_f64() * 1000.0).round() / 1000.0;
        let seconds = finished.took.map(rounded);
        if let Some(seconds) = seconds {
            let failure = decision.failure().map(Failure::headline);
            let note = Note::new("running_end")
                .of(&attempt.tag)
                .with("seconds", seconds);
            self.shared.status.log(note.with_any("failure", failure));
        }
        Some(DueSettlement {
            attempt,
            decision,
            max_attempts: finished.max_attempts,
            seconds,
            is_unconfirmed: false,
        })
    }

    /// Drops claims that expired while the board was silent: another client may hold them by now.
    fn drop_lost(&mut self, due: Vec<DueSettlement>) -> Vec<DueSettlement> {
        due.into_iter()
            .filter_map(|mut due| match due.attempt.held.lease.lost_by_now() {
                None => Some(due),
                Some(lost) => {
                    self.lose(&due.attempt, &lost);
                    None
                }
            })
            .collect()
    }

    fn lose(&mut self, attempt: &JobAttempt, lost: &Lost) {
        let name = &attempt.tag.name;
        (self.shared.status).work(|work| work.measured.ended(name, CountedEnd::Lost));
        self.refused.forget(&attempt.held.job.key);
        self.shared
            .status
            .remember_unfinished(&attempt.held.job.key, &attempt.tag);
        let reason = match std::error::Error::source(lost) {
            Some(source) => format!("{lost}: {source}"),
            None => lost.to_string(),
        };
        let note = Note::new("claim_lost").of(&attempt.tag);
        self.shared.status.log(note.with("reason", reason));
        // The board may still list the claim as ours: its data may have come back, or a renewal arrived unanswered.
        // It counts as expired.
        let key = &attempt.held.job.key;
        self.shared.in_flight.mark_unreleased(key, Aftermath::None);
    }

    fn offer_again(&self, attempt: &JobAttempt, not_before: Option<DateTime<Utc>>) {
        self.shared.in_flight.remove(&attempt.held.job.key);
        // No picker runs while the conductor shuts down.
        let _ = self.returned.send(Candidate {
            not_before,
            // The key may belong to another posting by now.
            ..Candidate::unverified(&attempt.held.job)
        });
    }

    async fn settle(&mut self, due: &mut Vec<DueSettlement>) -> Result<(), BoardError> {
        if due.is_empty() {
            return Ok(());
        }
        let settlement = |due: &DueSettlement| {
            let HeldJob { job, fence, .. } = &due.attempt.held;
            Settlement::of_command(job, &due.decision, &self.shared.owner, fence)
        };
        let settlements: Vec<_> = due.iter().map(settlement).collect();
        let answers = match self.shared.board.settle(&settlements).await {
            Ok(answers) => answers,
            Err(error) if is_refusal(&error) && !error.is_denied() => {
                let due = due.drain(..);
                due.for_each(|due| self.refused.add(due, &error, &self.shared.status));
                return Ok(());
            }
            Err(error) => {
                for due in due {
                    due.is_unconfirmed |= may_be_done(&error);
                }
                return Err(error);
            }
        };
        let mut open = Vec::new();
        let mut failure = None;
        let mut answers = answers.into_iter();
        for mut item in due.drain(..) {
            match answers.next() {
                Some(Ok(settled)) => {
                    self.report_forgetting(settled.forgotten);
                    self.done(item);
                }
                Some(Err(error)) if error.is_about_the_claim() => {
                    let lease = &mut item.attempt.held.lease;
                    let earlier = match item.is_unconfirmed {
                        true => Earlier::of(&error, &item.decision, Some(lease)),
                        false => Earlier::Refused,
                    };
                    match earlier {
                        Earlier::Settled => self.done(item),
                        Earlier::Unknown | Earlier::Refused => {
                            self.lose(&item.attempt, &Lost::refused(error, Duration::ZERO));
                        }
                    }
                }
                Some(Err(error)) if is_refusal(&error) => {
                    self.refused.add(item, &error, &self.shared.status);
                }
                Some(Err(error)) => {
                    item.is_unconfirmed |= may_be_done(&error);
                    failure = Some(error);
                    open.push(item);
                }
                None => open.push(item),
            }
        }
        *due = open;
        failure.map_or(Ok(()), Err)
    }

    fn report_forgetting(&mut self, why: Option<String>) {
        if let Some(why) = why
            && !std::mem::replace(&mut self.has_reported_forgetting, true)
        {
            let note = Note::new("not_remembered").with("reason", why);
            self.shared.status.log(note);
        }
    }

    fn done(&mut self, due: DueSettlement) {
        let DueSettlement {
            attempt,
            decision,
            max_attempts,
            seconds,
            ..
        } = due;
        let key = &attempt.held.job.key;
        self.refused.forget(key);
        let event = match decision {
            Decision::Consume | Decision::ConsumeFailed(_) => "job_consumed",
            Decision::Trash(_) | Decision::Spent(_) => "job_trashed",
            Decision::Abandon(Aftermath::Postponed { .. }) => "job_postponed",
            Decision::Abandon(_) => "job_abandoned",
        };
        self.shared.status.settled(key, &attempt.tag, &decision);
        let note = Note::new(event).of(&attempt.tag);
        let mut note = note.with_any("seconds", seconds);
        let failure = decision.failure();
        if let Some(failure) = failure {
            note = note.with("attempt", attempt.held.job.attempts.count);
            note = note.with("max_attempts", max_attempts);
            note = note.with("reason", failure.headline());
        }
        // Prefixed lines were printed already.
        if self.shared.settings.output != Destination::Prefix {
            let lines = failure.into_iter().flat_map(Failure::last_lines);
            note = lines.fold(note, |note, (stream, text)| note.with(stream, text));
        }
        let note = note.with_time("not_before", decision.not_before());
        self.shared.status.log(note);
        match decision {
            Decision::Abandon(_) => self.offer_again(&attempt, decision.not_before()),
            _ => self.shared.in_flight.remove(key),
        }
    }
}

async fn pause(outage: &mut Outage, shutdown: &mut watch::Receiver<Shutdown>) {
    tokio::select! {
        () = outage.pause() => {}
        () = left(shutdown) => {}
    }
}

/// Retrying is harmless: owner and fence identify this claim alone.
fn may_be_done(error: &BoardError) -> bool {
    matches!(error, BoardError::Unknown { .. })
}

/// Whether the board answers and knows our claim, but still refuses.
fn is_refusal(error: &BoardError) -> bool {
    !(error.is_away() || error.is_about_the_claim())
}
