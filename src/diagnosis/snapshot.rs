//! The state of the board besides its jobs: conductors and pauses, read once.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;

use super::{
    holder::{Death, Holder, is_older},
    runner::{Runner, loads, runners},
};
use crate::{
    board::{Board, BoardError, Capabilities, PeerTraits, chain, examine::Part},
    job::{ClaimEnd, Conductor, Course, Holding, MoveRecord, Owner, Pauses},
    problem::Problem,
};

const MAX_OWNERS: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) now: DateTime<Utc>,
    pub(super) runners: Arc<[Runner]>,
    pub(crate) sees_conductors: bool,
    pub(crate) pauses: Pauses,
    /// The names of pauses that cannot be read.
    pub(super) unreadable_pauses: Vec<String>,
    pub(super) moves: Vec<MoveRecord>,
    /// Problems of the board's own keys and of the registry, and the reasons why some were not examined.
    pub(super) keys: Vec<Problem>,
    pub(super) unseen_keys: Vec<String>,
    /// How long a claim of Octavia's conductors lasts; `None` on other boards.
    pub(super) octavia_expiry: Option<Duration>,
    /// The order in which other programs claim jobs, on a board that has such peers.
    pub(super) peers: Option<PeerTraits>,
    pub(super) sees_peers: bool,
    pub(crate) unseen: Vec<String>,
    /// The holders of claims that end and of claims that never expire.
    holders: Mutex<[HashMap<Owner, Holder>; 2]>,
}

/// Turns a permanent error into a gap; a retryable one stays an error, for example an unreachable board.
pub(crate) fn apart<T>(
    part: Result<T, BoardError>,
) -> Result<(Option<T>, Option<String>), BoardError> {
    match part {
        Ok(part) => Ok((Some(part), None)),
        Err(error) if error.is_retryable() => Err(error),
        Err(error) => Ok((None, Some(chain(&error)))),
    }
}

/// Adds a permanent error to the gaps.
pub(crate) fn or_gap<T>(
    unseen: &mut Vec<String>,
    what: &str,
    part: Result<T, BoardError>,
) -> Result<Option<T>, BoardError> {
    let (part, problem) = apart(part)?;
    unseen.extend(problem.map(|problem| format!("{what}: {problem}")));
    Ok(part)
}

impl Snapshot {
    pub(crate) async fn read(
        board: &dyn Board,
        octavia_expiry: Option<Duration>,
        now: DateTime<Utc>,
    ) -> Result<Self, BoardError> {
        let mut unseen = Vec::new();
        let (pauses, registry) = tokio::join!(board.pauses(), board.registry());
        let pauses = or_gap(&mut unseen, "the pauses", pauses)?;
        let registry = or_gap(&mut unseen, "the conductors", registry)?;
        let pauses = pauses.unwrap_or_default();
        let unreadable = pauses.iter().filter(|it| it.is_unreadable);
        let sees_conductors = registry.is_some();
        let (conductors, examined) = registry.unwrap_or_default();
        Ok(Self {
            sees_conductors,
            unseen,
            unseen_keys: examined.gaps().collect(),
            keys: examined.problems,
            unreadable_pauses: unreadable.map(|it| it.names.clone()).collect(),
            pauses: Pauses::new(pauses, now),
            runners: runners(conductors).into(),
            ..Self::new(board.capabilities(), octavia_expiry, now)
        })
    }

    /// Adds the moves to other boards, which only some views show.
    pub(crate) fn add_moves(
        &mut self,
        moves: Result<Vec<MoveRecord>, BoardError>,
    ) -> Result<(), BoardError> {
        let moves = or_gap(&mut self.unseen, "the moves", moves)?;
        self.moves = moves.unwrap_or_default();
        Ok(())
    }

    /// Examines the board's own keys, and reads its moves. Only `doctor` lists the keys that it may not see.
    pub(crate) async fn examine_keys_and_moves(
        &mut self,
        board: &dyn Board,
        highest: Option<i64>,
    ) -> Result<(), BoardError> {
        let keys = board.examine(Part::Keys { highest });
        let (keys, moves) = tokio::join!(keys, board.moves());
        self.add_moves(moves)?;
        match keys {
            Ok(examined) => {
                self.unseen_keys.extend(examined.gaps());
                self.keys.extend(examined.problems);
            }
            Err(error) if error.is_retryable() => return Err(error),
            Err(error) => self.unseen_keys.push(format!("keys: {}", chain(&error))),
        }
        Ok(())
    }

    /// Knows the kind of the board only.
    pub(crate) fn new(
        capabilities: Capabilities,
        octavia_expiry: Option<Duration>,
        now: DateTime<Utc>,
    ) -> Self {
        Self {
            now,
            sees_conductors: true,
            octavia_expiry,
            peers: capabilities.peers,
            sees_peers: capabilities.lists_peer_conductors,
            ..Self::default()
        }
    }

