//! Conveniences for every board, built on its primitives.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;

use super::{
    Board, BoardError, ClaimRules, Health, JobRef, Posted, Query, Result, filter::Filters,
};
use crate::job::{
    Aftermath, Authority, Claimant, Claimed, Decision, Draft, Entry, ExpectedState, Job, JobKey,
    Location, Owner, Pauses, Settlement,
};

/// The claimable jobs found, and why others are not.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    pub(crate) jobs: Vec<Job>,
    pub(crate) next_not_before: Option<DateTime<Utc>>,
    pub(crate) paused: u64,
    pub(crate) delayed: u64,
}

impl Candidates {
    /// Adds an unclaimed record unless it is malformed, unclaimable, delayed or paused.
    pub(super) fn consider(&mut self, entry: Entry, pauses: &Pauses, now: DateTime<Utc>) {
        let Entry::Job(job) = entry else { return };
        if !job.may_be_offered() {
            return;
        }
        let pause = pauses.of(&job.name, now);
        let delays = [job.attempts.not_before, pause.and_then(|pause| pause.until)];
        let is_delayed = job.attempts.is_delayed(now);
        self.paused += u64::from(pause.is_some());
        self.delayed += u64::from(pause.is_none() && is_delayed);
        let not_before = delays
            .into_iter()
            .flatten()
            .max()
            .filter(|time| *time > now);
        match not_before {
            Some(time) => {
                let first = self.next_not_before.map_or(time, |first| first.min(time));
                self.next_not_before = Some(first);
            }
            None if pause.is_none() => self.jobs.push(*job),
            None => {}
        }
    }
}

#[async_trait]
pub(crate) trait BoardExt: Board {
    /// Returns the health and the time of one exchange. An earlier exchange connects.
    async fn timed_health(&self) -> Result<(Health, Duration)> {
        self.health().await?;
        let start = Instant::now();
        Ok((self.health().await?, start.elapsed()))
    }

    /// Returns the one record that each reference means; otherwise `NoSuchJob` or `Ambiguous`.
    async fn resolve(&self, location: Location, wanted: &[JobRef]) -> Result<Vec<Result<Entry>>> {
        let found = self.find(location, wanted).await?;
        Ok(wanted
            .iter()
            .zip(found)
            .map(|(wanted, found)| only(wanted, found))
            .collect())
    }

    /// Returns the one record that each reference means, from the first of these locations with a match.
    async fn resolve_on(
        &self,
        locations: &[Location],
        wanted: &[JobRef],
    ) -> Result<Vec<Result<Entry>>> {
        let is_missing = |entry: &Result<Entry>| matches!(entry, Err(BoardError::NoSuchJob));
        let mut found: Vec<_> = wanted.iter().map(|_| Err(BoardError::NoSuchJob)).collect();
        for location in locations {
            if !found.iter().any(is_missing) {
                break;
            }
            let there = self.resolve(*location, wanted).await?;
            let places = found.iter_mut().zip(there);
            places
                .filter(|(place, _)| is_missing(place))
                .for_each(|(place, there)| *place = there);
        }
        Ok(found)
    }

    async fn resolve_one(&self, location: Location, wanted: &JobRef) -> Result<Entry> {
        let found = self.find(location, std::slice::from_ref(wanted)).await?;
        only(wanted, found.into_iter().next().unwrap_or_default())
    }

    async fn post_one(&self, draft: &Draft, claimant: Option<&Claimant>) -> Result<Posted> {
        the_answer(
            self,
            self.post(std::slice::from_ref(draft), claimant).await?,
        )
    }

    async fn claim_one(&self, key: &JobKey, by: &Claimant, rules: ClaimRules) -> Result<Claimed> {
        let answers = self.claim(std::slice::from_ref(key), by, 1, rules).await?;
        the_answer(self, answers)
    }

    async fn settle_one(
        &self,
        key: &JobKey,
        decision: Decision,
        authority: Authority,
    ) -> Result<super::Settled> {
        let settlement = Settlement::of(key.clone(), decision, authority);
        let answers = self.settle(std::slice::from_ref(&settlement)).await?;
        the_answer(self, answers)
    }

