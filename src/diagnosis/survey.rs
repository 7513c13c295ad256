//! One pass over the jobs of a board: the counts, and the jobs of each cause, in bounded memory.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use futures_util::TryStreamExt;

use super::{
    Cause, Snapshot,
    causes::{Cases, count, earlier, keep_most},
    figures::{ByName, ByOwner, Figures, LATELY, by_name, by_owner, note},
    holder::Recheck,
    judge::{Judged, time_ahead_of_clock},
    runner::absence,
};
use crate::{
    board::{Board, BoardError, Detail, Query},
    job::{ClaimEnd, Conductor, Entry, Holding, Job, Location, Origin, Owner, State},
    problem::Code,
};

/// The most causes; beyond twice as many, the rarest are dropped from the list, but stay in the counts.
const MAX_CAUSES: usize = 1000;

/// The time limit for reading all jobs.
pub(super) const WHOLE: Duration = Duration::from_secs(60);

/// The number of owners with exact counts; beyond twice as many, the rarest are dropped.
const MAX_OWNERS: usize = 10_000;

/// The locations with the details that a judgement needs.
pub(crate) const BOARD: (Location, Detail) = (Location::Board, Detail::Whole);
pub(crate) const TRASH: (Location, Detail) = (Location::Trash, Detail::Brief);

/// How long claims are watched for a renewal.
const RECHECK_TIMEOUT: Duration = Duration::from_millis(1500);

#[derive(Default)]
pub(crate) struct Survey {
    pub(crate) snapshot: Snapshot,
    pub(crate) figures: Figures,
    pub(crate) causes: HashMap<Cause, Cases>,
    pub(crate) names: Vec<ByName>,
    pub(crate) owners: Vec<ByOwner>,
    /// Whether names, and whether owners, were dropped.
    pub(crate) has_dropped: [bool; 2],
    pub(crate) highest: Option<i64>,
    pub(crate) denied: u64,
    pub(crate) has_commands: bool,
    /// An owner that claims as peers do.
    pub(super) peer: Option<Owner>,
}

pub(crate) struct Surveyor {
    pub(crate) survey: Survey,
    pub(super) names: HashMap<String, ByName>,
    pub(super) most_names: usize,
    pub(super) owners: HashMap<Option<Owner>, ByOwner>,
    recheck: Recheck,
}

impl Surveyor {
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        Self {
            survey: Survey {
                snapshot,
                ..Survey::default()
            },
            names: HashMap::new(),
            most_names: usize::MAX / 2,
            owners: HashMap::new(),
            recheck: Recheck::default(),
        }
    }

    /// Counts this many names exactly; beyond twice as many, the rarest are dropped.
    pub(crate) fn with_names(mut self, most_names: usize) -> Self {
        self.most_names = most_names;
        self
    }

    pub(crate) fn add(&mut self, entry: &Entry) -> Judged {
        let judged = self.survey.snapshot.judge(entry);
        if let Some(pause) = judged.pause {
            self.recheck.add(entry, pause);
        }
        self.add_judged(entry, judged.causes());
        judged
    }

    /// Counts a job with the causes of an earlier judgement.
    pub(crate) fn add_judged<'a>(
        &mut self,
        entry: &Entry,
        causes: impl IntoIterator<Item = &'a Cause>,
    ) {
        for (at, cause) in causes.into_iter().enumerate() {
            self.survey.note(cause, entry);
            if at > 0
                && let Some(cases) = self.survey.causes.get_mut(cause)
            {
                cases.secondary += 1;
            }
        }
        self.count(entry);
    }

    fn count(&mut self, entry: &Entry) {
        let Some(job) = entry.job() else { return };
        if job.location != Location::Board {
            let since = self.survey.snapshot.now - LATELY;
            let is_late = job.trashed_on.is_some_and(|on| on >= since);
            self.survey.figures.trashed_lately += u64::from(is_late);
            return;
        }
        self.add_figures(job);
        let survey = &mut self.survey;
        survey.highest = survey.highest.max(job.sequence);
        if let Some(details) = job.details.as_ref().filter(|_| !survey.has_commands) {
            survey.has_commands = details.get("command").is_some();
        }
        // `jobboard` numbers its claims.
        if let Some(holding) = job.holding.as_ref().filter(|it| it.fence.is_none())
            && let Some(owner) = &holding.owner
            && survey.peer.as_ref() != Some(owner)
        {
            survey.peer = Some(owner.clone());
        }
    }

    fn add_figures(&mut self, job: &Job) {
        self.add_to_name(job);
        let now = self.survey.snapshot.now;
        let figures = &mut self.survey.figures;
        note(&mut figures.oldest, job, job.created_on);
        match &job.holding {
            Some(holding) => self.add_claimed(job, holding),
            None => {
                figures.unclaimed += 1;
                figures.backing_off += u64::from(job.attempts.is_delayed(now));
                note(&mut figures.oldest_unclaimed, job, job.created_on);
            }
        }
    }

    fn add_to_name(&mut self, job: &Job) {
        count(&mut self.names, &*job.brief_name(), |named| {
            named.jobs += 1;
            *match job.state() {
                State::Claimed => &mut named.claimed,
                _ => &mut named.unclaimed,
            } += 1;
            named.failed += u64::from(job.attempts.is_failing());
            named.oldest = earlier(named.oldest, job.created_on);
        });
        self.survey.has_dropped[0] |= keep_most(&mut self.names, self.most_names, |of| of.jobs);
    }

    fn add_claimed(&mut self, job: &Job, holding: &Holding) {
        let survey = &mut self.survey;
        survey.figures.claimed += 1;
        note(&mut survey.figures.longest_held, job, job.held_since());
        let owner = holding.owner.as_ref().map(|it| it.brief().into_owned());
        count(&mut self.owners, &owner, |owned| {
            owned.claims += 1;
            owned.held_since = earlier(owned.held_since, job.held_since());
            owned.expires_in = earlier(owned.expires_in, holding.expires_in);
            owned.claim_never_expires += u64::from(holding.end == ClaimEnd::Never);
        });
        survey.has_dropped[1] |= keep_most(&mut self.owners, MAX_OWNERS, |of| of.claims);
    }

    /// Counts the jobs that `take` returns. Omits those of other boards that share the trash.
    pub(crate) async fn read(
        &mut self,
        board: &dyn Board,
        (location, detail): (Location, Detail),
        mut take: impl FnMut(Entry) -> Option<Entry>,
    ) -> Result<(), BoardError> {
        let mut entries = board.entries(Query::all(location, detail));
        while let Some(entry) = entries.try_next().await? {
            if matches!(entry.origin(), Origin::Beside(_)) {
                continue;
            }
            // An unreadable record in the trash is out of the way.
            let is_here = |it: &Entry| location == Location::Board || it.job().is_some();
            if let Some(entry) = take(entry).filter(is_here) {
                self.add(&entry);
            }
        }
        Ok(())
    }

    /// Looks again at the claims that may not be renewed, examines the keys, reads the moves, and finishes the
    /// counts.
    pub(crate) async fn finish(mut self, board: &dyn Board) -> Result<Survey, BoardError> {
        let recheck = std::mem::take(&mut self.recheck);
        for entry in recheck.not_renewed(board, RECHECK_TIMEOUT).await? {
            let cause = Cause::not_renewed(&entry);
            self.survey.note(&cause, &entry);
        }
        let highest = self.survey.highest;
        self.survey
            .snapshot
            .examine_keys_and_moves(board, highest)
            .await?;
        Ok(self.counted())
    }

    pub(crate) fn counted(self) -> Survey {
        Survey {
            names: by_name(self.names),
            owners: by_owner(self.owners, &self.survey.snapshot),
            ..self.survey
        }
    }
}