    /// Marks the conductors as unread, so that no job is reported as `no-conductor`.
    pub(crate) fn unread(self) -> Self {
        Self {
            sees_conductors: false,
            ..self
        }
    }

    #[cfg(test)]
    pub(crate) fn with_pauses(self, pauses: Pauses) -> Self {
        Self { pauses, ..self }
    }

    pub(crate) fn with_conductors(mut self, conductors: Vec<Conductor>) -> Self {
        self.runners = runners(conductors).into();
        self
    }

    /// Returns the same state for a later look, which looks at the owners' processes again.
    pub(crate) fn again(&self, now: DateTime<Utc>) -> Self {
        Self {
            now,
            runners: Arc::clone(&self.runners),
            pauses: self.pauses.clone(),
            unreadable_pauses: self.unreadable_pauses.clone(),
            moves: self.moves.clone(),
            keys: self.keys.clone(),
            unseen_keys: self.unseen_keys.clone(),
            unseen: self.unseen.clone(),
            holders: Mutex::default(),
            ..*self
        }
    }

    /// Whether an unclaimed job has the same causes now as under an earlier state.
    pub(crate) fn gives_same_verdicts(&self, earlier: &Self) -> bool {
        let is_alike = |(one, other): (&Runner, &Runner)| {
            let (now, then) = (&one.conductor, &other.conductor);
            (one.is_silent, &now.owner) == (other.is_silent, &then.owner)
                && now.report.course == then.report.course
                && now.report.takes == then.report.takes
        };
        self.pauses.are(&earlier.pauses)
            && self.runners.len() == earlier.runners.len()
            && self.runners.iter().zip(&*earlier.runners).all(is_alike)
    }

    pub(crate) fn conductors(&self) -> impl Iterator<Item = &Conductor> {
        self.runners.iter().map(|runner| &runner.conductor)
    }

    pub(crate) fn alive(&self) -> impl Iterator<Item = &Conductor> {
        self.runners_alive().map(|runner| &runner.conductor)
    }

    pub(crate) fn free_slots(&self) -> u64 {
        let publishing = self.alive().filter(|it| it.report.slots.is_some());
        publishing.map(|it| it.free() as u64).sum()
    }

    /// Describes the load of the conductors that have no free slot.
    pub(crate) fn busy(&self) -> String {
        let busy = self.runners_staying();
        let busy: Vec<_> = busy.filter(|it| it.conductor.free() == 0).collect();
        loads(&busy, self.now)
    }

    pub(super) fn runners_alive(&self) -> impl Iterator<Item = &Runner> {
        self.runners.iter().filter(|runner| !runner.is_silent)
    }

    /// Returns the conductors that may claim jobs. One that is stopping will not.
    pub(super) fn runners_staying(&self) -> impl Iterator<Item = &Runner> {
        let runners = self.runners_alive();
        runners.filter(|runner| runner.conductor.report.course != Course::Ending)
    }

    /// Returns the living conductor that holds a claim.
    pub(super) fn runner_with(&self, holding: &Holding) -> Option<&Runner> {
        match self.holder(holding.owner.as_ref()?, holding.end, holding.claimed_on) {
            Holder::Conductor(at) => Some(&self.runners[at]),
            Holder::Dead { .. } | Holder::Other => None,
        }
    }

    /// Returns the holder of a claim. An unknown conductor holds a claim that is older than all registrations of its
    /// owner.
    pub(crate) fn holder(
        &self,
        owner: &Owner,
        end: ClaimEnd,
        claimed_on: Option<DateTime<Utc>>,
    ) -> Holder {
        let mut holder = self.holder_by_name(owner, end);
        if let Holder::Dead {
            death,
            since: Some(since),
            ..
        } = &mut holder
            && is_older(claimed_on, *since)
        {
            *death = Death::Unproven;
        }
        holder
    }

    /// Looks at each owner's process once.
    fn holder_by_name(&self, owner: &Owner, end: ClaimEnd) -> Holder {
        let owner = &*owner.brief();
        let known = &mut self.holders.lock()[usize::from(end == ClaimEnd::Never)];
        if let Some(holder) = known.get(owner) {
            return holder.clone();
        }
        let mut holder = Holder::of(owner, end, &self.runners);
        // An unreadable registry proves nothing.
        if let Holder::Dead { death, .. } = &mut holder
            && !self.sees_conductors
        {
            *death = Death::Unproven;
        }
        if known.len() < MAX_OWNERS {
            known.insert(owner.clone(), holder.clone());
        }
        holder
    }
}
