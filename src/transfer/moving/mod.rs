//! Moves jobs to another board. `docs/decisions/moves.md` has the protocol and its crash cases.

mod resume;
mod route;
#[cfg(test)]
mod tests;

use std::{cell::Cell, sync::Arc, time::Duration};

use anyhow::Context as _;
use chrono::Utc;

use self::route::{abandon, each, settle};
pub(crate) use self::{resume::resume, route::Route};
use super::loader::{Fingerprint, Loader};
use crate::{
    board::{self, BoardError, ClaimRules, JobRef},
    diagnosis::is_left_by_move,
    exit::CommandError,
    job::{
        AuditEntry, Authority, Claimant, Claimed, Decision, Draft, Entry, Identity, Job, Location,
        MOVER, MoveRecord, Owner, Settlement, Stage, Term,
    },
    lease::{Keeper, KeptLease},
    process::clock::Boottime,
};

/// A job to copy or move, and the draft of its copy.
pub(crate) type Candidate = (Entry, Draft);

/// A job, and the result of its copy or move.
pub(crate) type TransferResult = (Entry, anyhow::Result<&'static str>);

pub(crate) fn same_board() -> CommandError {
    CommandError::refused("source and target are the same board; nothing changed")
        .hint("use different boards for --board and for --to or --from")
}

pub(crate) struct Mover<'a> {
    route: &'a Route,
    owner: Owner,
    /// The lease of the claims on the source board, renewed by `keeper`.
    lease: Duration,
    keeper: Keeper,
    /// Whether any batch left a job for `copy --resume`, which needs the record of the move.
    is_unfinished: Cell<bool>,
}

struct Trip {
    entry: Entry,
    draft: Draft,
    source: Option<(Claimed, KeptLease)>,
    copy: Option<Job>,
    end: Option<TripEnd>,
}

enum TripEnd {
    Committed,
    Stays(anyhow::Error),
    /// Only another read of the source board can decide.
    Unresolved(anyhow::Error),
}

impl<'a> Mover<'a> {
    /// The name of the owner must be unique to this move.
    pub(crate) fn new(route: &'a Route, owner: &Owner, lease: Duration) -> anyhow::Result<Self> {
        Ok(Self {
            route,
            owner: Owner::new(&format!("{MOVER}{owner}"))?,
            lease,
            keeper: Keeper::start(Arc::clone(&route.from)),
            is_unfinished: Cell::default(),
        })
    }

    /// Moves jobs, each with its own answer. An outer error means that all stay.
    pub(crate) async fn pass(
        &self,
        loader: &Loader<'_>,
        batch: Vec<Candidate>,
    ) -> anyhow::Result<Vec<TransferResult>> {
        let trying = || self.route.failed();
        let mut trips = self.claim(batch).await.with_context(trying)?;
        let posted = self.post(loader, &mut trips).await;
        if posted.is_ok() {
            self.commit(&mut trips).await;
        }
        self.conclude(&mut trips).await;
        posted.with_context(trying)?;
        let moved = trips.into_iter().map(|trip| match trip.end {
            Some(TripEnd::Committed) => (trip.entry, Ok("moved")),
            Some(TripEnd::Stays(error) | TripEnd::Unresolved(error)) => (trip.entry, Err(error)),
            None => (trip.entry, Err(BoardError::NoSuchJob.into())),
        });
        Ok(moved.collect())
    }

    async fn claim(&self, batch: Vec<Candidate>) -> board::Result<Vec<Trip>> {
        let left = batch.iter().filter_map(|(entry, _)| {
            let holding = entry.holding().filter(|it| is_left_by_move(it))?;
            let claim = Authority::Claim(holding.owner.clone()?, holding.fence.clone()?);
            Some(abandon(entry.key(), claim))
        });
        self.route.from.settle(&left.collect::<Vec<_>>()).await?;
        let by = self.claimant(Term::Lease(self.lease));
        let keys: Vec<_> = batch.iter().map(|(entry, _)| entry.key().clone()).collect();
        let asked = Boottime::now();
        let mut claimed = Vec::with_capacity(keys.len());
        while claimed.len() < keys.len() {
            let rest = &keys[claimed.len()..];
            // A board answers for as many jobs as fit into a reply.
            let some = self
                .route
                .from
                .claim(rest, &by, rest.len(), ClaimRules::BY_HAND)
                .await?;
            if some.is_empty() {
                break;
            }
            claimed.extend(some);
        }
        claimed.resize_with(keys.len(), || Err(BoardError::NoSuchJob));
        let trips = batch
            .into_iter()
            .zip(claimed)
            .map(|((entry, draft), claimed)| {
                let (source, error) = match claimed {
                    Ok(claimed) => {
                        let is_as_listed = is_as_listed(&entry, &claimed.job);
                        let claim = claimed.claim(&self.owner, self.lease);
                        let source = (claimed, self.keeper.hold(claim, asked));
                        (Some(source), (!is_as_listed).then_some(BoardError::Changed))
                    }
                    Err(error) => (None, Some(error)),
                };
                let end = error.map(|error| TripEnd::Stays(error.into()));
                Trip {
                    entry,
                    draft,
                    source,
                    copy: None,
                    end,
                }
            });
        Ok(trips.collect())
    }

