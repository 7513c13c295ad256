//! Whether somebody who holds a claim is still there to end it.

use std::time::Duration;

use tokio::time::{self, Instant};

use super::under_claim::LEASE;
use crate::{
    board::{Board, BoardError, JobRef},
    job::{Conductor, Entry, Holding, Lease, MOVER, Owner, Shelf},
    process::living::has_ended,
};

/// How long a claim of a peer that is renewed has left at least: a quarter of what TaskFlow's users
/// claim for, unless they are told otherwise.
const LEAST_OF_PEERS: Duration = Duration::from_millis(7500);

/// How many claims are looked at again.
const MOST: usize = 1000;

/// The shortest time after which a claim is looked at again.
const SHORTEST: Duration = Duration::from_secs(1);

/// Whether a conductor should have said by now that it is alive, or is known to have died.
pub(crate) fn is_silent(conductor: &Conductor) -> bool {
    has_died(conductor) || conductor.is_overdue()
}

/// Whether the process of a conductor has ended, as far as that can be told from here.
pub(crate) fn has_died(conductor: &Conductor) -> bool {
    let process = conductor.told.process.as_deref();
    has_ended(&conductor.host, conductor.pid, process) == Some(true)
}

/// Whether an owner is a process that is dead, as far as that can be told from here.
///
/// One of this machine is asked for. One of another machine is dead if it has claims that never
/// lapse, and is no conductor that is alive: nobody else has such claims under such a name.
pub(crate) fn is_dead(owner: &Owner, conductors: &[Conductor], has_for_ever: bool) -> bool {
    let mut known = conductors.iter().filter(|it| it.owner == *owner).peekable();
    if known.peek().is_some() {
        return known.all(has_died);
    }
    let text = owner.text();
    // The claims of a move expire, and its copies are released by the source board's word alone.
    !text.starts_with(MOVER)
        && process_of(&text)
            .is_some_and(|(host, pid)| has_ended(host, pid, None).unwrap_or(has_for_ever))
}

/// Whether the process of a move of jobs to another board has ended; `None` if that cannot be seen from here.
pub(crate) fn has_mover_ended(owner: &Owner) -> Option<bool> {
    let text = owner.text();
    let (host, pid) = process_of(text.strip_prefix(MOVER)?)?;
    has_ended(host, pid, None)
}

/// Whether an owner is a move that died on this machine.
pub(crate) fn is_of_broken_move(owner: &Owner) -> bool {
    has_mover_ended(owner) == Some(true)
}

/// Whether a claim is that of a move on the copy that it has posted.
///
/// Only the source board knows whether the copy may be performed, so nothing but the move or
/// `copy --resume` may end it.
pub(crate) fn is_copy_of_move(holding: &Holding) -> bool {
    let owner = holding.owner.as_ref();
    holding.lease == Lease::None && owner.is_some_and(|it| it.text().starts_with(MOVER))
}

/// Whether it is certain enough that nobody keeps a claim for it to be ended unasked.
///
/// A conductor that has said which process it is, can be asked for. Of all others only a name is
/// known, and one machine may have several sets of pids: what they keep alive, or lapses, is left alone.
pub(crate) fn is_nobody_s(holding: &Holding, conductors: &[Conductor]) -> bool {
    let Some(owner) = &holding.owner else {
        return false;
    };
    let mut known = conductors.iter().filter(|it| it.owner == *owner).peekable();
    if known.peek().is_some() {
        return known.all(|it| it.told.process.is_some() && has_died(it));
    }
    let text = owner.text();
    holding.lease == Lease::None
        && !is_copy_of_move(holding)
        && process_of(&text).is_some_and(|(host, pid)| has_ended(host, pid, None) == Some(true))
}

/// Returns the machine and the number of the process that a name is of: `…HOST:PID:RANDOM`.
pub(crate) fn process_of(name: &str) -> Option<(&str, u32)> {
    let (rest, random) = name.rsplit_once(':')?;
    let (rest, pid) = rest.rsplit_once(':')?;
    let is_random = random.len() == 8 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    let host = rest.rsplit(':').next()?;
    is_random.then_some((host, pid.parse().ok()?))
}

/// Claims that have less time left than whoever keeps them leaves them.
#[derive(Debug)]
pub(crate) struct Overdue {
    has_peers: bool,
    /// How long the claims of conductors last that say so.
    leases: Vec<(Owner, Duration)>,
    claims: Vec<Suspect>,
}

/// A claim that may not be renewed any more.
#[derive(Debug)]
struct Suspect {
    job: JobRef,
    holding: Holding,
    seen: Instant,
    /// How long nothing can be told of it.
    pause: Duration,
}

