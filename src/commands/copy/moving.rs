//! Moving jobs: claimed here, posted there, read back, and consumed here.

use std::{cell::Cell, sync::Arc, time::Duration};

use anyhow::Context as _;
use tokio::time::{self, Instant};

use super::{
    Passenger, Told, borrowed,
    broken::{done_there, left_behind},
    fate::{Fate, fate, is_open, on_both, repeated, unheard},
};
use crate::{
    board::{self, Board, BoardError, BoardExt, ClaimRules, JobRef, Settled},
    commands::parts::{
        liveness::MOVER,
        loader::{Loader, fingerprint},
        under_claim::kept_owner,
    },
    context::Context,
    exit::CommandError,
    job::{
        Aftermath, Authority, Claim, Claimant, Claimed, Draft, Entry, Identity, Job, Outcome,
        Owner, Remark, Settlement, Shelf, Term,
    },
    lease::{Keeper, KeptLease},
    process::clock::Boottime,
};

/// Claims by hand: a move is no attempt at a job.
const NO_ATTEMPT: ClaimRules = ClaimRules {
    is_attempt: false,
    at_once: usize::MAX,
    respects_not_before: false,
};

/// How long a board is asked what became of jobs, once they may be on both.
const PATIENCE: Duration = Duration::from_secs(5);

const PAUSE: Duration = Duration::from_millis(100);

/// How long a claim outlives us, where the server grants it: its job may be on both boards, and nobody
/// is to have it here before the move is made again.
const LEASE: Duration = Duration::from_secs(10 * 60);

/// A job that we hold, and the claim, which is renewed.
struct Held {
    claimed: Claimed,
    owner: Owner,
    lease: KeptLease,
    /// Whether a move had it that was broken off: it may be there already.
    is_left: bool,
}

/// Who moves jobs from one board to another.
pub(super) struct Mover<'a> {
    from: &'a dyn Board,
    to: &'a dyn Board,
    by: Claimant,
    lease: Duration,
    keeper: Keeper,
    remark: Remark,
    /// Whether it was made sure of that it is not one board.
    are_two: Cell<bool>,
}

impl<'a> Mover<'a> {
    /// Prepares claims that end some time after us, under a name that nobody else has.
    pub(super) async fn new(
        ctx: &Context,
        from: &'a Arc<dyn Board>,
        to: &'a dyn Board,
    ) -> anyhow::Result<Self> {
        let lease = from.lease_term(LEASE).await;
        let lease = lease.with_context(|| ctx.trying("move", "the jobs"))?;
        let by = Claimant {
            owner: Owner::new(&format!("{MOVER}{}", kept_owner(ctx.who())?))?,
            term: Term::Kept(lease),
        };
        let reason = format!("moved to {}", to.name());
        Ok(Self {
            from: &**from,
            to,
            by,
            lease,
            keeper: Keeper::start(Arc::clone(from)),
            remark: Remark::now(Remark::MOVED, &ctx.who().text(), Some(&reason)),
            are_two: Cell::new(false),
        })
    }

    /// Moves jobs, each whole or not at all; of each other one it is told that it may be on both boards.
    ///
    /// Where that cannot be told apart, a job stays here, claimed until the claim lapses. An error
    /// around all of them means that none was posted there.
    pub(super) async fn pass(
        &self,
        loader: &mut Loader<'_>,
        batch: Vec<Passenger>,
    ) -> anyhow::Result<Vec<Told>> {
        let names = (self.from.name(), self.to.name());
        let trying = || format!("cannot move jobs from {} to {}", names.0, names.1);
        let (mut told, mut ours, mut held) = (Vec::new(), Vec::new(), Vec::new());
        let answers = self.claim(&batch).await.with_context(trying)?;
        for ((entry, draft), answer) in batch.into_iter().zip(answers) {
            match answer {
                Ok(one) => {
                    ours.push((entry, draft));
                    held.push(one);
                }
                Err(error) => told.push((entry, Err(error.into()))),
            }
        }
        let fates = match self.post(loader, &ours, &mut held).await {
            Ok(fates) => fates,
            Err(error) => {
                let free = held.iter().filter(|held| !held.is_left);
                let release = free.map(|held| self.settlement(held, false));
                let _ = self.from.settle(&release.collect::<Vec<_>>()).await;
                return Err(error).with_context(trying);
            }
        };
        let moved = self.end(&held, fates).await;
        let entries = ours.into_iter().map(|(entry, _)| entry);
        told.extend(entries.zip(moved));
        Ok(told)
    }

