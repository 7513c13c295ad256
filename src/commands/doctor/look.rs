//! Collects the findings of one pass over the jobs.

mod findings;

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::TryStreamExt;

pub(super) use self::findings::{of_entries, of_moves};
use crate::{
    board::{Board, BoardError, Detail, Query, examine::Code},
    commands::parts::{
        liveness::{Overdue, has_mover_ended, is_copy_of_move, is_nobody_s},
        tally::{ByName, ByOwner, Figures, Tally, is_exhausted},
    },
    job::{Conductor, Entry, Holding, Job, Shelf},
};

const APART: TimeDelta = TimeDelta::seconds(5);

/// A move on another machine is unfinished if it holds a copy for longer than this.
const MOVING: TimeDelta = TimeDelta::minutes(1);

const MENDED: usize = 1000;

/// The number of owners with claims that may be ended.
const MOST_OWNERS: usize = 1000;

/// How long claims are watched for a renewal.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Records with one problem; it names as many as one fix covers.
#[derive(Default)]
struct Noted {
    count: usize,
    first: Vec<String>,
}

impl Noted {
    fn push(&mut self, job: String) {
        self.count += 1;
        if self.first.len() < MENDED {
            self.first.push(job);
        }
    }
}

#[derive(Default)]
pub(crate) struct Look {
    pub(crate) figures: Figures,
    pub(crate) names: Vec<ByName>,
    /// Whether rare names, and whether rare owners, were dropped.
    pub(crate) has_dropped: [bool; 2],
    pub(crate) owners: Vec<ByOwner>,
    trashed_beside: u64,
    pub(super) highest: Option<i64>,
    /// Unclaimed and claimed.
    malformed: [Noted; 2],
    unreadable: Noted,
    misnamed: Noted,
    problem: Option<String>,
    /// Locks without an owner, and locks with an unreadable owner.
    blocked: [Noted; 2],
    /// Records with an unreadable posting or sidecar, and with an unreadable lock.
    denied: [Noted; 2],
    nobody_s: BTreeMap<String, Noted>,
    /// The copies of unfinished moves, by source board.
    moves: BTreeMap<String, Noted>,
    exhausted: Noted,
    /// The number of jobs with times in the future, and the furthest of them.
    ahead: usize,
    furthest: Option<(TimeDelta, String)>,
    late: Vec<Entry>,
    has_commands: bool,
    /// An owner that claims as peers do.
    peer: Option<String>,
    /// The time of judgement; `None` means the current time of each check.
    at: Option<DateTime<Utc>>,
}

pub(crate) struct Looking {
    look: Look,
    tally: Tally,
    overdue: Overdue,
    /// `None`: unknown.
    conductors: Option<Vec<Conductor>>,
}

impl Looking {
    pub(crate) fn new(
        board: &dyn Board,
        conductors: Option<&[Conductor]>,
        trashed_beside: u64,
        tally: Tally,
    ) -> Self {
        Self {
            look: Look {
                trashed_beside,
                ..Look::default()
            },
            overdue: Overdue::new(board, conductors.unwrap_or_default()),
            conductors: conductors.map(<[_]>::to_vec),
            tally,
        }
    }

    pub(crate) fn judged_at(mut self, at: Option<DateTime<Utc>>) -> Self {
        self.look.at = at;
        self
    }

    pub(crate) fn add(&mut self, entry: &Entry) {
        self.tally.add(entry);
        self.overdue.add(entry);
        self.look
            .sort(entry, mends(entry, self.conductors.as_deref()));
        if let Entry::Job(job) = entry {
            // The pass takes a while.
            self.look.add(job, self.look.at.unwrap_or_else(Utc::now));
        }
    }

    pub(crate) async fn finish(mut self, board: &dyn Board) -> Result<Look, BoardError> {
        let look = &mut self.look;
        look.late = self.overdue.not_renewed(board, PATIENCE).await?;
        let known = self.conductors.as_deref().unwrap_or_default();
        look.has_dropped = self.tally.has_dropped;
        (look.figures, look.names, look.owners) = self.tally.finish(known);
        Ok(self.look)
    }
}

