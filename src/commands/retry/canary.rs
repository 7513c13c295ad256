//! `retry --canary`: retries a few jobs first, and the rest only if these do not fail as before.

use std::{
    collections::{HashMap, HashSet},
    future::ready,
    num::NonZeroUsize,
    time::Duration,
};

use anyhow::Context as _;
use chrono::Utc;

use crate::{
    board::{Board, BoardError, Deadline, JobRef, wait::Waiter},
    commands::{
        bulk::{
            act::{Pace, remaining, stopped},
            select::Chosen,
            task::Task,
        },
        parts::waiting::{NO_REPLY, print_news, until, within},
        show::find_everywhere,
    },
    context::Context,
    diagnosis::{Judged, Snapshot, signature},
    duration,
    exit::{CommandError, verb},
    job::{Attempts, Entry, Failure, Job, Location, Outcome, State},
    output::{count_jobs, short},
    problem::Code,
    process::signal::Signals,
    suggest::{Hint, Suggestion},
};

const NO_CONDUCTOR: &str = "--timeout 10m waits for a conductor or a Python service; `jobboard help \
                            conduct` shows how to start a conductor";

/// How long `doctor --fix` waits for a canary before its next question.
const IN_DIALOG: Duration = Duration::from_secs(30);

#[derive(Debug, Default, clap::Args)]
pub(super) struct CanaryArgs {
    /// Retry this many jobs first; continue unless one fails with the same cause as before
    ///
    /// Waits until each of these jobs has ended, moved to the trash or failed an attempt. Ctrl-C stops the wait and
    /// prints the command that retries the remaining jobs.
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    pub(super) canary: Option<NonZeroUsize>,

    /// With --canary: wait at most this long for the outcome
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "canary")]
    timeout: Option<Duration>,

    /// The limit of a wait without --timeout.
    #[arg(skip)]
    patience: Option<Duration>,
}

struct Canary {
    uuid: String,
    name: String,
    last: Option<Failure>,
    postponed: u32,
}

impl CanaryArgs {
    pub(super) fn one_if(is_careful: bool, was_asked: bool) -> Self {
        Self {
            canary: is_careful.then_some(NonZeroUsize::MIN),
            patience: was_asked.then_some(IN_DIALOG),
            timeout: None,
        }
    }