    /// Posts claimed copies on the target board and reads them back.
    ///
    /// An error means that the target board accepted none.
    async fn post(&self, loader: &Loader<'_>, trips: &mut [Trip]) -> anyhow::Result<()> {
        let mut open = open(trips);
        let drafts: Vec<_> = open.iter().map(|trip| &trip.draft).collect();
        let found = loader.lookup(&drafts).await?;
        for (trip, found) in open.iter_mut().zip(found) {
            match found {
                Err(BoardError::NoSuchJob) => {}
                Ok(entry) if entry.is_owned_by(&self.owner) => {
                    return Err(same_board().into());
                }
                Ok(entry) => {
                    let is_trashed = (entry.job()).is_some_and(|it| it.location == Location::Trash);
                    trip.end = Some(self.taken(trip, is_trashed));
                }
                Err(BoardError::Ambiguous { .. }) => trip.end = Some(self.taken(trip, false)),
                Err(error) => return Err(error.into()),
            }
        }
        open.retain(|trip| trip.end.is_none());
        if open.is_empty() {
            return Ok(());
        }
        self.route.from.begin_move(&self.begun()).await?;
        let reason = format!("{}{}", Job::MOVED_FROM, self.route.source);
        let received = self.route.audit(AuditEntry::RECEIVED, &reason);
        let mut drafts: Vec<_> = open.iter().map(|trip| trip.draft.clone()).collect();
        for former in drafts.iter_mut().filter_map(|it| it.former.as_mut()) {
            former.attempts.audit = Some(received.clone());
        }
        let to = &*self.route.to;
        let by = self.claimant(Term::Indefinite);
        let posted = match to.post(&drafts, Some(&by)).await {
            Err(error) if !error.may_have_taken_effect() => return Err(error.into()),
            posted => each(to, drafts.len(), posted),
        };
        let wanted = open.iter().zip(&posted).map(|(trip, posted)| match posted {
            Ok(posted) => JobRef::Key(posted.key.clone()),
            Err(_) => JobRef::Uuid(trip.draft.uuid.to_string()),
        });
        let wanted: Vec<_> = wanted.collect();
        let found = to.find(Location::Board, &wanted).await;
        for (at, (trip, posted)) in open.into_iter().zip(posted).enumerate() {
            let found = found.as_ref().map(|found| &found[at][..]);
            (trip.copy, trip.end) = self.received(trip, posted, found);
        }
        Ok(())
    }

    fn received(
        &self,
        trip: &Trip,
        posted: board::Result<board::Posted>,
        found: Result<&[Entry], &BoardError>,
    ) -> (Option<Job>, Option<TripEnd>) {
        let ours = found.map(|found| found.iter().find(|it| it.is_owned_by(&self.owner)));
        let unknown = |error: BoardError| {
            let what = "the job stays here; a claimed copy may be on the target";
            self.unresolved(error.into(), what)
        };
        let end = match (ours, posted) {
            (Ok(Some(Entry::Job(copy))), _) => {
                let is_same = trip.entry.job().map(Fingerprint::of) == Some(Fingerprint::of(copy));
                let differs = CommandError::refused("the copy on the target differs from the job");
                let end = (!is_same).then(|| TripEnd::Stays(differs.into()));
                return (Some((**copy).clone()), end);
            }
            (Ok(Some(Entry::Malformed(copy))), _) => self.unresolved(
                BoardError::from(copy).into(),
                "the job stays here; a copy is on the target",
            ),
            (Err(error), _) => unknown(error.repeated(self.route.to.url())),
            (Ok(None), Err(BoardError::Exists { .. })) => self.taken(trip, false),
            // The request may still arrive.
            (Ok(None), Err(error)) if error.may_have_taken_effect() => unknown(error),
            (Ok(None), Err(error)) => TripEnd::Stays(error.into()),
            (Ok(None), Ok(_)) => {
                let message = "the copy on the target was posted and has disappeared";
                TripEnd::Stays(CommandError::refused(message).into())
            }
        };
        (None, Some(end))
    }

