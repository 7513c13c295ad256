//! Settles jobs in batches, and retries until the board answers.

pub(super) mod refused;
pub(super) mod releaser;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender},
    time::{Instant, timeout_at},
};

use self::refused::Refused;
use super::{
    attempt::{Attempt, Finished, capture::Destination},
    meter::End,
    outage::{Outage, is_final},
    progress::{Note, Tag},
    shared::Shared,
};
use crate::{
    board::{BoardError, backlog::Candidate},
    job::{Aftermath, Failure, Identity, JobKey, Outcome, Settlement},
    lease::Lost,
};

const MOST: usize = 256;

/// How long due jobs wait for more.
const MOMENT: Duration = Duration::from_millis(10);

/// How many failed jobs the final summary names.
const MOST_NAMED: usize = 5;

/// How many failing jobs an endless conductor remembers: other conductors may finish them.
const MOST_FAILING: usize = 1000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) ran: u64,
    pub(crate) consumed: u64,
    pub(crate) abandoned: u64,
    pub(crate) trashed: u64,
    /// Claims lost while their commands ran.
    pub(crate) lost: u64,
    /// Jobs that ran and that the board did not let us settle.
    pub(crate) unsettled: u64,
    /// The number of skipped jobs per reason.
    pub(crate) passed_over: BTreeMap<String, u64>,
    pub(super) has_refused: bool,
    /// Jobs that failed, went back to the board and have not ended since.
    failing: HashMap<JobKey, Arc<Tag>>,
    /// The first few in the trash.
    given_up: Vec<Arc<Tag>>,
}

impl Tally {
    /// Whether a job failed or remains unsettled.
    pub(crate) fn has_failures(&self) -> bool {
        let is_incomplete = self.unsettled > 0 || self.has_refused;
        self.failed() > 0 || is_incomplete
    }

    /// Returns how many jobs are in the trash or still failing.
    pub(crate) fn failed(&self) -> u64 {
        self.trashed + self.failing.len() as u64
    }

    pub(crate) fn failed_jobs(&self) -> Vec<&Tag> {
        let mut failing: Vec<&Tag> = self.failing.values().map(|tag| &**tag).collect();
        failing.sort_unstable_by_key(|tag| (&tag.name, &tag.uuid));
        let given_up = self.given_up.iter().map(|tag| &**tag);
        given_up.chain(failing).take(MOST_NAMED).collect()
    }
}

pub(super) struct Settler {
    pub(super) shared: Arc<Shared>,
    pub(super) finished: UnboundedReceiver<Finished>,
    /// Returns released jobs to the picker.
    pub(super) returned: UnboundedSender<Candidate>,
    /// Whether it counts all jobs that are still failing.
    pub(super) remembers_failures: bool,
    pub(super) tally: Tally,
    /// Settlements that the board rejects for a reason other than the claim.
    pub(super) refused: Refused,
    /// Whether the missing history was reported.
    pub(super) has_told_of_forgetting: bool,
}

pub(super) struct Due {
    pub(super) attempt: Attempt,
    pub(super) outcome: Outcome,
    /// Seconds, if the command ran.
    took: Option<f64>,
    max_attempts: u32,
    /// Whether the board may have settled it without our receiving the reply.
    is_unconfirmed: bool,
}

impl Settler {
    /// Returns only errors that no retry can fix. Unsettled claims expire.
    pub(super) async fn run(mut self) -> (Tally, Option<BoardError>) {
        let mut due: Vec<Due> = Vec::new();
        let mut outage = Outage::new(&self.shared);
        let mut is_open = true;
        loop {
            if due.is_empty() {
                tokio::select! {
                    finished = self.finished.recv(), if is_open => match finished {
                        Some(finished) => due.extend(self.take(finished)),
                        None => is_open = false,
                    },
                    () = self.refused.ripe() => {}
                }
            }
            if !is_open && due.is_empty() && self.refused.is_hopeless() {
                self.leave_refused();
                return (self.tally, None);
            }
            self.gather(&mut due).await;
            due = self.drop_lost(due);
            let refused = self.refused.take_ripe();
            let refused = self.drop_lost(refused);
            let is_idle = due.is_empty() && refused.is_empty();
            let mut settled = self.settle(&mut due).await;
            // A rejected settlement must not block the others.
            for refused in refused {
                let mut one = vec![refused];
                settled = self.settle(&mut one).await.and(settled);
                due.append(&mut one);
            }
            self.set_aside();
            match settled {
                Ok(()) if is_idle => outage.wait(false),
                Ok(()) if due.is_empty() => outage.is_over(),
                // Every job got an answer, but not all as expected: retry later.
                Ok(()) => outage.pause().await,
                Err(error) if is_final(&error) => {
                    for due in due {
                        self.shared.in_flight.put_down(&due.attempt.job.key);
                    }
                    self.leave_refused();
                    return (self.tally, Some(error));
                }
                Err(error) => {
                    outage.begin(&error);
                    outage.pause().await;
                }
            }
        }
    }