    pub(super) async fn try_first(
        &self,
        ctx: &mut Context,
        board: &dyn Board,
        task: &mut Task,
    ) -> anyhow::Result<()> {
        let Some(first) = self.canary.filter(|_| !task.chosen.jobs.is_empty()) else {
            return Ok(());
        };
        let first_task = take_first(task, first);
        let jobs = first_task.chosen.entries().filter_map(Entry::job);
        let canaries: Vec<_> = jobs.map(Canary::of).collect();
        let is_queued = self.require_run(ctx, board, &canaries).await?;
        let trial = CanaryTrial::new(canaries, &task.chosen);
        // Subscribe before the retry, so that an early end is not missed.
        let timeout = self.timeout.or(self.patience);
        let limit = timeout.map(Deadline::after);
        let waiter = within(limit, NO_REPLY, Waiter::begin(board))
            .await
            .with_context(|| ctx.trying(verb::TRY_CANARY, "the canary"))?;
        let mut signals = Signals::ending()?;
        first_task.carry_out(ctx, board).await?;
        let waiter = waiter.on_news(|news| print_news(ctx, board, news));
        let outcome = async |waiter: &mut Waiter<'_>| {
            let look = async |board: &dyn Board| trial.outcome(board).await;
            waiter.until_known(&trial.uuids, look).await
        };
        let what = "the canary did not end within";
        let failures = until(limit, what, ready(Ok(waiter)), outcome);
        let failures = tokio::select! {
            failures = failures => match failures {
                Ok(failures) => failures,
                Err(error) => {
                    if !task.chosen.jobs.is_empty() {
                        let (rest, resume) = rest_after(task, first);
                        ctx.out.note(format!(
                            "the canary has no outcome yet; not retried: {rest}; to continue: `{resume}`"
                        ));
                    }
                    let is_untried = is_queued && trial.is_untried(board).await;
                    let error = match timeout {
                        Some(timeout) if is_untried => {
                            CommandError::NoSlot(duration::exact(timeout)).into()
                        }
                        _ => error,
                    };
                    return Err(error).with_context(|| ctx.trying(verb::TRY_CANARY, "the canary"));
                }
            },
            signal = signals.next() => return Err(stopped(ctx, signal, rest_after(task, first))),
        };
        trial.judge(ctx, &failures, task.chosen.jobs.len())
    }

    /// Refuses a canary that no conductor would run, because it might never end. Returns whether one of them is queued.
    async fn require_run(
        &self,
        ctx: &Context,
        board: &dyn Board,
        canaries: &[Canary],
    ) -> anyhow::Result<bool> {
        let mut is_queued = false;
        let trying = || ctx.trying("judge", "the canaries");
        let snapshot = Snapshot::read(board, None, Utc::now()).await;
        let snapshot = snapshot.with_context(trying)?;
        let found = find_everywhere(board, &references(canaries)).await;
        for entry in found.with_context(trying)?.into_iter().flatten() {
            let Entry::Job(mut job) = entry else { continue };
            job.location = Location::Board;
            job.attempts = Attempts::default();
            let name = job.name.clone();
            let Judged { main, will_run, .. } = snapshot.judge(&Entry::Job(job));
            let about = main.about.to_string();
            let (why, hint): (_, Hint) = match main.code {
                Code::Waiting => {
                    is_queued = true;
                    ctx.out.note(format!(
                        "{name} waits for a free slot; Ctrl-C stops the wait and retries no more jobs"
                    ));
                    continue;
                }
                // It is unknown which jobs the conductors accept.
                Code::Unavailable => continue,
                _ if self.timeout.is_some() => continue,
                Code::Paused => {
                    let hint =
                        "`jobboard resume {}` ends the pause; --timeout 10m waits for its end";
                    (format!("{name} is paused"), Hint::new(hint, [&[&*about]]))
                }
                _ if will_run => continue,
                Code::NoConductor => ("no conductor is running".to_owned(), NO_CONDUCTOR.into()),
                Code::ConductorRefuses => (about, NO_CONDUCTOR.into()),
                Code::NoMatchingConductor => {
                    let why = format!("no conductor accepts {name}");
                    (why, NO_CONDUCTOR.into())
                }
                code => (format!("{name}: {}", code.name()), NO_CONDUCTOR.into()),
            };
            let message = format!("{why}, so the canary would not run; nothing changed");
            return Err(CommandError::refused(message).hint(hint).into());
        }
        Ok(is_queued)
    }
}

fn take_first(task: &mut Task, first: NonZeroUsize) -> Task {
    let all = &mut task.chosen.jobs;
    let rest = all.split_off(first.get().min(all.len()));
    let jobs = std::mem::replace(all, rest);
    let choice = task.chosen.choice;
    Task {
        action: task.action.clone(),
        who: task.who.clone(),
        reason: task.reason.clone(),
        chosen: Chosen { jobs, choice },
        pace: Pace::FULL,
        resume: None,
    }
}

/// Returns the number of remaining jobs, and the command that retries them with as many canaries.
fn rest_after(task: &mut Task, first: NonZeroUsize) -> (String, Suggestion) {
    let resume = task.resume.take();
    let resume = resume.map(|it| it.with(["--canary".to_owned(), first.to_string()]));
    let Chosen { jobs, choice } = &mut task.chosen;
    remaining(resume, *choice, jobs.drain(..))
}

fn references(canaries: &[Canary]) -> Vec<JobRef> {
    let uuids = canaries.iter().map(|it| it.uuid.clone());
    uuids.map(JobRef::Uuid).collect()
}