impl Survey {
    fn note(&mut self, cause: &Cause, entry: &Entry) {
        let (now, figures) = (self.snapshot.now, &mut self.figures);
        match cause.code {
            Code::Paused => figures.paused += 1,
            Code::Waiting => figures.waiting += 1,
            Code::Unavailable => self.denied += u64::from(entry.is_denied()),
            _ => {}
        }
        if !cause.code.is_problem() {
            return;
        }
        *figures.jobs_with_problem.entry(cause.code).or_default() += 1;
        count(&mut self.causes, cause, |cases| {
            cases.add(entry, now);
            if cause.code == Code::ClockSkew {
                let ahead = entry.job().and_then(|job| time_ahead_of_clock(job, now));
                cases.ahead = cases.ahead.max(ahead.map(|(_, time)| time - now));
            }
        });
        keep_most(&mut self.causes, MAX_CAUSES, |of| of.count);
    }

    /// Whether a conductor is registered, or holds claims after its registration has ended.
    pub(crate) fn counts(&self, conductor: &Conductor) -> bool {
        !conductor.has_left || self.has_claims(conductor)
    }

    pub(super) fn has_claims(&self, conductor: &Conductor) -> bool {
        let mut owners = self.owners.iter();
        owners.any(|of| of.owner.as_ref().is_some_and(|it| it.is(&conductor.owner)))
    }

    /// Counts the conductors that do not run: `gone`, `stopped` or `silent`.
    pub(crate) fn absent(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        let conductors = self.snapshot.conductors().filter(|it| self.counts(it));
        for absence in conductors.filter_map(absence) {
            *counts.entry(absence.word()).or_default() += 1;
        }
        counts
    }

    pub(crate) fn silent(&self) -> u64 {
        self.absent().values().sum()
    }

    pub(crate) async fn take(board: &dyn Board, snapshot: Snapshot) -> Result<Self, BoardError> {
        let mut surveyor = Surveyor::new(snapshot);
        for source in [BOARD, TRASH] {
            surveyor.read(board, source, Some).await?;
        }
        surveyor.finish(board).await
    }
}

#[cfg(test)]
mod tests {
    use chrono::Utc;

    use super::*;
    use crate::board::Capabilities;

    #[test]
    fn dropped_rare_owners_are_noted() {
        let capabilities = Capabilities {
            has_expiring_claims: true,
            ..Capabilities::default()
        };
        let mut surveyor = Surveyor::new(Snapshot::new(capabilities, None, Utc::now()));
        let mut job = Job::named("resize");
        for number in 0..20_101 {
            let name = format!("ada-{}", number.max(100));
            job.holding = Some(Holding::new(
                Some(Owner::from_stored(name)),
                ClaimEnd::Never,
                None,
            ));
            surveyor.add_figures(&job);
        }
        let survey = surveyor.counted();
        assert_eq!(survey.has_dropped, [false, true]);
        let (figures, owners) = (survey.figures, survey.owners);
        assert_eq!((figures.claimed, owners.len()), (20_101, 1));
        assert_eq!(owners[0].claims, 101);
    }
}