    /// Waits a moment for more, if other jobs are running: each exchange is as expensive as a job.
    async fn gather(&mut self, due: &mut Vec<Due>) {
        let end = Instant::now() + MOMENT;
        while due.len() < MOST && self.shared.in_flight.count() > due.len() {
            match timeout_at(end, self.finished.recv()).await {
                Ok(Some(finished)) => due.extend(self.take(finished)),
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Accepts a finished job. A lost claim is not ours to settle.
    fn take(&mut self, finished: Finished) -> Option<Due> {
        self.tally.ran += u64::from(finished.has_run);
        if finished.has_run {
            self.shared.account.ran(finished.took);
        }
        let took =
            (finished.has_run).then(|| (finished.took.as_secs_f64() * 1000.0).round() / 1000.0);
        match finished.end {
            Err(lost) => {
                self.lose(&finished.attempt, &lost);
                None
            }
            Ok(outcome) => {
                if let Some(took) = took {
                    let mut note = Note::new("running_end")
                        .of(&finished.attempt.tag)
                        .with("seconds", took);
                    if let Some(failure) = outcome.failure() {
                        note = note.with("failure", failure.headline());
                    }
                    self.shared.reporter.tell(note);
                }
                Some(Due {
                    attempt: finished.attempt,
                    outcome,
                    took,
                    max_attempts: finished.max_attempts,
                    is_unconfirmed: false,
                })
            }
        }
    }

    /// Drops claims that expired while the board was silent: another client may hold them by now.
    fn drop_lost(&mut self, due: Vec<Due>) -> Vec<Due> {
        due.into_iter()
            .filter_map(|mut due| match due.attempt.lease.lost_by_now() {
                None => Some(due),
                Some(lost) => {
                    self.lose(&due.attempt, &lost);
                    None
                }
            })
            .collect()
    }

    fn lose(&mut self, attempt: &Attempt, lost: &Lost) {
        self.tally.lost += 1;
        self.shared.account.ended(&attempt.tag.name, End::Lost);
        self.refused.forget(&attempt.job.key);
        let reason = match std::error::Error::source(lost) {
            Some(source) => format!("{lost}: {source}"),
            None => lost.to_string(),
        };
        let note = Note::new("claim_lost").of(&attempt.tag);
        self.shared.reporter.tell(note.with("reason", reason));
        // The board may still list the claim as ours: its data may have come back, or a renewal arrived unanswered.
        // It counts as expired.
        let key = &attempt.job.key;
        self.shared.in_flight.let_slip(key, Aftermath::None);
    }

    /// Reports that a job is released and may be claimed again.
    fn give_back(&self, attempt: &Attempt, not_before: Option<DateTime<Utc>>) {
        let key = &attempt.job.key;
        self.shared.in_flight.put_down(key);
        // No picker runs while the conductor shuts down.
        let _ = self.returned.send(Candidate {
            key: key.clone(),
            rank: attempt.job.rank(),
            not_before,
            // The key may belong to another posting by now.
            is_vetted: false,
        });
    }

    async fn settle(&mut self, due: &mut Vec<Due>) -> Result<(), BoardError> {
        if due.is_empty() {
            return Ok(());
        }
        let settlements: Vec<_> = due
            .iter()
            .map(
                |Due {
                     attempt, outcome, ..
                 }| {
                    let claim = (&self.shared.owner, &attempt.fence);
                    let job = || Identity::from(&attempt.job);
                    Settlement::of_command(&attempt.job.key, job, outcome, claim)
                },
            )
            .collect();
        let answers = match self.shared.board.settle(&settlements).await {
            Ok(answers) => answers,
            Err(error) if is_refusal(&error) && !is_final(&error) => {
                let due = due.drain(..);
                due.for_each(|due| self.refused.add(due, &error, &self.shared.reporter));
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
                    self.tell_of_forgetting(settled.forgotten);
                    self.done(item);
                }
                Some(Err(error)) if error.is_about_the_claim() => {
                    match item.is_unconfirmed && error.may_come_of(&item.outcome) {
                        true => self.done(item),
                        false => self.lose(&item.attempt, &refused(error)),
                    }
                }
                Some(Err(error)) if is_refusal(&error) => {
                    self.refused.add(item, &error, &self.shared.reporter);
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

    /// Warns once if the board keeps no history of ended jobs.
    fn tell_of_forgetting(&mut self, why: Option<String>) {
        if let Some(why) = why
            && !std::mem::replace(&mut self.has_told_of_forgetting, true)
        {
            let note = Note::new("not_remembered").with("reason", why);
            self.shared.reporter.tell(note);
        }
    }

    fn done(&mut self, due: Due) {
        let Due {
            attempt,
            outcome,
            took,
            max_attempts,
            ..
        } = due;
        let key = &attempt.job.key;
        self.refused.forget(key);
        let (event, count) = match outcome {
            Outcome::Consume | Outcome::GiveUp(_) => ("job_consumed", &mut self.tally.consumed),
            Outcome::Trash(_) | Outcome::Spent(_) => ("job_trashed", &mut self.tally.trashed),
            Outcome::Abandon(Aftermath::Postponed { .. }) => {
                ("job_postponed", &mut self.tally.abandoned)
            }
            Outcome::Abandon(_) => ("job_abandoned", &mut self.tally.abandoned),
        };
        *count += 1;
        (self.shared.account).ended(&attempt.tag.name, End::from(&outcome));
        match outcome {
            Outcome::Abandon(Aftermath::Failed { .. }) => {
                if self.remembers_failures || self.tally.failing.len() < MOST_FAILING {
                    (self.tally.failing).insert(key.clone(), Arc::clone(&attempt.tag));
                }
            }
            Outcome::Abandon(_) => {}
            _ => _ = self.tally.failing.remove(key),
        }
        if outcome.is_trash() && self.tally.given_up.len() < MOST_NAMED {
            self.tally.given_up.push(Arc::clone(&attempt.tag));
        }
        let mut note = Note::new(event).of(&attempt.tag);
        if let Some(took) = took {
            note = note.with("seconds", took);
        }
        let failure = outcome.failure();
        if let Some(failure) = failure {
            note = note.with("attempt", attempt.job.history.attempts);
            note = note.with("max_attempts", max_attempts);
            note = note.with("reason", failure.headline());
        }
        // Prefixed lines were printed already.
        if self.shared.settings.output != Destination::Prefix {
            let said = failure.into_iter().flat_map(Failure::said);
            note = said.fold(note, |note, (stream, text)| note.with(stream, text));
        }
        if let Some(time) = outcome.not_before() {
            note = note.with("not_before", text_of(time));
        }
        self.shared.reporter.tell(note);
        match outcome {
            Outcome::Abandon(_) => self.give_back(&attempt, outcome.not_before()),
            _ => self.shared.in_flight.put_down(key),
        }
    }
}

fn text_of(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// Retrying is harmless: owner and fence identify this claim alone.
fn may_be_done(error: &BoardError) -> bool {
    matches!(error, BoardError::Unknown { .. })
}

/// Whether the board answers and knows our claim, but still refuses.
fn is_refusal(error: &BoardError) -> bool {
    !(error.is_retryable() || may_be_done(error) || error.is_about_the_claim())
}

fn refused(source: BoardError) -> Lost {
    Lost::Refused {
        kill_at: crate::process::clock::Boottime::now(),
        source,
    }
}
