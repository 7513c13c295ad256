//! Tests with intended faults: races, broken connections and killed processes.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use tokio::{
    join,
    task::{spawn_blocking, yield_now},
    time::{self, Instant},
};
use uuid::Uuid;

use super::{
    processes::PROCESSES,
    promise::{Assessment, TrialError, TrialResult, broken, require},
    trial::Trial,
};
use crate::{
    board::{BoardError, BoardExt as _, ClaimRules, scratch::Testable},
    job::{Claimant, Claimed, Decision, JobKey, Location, Term},
};

/// How often the test checks whether a claim has expired.
const PACE: Duration = Duration::from_millis(10);

/// The tolerance for a claim that ends early, as clocks are read in steps.
const STEP: Duration = Duration::from_millis(50);

const RACED: usize = 200;

const CUTS: usize = 30;

impl Trial<'_> {
    pub(super) async fn lapse(&self) -> TrialResult {
        let (key, by) = (self.post_one().await?, self.short_lease("victim"));
        let (board, at_it) = (self.scratch.open_apart()?, self.scratch.other());
        let (victim, wanted) = (by.clone(), key.clone());
        let (before, end) = (Instant::now(), self.end);
        let deserted = spawn_blocking(move || {
            let _at_it = at_it;
            claim_and_disconnect(board, &wanted, &victim, end)
        });
        let deserted = deserted.await;
        let deserted = deserted.map_err(|error| TrialError::Local(error.to_string()))?;
        let (claimed, term) = deserted?;
        let claim = self.claim_of(&claimed, &by);
        let since = Instant::now();
        loop {
            match self.find_one(Location::Board, &key).await? {
                None => return broken("a job disappeared together with its claim"),
                Some(job) if job.holding.is_none() => break,
                Some(_) => time::sleep(PACE).await,
            }
        }
        let (lasted, late) = (before.elapsed(), since.elapsed().saturating_sub(term));
        let [seconds, before] = [term, lasted].map(|it| it.as_secs_f64());
        let why = format_args!(
            "a claim of {seconds:.1} s ended after {before:.1} s: a job may run twice"
        );
        require(lasted + STEP >= term, why)?;
        self.require_rejected(&self.ada, &claim, Decision::Consume)
            .await?;
        let heir = self.win(&self.bob, &key, &self.claimant("heir")).await?;
        self.require_rejected(&self.ada, &claim, Decision::Consume)
            .await?;
        self.settle(&self.bob, &heir, Decision::Consume).await?;
        let why = format!(
            "claims of {seconds:.1} s ended {} ms late; their former owners could not settle the jobs",
            late.as_millis()
        );
        let remedy = "jobs of a crashed machine wait this much longer";
        Ok(match late > Duration::from_secs(1).max(term * 2 / 3) {
            false => Assessment::ok(why),
            true => Assessment::weak(why, remedy),
        })
    }

    pub(super) async fn one_winner(&self) -> TrialResult {
        let keys = self.post(RACED).await?;
        let (one, other) = (self.claimant("one"), self.claimant("other"));
        let raced = join_all(keys.iter().map(async |key| {
            let (one, other) = join!(
                self.win(&self.ada, key, &one),
                self.win(&self.bob, key, &other),
            );
            [one, other]
        }));
        let mut claims = Vec::new();
        for answers in raced.await {
            let won = winners(answers, |it| {
                matches!(it, BoardError::AlreadyClaimed { .. })
            })?;
            let why = format_args!(
                "two clients claimed a job at the same time, and {} of them won",
                won.len()
            );
            require(won.len() == 1, why)?;
            claims.extend(won);
        }
        let settled = join_all(claims.iter().map(async |claim| {
            let (one, other) = join!(
                self.settle(&self.ada, claim, Decision::Consume),
                self.settle(&self.bob, claim, Decision::Consume),
            );
            [one, other]
        }));
        let mut wrong = 0;
        for answers in settled.await {
            wrong += usize::from(winners(answers, BoardError::is_about_the_claim)?.len() != 1);
        }
        let why = format_args!(
            "two clients settled {RACED} jobs concurrently; {wrong} jobs were not settled exactly once"
        );
        require(wrong == 0, why)?;
        let mut why = format!(
            "two clients claimed {RACED} jobs concurrently; each job had one winner and was settled once"
        );
        // Only processes compete for file locks: the connections of one process share them.
        if self.scratch.url.file().is_some() {
            self.processes_race().await?;
            let (processes, rounds) = PROCESSES;
            why += &format!("; in {rounds} races of {processes} processes, one process won");
        }
        Ok(Assessment::ok(why))
    }

    pub(super) async fn connections_break(&self) -> TrialResult {
        let (cutter, by) = (self.scratch.open()?, self.claimant("cutter"));
        let keys = self.post(CUTS).await?;
        let usual = self.usual_claim_time(&cutter, &by).await?;
        let (mut unheard, mut done) = (0_usize, 0_usize);
        for key in &keys {
            let claimed = self.claim_and_cut(&cutter, key, &by, usual).await?;
            let Some(job) = self.find_one(Location::Board, key).await? else {
                return broken("a broken connection lost a job");
            };
            let holding = job.holding;
            let owner = holding.as_ref().and_then(|it| it.owner.as_ref());
            let is_ours = owner == Some(&by.owner);
            match claimed {
                Ok(claimed) => require(
                    holding.is_some_and(|it| it.fence.as_ref() == Some(&claimed.fence)),
                    "the board acknowledged a claim and then lost it",
                )?,
                Err(BoardError::Unknown { .. } | BoardError::Unreachable { .. }) => {
                    unheard += 1;
                    done += usize::from(is_ours);
                    require(
                        holding.is_none_or(|it| it.fence.is_some()),
                        "a broken connection left half a claim",
                    )?;
                }
                Err(error) => return Err(error.into()),
            }
            // The claimant finds its claim by reading, or the job is free.
            match is_ours {
                true => self.consume_of(key, &by.owner).await?,
                false => self.claim_by_another(key).await?,
            }
        }
        require(
            self.absent(&keys).await? == CUTS,
            "a consumed job came back after a broken connection",
        )?;
        Ok(Assessment::ok(format!(
            "cut {CUTS} claims: {unheard} got no reply, {done} of those took effect; none lost, none duplicated"
        )))
    }

    async fn claim_and_cut(
        &self,
        cutter: &Arc<dyn Testable>,
        key: &JobKey,
        by: &Claimant,
        usual: Duration,
    ) -> TrialResult<Result<Claimed, BoardError>> {
        // The cut comes before the answer, and before or after the request arrives.
        let noise = u32::from(Uuid::new_v4().as_bytes()[0]);
        let pause = usual * noise / 256;
        let is_slow = cutter.is_cut_slow();
        let waits = async |waits: bool| {
            let start = Instant::now();
            while waits && start.elapsed() < pause {
                yield_now().await;
            }
        };
        let cut = async {
            waits(!is_slow).await;
            cutter.cut().await
        };
        let claim = async {
            waits(is_slow).await;
            cutter.claim_one(key, by, ClaimRules::BY_HAND).await
        };
        // Only the next request may notice the last cut.
        if cutter.health().await.is_err() {
            cutter.health().await?;
        }
        let (claimed, cut) = join!(claim, cut);
        cut?;
        Ok(claimed)
    }

    async fn usual_claim_time(
        &self,
        board: &Arc<dyn Testable>,
        by: &Claimant,
    ) -> TrialResult<Duration> {
        let mut least = Duration::from_millis(100);
        for key in self.post(3).await? {
            let start = Instant::now();
            let claim = self.win(board, &key, by).await?;
            least = least.min(start.elapsed());
            self.settle(board, &claim, Decision::Consume).await?;
        }
        Ok(least)
    }

    pub(super) async fn claim_by_another(&self, key: &JobKey) -> TrialResult<()> {
        match self.win(&self.bob, key, &self.claimant("heir")).await {
            // A request of the closed connection may still arrive.
            Err(BoardError::AlreadyClaimed { owner: Some(owner) }) => {
                self.consume_of(key, &owner).await
            }
            claim => {
                self.settle(&self.bob, &claim?, Decision::Consume).await?;
                Ok(())
            }
        }
    }
}

fn winners<T>(
    answers: [Result<T, BoardError>; 2],
    is_late: impl Fn(&BoardError) -> bool,
) -> Result<Vec<T>, BoardError> {
    let answers = answers.into_iter();
    let in_time = answers.filter(|it| !it.as_ref().is_err_and(&is_late));
    in_time.collect()
}

/// Drops the connection like a dying process; also returns the lease duration.
fn claim_and_disconnect(
    board: Arc<dyn Testable>,
    key: &JobKey,
    by: &Claimant,
    end: Instant,
) -> TrialResult<(Claimed, Duration)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| TrialError::Local(error.to_string()))?;
    let claimed = runtime.block_on(time::timeout_at(end, async {
        let Term::Lease(wanted) = by.term else {
            return Err(BoardError::NotClaimed);
        };
        let term = board.lease_term(wanted).await?;
        let claimed = board.claim_one(key, by, ClaimRules::BY_HAND).await?;
        Ok((claimed, term))
    }));
    // The connection task ends first, so that no goodbye is sent.
    runtime.shutdown_background();
    drop(board);
    let claimed = claimed.map_err(|_| TrialError::Local("out of time".to_owned()))?;
    Ok(claimed?)
}
