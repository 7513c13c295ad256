//! Moving jobs: claimed here, posted there, read back, and consumed here.

use std::cell::Cell;

use anyhow::Context as _;

use super::{Passenger, Told, borrowed, conflict};
use crate::{
    board::{Board, BoardError, BoardExt, ClaimRules, JobRef},
    commands::parts::{
        loader::{Loaded, Loader, fingerprint},
        under_claim::{LEASE, kept_owner},
    },
    context::Context,
    exit::CommandError,
    job::{
        Aftermath, Authority, Claimant, Claimed, Entry, Identity, Job, Outcome, Remark, Settlement,
        Shelf, Term,
    },
};

/// Claims by hand: a move is no attempt at a job.
const NO_ATTEMPT: ClaimRules = ClaimRules {
    is_attempt: false,
    at_once: usize::MAX,
    respects_not_before: false,
};

/// Who moves jobs from one board to another.
pub(super) struct Mover<'a> {
    from: &'a dyn Board,
    to: &'a dyn Board,
    by: Claimant,
    remark: Remark,
    /// Whether it was made sure of that it is not one board.
    are_two: Cell<bool>,
}

impl<'a> Mover<'a> {
    /// Prepares claims that end soon after us, under a name that nobody else has.
    pub(super) async fn new(
        ctx: &Context,
        from: &'a dyn Board,
        to: &'a dyn Board,
    ) -> anyhow::Result<Self> {
        let lease = from.lease_term(2 * LEASE).await;
        let lease = lease.with_context(|| ctx.trying("move", "the jobs"))?;
        let by = Claimant {
            owner: kept_owner(ctx.who())?,
            term: Term::Kept(lease),
        };
        let reason = format!("moved to {}", to.name());
        Ok(Self {
            from,
            to,
            by,
            remark: Remark::now("consumed", &ctx.who().text(), Some(&reason)),
            are_two: Cell::new(false),
        })
    }

    /// Moves jobs, each whole or not at all.
    pub(super) async fn pass(
        &self,
        loader: &mut Loader<'_>,
        batch: Vec<Passenger>,
    ) -> anyhow::Result<Vec<Told>> {
        let trying = || {
            format!(
                "cannot move jobs from {} to {}",
                self.from.name(),
                self.to.name()
            )
        };
        let keys: Vec<_> = batch.iter().map(|(entry, _)| entry.key().clone()).collect();
        let claimed = self
            .from
            .claim(&keys, &self.by, keys.len(), NO_ATTEMPT)
            .await;
        let claimed = claimed.with_context(trying)?;
        let (mut told, mut ours, mut claims) = (Vec::new(), Vec::new(), Vec::new());
        for ((entry, draft), claimed) in batch.into_iter().zip(claimed) {
            match claimed {
                Ok(claimed) => {
                    ours.push((entry, draft));
                    claims.push(claimed);
                }
                Err(error) => told.push((entry, Err(error.into()))),
            }
        }
        let moved = self.pass_claimed(loader, &ours, &claims).await;
        if moved.is_err() {
            // Nothing of it is known to be there.
            let release = claims.iter().map(|claimed| self.settlement(claimed, false));
            let _ = self.from.settle(&release.collect::<Vec<_>>()).await;
        }
        let moved = moved.with_context(trying)?;
        let entries = ours.into_iter().map(|(entry, _)| entry);
        told.extend(entries.zip(moved));
        Ok(told)
    }

    /// Posts what we hold, and gives up here what is there then.
    async fn pass_claimed(
        &self,
        loader: &mut Loader<'_>,
        ours: &[Passenger],
        claims: &[Claimed],
    ) -> anyhow::Result<Vec<anyhow::Result<&'static str>>> {
        let Some((first, _)) = ours.first() else {
            return Ok(Vec::new());
        };
        if !self.are_two.get() {
            self.require_two(first).await?;
        }
        // What has changed since it was listed is not what would be posted.
        let is_same = |(entry, _): &Passenger, claimed: &Claimed| {
            let is_as_listed = |job: &Job| {
                let (listed, now) = (&job.history, &claimed.job.history);
                fingerprint(job) == fingerprint(&claimed.job)
                    && (listed.attempts, listed.postponed) == (now.attempts, now.postponed)
                    && listed.not_before == now.not_before
            };
            entry.job().is_some_and(is_as_listed)
        };
        let same: Vec<_> = ours
            .iter()
            .zip(claims)
            .map(|(one, claimed)| is_same(one, claimed))
            .collect();
        let jobs = borrowed(ours);
        let still: Vec<_> = jobs
            .iter()
            .zip(&same)
            .filter(|(_, same)| **same)
            .map(|(job, _)| *job)
            .collect();
        let loaded = loader.load(&still).await?;
        let there = loader.read_back(&still).await?;
        let mut loaded = loaded.into_iter().zip(there);
        let verdicts: Vec<anyhow::Result<()>> = ours
            .iter()
            .zip(&same)
            .map(
                |((entry, _), same)| match same.then(|| loaded.next()).flatten() {
                    None => Err(BoardError::Changed.into()),
                    Some((Ok(Loaded::Conflict), _)) => Err(conflict(entry)),
                    Some((Ok(_), true)) => Ok(()),
                    Some((Ok(_), false)) => {
                        let message = "it was posted there, and is not there any more";
                        Err(CommandError::refused(message).into())
                    }
                    Some((Err(error), _)) => Err(error.into()),
                },
            )
            .collect();
        let settlements: Vec<_> = claims
            .iter()
            .zip(&verdicts)
            .map(|(claimed, verdict)| self.settlement(claimed, verdict.is_ok()))
            .collect();
        let settled = self.from.settle(&settlements).await?;
        let ended = verdicts.into_iter().zip(settled);
        Ok(ended
            .map(|(verdict, settled)| {
                verdict?;
                settled.map_err(|error| {
                    anyhow::Error::from(error).context("it is on both boards now")
                })?;
                Ok("moved")
            })
            .collect())
    }

    /// Ends our claim here: by the end of the job, or as if nothing had been.
    fn settlement(&self, claimed: &Claimed, is_moved: bool) -> Settlement {
        let authority = Authority::Claim(self.by.owner.clone(), claimed.fence.clone());
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
    async fn require_two(&self, claimed: &Entry) -> anyhow::Result<()> {
        let wanted: JobRef = claimed.reference().parse()?;
        match self.to.resolve_one(Shelf::Board, &wanted).await {
            Ok(entry) if entry.is_owned_by(&self.by.owner) => return Err(same()),
            Ok(_) | Err(BoardError::NoSuchJob) => {}
            Err(error) => return Err(error.into()),
        }
        self.are_two.set(true);
        Ok(())
    }
}

/// Says that there is nothing to copy.
pub(super) fn same() -> anyhow::Error {
    let message = "both are the same board, and nothing was done";
    CommandError::refused(message)
        .hint("--board and --to name two boards")
        .into()
}