    /// Claims jobs; what a move had that was broken off is kept claimed as it is.
    async fn claim(&self, batch: &[Passenger]) -> board::Result<Vec<board::Result<Held>>> {
        let asked = Boottime::now();
        let left: Vec<_> = batch.iter().map(|(entry, _)| left_behind(entry)).collect();
        let is_left: Vec<_> = left.iter().map(Option::is_some).collect();
        let kept = self.keep(left).await?;
        let others = batch.iter().zip(&kept).filter(|(_, kept)| kept.is_none());
        let keys: Vec<_> = others.map(|((entry, _), _)| entry.key().clone()).collect();
        let claimed = self.from.claim(&keys, &self.by, keys.len(), NO_ATTEMPT);
        let mut claimed = claimed.await?.into_iter();
        let answers = kept.into_iter().zip(is_left).map(|(kept, is_left)| {
            let (owner, claimed) = match kept {
                Some(kept) => kept,
                None => {
                    let claimed = claimed.next().unwrap_or(Err(BoardError::NoSuchJob))?;
                    (self.by.owner.clone(), claimed)
                }
            };
            Ok(Held {
                lease: self.keeper.hold(self.term_of(&owner, &claimed), asked),
                claimed,
                owner,
                is_left,
            })
        });
        Ok(answers.collect())
    }

    /// Prolongs the claims that a move has left behind, and returns those that are kept now.
    ///
    /// Where a claim stands as long as a session does, nobody can keep it for another one. It is freed,
    /// to be claimed at once.
    async fn keep(
        &self,
        mut left: Vec<Option<(Owner, Claimed)>>,
    ) -> board::Result<Vec<Option<(Owner, Claimed)>>> {
        let all = left.iter().flatten();
        let claims: Vec<_> = all.map(|(owner, it)| self.term_of(owner, it)).collect();
        if claims.is_empty() {
            return Ok(left);
        }
        let renewed = self.from.renew(&claims).await?;
        let mut free = Vec::new();
        let places = left.iter_mut().filter(|it| it.is_some());
        for (place, _) in places.zip(renewed).filter(|(_, renewed)| renewed.is_err()) {
            let Some((owner, claimed)) = place.take() else {
                continue;
            };
            let authority = Authority::Claim(owner, claimed.fence);
            let freed = Outcome::Abandon(Aftermath::None);
            free.push(Settlement::of(claimed.job.key, freed, authority));
        }
        if !free.is_empty() {
            self.from.settle(&free).await?;
        }
        Ok(left)
    }

    fn term_of(&self, owner: &Owner, claimed: &Claimed) -> Claim {
        Claim {
            key: claimed.job.key.clone(),
            owner: owner.clone(),
            fence: Some(claimed.fence.clone()),
            term: self.lease,
        }
    }

    /// Posts what we hold, and looks what of it is there then; an error means that nothing was posted.
    async fn post(
        &self,
        loader: &mut Loader<'_>,
        ours: &[Passenger],
        held: &mut [Held],
    ) -> anyhow::Result<Vec<Fate>> {
        let Some(((first, _), ours_first)) = ours.iter().zip(&*held).next() else {
            return Ok(Vec::new());
        };
        if !self.are_two.get() {
            self.require_two(first, &ours_first.owner).await?;
        }
        let left = ours.iter().zip(&*held).filter(|(_, held)| held.is_left);
        let left = left.map(|((_, draft), held)| (draft.uuid, held.claimed.job.held_since()));
        let done = done_there(self.to, &left.collect::<Vec<_>>()).await?;
        let jobs = ours.iter().zip(&mut *held);
        let known: Vec<_> = jobs
            .map(|((entry, draft), held)| match done.contains(&draft.uuid) {
                true => Some(Fate::There),
                false => unfit(entry, held).map(Fate::NotThere),
            })
            .collect();
        let jobs = borrowed(ours).into_iter().zip(&known);
        let still: Vec<_> = jobs.filter(|(_, it)| it.is_none()).map(|it| it.0).collect();
        let loaded = match loader.load(&still).await {
            Ok(loaded) => loaded,
            Err(error @ (BoardError::Unknown { .. } | BoardError::Failed { .. })) => {
                let unheard = || Err(unheard(self.to, &error));
                still.iter().map(|_| unheard()).collect()
            }
            Err(error) => return Err(error.into()),
        };
        let there = self.read_back(loader, &still).await;
        let mut answers = (0..).zip(still.iter().zip(loaded));
        let fates = known.into_iter().zip(held).map(|(known, held)| {
            let asked = || {
                let (at, (job, answer)) = answers.next()?;
                let there = there.as_ref().map(|there| there[at]);
                let there = there.map_err(|error| unheard(self.to, error));
                Some(fate(job.0, held.is_left, answer, there))
            };
            let fate = known.or_else(asked);
            fate.unwrap_or_else(|| Fate::NotThere(BoardError::NoSuchJob.into()))
        });
        Ok(fates.collect())
    }

    /// Looks whether jobs are there, and again for a while as long as no answer comes.
    async fn read_back(
        &self,
        loader: &Loader<'_>,
        jobs: &[(&Entry, &Draft)],
    ) -> board::Result<Vec<bool>> {
        let end = Instant::now() + PATIENCE;
        loop {
            match loader.read_back(jobs).await {
                Err(error) if is_open(&error) && Instant::now() < end => time::sleep(PAUSE).await,
                answer => return answer,
            }
        }
    }