    /// Releases the jobs that this owner holds; each release records an attempt result.
    ///
    /// Results come in any order, each with the job if it may be claimable. An error means that the owner may still
    /// hold it. No one may claim for this owner meanwhile.
    async fn release_held(
        &self,
        jobs: Vec<(JobKey, Aftermath)>,
        owner: &Owner,
    ) -> Result<Vec<(JobKey, Result<Option<Job>>)>> {
        let keys = jobs.iter().map(|(key, _)| key.clone());
        let wanted: Vec<_> = keys.map(JobRef::Key).collect();
        let found = self.find(Location::Board, &wanted).await?;
        let (mut answers, mut settlements, mut ours) = (Vec::new(), Vec::new(), Vec::new());
        for ((key, aftermath), mut found) in jobs.into_iter().zip(found) {
            match found.pop() {
                Some(entry) if entry.is_owned_by(owner) => {
                    // The expected state also covers a job with an unreadable sidecar.
                    let authority = match planted!(ReleasesWithoutFence) {
                        true => Authority::Owner(owner.clone()),
                        false => Authority::Force(ExpectedState::of(&entry)),
                    };
                    settlements.push(Settlement::of(key, Decision::Abandon(aftermath), authority));
                    ours.push(entry);
                }
                Some(Entry::Job(job)) if job.holding.is_none() => {
                    answers.push((key, Ok(Some(*job))))
                }
                _ => answers.push((key, Ok(None))),
            }
        }
        if settlements.is_empty() {
            return Ok(answers);
        }
        let settled = self.settle(&settlements).await?;
        for ((settlement, entry), answer) in settlements.into_iter().zip(ours).zip(settled) {
            let answer = match (answer, entry) {
                (Err(error), _) if !error.is_about_the_claim() => Err(error),
                // Otherwise another client has ended the claim.
                (_, Entry::Job(mut job)) => {
                    job.holding = None;
                    Ok(Some(*job))
                }
                (_, Entry::Malformed(_)) => Ok(None),
            };
            answers.push((settlement.key, answer));
        }
        Ok(answers)
    }

    /// Returns up to `most` claimable jobs that match, in the order of the board.
    async fn candidates(
        &self,
        filters: &Filters,
        most: usize,
        except: &HashSet<JobKey>,
    ) -> Result<Candidates> {
        let mut entries = self.entries(Query::unclaimed(filters.detail()));
        let now = Utc::now();
        let (mut candidates, mut pauses) = (Candidates::default(), None);
        while candidates.jobs.len() < most
            && let Some(entry) = entries.try_next().await?
        {
            if !filters.matches(&entry, now) || except.contains(entry.key()) {
                continue;
            }
            let pauses = match &pauses {
                Some(pauses) => pauses,
                None => pauses.insert(self.lasting_pauses(now).await?),
            };
            candidates.consider(entry, pauses, now);
        }
        Ok(candidates)
    }

    /// Returns the pauses; without read permission there are none.
    async fn lasting_pauses(&self, now: DateTime<Utc>) -> Result<Pauses> {
        match self.pauses().await {
            Ok(pauses) => Ok(Pauses::new(pauses, now)),
            Err(error) if error.is_retryable() => Err(error),
            Err(error) => Ok(Pauses::unseen_for(error.to_string())),
        }
    }
}

impl<B: Board + ?Sized> BoardExt for B {}

/// Returns the only result of a call for one job.
pub(crate) fn the_answer<T>(
    board: &(impl Board + ?Sized),
    mut answers: Vec<Result<T>>,
) -> Result<T> {
    let missing = || BoardError::unknown(board.url(), "no result for the job");
    answers.pop().ok_or_else(missing)?
}

fn only(wanted: &JobRef, mut found: Vec<Entry>) -> Result<Entry> {
    if found.len() > 1 {
        found.sort_by(|one, other| one.key().cmp(other.key()));
        return Err(BoardError::Ambiguous {
            wanted: wanted.to_string(),
            candidates: found.iter().map(|entry| candidate(entry, &found)).collect(),
        });
    }
    found.pop().ok_or(BoardError::NoSuchJob)
}

/// Names a record so that it differs from the other candidates.
fn candidate(entry: &Entry, found: &[Entry]) -> String {
    let reference = entry.reference();
    let alike = found.iter().filter(|it| it.reference() == reference);
    match entry {
        Entry::Job(job) if alike.count() > 1 => format!("key:{} ({})", job.key, job.name),
        Entry::Job(job) => format!("{reference} ({})", job.name),
        Entry::Malformed(_) => reference.into_owned(),
    }
}