impl Canary {
    fn of(job: &Job) -> Self {
        Self {
            uuid: job.uuid.clone(),
            name: job.name.clone(),
            last: job.attempts.failures.last().cloned(),
            postponed: job.attempts.postponed,
        }
    }

    /// Returns the outcome of its retry: `None` while it is open, and the failure if it failed.
    fn outcome(&self, job: &Job) -> Option<Option<Failure>> {
        let last = job.attempts.failures.last();
        let outcome = job.ended.as_ref().map(|end| end.outcome);
        match (job.location, outcome) {
            (Location::History, Some(Outcome::Failed)) => Some(last.cloned()),
            (Location::History, _) => Some(None),
            _ if last.is_some() && last != self.last.as_ref() => Some(last.cloned()),
            (Location::Trash, _) => Some(Some(Failure::reported("it moved to the trash", ""))),
            // A retry may have reset the count.
            (Location::Board, _) => {
                let is_postponed = ![0, self.postponed].contains(&job.attempts.postponed);
                is_postponed.then_some(None)
            }
        }
    }
}

struct CanaryTrial {
    canaries: Vec<Canary>,
    uuids: HashSet<String>,
    known: HashSet<String>,
}

type Failures = HashMap<usize, Failure>;

impl CanaryTrial {
    fn new(canaries: Vec<Canary>, rest: &Chosen) -> Self {
        let rest = rest.entries().filter_map(Entry::job);
        let rest = rest.filter_map(|job| job.attempts.failures.last());
        let own = canaries.iter().filter_map(|canary| canary.last.as_ref());
        Self {
            known: own.chain(rest).map(signature).collect(),
            uuids: canaries.iter().map(|it| it.uuid.clone()).collect(),
            canaries,
        }
    }

    /// Whether the canary failed like a job before the retry, or for the first time.
    fn is_alike(&self, canary: usize, failure: &Failure) -> bool {
        self.canaries[canary].last.is_none() || self.known.contains(&signature(failure))
    }

    async fn outcome(&self, board: &dyn Board) -> Result<Option<Failures>, BoardError> {
        let found = find_everywhere(board, &references(&self.canaries)).await?;
        let (mut failures, mut is_open) = (Failures::new(), false);
        for (at, (canary, found)) in self.canaries.iter().zip(found).enumerate() {
            let outcome = match found {
                Ok(found) => found.job().map_or(Some(None), |job| canary.outcome(job)),
                // It left no record: a Python service consumed it.
                Err(BoardError::NoSuchJob) => Some(None),
                Err(error) => return Err(error),
            };
            match outcome {
                Some(Some(failure)) => _ = failures.insert(at, failure),
                Some(None) => {}
                None => is_open = true,
            }
        }
        let is_decided = failures.iter().any(|(at, it)| self.is_alike(*at, it));
        Ok((is_decided || !is_open).then_some(failures))
    }

    async fn is_untried(&self, board: &dyn Board) -> bool {
        let found = find_everywhere(board, &references(&self.canaries)).await;
        let is_untried =
            |it: &Result<Entry, _>| it.as_ref().is_ok_and(|it| it.state() == State::Unclaimed);
        found.is_ok_and(|found| found.iter().all(is_untried))
    }

    fn judge(&self, ctx: &Context, failures: &Failures, rest: usize) -> anyhow::Result<()> {
        for (at, failure) in failures {
            let (canary, why) = (&self.canaries[*at], failure.headline());
            let named = format!("{} {}", short(&canary.uuid), canary.name);
            if self.is_alike(*at, failure) {
                let rest = count_jobs(rest as u64);
                let job = canary.uuid.clone();
                let message =
                    format!("the canary {named} failed again: {why}; not retried: {rest}");
                return Err(CommandError::Canary { message, job }.into());
            }
            let note = format!("the canary {named} failed for another reason: {why}");
            ctx.out.note(note);
        }
        let canaries = count_jobs(self.canaries.len() as u64);
        ctx.out.note(format!(
            "canary done: {canaries}; continuing with {}",
            count_jobs(rest as u64)
        ));
        Ok(())
    }
}
