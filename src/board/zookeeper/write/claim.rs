//! Claiming jobs, and renewing the claims.

use chrono::Utc;
use futures_util::future::{join, join_all};
use zookeeper_client::{CreateMode, Error, SessionId};

use crate::{
    board::{
        BoardError, ClaimRules, Detail, Result,
        net::failure::Failure,
        rules::{Bid, permit_owner},
        wire::{json, sidecar::Sidecar},
        zookeeper::{
            AT_ONCE, TRIES,
            board_session::BoardSession,
            link::{
                nodes::{Node, READING},
                session::Session,
                transaction::{RefusedStep, StepKind},
            },
            read::record::{JobNodes, fence},
        },
    },
    job::{Claim, Claimant, Claimed, Entry, JobKey, Origin, Shelf, Term},
};

enum ClaimAttempt {
    Won(Box<Claimed>),
    /// A node changed after it was read.
    Overtaken(RefusedStep),
}

pub(crate) fn mode(term: Term) -> Result<CreateMode> {
    match term {
        // As TaskFlow would have it if its processes ended after each claim.
        Term::Indefinite => Ok(CreateMode::Persistent),
        Term::Kept(_) => Ok(CreateMode::Ephemeral),
        Term::For(_) => Err(no_expiry()),
    }
}

/// Returns the session timeout to record for a claim; `None` if the claim does not expire.
pub(crate) fn session_of(term: Term, session: &Session) -> Option<u64> {
    match term {
        Term::Kept(_) => u64::try_from(session.timeout().as_millis()).ok(),
        Term::Indefinite | Term::For(_) => None,
    }
}

fn no_expiry() -> BoardError {
    BoardError::Unsupported {
        board: "a ZooKeeper board",
        operation: "expire claims at a given time",
        hint: Some("`--hold` keeps a claim for as long as the command runs"),
    }
}