    /// Consumes the jobs on the source board: from then on the copies are the jobs.
    async fn commit(&self, trips: &mut [Trip]) {
        let reason = format!("moved to {}", self.route.target);
        let audit = self.route.audit(AuditEntry::MOVED, &reason);
        for trip in open(trips) {
            let lost = trip.source.as_mut().and_then(|(_, it)| it.lost_by_now());
            trip.end = lost.map(|lost| TripEnd::Stays(lost.into()));
        }
        let open = open(trips);
        let sources = open.iter().filter_map(|trip| trip.source.as_ref());
        let settlements = sources.map(|(claimed, _)| Settlement {
            decision: Decision::Consume,
            job: Some(Identity::from(&claimed.job)),
            audit: Some(audit.clone()),
            commit: Some(MoveRecord::commit(&self.owner, &claimed.job.uuid)),
            ..self.release(claimed)
        });
        let settled = settle(&*self.route.from, settlements.collect()).await;
        let mut failed = Vec::new();
        for (trip, settled) in open.into_iter().zip(settled) {
            match settled {
                Ok(()) => trip.end = Some(TripEnd::Committed),
                Err(error) => failed.push((trip, error)),
            }
        }
        // Ending the claim also stops a request in flight.
        let freed = self.free(failed.iter().map(|(trip, _)| &**trip)).await;
        let records = match freed.iter().any(Result::is_err) {
            true => self.route.records().await,
            false => Ok(Vec::new()),
        };
        for ((trip, error), freed) in failed.into_iter().zip(freed) {
            let commit = self.committed(trip);
            trip.end = Some(match (freed, &records) {
                (Ok(()), _) => TripEnd::Stays(error.into()),
                (Err(_), Ok(records)) if records.contains(&commit) => TripEnd::Committed,
                (Err(freed), Ok(_))
                    if freed.is_about_the_claim() && !matches!(freed, BoardError::NoSuchJob) =>
                {
                    TripEnd::Stays(error.into())
                }
                // A missing job may have moved: peers can delete its commit record.
                _ => self.unresolved(
                    error.into(),
                    "the job may still be here; a claimed copy is on the target",
                ),
            });
        }
    }

    /// Releases the copies of consumed jobs; removes the copies of jobs that stay, and frees these jobs.
    async fn conclude(&self, trips: &mut [Trip]) {
        let is_settled = |trip: &Trip| !matches!(trip.end, Some(TripEnd::Unresolved(_)));
        let is_committed = |trip: &Trip| matches!(trip.end, Some(TripEnd::Committed));
        let has_copy = |trip: &&mut Trip| trip.copy.is_some() && is_settled(trip);
        let copied: Vec<_> = trips.iter_mut().filter(has_copy).collect();
        let copies = copied.iter();
        let copies =
            copies.filter_map(|it| Some((it.copy.as_ref()?, &self.owner, is_committed(it))));
        let ended = self.route.end_copies(copies).await;
        for (trip, ended) in copied.into_iter().zip(ended) {
            let Err(error) = ended else { continue };
            let what = match is_committed(trip) {
                true => "the job was moved, but its copy on the target is still claimed",
                false => "the job stays here; a claimed copy is on the target",
            };
            trip.end = Some(self.unresolved(error.into(), what));
        }
        self.free(trips.iter().filter(|trip| !is_committed(trip)))
            .await;
        let moved = trips.iter().filter(|trip| is_committed(trip));
        let mut ended: Vec<_> = moved.map(|trip| self.committed(trip)).collect();
        (self.is_unfinished).update(|it| it || !trips.iter().all(is_settled));
        if !self.is_unfinished.get() {
            ended.push(self.begun());
        }
        // A leftover record does no harm: the next move finds no copies for it.
        let _ = self.route.from.end_moves(&ended).await;
    }

    async fn free(&self, trips: impl Iterator<Item = &Trip>) -> Vec<board::Result<()>> {
        let sources = trips.filter_map(|trip| trip.source.as_ref());
        let released = sources.map(|(claimed, _)| self.release(claimed));
        settle(&*self.route.from, released.collect()).await
    }

    fn release(&self, claimed: &Claimed) -> Settlement {
        let claim = Authority::Claim(self.owner.clone(), claimed.fence.clone());
        abandon(&claimed.job.key, claim)
    }

    fn claimant(&self, term: Term) -> Claimant {
        let owner = self.owner.clone();
        Claimant { owner, term }
    }

    fn begun(&self) -> MoveRecord {
        let (to, on) = (self.route.target.clone(), Utc::now());
        MoveRecord {
            owner: self.owner.clone(),
            stage: Stage::Begun { to, on },
        }
    }

    fn committed(&self, trip: &Trip) -> MoveRecord {
        MoveRecord::commit(&self.owner, &trip.draft.uuid.to_string())
    }

    fn taken(&self, trip: &Trip, is_trashed: bool) -> TripEnd {
        TripEnd::Stays(self.route.taken(&trip.draft, is_trashed).into())
    }

    fn unresolved(&self, error: anyhow::Error, what: &str) -> TripEnd {
        let to = &self.route.target;
        TripEnd::Unresolved(error.context(format!(
            "{what}; `copy --resume --to {to}` finishes the move"
        )))
    }
}

fn open(trips: &mut [Trip]) -> Vec<&mut Trip> {
    let open = trips.iter_mut().filter(|trip| trip.end.is_none());
    open.collect()
}

fn is_as_listed(entry: &Entry, claimed: &Job) -> bool {
    entry.job().is_some_and(|listed| {
        let (before, now) = (&listed.attempts, &claimed.attempts);
        Fingerprint::of(listed) == Fingerprint::of(claimed)
            && (before.count, before.postponed) == (now.count, now.postponed)
            && before.not_before == now.not_before
    })
}
