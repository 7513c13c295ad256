//! Claims the best available job, or waits for one. A claim request is never cancelled.

use std::{collections::HashSet, time::Duration};

use tokio::time;

use crate::{
    backoff::Backoff,
    board::{self, Board, BoardExt, ClaimRules, Deadline, filter::Filters, wait::Waiter},
    commands::parts::{
        unconfirmed::claim_first_confirmed,
        under_claim::{WonJob, code},
        waiting::{NOT_CLAIMABLE, UNREACHABLE, blamed, waiter, within},
    },
    context::Context,
    exit::CommandError,
    job::{Claimant, Job, JobKey},
    output::counted,
    process::{clock::Boottime, signal::Signals},
};

/// The number of best jobs per request, since other clients want them too, and its limit after rejections.
const CANDIDATES: (usize, usize) = (16, 1024);

/// The first and the longest time that a rejected job is skipped: no event may announce its fix.
const SKIPPED: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));

/// Limits the waiting, but never a claim in flight.
///
/// A cancelled claim could succeed unnoticed.
pub(super) struct WaitLimits<'a> {
    signals: &'a mut Signals,
    pub(super) end: Option<Deadline>,
}

impl<'a> WaitLimits<'a> {
    pub(super) fn new(signals: &'a mut Signals) -> Self {
        Self { signals, end: None }
    }

    /// Waits for something that may be cancelled at any moment.
    pub(super) async fn bound<T>(
        &mut self,
        wait: impl Future<Output = board::Result<T>>,
    ) -> anyhow::Result<T> {
        tokio::select! {
            biased;
            signal = self.signals.next() => Err(code(128 + signal.as_raw())),
            answer = within(self.end, NOT_CLAIMABLE, wait) => answer,
        }
    }
}

pub(super) struct Search<'a> {
    board: &'a dyn Board,
    filters: Filters,
    by: &'a Claimant,
    rules: ClaimRules,
    skipped: HashSet<JobKey>,
    /// The numbers of paused and of delayed jobs.
    waiting: (u64, u64),
}

impl<'a> Search<'a> {
    pub(super) fn new(
        board: &'a dyn Board,
        filters: Filters,
        by: &'a Claimant,
        rules: ClaimRules,
    ) -> Self {
        Self {
            board,
            filters,
            by,
            rules,
            skipped: HashSet::new(),
            waiting: (0, 0),
        }
    }

    pub(super) fn nothing(&self) -> CommandError {
        let (paused, delayed) = self.waiting;
        let counts = counted([(paused, "paused"), (delayed, "backing off")]);
        CommandError::Nothing(match counts.as_str() {
            "" => "no job is claimable".to_owned(),
            counts => format!("no job is claimable ({counts})"),
        })
    }

    pub(super) async fn win(
        &mut self,
        limits: &mut WaitLimits<'_>,
    ) -> anyhow::Result<Option<WonJob>> {
        let mut most = CANDIDATES.0;
        loop {
            let candidates = self.board.candidates(&self.filters, most, &self.skipped);
            most = (most * 2).min(CANDIDATES.1);
            let candidates = limits.bound(candidates).await?;
            self.waiting = (candidates.paused, candidates.delayed);
            if candidates.jobs.is_empty() {
                return Ok(None);
            }
            if let Some(won) = self.claim(candidates.jobs).await? {
                return Ok(Some(won));
            }
        }
    }

    async fn claim(&mut self, jobs: Vec<Job>) -> anyhow::Result<Option<WonJob>> {
        let asked = Boottime::now();
        let wanted: Vec<_> = jobs.iter().collect();
        let answers = claim_first_confirmed(self.board, &wanted, self.by, self.rules).await?;
        let mut trouble = None;
        for (job, answer) in jobs.into_iter().zip(answers) {
            match answer {
                Ok(claimed) => return Ok(Some(WonJob { claimed, asked })),
                Err(error) if error.is_about_the_board() => trouble = Some(error),
                // An event announces the end of any of these reasons.
                Err(_) => _ = self.skipped.insert(job.key),
            }
        }
        trouble.map_or(Ok(None), |error| Err(error.into()))
    }

    pub(super) async fn wait(
        &mut self,
        ctx: &Context,
        limits: &mut WaitLimits<'_>,
    ) -> anyhow::Result<WonJob> {
        let mut waiter = limits.bound(waiter(ctx, self.board)).await?;
        let won = self.wait_with(&mut waiter, limits).await;
        match limits.end {
            Some(end) if waiter.is_lost() => {
                won.map_err(|error| blamed(error, end.length, UNREACHABLE))
            }
            _ => won,
        }
    }

    async fn wait_with(
        &mut self,
        waiter: &mut Waiter<'_>,
        limits: &mut WaitLimits<'_>,
    ) -> anyhow::Result<WonJob> {
        let mut backoff = Backoff::after_one(SKIPPED);
        let mut pause = backoff.exact_pause();
        loop {
            let claimable = waiter.until_claimable(&self.filters, &self.skipped);
            let patience = match self.skipped.is_empty() {
                true => Duration::MAX,
                false => pause,
            };
            let claimable = async { time::timeout(patience, claimable).await.ok().transpose() };
            match limits.bound(claimable).await? {
                Some(job) => _ = self.skipped.remove(&job.key),
                None => {
                    self.skipped.clear();
                    pause = backoff.exact_pause();
                }
            }
            match self.win(limits).await {
                Ok(Some(won)) => return Ok(won),
                Ok(None) => {}
                // The board reports a claim that may have been made as a different error.
                Err(error) => limits.bound(waiter.recover(error.downcast()?)).await?,
            }
        }
    }
}
