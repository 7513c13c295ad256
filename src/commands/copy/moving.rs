//! Moves jobs to another board. `docs/decisions/moves.md` has the protocol and its crash cases.

use std::{cell::Cell, time::Duration};

use anyhow::Context as _;
use chrono::Utc;

use super::choice::{CopyResult, Passenger};
use crate::{
    board::{self, Board, BoardError, ClaimRules, JobRef},
    diagnosis::is_left_by_move,
    exit::CommandError,
    job::{
        Aftermath, AuditEntry, Authority, Claimant, Claimed, Decision, Draft, Entry, Fence,
        Identity, Job, JobKey, MOST_RECORDS, MoveRecord, Owner, Settlement, Shelf, Stage, Term,
    },
    lease::{Keeper, KeptLease},
    process::clock::Boottime,
    transfer::loader::{Loader, fingerprint},
};

pub(super) struct Route<'a> {
    pub(super) from: &'a dyn Board,
    pub(super) to: &'a dyn Board,
    pub(super) source: String,
    pub(super) target: String,
    pub(super) who: String,
}

impl Route<'_> {
    pub(super) fn returned(&self) -> AuditEntry {
        let reason = format!("returned to {}", self.source);
        AuditEntry::now(AuditEntry::MOVED, &self.who, Some(&reason))
    }

    /// Returns the records of moves from the source board. A missing record would read as a job that never left.
    pub(super) async fn records(&self) -> board::Result<Vec<MoveRecord>> {
        let records = self.from.moves().await?;
        match records.len() < MOST_RECORDS {
            true => Ok(records),
            false => Err(BoardError::Failed {
                doing: "read the records of all moves on",
                board: self.source.clone(),
                source: format!("there are more than {MOST_RECORDS}").into(),
            }),
        }
    }

    pub(super) fn failed(&self) -> String {
        format!("cannot move jobs from {} to {}", self.source, self.target)
    }
}

pub(super) struct Mover<'a> {
    pub(super) route: &'a Route<'a>,
    pub(super) owner: Owner,
    /// The lease of the claims on the source board, renewed by `keeper`.
    pub(super) lease: Duration,
    pub(super) keeper: Keeper,
    /// Whether any batch left a job for `copy --resume`, which needs the record of the move.
    pub(super) is_unfinished: Cell<bool>,
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