    /// Gives up here what is there, and has again what is not.
    async fn end(&self, held: &[Held], fates: Vec<Fate>) -> Vec<anyhow::Result<&'static str>> {
        let settlements = held
            .iter()
            .zip(&fates)
            .filter_map(|(held, fate)| match fate {
                Fate::There => Some(self.settlement(held, true)),
                Fate::NotThere(_) => Some(self.settlement(held, false)),
                Fate::Unclear(_) => None,
            });
        let settled = self.settle(&settlements.collect::<Vec<_>>()).await;
        let mut settled = settled.into_iter();
        let ended = fates.into_iter().map(|fate| match fate {
            Fate::There => match settled.next() {
                Some(Err(error)) => Err(on_both(error.into(), "it is on both boards now")),
                _ => Ok("moved"),
            },
            Fate::NotThere(error) => {
                settled.next();
                Err(error)
            }
            Fate::Unclear(error) => Err(on_both(error, "it may be on both boards now")),
        });
        ended.collect()
    }

    /// Settles our claims, and for a while again those of which no answer comes: each is settled once.
    async fn settle(&self, settlements: &[Settlement]) -> Vec<board::Result<Settled>> {
        let end = Instant::now() + PATIENCE;
        let mut answers: Vec<_> = settlements.iter().map(|_| None).collect();
        loop {
            let is_left = |at: &usize| match &answers[*at] {
                None => true,
                Some(answer) => matches!(answer, Err(error) if is_open(error)),
            };
            let left: Vec<_> = (0..settlements.len()).filter(is_left).collect();
            let is_first = answers.iter().any(Option::is_none);
            if left.is_empty() || (!is_first && Instant::now() > end) {
                return answers.into_iter().flatten().collect();
            }
            if !is_first {
                time::sleep(PAUSE).await;
            }
            let asked: Vec<_> = left.iter().map(|at| settlements[*at].clone()).collect();
            let settled = match self.from.settle(&asked).await {
                Ok(settled) => settled,
                Err(error) => {
                    let each = left.iter().map(|_| Err(repeated(self.from, &error)));
                    each.collect()
                }
            };
            for (at, answer) in left.into_iter().zip(settled) {
                answers[at] = Some(match (answers[at].take(), answer) {
                    // That of which we did not hear was done.
                    (Some(Err(BoardError::Unknown { .. })), Err(BoardError::NoSuchJob)) => {
                        Ok(Settled::default())
                    }
                    (Some(unheard @ Err(BoardError::Unknown { .. })), Err(error))
                        if error.is_retryable() =>
                    {
                        unheard
                    }
                    (_, answer) => answer,
                });
            }
        }
    }

    /// Ends our claim here: by the end of the job, or as if nothing had been.
    fn settlement(&self, held: &Held, is_moved: bool) -> Settlement {
        let claimed = &held.claimed;
        let authority = Authority::Claim(held.owner.clone(), claimed.fence.clone());
        let outcome = match is_moved {
            true => Outcome::Consume,
            false => Outcome::Abandon(Aftermath::None),
        };
        Settlement {
            job: is_moved.then(|| Identity::from(&claimed.job)),
            remark: is_moved.then(|| self.remark.clone()),
            ..Settlement::of(claimed.job.key.clone(), outcome, authority)
        }
    }

    /// Makes sure that a job that we have claimed here is not ours there, too: then it is one board.
    async fn require_two(&self, claimed: &Entry, owner: &Owner) -> anyhow::Result<()> {
        let wanted: JobRef = claimed.reference().parse()?;
        match self.to.resolve_one(Shelf::Board, &wanted).await {
            Ok(entry) if entry.is_owned_by(owner) => return Err(same()),
            Ok(_) | Err(BoardError::NoSuchJob) => {}
            Err(error) => return Err(error.into()),
        }
        self.are_two.set(true);
        Ok(())
    }
}

/// Says why a job is not to be posted after all: it is not what was listed, or not ours any more.
fn unfit(entry: &Entry, Held { claimed, lease, .. }: &mut Held) -> Option<anyhow::Error> {
    let is_as_listed = |job: &Job| {
        let (listed, now) = (&job.history, &claimed.job.history);
        fingerprint(job) == fingerprint(&claimed.job)
            && (listed.attempts, listed.postponed) == (now.attempts, now.postponed)
            && listed.not_before == now.not_before
    };
    match entry.job().is_some_and(is_as_listed) {
        true => lease.lost_by_now().map(Into::into),
        false => Some(BoardError::Changed.into()),
    }
}

/// Says that there is nothing to copy.
pub(super) fn same() -> anyhow::Error {
    let message = "both are the same board, and nothing was done";
    CommandError::refused(message)
        .hint("--board and --to name two boards")
        .into()
}