impl Look {
    pub(super) async fn take(
        board: &dyn Board,
        conductors: Option<&[Conductor]>,
        trashed_beside: u64,
    ) -> Result<Self, BoardError> {
        let tally = Tally::new(Utc::now());
        let mut looking = Looking::new(board, conductors, trashed_beside, tally);
        let mut entries = board.entries(Query::all(Shelf::Board, Detail::Whole));
        while let Some(entry) = entries.try_next().await? {
            looking.add(&entry);
        }
        drop(entries);
        looking.finish(board).await
    }

    fn sort(&mut self, entry: &Entry, mended: Option<Code>) {
        let reference = entry.reference().into_owned();
        let holding = entry.holding();
        let is_anybody_s = holding.is_none_or(|it| it.owner.is_some());
        if let (Some(Code::HeldByDead), Some(owner)) =
            (mended, holding.and_then(|it| it.owner.as_ref()))
        {
            let owner = owner.to_string();
            if self.nobody_s.len() < MOST_OWNERS || self.nobody_s.contains_key(&owner) {
                let of_owner = self.nobody_s.entry(owner).or_default();
                of_owner.push(reference.clone());
            }
        }
        let is_denied = match entry {
            Entry::Job(job) => job.is_denied,
            Entry::Malformed(record) => record.is_denied,
        };
        match entry {
            _ if is_denied => self.denied[usize::from(!is_anybody_s)].push(reference),
            Entry::Malformed(_) => {
                self.malformed[usize::from(mended.is_none())].push(reference);
            }
            Entry::Job(job) if job.is_blocked || !is_anybody_s => {
                self.blocked[usize::from(mended.is_none())].push(reference);
            }
            Entry::Job(job) if job.is_unfit => {
                self.problem = self.problem.take().or_else(|| job.problem.clone());
                self.unreadable.push(reference);
            }
            Entry::Job(_) => {}
        }
    }

    fn add(&mut self, job: &Job, now: DateTime<Utc>) {
        let reference = || job.reference().into_owned();
        self.highest = self.highest.max(job.sequence);
        let is_unfinished = |it: &Holding| {
            let is_old = it.claimed_on.is_none_or(|on| now - on > MOVING);
            let owner = it.owner.as_ref().filter(|_| is_copy_of_move(it));
            owner.is_some_and(|owner| has_mover_ended(owner).unwrap_or(is_old))
        };
        if job.holding.as_ref().is_some_and(is_unfinished) && self.moves.len() < MOST_OWNERS {
            let from = job.moved_from().unwrap_or_default().to_owned();
            self.moves.entry(from).or_default().push(reference());
        }
        if is_exhausted(job) {
            self.exhausted.push(reference());
        }
        if job.is_misnamed {
            self.misnamed.push(reference());
        }
        let claimed_on = job.holding.as_ref().and_then(|it| it.claimed_on);
        let latest = job.created_on.max(claimed_on).map(|time| time - now);
        if let Some(ahead) = latest.filter(|ahead| *ahead > APART) {
            self.ahead += 1;
            if self
                .furthest
                .as_ref()
                .is_none_or(|(known, _)| ahead > *known)
            {
                self.furthest = Some((ahead, reference()));
            }
        }
        let details = job.details.as_ref();
        self.has_commands |= details.is_some_and(|details| details.get("command").is_some());
        // `jobboard` numbers its claims.
        if let Some(holding) = job.holding.as_ref().filter(|it| it.fence.is_none()) {
            let owner = holding.owner.as_ref();
            self.peer = owner.map(ToString::to_string).or(self.peer.take());
        }
    }
}

/// Returns the problem of a record that `--fix` solves.
///
/// Without the list of conductors no owner counts as dead.
pub(super) fn mends(entry: &Entry, conductors: Option<&[Conductor]>) -> Option<Code> {
    match (entry, entry.holding()) {
        (Entry::Malformed(record), None) => (!record.is_denied).then_some(Code::Malformed),
        (Entry::Malformed(_), Some(_)) => None,
        (Entry::Job(job), _) if job.is_denied => None,
        (Entry::Job(job), _) if job.is_blocked => Some(Code::LockBroken),
        (Entry::Job(_), Some(holding)) => {
            is_nobody_s(holding, conductors?).then_some(Code::HeldByDead)
        }
        (Entry::Job(_), None) => None,
    }
}