impl Mover<'_> {
    /// Moves jobs, each with its own answer. An outer error means that all stay.
    pub(super) async fn pass(
        &self,
        loader: &Loader<'_>,
        batch: Vec<Passenger>,
    ) -> anyhow::Result<Vec<CopyResult>> {
        let trips = batch.into_iter().map(|(entry, draft)| Trip {
            entry,
            draft,
            source: None,
            copy: None,
            end: None,
        });
        let mut trips: Vec<_> = trips.collect();
        let trying = || self.route.failed();
        self.claim(&mut trips).await.with_context(trying)?;
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

    async fn claim(&self, trips: &mut [Trip]) -> board::Result<()> {
        let left = trips.iter().filter_map(|trip| {
            let holding = trip.entry.holding().filter(|it| is_left_by_move(it))?;
            let (owner, fence) = (holding.owner.as_ref()?, holding.fence.as_ref()?);
            Some(abandon(trip.entry.key(), owner, fence))
        });
        self.route.from.settle(&left.collect::<Vec<_>>()).await?;
        let by = self.claimant(Term::Kept(self.lease));
        let keys: Vec<_> = trips.iter().map(|trip| trip.entry.key().clone()).collect();
        let asked = Boottime::now();
        let mut claimed = Vec::with_capacity(keys.len());
        while claimed.len() < keys.len() {
            let rest = &keys[claimed.len()..];
            // A board answers for as many jobs as fit into a reply.
            let some = (self.route.from).claim(rest, &by, rest.len(), ClaimRules::BY_HAND);
            let some = some.await?;
            if some.is_empty() {
                break;
            }
            claimed.extend(some);
        }
        claimed.resize_with(keys.len(), || Err(BoardError::NoSuchJob));
        for (trip, claimed) in trips.iter_mut().zip(claimed) {
            match claimed {
                Ok(claimed) => {
                    if !is_as_listed(&trip.entry, &claimed.job) {
                        trip.end = Some(TripEnd::Stays(BoardError::Changed.into()));
                    }
                    let claim = claimed.claim(&self.owner, self.lease);
                    trip.source = Some((claimed, self.keeper.hold(claim, asked)));
                }
                Err(error) => trip.end = Some(TripEnd::Stays(error.into())),
            }
        }
        Ok(())
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
                Ok(entry) if entry.is_owned_by(&self.owner) => return Err(same()),
                Ok(entry) => trip.end = Some(self.conflict(Some(&entry))),
                Err(BoardError::Ambiguous { .. }) => trip.end = Some(self.conflict(None)),
                Err(error) => return Err(error.into()),
            }
        }
        open.retain(|trip| trip.end.is_none());
        if open.is_empty() {
            return Ok(());
        }
        self.route.from.begin_move(&self.begun()).await?;
        let received = self.audit(
            AuditEntry::RECEIVED,
            format!("{}{}", Job::MOVED_FROM, self.route.source),
        );
        let drafts = open.iter().map(|trip| {
            let mut draft = trip.draft.clone();
            if let Some(former) = &mut draft.former {
                former.history.audit = Some(received.clone());
            }
            draft
        });
        let by = self.claimant(Term::Indefinite);
        let posted = match self
            .route
            .to
            .post(&drafts.collect::<Vec<_>>(), Some(&by))
            .await
        {
            Err(error) if error.may_have_taken_effect() => {
                let unheard = open
                    .iter()
                    .map(|_| Err(error.repeated(self.route.to.name())));
                unheard.collect()
            }
            posted => posted?,
        };
        let wanted = open.iter().zip(&posted).map(|(trip, posted)| match posted {
            Ok(posted) => JobRef::Key(posted.key.clone()),
            Err(_) => JobRef::Uuid(trip.draft.uuid.to_string()),
        });
        let wanted: Vec<_> = wanted.collect();
        let found = self.route.to.find(Shelf::Board, &wanted).await;
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
        let end = match (ours, posted) {
            (Ok(Some(Entry::Job(copy))), _) => {
                let is_same = trip.entry.job().map(fingerprint) == Some(fingerprint(copy));
                let differs = CommandError::refused("the copy on the target differs from the job");
                let end = (!is_same).then(|| TripEnd::Stays(differs.into()));
                return (Some((**copy).clone()), end);
            }
            (Ok(Some(Entry::Malformed(copy))), _) => self.unresolved(
                BoardError::from(copy).into(),
                "the job stays here; a copy is on the target",
            ),
            (Err(error), _) => self.unresolved(
                error.repeated(self.route.to.name()).into(),
                "the job stays here; a claimed copy may be on the target",
            ),
            (Ok(None), Err(BoardError::Exists { .. })) => self.conflict(None),
            // The request may still arrive.
            (Ok(None), Err(error)) if error.may_have_taken_effect() => self.unresolved(
                error.into(),
                "the job stays here; a claimed copy may be on the target",
            ),
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
        let audit = self.audit(AuditEntry::MOVED, format!("moved to {}", self.route.target));
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
            ..abandon(&claimed.job.key, &self.owner, &claimed.fence)
        });
        let settled = settle(self.route.from, settlements.collect()).await;
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
            let commit = MoveRecord::commit(&self.owner, &trip.draft.uuid.to_string());
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
        let returned = self.route.returned();
        let has_copy = |trip: &&mut Trip| trip.copy.is_some() && is_settled(trip);
        let copied: Vec<_> = trips.iter_mut().filter(has_copy).collect();
        let settlements = copied.iter().filter_map(|trip| {
            let returned = Some(&returned).filter(|_| !is_committed(trip));
            Some(end_copy(trip.copy.as_ref()?, &self.owner, returned))
        });
        let settled = settle(self.route.to, settlements.collect()).await;
        for (trip, settled) in copied.into_iter().zip(settled) {
            let Err(error) = unless_ended(settled) else {
                continue;
            };
            let what = match is_committed(trip) {
                true => "the job was moved, but its copy on the target is still claimed",
                false => "the job stays here; a claimed copy is on the target",
            };
            trip.end = Some(self.unresolved(error.into(), what));
        }
        self.free(trips.iter().filter(|trip| !is_committed(trip)))
            .await;
        let moved = trips.iter().filter(|trip| is_committed(trip));
        let uuids = moved.map(|trip| trip.draft.uuid.to_string());
        let mut ended: Vec<_> = uuids
            .map(|uuid| MoveRecord::commit(&self.owner, &uuid))
            .collect();
        if !trips.iter().all(is_settled) {
            self.is_unfinished.set(true);
        }
        if !self.is_unfinished.get() {
            ended.push(self.begun());
        }
        // A leftover record does no harm: the next move finds no copies for it.
        let _ = self.route.from.end_moves(&ended).await;
    }

    async fn free(&self, trips: impl Iterator<Item = &Trip>) -> Vec<board::Result<()>> {
        let sources = trips.filter_map(|trip| trip.source.as_ref());
        let abandon = sources.map(|(it, _)| abandon(&it.job.key, &self.owner, &it.fence));
        settle(self.route.from, abandon.collect()).await
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

    fn audit(&self, action: &str, reason: String) -> AuditEntry {
        AuditEntry::now(action, &self.route.who, Some(&reason))
    }

    fn conflict(&self, found: Option<&Entry>) -> TripEnd {
        let place = match found {
            Some(Entry::Job(job)) if job.shelf == Shelf::Trash => "in the trash of the target",
            _ => "there",
        };
        TripEnd::Stays(taken(place))
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

fn abandon(key: &JobKey, owner: &Owner, fence: &Fence) -> Settlement {
    let authority = Authority::Claim(owner.clone(), fence.clone());
    Settlement::of(key.clone(), Decision::Abandon(Aftermath::None), authority)
}

/// Ends a move's claim on a copy: releases the copy, or removes it with this audit entry.
pub(super) fn end_copy(copy: &Job, owner: &Owner, returned: Option<&AuditEntry>) -> Settlement {
    let decision = match returned {
        None => Decision::Abandon(Aftermath::None),
        Some(_) => Decision::Consume,
    };
    // No other move has this name.
    let authority = Authority::Owner(owner.clone());
    Settlement {
        job: returned.map(|_| Identity::from(copy)),
        audit: returned.cloned(),
        ..Settlement::of(copy.key.clone(), decision, authority)
    }
}

/// Accepts a claim that an operator or an earlier request has already ended.
pub(super) fn unless_ended(answer: board::Result<()>) -> board::Result<()> {
    match answer {
        Err(error) if error.is_about_the_claim() => Ok(()),
        answer => answer,
    }
}

/// Settles claims, each with its own answer, and repeats requests without a reply. Each names its claim, so it takes
/// effect once.
pub(super) async fn settle(
    board: &dyn Board,
    settlements: Vec<Settlement>,
) -> Vec<board::Result<()>> {
    let mut answers = settle_once(board, &settlements).await;
    let is_lost = |at: &usize| {
        let error = answers[*at].as_ref().err();
        error.is_some_and(BoardError::may_have_taken_effect)
    };
    let lost: Vec<_> = (0..answers.len()).filter(is_lost).collect();
    let again: Vec<_> = lost.iter().map(|at| settlements[*at].clone()).collect();
    for (at, answer) in lost.into_iter().zip(settle_once(board, &again).await) {
        answers[at] = answer;
    }
    answers
}

async fn settle_once(board: &dyn Board, settlements: &[Settlement]) -> Vec<board::Result<()>> {
    if settlements.is_empty() {
        return Vec::new();
    }
    match board.settle(settlements).await {
        Ok(settled) => settled.into_iter().map(|it| it.map(drop)).collect(),
        Err(error) => {
            let each = settlements
                .iter()
                .map(|_| Err(error.repeated(board.name())));
            each.collect()
        }
    }
}

fn is_as_listed(entry: &Entry, claimed: &Job) -> bool {
    entry.job().is_some_and(|listed| {
        let (before, now) = (&listed.history, &claimed.history);
        fingerprint(listed) == fingerprint(claimed)
            && (before.attempts, before.postponed) == (now.attempts, now.postponed)
            && before.not_before == now.not_before
    })
}

pub(super) fn taken(place: &str) -> anyhow::Error {
    let message = format!("a job with this uuid is already {place}; both jobs are unchanged");
    CommandError::refused(message).into()
}

pub(super) fn same() -> anyhow::Error {
    let message = "source and target are the same board; nothing changed";
    CommandError::refused(message)
        .hint("use different boards for --board and --to")
        .into()
}
