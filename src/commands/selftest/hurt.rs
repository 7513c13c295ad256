//! What is done to a board under test that goes wrong by intention: races, connections that break, processes that die.

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
    promise::{Seen, Tried, Trouble, require},
    trial::{RULES, Trial, authority},
};
use crate::{
    board::{BoardError, BoardExt as _, ground::Ground, url::BoardUrl},
    job::{Claim, Claimant, Claimed, JobKey, Outcome, Shelf, Term},
};

/// How often it is looked whether a claim has lapsed.
const PACE: Duration = Duration::from_millis(10);

/// By how much a claim may seem to end too early, as clocks are read in steps.
const STEP: Duration = Duration::from_millis(50);

/// How many jobs two claim at once.
const RACED: usize = 200;

/// How often an exchange is broken off.
const CUTS: usize = 30;

impl Trial<'_> {
    /// Leaves a claim to itself as a process does that dies, and looks when it ends.
    pub(super) async fn lapse(&self) -> Tried<(Duration, Seen)> {
        let key = self.post_one().await?;
        let by = self.brief_keeper("victim");
        let (open, victim, wanted) = (self.site.opener(), by.clone(), key.clone());
        let before = Instant::now();
        let deserted = spawn_blocking(move || desert(&open, &wanted, &victim)).await;
        let deserted = deserted.map_err(|error| Trouble::Broken(error.to_string()))?;
        let (claimed, term) = deserted?;
        let claim = self.claim_of(&claimed, &by);
        let since = Instant::now();
        loop {
            let Some(job) = self.find_one(Shelf::Board, &key).await? else {
                return Err(Trouble::Broken(
                    "a job went with the claim on it".to_owned(),
                ));
            };
            if job.holding.is_none() {
                break;
            }
            time::sleep(PACE).await;
        }
        let lasted = before.elapsed();
        require(lasted + STEP >= term, || {
            let [term, lasted] = [term, lasted].map(|it| it.as_secs_f64());
            format!(
                "a claim for {term:.1} s was over after {lasted:.1} s: a job may be performed twice"
            )
        })?;
        let late = since.elapsed().saturating_sub(term);
        self.refuses_late(&key, &claim).await?;
        let next = self.keeper("heir");
        let claimed = self.bob.claim_one(&key, &next, RULES).await?;
        self.refuses_late(&key, &claim).await?;
        let right = self.right(&claimed, &next);
        self.bob.settle_one(&key, Outcome::Consume, right).await?;
        let after = late.as_millis();
        let why = format!(
            "{after} ms after its {:.1} s, and who had lost it settled nothing",
            term.as_secs_f64()
        );
        let seen = match late > Duration::from_secs(1).max(term * 2 / 3) {
            false => Seen::ok(why),
            true => Seen::weak(
                why,
                "jobs of a machine that died wait for that long besides",
            ),
        };
        Ok((late, seen))
    }

    /// Tries to settle by a claim that is over.
    async fn refuses_late(&self, key: &JobKey, claim: &Claim) -> Tried<()> {
        match self
            .ada
            .settle_one(key, Outcome::Consume, authority(claim))
            .await
        {
            Err(error) if error.is_about_the_claim() => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => Err(Trouble::Broken(
                "whoever had lost a claim settled the job all the same".to_owned(),
            )),
        }
    }

    /// Has two claim the same jobs at the same time, and settle each of them at the same time.
    pub(super) async fn one_winner(&self) -> Tried {
        let keys = self.post(RACED).await?;
        let (one, other) = (self.keeper("one"), self.keeper("other"));
        let raced = join_all(keys.iter().map(async |key| {
            join!(
                self.ada.claim_one(key, &one, RULES),
                self.bob.claim_one(key, &other, RULES),
            )
        }));
        let mut claims = Vec::new();
        for (ones, others) in raced.await {
            let mut won = 0;
            for (claimed, by) in [(ones, &one), (others, &other)] {
                match claimed {
                    Ok(claimed) => claims.push(self.claim_of(&claimed, by)),
                    Err(BoardError::AlreadyClaimed { .. }) => continue,
                    Err(error) => return Err(error.into()),
                }
                won += 1;
            }
            require(won == 1, || {
                format!("two claimed a job at the same time, and {won} of them won it")
            })?;
        }
        let settled = claims.iter().map(async |claim| {
            let right = authority(claim);
            let (one, other) = join!(
                self.ada
                    .settle_one(&claim.key, Outcome::Consume, right.clone()),
                self.bob.settle_one(&claim.key, Outcome::Consume, right),
            );
            let mut done = 0;
            for answer in [one, other] {
                match answer {
                    Ok(_) => done += 1,
                    Err(error) if error.is_about_the_claim() => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(done)
        });
        let settled = join_all(settled).await.into_iter();
        let settled = settled.collect::<Result<Vec<_>, _>>()?;
        require(settled.iter().all(|&count| count == 1), || {
            let wrong = settled.iter().filter(|&&count| count != 1).count();
            format!("of {RACED} jobs {wrong} were not settled just once, by two who tried at once")
        })?;
        let mut why = format!(
            "each of {RACED} jobs that two claimed at once went to one of them, and was settled once"
        );
        if let BoardUrl::Embedded(_) = &self.site.url {
            self.processes_race().await?;
            let (processes, rounds) = PROCESSES;
            why += &format!("; of {processes} processes one won, {rounds} times");
        }
        Ok(Seen::ok(why))
    }

    /// Breaks exchanges off in the middle of claims.
    pub(super) async fn broken_off(&self) -> Tried {
        match &self.site.url {
            BoardUrl::Embedded(_) => self.processes_die().await,
            BoardUrl::Redis(_) | BoardUrl::ZooKeeper(_) => self.connections_break().await,
        }
    }

    /// Cuts our own connection while a claim is under way, and looks what became of it.
    async fn connections_break(&self) -> Tried {
        let cutter = self.site.open()?;
        let by = self.keeper("cutter");
        let keys = self.post(CUTS).await?;
        let usual = self.usual(&*cutter, &by).await?;
        let (mut unheard, mut done) = (0_usize, 0_usize);
        for key in &keys {
            let claimed = self.cut_short(&*cutter, key, &by, usual).await?;
            let holding = match self.find_one(Shelf::Board, key).await? {
                Some(job) => job.holding,
                None => {
                    return Err(Trouble::Broken(
                        "a job was lost with a connection".to_owned(),
                    ));
                }
            };
            let is_ours = holding
                .as_ref()
                .is_some_and(|it| it.owner.as_ref() == Some(&by.owner));
            match claimed {
                Ok(claimed) => require(
                    holding.is_some_and(|it| it.fence.as_ref() == Some(&claimed.fence)),
                    || "a claim was acknowledged that is not there".to_owned(),
                )?,
                Err(BoardError::Unknown { .. } | BoardError::Unreachable { .. }) => {
                    unheard += 1;
                    done += usize::from(is_ours);
                    require(holding.is_none_or(|it| it.fence.is_some()), || {
                        "a claim was done by half when the connection broke".to_owned()
                    })?;
                }
                Err(error) => return Err(error.into()),
            }
            // Whoever finds out by looking has it, or anybody else can.
            match is_ours {
                true => self.settle_by_name(key, &by.owner).await?,
                false => self.taken_by_another(key).await?,
            }
        }
        let left = self.find(Shelf::Board, &keys).await?;
        require(left.iter().all(Option::is_none), || {
            "a job was consumed and came back when a connection broke".to_owned()
        })?;
        Ok(Seen::ok(format!(
            "of {CUTS} claims that were cut short {unheard} had no answer, of which {done} were made; none was lost \
             or doubled"
        )))
    }

    /// Claims a job, and cuts the connection meanwhile.
    async fn cut_short(
        &self,
        cutter: &dyn Ground,
        key: &JobKey,
        by: &Claimant,
        usual: Duration,
    ) -> Tried<Result<Claimed, BoardError>> {
        // Sooner than the answer, and before or after what was asked has come there.
        let noise = u32::from(Uuid::new_v4().as_bytes()[0]);
        let pause = usual * noise / 256;
        // That a session moves takes longer than that a socket is closed.
        let is_slow = matches!(self.site.url, BoardUrl::ZooKeeper(_));
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
            cutter.claim_one(key, by, RULES).await
        };
        cutter.health().await?;
        let (claimed, cut) = join!(claim, cut);
        cut?;
        Ok(claimed)
    }

    /// Returns how long a claim takes, at the quickest.
    async fn usual(&self, board: &dyn Ground, by: &Claimant) -> Tried<Duration> {
        let mut least = Duration::from_millis(100);
        for _ in 0..3 {
            let key = self.post_one().await?;
            let start = Instant::now();
            let claimed = board.claim_one(&key, by, RULES).await?;
            least = least.min(start.elapsed());
            let right = self.right(&claimed, by);
            board.settle_one(&key, Outcome::Consume, right).await?;
        }
        Ok(least)
    }

    /// Claims a job that nobody has, and consumes it.
    pub(super) async fn taken_by_another(&self, key: &JobKey) -> Tried<()> {
        let by = self.keeper("heir");
        // What is under way from a connection that is gone may come in still.
        let claimed = match self.bob.claim_one(key, &by, RULES).await {
            Err(BoardError::AlreadyClaimed { owner: Some(owner) }) => {
                return self.settle_by_name(key, &owner).await;
            }
            claimed => claimed?,
        };
        let right = self.right(&claimed, &by);
        self.bob.settle_one(key, Outcome::Consume, right).await?;
        Ok(())
    }
}

/// Claims a job as a process that dies with that: its connection ends without a word.
///
/// Returns also how long the claim is to last.
fn desert(
    open: &impl Fn() -> Result<Arc<dyn Ground>, BoardError>,
    key: &JobKey,
    by: &Claimant,
) -> Tried<(Claimed, Duration)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Trouble::Broken(error.to_string()))?;
    let board = open()?;
    let claimed = runtime.block_on(async {
        let Term::Kept(wanted) = by.term else {
            return Err(BoardError::NotClaimed);
        };
        let term = board.lease_term(wanted).await?;
        let claimed = board.claim_one(key, by, RULES).await?;
        Ok((claimed, term))
    });
    // What drives the connection goes first, so that nobody can say goodbye.
    runtime.shutdown_background();
    drop(board);
    Ok(claimed?)
}