impl Overdue {
    pub(crate) fn new(board: &dyn Board, conductors: &[Conductor]) -> Self {
        let lease = |it: &Conductor| {
            let lease = Duration::try_from_secs_f64(it.told.lease?).ok()?;
            Some((it.owner.clone(), lease))
        };
        Self {
            has_peers: board.capabilities().has_peers(),
            leases: conductors.iter().filter_map(lease).collect(),
            claims: Vec::new(),
        }
    }

    /// Notes a claim that should have been renewed by now, if it is one that is kept.
    pub(crate) fn add(&mut self, entry: &Entry) {
        if let Some(job) = entry.job()
            && let Some(holding) = job.holding.as_ref()
            && let Some(left) = holding.expires_in
            && let Some((least, pause)) = self.least(holding, left)
            && self.claims.len() < MOST
            && left < least
        {
            self.claims.push(Suspect {
                job: JobRef::Key(job.key.clone()),
                holding: holding.clone(),
                seen: Instant::now(),
                pause: pause.max(SHORTEST),
            });
        }
    }

    /// Returns how much time a claim always has left that somebody keeps, and how long it has to be
    /// watched until that is sure.
    fn least(&self, holding: &Holding, left: Duration) -> Option<(Duration, Duration)> {
        let is_timed = holding.lease == Lease::Timed;
        let owner = holding.owner.as_ref().filter(|_| is_timed)?;
        // Each of ours is numbered.
        if holding.fence.is_none() {
            return self.has_peers.then_some((LEAST_OF_PEERS, SHORTEST));
        }
        if let Some((_, lease)) = self.leases.iter().find(|(it, _)| it == owner) {
            // It is renewed when two thirds of it are left.
            return Some((*lease / 3, SHORTEST));
        }
        // Only processes keep theirs; nobody says for how long it was made, but one that has so much
        // left is renewed within half of that, or it is late.
        process_of(&owner.text()).map(|_| (LEASE / 3, left / 2))
    }

    /// Looks again at those that can be told within `most`, and returns the ones that are not renewed.
    pub(crate) async fn not_renewed(
        mut self,
        board: &dyn Board,
        most: Duration,
    ) -> Result<Vec<Entry>, BoardError> {
        self.claims.retain(|it| it.pause <= most);
        let Some(pause) = self.claims.iter().map(|it| it.pause).max() else {
            return Ok(Vec::new());
        };
        time::sleep(pause).await;
        let references: Vec<_> = self.claims.iter().map(|it| it.job.clone()).collect();
        let found = board.find(Shelf::Board, &references).await?;
        let pairs = self.claims.iter().zip(found);
        let late = pairs.filter_map(|(before, mut found)| {
            let entry = found.pop()?;
            let now = entry.holding()?;
            let is_same =
                (&now.owner, &now.fence) == (&before.holding.owner, &before.holding.fence);
            let left = |holding: &Holding| holding.expires_in.unwrap_or_default();
            let waned = left(&before.holding).saturating_sub(left(now)) > before.seen.elapsed() / 2;
            (is_same && waned).then_some(entry)
        });
        Ok(late.collect())
    }
}

#[cfg(test)]
mod tests {
    use rustix::system::uname;

    use super::*;

    #[test]
    fn a_process_is_known_by_its_name() {
        for (name, process) in [
            ("ada@h7:h7:4711:c0ffee01", Some(("h7", 4711))),
            ("h7:4711:c0ffee01", Some(("h7", 4711))),
            ("ada@h7", None),
            ("h7:4711:c0ffee", None),
            ("h7:x:c0ffee01", None),
            ("4711:c0ffee01", None),
        ] {
            assert_eq!(process_of(name), process, "{name}");
        }
    }

    #[test]
    fn who_is_dead_is_told_of_this_machine_and_of_claims_for_ever_elsewhere() {
        let here = uname().nodename().to_string_lossy().into_owned();
        let (ours, forever) = (std::process::id(), true);
        for (name, has_for_ever, dead) in [
            (format!("{here}:{ours}:c0ffee01"), forever, false),
            (format!("ada:{here}:{}:c0ffee01", i32::MAX), false, true),
            ("elsewhere.:1:c0ffee01".to_owned(), forever, true),
            ("elsewhere.:1:c0ffee01".to_owned(), false, false),
            ("ada@elsewhere.".to_owned(), forever, false),
        ] {
            let owner = Owner::from_stored(name.as_str());
            let holding = |lease| Holding {
                owner: Some(owner.clone()),
                lease,
                expires_in: None,
                outlives: None,
                claimed_on: None,
                fence: None,
            };
            // What lapses, or stands as long as a session, is no proof of a death.
            let is_ours = name.contains(&format!("{here}:"));
            assert_eq!(is_nobody_s(&holding(Lease::None), &[]), dead && is_ours);
            assert!(!is_nobody_s(&holding(Lease::Timed), &[]));
            assert!(!is_nobody_s(&holding(Lease::Session), &[]));
            assert_eq!(is_dead(&owner, &[], has_for_ever), dead, "{name}");
        }
    }
}