impl BoardSession<'_> {
    pub(crate) async fn claim(
        &self,
        keys: &[JobKey],
        by: &Claimant,
        most: usize,
        rules: ClaimRules,
    ) -> Result<Vec<Result<Claimed>>> {
        mode(by.term)?;
        let found = self.records(Shelf::Board, keys).await?;
        let mut open = keys.iter().zip(found);
        let (mut answers, mut won) = (Vec::with_capacity(keys.len()), 0);
        while won < most {
            // As many at once as are still wanted: never one too many, and the first ones first.
            // One that is not won makes another one begin at once that was to wait: never the
            // other way round.
            let wave = open.by_ref().take((most - won).min(AT_ONCE)).zip(won..);
            let tries = wave.map(|((key, found), place)| {
                self.claim_one(key, found, Bid::after(place, by, rules))
            });
            let tried = join_all(tries).await;
            if tried.is_empty() {
                break;
            }
            // Of one that may have been won, none too many is won either.
            let may_be_won = |answer: &&Result<Claimed>| {
                matches!(answer, Ok(_) | Err(BoardError::Unknown { .. }))
            };
            won += tried.iter().filter(may_be_won).count();
            answers.extend(tried);
        }
        Ok(answers)
    }

    async fn claim_one(
        &self,
        key: &JobKey,
        mut found: Option<JobNodes>,
        bid: Bid<'_>,
    ) -> Result<Claimed> {
        for _ in 0..TRIES {
            let record = self.require(found.as_ref())?;
            let side = permit(record, bid)?;
            match self.attempt(record, side, bid).await? {
                ClaimAttempt::Won(claimed) => return Ok(*claimed),
                ClaimAttempt::Overtaken(refused) => self.prepare_retry(&refused).await?,
            }
            found = self.record(Shelf::Board, key).await?;
        }
        Err(BoardError::Changed)
    }

    async fn attempt(
        &self,
        record: &JobNodes,
        side: Option<Sidecar>,
        bid: Bid<'_>,
    ) -> Result<ClaimAttempt> {
        let (key, lock) = (&record.key, self.paths.lock(&record.key));
        let mut transaction = self.transaction();
        let job = self.paths.job(Shelf::Board, key);
        transaction.check(StepKind::Job, job, record.posting.stat.version);
        let owner = json::lock(&bid.by.owner);
        transaction.create(StepKind::Lock, lock.clone(), &owner, mode(bid.by.term)?);
        // Every claim of ours changes this node: by its version, who settles the claim before
        // learns that there was another one, even if their locks are alike.
        let is_first = (side.as_ref()).is_some_and(|side| side.first_claimed_on.is_none());
        let side = side.map(|mut side| {
            side.session = session_of(bid.by.term, &self.session);
            side.first_claimed_on = side.first_claimed_on.or_else(|| Some(Utc::now()));
            side.ahead = bid.is_ahead;
            side.attempts = side.attempts.saturating_add(u32::from(bid.is_counted()));
            side
        });
        transaction.put(
            StepKind::Sidecar,
            self.paths.side(key),
            &record.side,
            side.as_ref(),
        );
        // Both are on their way before either is answered, and the server keeps their order.
        let commit = transaction.commit();
        let read = self.session.client().get_data(&lock);
        let (done, read) = join(commit, self.session.ask(READING, read)).await;
        if let Err(refused) = done.map_err(|failure| self.unknown(failure))? {
            return Ok(ClaimAttempt::Overtaken(refused));
        }
        // It is done, whatever keeps us from knowing under which fence.
        let read = read.map_err(|failure| self.unknown(Failure::Lost(failure.into())))?;
        let claim = match read {
            Ok((data, stat)) if data == owner => Node { data, stat },
            // Somebody has overridden it already.
            Ok(_) | Err(Error::NoNode) => return Err(BoardError::Changed),
            Err(error) => return Err(self.session.refusal(READING, &error)),
        };
        let mut record = record.clone();
        let fence = fence(&claim);
        record.side = side.map(|side| Node {
            data: side.write(),
            stat: claim.stat,
        });
        record.lock = Some(claim);
        match record.read(Detail::Whole) {
            Entry::Job(job) => Ok(ClaimAttempt::Won(Box::new(Claimed {
                job: *job,
                fence,
                is_first,
            }))),
            Entry::Malformed(record) => Err(BoardError::Malformed {
                key: record.key,
                problem: record.problem,
            }),
        }
    }

    pub(crate) async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        if claims.iter().any(|claim| claim.fence.is_none()) {
            return Ok(claims.iter().map(|_| Err(no_expiry())).collect());
        }
        let wanted: Vec<_> = claims
            .iter()
            .flat_map(|claim| {
                let job = self.paths.job(Shelf::Board, &claim.key);
                [job, self.paths.lock(&claim.key)]
            })
            .collect();
        // A server that lags behind would still show a deleted lock, so it must catch up first.
        let (caught_up, found) = join(self.catch_up(), self.session.read(&wanted)).await;
        caught_up?;
        let mut found = found?.into_iter();
        let answers = claims.iter().map(|claim| {
            let (posting, lock) = (found.next().flatten(), found.next().flatten());
            let record = JobNodes {
                shelf: Shelf::Board,
                key: claim.key.clone(),
                posting: posting.ok_or(BoardError::NoSuchJob)?,
                lock,
                side: None,
                origin: Origin::Here,
            };
            self.require(Some(&record))?;
            permit_owner(
                record.holding().0.as_ref(),
                &claim.owner,
                claim.fence.as_ref(),
            )?;
            let session = record.lock.map(|lock| SessionId(lock.stat.ephemeral_owner));
            // Kept by a session that is none of ours any more, it may end any moment.
            if session == Some(self.session.id()) {
                Ok(())
            } else {
                Err(BoardError::Changed)
            }
        });
        Ok(answers.collect())
    }
}

/// Returns the sidecar of a claimable job; `None` if it is unreadable.
fn permit(record: &JobNodes, bid: Bid<'_>) -> Result<Option<Sidecar>> {
    if record.lock.is_some() {
        let owner = record.holding().0.and_then(|holding| holding.owner);
        return Err(BoardError::AlreadyClaimed { owner });
    }
    let posting = record.require_job()?;
    if posting.is_oversized && bid.needs_record() {
        return Err(BoardError::Unfit {
            problem: posting.problem.unwrap_or_default(),
        });
    }
    match record.readable_side() {
        Ok(side) => bid.permit(&side, Utc::now()).map(|()| Some(side)),
        Err(problem) if bid.needs_record() => Err(BoardError::Unfit { problem }),
        Err(_) => Ok(None),
    }
}
