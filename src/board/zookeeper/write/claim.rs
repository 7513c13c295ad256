//! Claiming jobs, and renewing the claims.

use chrono::Utc;
use futures_util::future::{join, join_all};
use zookeeper_client::{CreateMode, Error, SessionId};

use crate::{
    board::{
        BoardError, ClaimRules, Detail, Result,
        error::Unsupported,
        net::failure::RequestFailure,
        rules::{ClaimRequest, permit_owner, won_at_most},
        wire::{json, sidecar::Sidecar},
        zookeeper::{
            JOBS_PER_BATCH, TRIES,
            board_session::BoardSession,
            link::{
                nodes::{Node, READING},
                session::Session,
                transaction::RefusedStep,
            },
            paths::NodeKind,
            read::record::{JobNodes, fence},
        },
    },
    job::{Claim, Claimant, Claimed, Entry, JobKey, Location, Term},
};

pub(crate) fn mode(term: Term) -> Result<CreateMode> {
    match term {
        // As TaskFlow would have it if its processes ended after each claim.
        Term::Indefinite => Ok(CreateMode::Persistent),
        Term::Lease(_) => Ok(CreateMode::Ephemeral),
        Term::For(_) => Err(Unsupported::ExpiringClaims.into()),
    }
}

/// Returns the session timeout to record for a claim; `None` if the claim does not expire.
pub(crate) fn session_of(term: Term, session: &Session) -> Option<u64> {
    match term {
        Term::Lease(_) => u64::try_from(session.timeout().as_millis()).ok(),
        Term::Indefinite | Term::For(_) => None,
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
        // Refuses the term before anything is read.
        mode(by.term)?;
        let found = self.records(Location::Board, keys).await?;
        let mut open = keys.iter().zip(found);
        let (mut answers, mut won) = (Vec::with_capacity(keys.len()), 0);
        while won < most {
            // Try as many jobs together as are still wanted, the first ones first. After a lost job, one that was to
            // wait may begin immediately, and never the other way round.
            let wave = open
                .by_ref()
                .take((most - won).min(JOBS_PER_BATCH))
                .zip(won..);
            let tries = wave.map(|((key, found), place)| {
                self.claim_one(key, found, ClaimRequest::after(place, by, rules))
            });
            let tried = join_all(tries).await;
            if tried.is_empty() {
                break;
            }
            won += won_at_most(&tried);
            answers.extend(tried);
        }
        Ok(answers)
    }

    async fn claim_one(
        &self,
        key: &JobKey,
        mut found: Option<JobNodes>,
        request: ClaimRequest<'_>,
    ) -> Result<Claimed> {
        for _ in 0..TRIES {
            let record = self.require(found.as_ref())?;
            let side = permit(record, request)?;
            match self.attempt(record, side, request).await? {
                Ok(claimed) => return Ok(claimed),
                Err(refused) => self.prepare_retry(&refused).await?,
            }
            found = self.record(Location::Board, key).await?;
        }
        Err(BoardError::Changed)
    }

    /// The inner error names the step that the server refused.
    async fn attempt(
        &self,
        record: &JobNodes,
        side: Option<Sidecar>,
        request: ClaimRequest<'_>,
    ) -> Result<Result<Claimed, RefusedStep>> {
        let (key, lock) = (&record.key, self.paths.lock(&record.key));
        let mut transaction = self.transaction();
        transaction.check(NodeKind::Job, key, record.posting.stat.version);
        let owner = json::lock(&request.by.owner);
        transaction.create_as(NodeKind::Lock, key, &owner, mode(request.by.term)?);
        // Each claim changes this node, so that its version tells two claims with equal locks apart.
        let is_first = (side.as_ref()).is_some_and(|side| side.first_claimed_on.is_none());
        let side = side.map(|mut side| {
            side.session = session_of(request.by.term, &self.session);
            side.first_claimed_on = side.first_claimed_on.or_else(|| Some(Utc::now()));
            side.ahead = request.is_ahead;
            side.attempts = side
                .attempts
                .saturating_add(u32::from(request.is_counted()));
            side
        });
        transaction.put_side(key, &record.side, side.as_ref());
        // Send the read before the reply; the server keeps the order.
        let commit = transaction.commit();
        let read = self.session.client.get_data(&lock);
        let (done, read) = join(commit, self.session.ask(READING, read)).await;
        let unknown = |failure: RequestFailure| failure.into_unknown(self.client.name());
        if let Err(refused) = done.map_err(unknown)? {
            return Ok(Err(refused));
        }
        // The claim exists even if its fencing token stays unknown.
        let read = read.map_err(|failure| unknown(RequestFailure::Lost(failure.into())))?;
        let is_of_session = |session| match request.by.term {
            Term::Lease(_) => SessionId(session) == self.session.id(),
            Term::Indefinite | Term::For(_) => true,
        };
        let claim = match read {
            Ok((data, stat)) if data == owner && is_of_session(stat.ephemeral_owner) => {
                Node { data, stat }
            }
            // Another client has already ended the claim by force.
            Ok(_) | Err(Error::NoNode) => return Err(BoardError::Changed),
            Err(error) => {
                let refusal = self.session.refusal(READING, &error);
                return Err(unknown(RequestFailure::Lost(refusal)));
            }
        };
        let mut record = record.clone();
        let fence = fence(&claim);
        record.side = side.map(|side| Node {
            data: side.write(),
            stat: claim.stat,
        });
        record.lock = Some(claim);
        match record.read(Detail::Whole, self.limit) {
            Entry::Job(job) => Ok(Ok(Claimed {
                job: *job,
                fence,
                is_first,
            })),
            Entry::Malformed(record) => Err(BoardError::from(&record)),
        }
    }

    pub(crate) async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        let wanted: Vec<_> = claims
            .iter()
            .flat_map(|claim| {
                let job = self.paths.job(Location::Board, &claim.key);
                [job, self.paths.lock(&claim.key)]
            })
            .collect();
        // A server that lags behind would still show a deleted lock, so it must catch up first.
        let (caught_up, found) = join(self.catch_up(), self.session.read(&wanted)).await;
        caught_up?;
        let mut found = found?.into_iter();
        let answers = claims.iter().map(|claim| {
            let (posting, lock) = (found.next().flatten(), found.next().flatten());
            if claim.fence.is_none() {
                return Err(Unsupported::ExpiringClaims.into());
            }
            let posting = posting.ok_or(BoardError::NoSuchJob)?;
            let record = JobNodes::new(Location::Board, claim.key.clone(), posting, lock, None);
            let held = self.require(Some(&record))?.holding();
            permit_owner(held.as_ref(), &claim.owner, claim.fence.as_ref())?;
            let session = record.lock.map(|lock| SessionId(lock.stat.ephemeral_owner));
            // The claim of an earlier session may end any moment.
            match session == Some(self.session.id()) {
                true => Ok(()),
                false => Err(BoardError::Changed),
            }
        });
        Ok(answers.collect())
    }
}

/// Returns the sidecar of a claimable job; `None` if it is unreadable.
fn permit(record: &JobNodes, request: ClaimRequest<'_>) -> Result<Option<Sidecar>> {
    if record.lock.is_some() {
        let owner = record.owner();
        return Err(BoardError::AlreadyClaimed { owner });
    }
    let posting = record.require_job()?;
    if posting.is_oversized && request.needs_sidecar() {
        return Err(BoardError::unclaimable(posting.problem));
    }
    match record.readable_side() {
        Ok(side) => request.permit(&side, Utc::now()).map(|()| Some(side)),
        Err(problem) if request.needs_sidecar() => Err(BoardError::Unclaimable { problem }),
        Err(_) => Ok(None),
    }
}
