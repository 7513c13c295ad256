//! Whether the holder of a claim is alive.

use std::time::Duration;

use tokio::time::{self, Instant};

use super::under_claim::LEASE;
use crate::{
    board::{Board, BoardError, JobRef},
    job::{Conductor, Entry, Holding, Lease, MOVER, Owner, Shelf},
    process::living::has_ended,
};

/// The least time left on a renewed claim of a peer: a quarter of the expiry that TaskFlow's users choose by default.
const LEAST_OF_PEERS: Duration = Duration::from_millis(7500);

/// How many claims are checked twice.
const MOST: usize = 1000;

/// The shortest time between the two checks of a claim.
const SHORTEST: Duration = Duration::from_secs(1);

/// Whether a conductor's heartbeat is late, or its process has died.
pub(crate) fn is_silent(conductor: &Conductor) -> bool {
    has_died(conductor) || conductor.is_overdue()
}

/// Whether the process of a conductor has ended, as far as this machine can see.
pub(crate) fn has_died(conductor: &Conductor) -> bool {
    let process = conductor.told.process.as_deref();
    has_ended(&conductor.host, conductor.pid, process) == Some(true)
}

/// Whether an owner is a dead process.
///
/// On this machine the process table answers. Only conductors hold claims without expiry under names like these. On
/// another machine an owner with one is therefore dead, unless it is a running conductor.
pub(crate) fn is_dead(owner: &Owner, conductors: &[Conductor], has_for_ever: bool) -> bool {
    let mut known = conductors.iter().filter(|it| it.owner == *owner).peekable();
    if known.peek().is_some() {
        return known.all(has_died);
    }
    let text = owner.text();
    // The claims of a move expire, and only the source board may release its copies.
    !text.starts_with(MOVER)
        && process_of(&text)
            .is_some_and(|(host, pid)| has_ended(host, pid, None).unwrap_or(has_for_ever))
}

/// Whether the process of a move to another board has ended; `None` if it ran on another machine.
pub(crate) fn has_mover_ended(owner: &Owner) -> Option<bool> {
    let text = owner.text();
    let (host, pid) = process_of(text.strip_prefix(MOVER)?)?;
    has_ended(host, pid, None)
}

pub(crate) fn is_of_broken_move(owner: &Owner) -> bool {
    has_mover_ended(owner) == Some(true)
}

/// Whether a claim is a move's claim on the copy that it posted.
///
/// Only the source board knows whether the copy may run, so only the move or `copy --resume` may end the claim.
pub(crate) fn is_copy_of_move(holding: &Holding) -> bool {
    let owner = holding.owner.as_ref();
    holding.lease == Lease::None && owner.is_some_and(|it| it.text().starts_with(MOVER))
}

/// Whether the owner is certainly dead, so that its claim may be ended without a question.
///
/// The process of a registered conductor can be checked. For other owners only a name is known, and one machine may
/// have several pid namespaces: their claims stay if they expire or are renewed.
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

/// Returns the host and the pid from a name like `…HOST:PID:RANDOM`.
pub(crate) fn process_of(name: &str) -> Option<(&str, u32)> {
    let (rest, random) = name.rsplit_once(':')?;
    let (rest, pid) = rest.rsplit_once(':')?;
    let is_random = random.len() == 8 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    let host = rest.rsplit(':').next()?;
    is_random.then_some((host, pid.parse().ok()?))
}

/// Finds claims with less time left than their holder normally leaves.
#[derive(Debug)]
pub(crate) struct Overdue {
    has_peers: bool,
    /// The lease durations that conductors publish.
    leases: Vec<(Owner, Duration)>,
    claims: Vec<Suspect>,
}

/// A claim that may no longer be renewed.
#[derive(Debug)]
struct Suspect {
    job: JobRef,
    holding: Holding,
    seen: Instant,
    /// How long the claim has to be watched.
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

    /// Notes a claim that should have been renewed by now.
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

    /// Returns the least time left on a renewed claim, and how long to watch the claim to be sure.
    fn least(&self, holding: &Holding, left: Duration) -> Option<(Duration, Duration)> {
        let is_timed = holding.lease == Lease::Timed;
        let owner = holding.owner.as_ref().filter(|_| is_timed)?;
        // `jobboard` numbers its claims.
        if holding.fence.is_none() {
            return self.has_peers.then_some((LEAST_OF_PEERS, SHORTEST));
        }
        if let Some((_, lease)) = self.leases.iter().find(|(it, _)| it == owner) {
            // Conductors renew when two thirds are left.
            return Some((*lease / 3, SHORTEST));
        }
        // Only processes renew theirs. The lease duration is unknown, but a claim with this much left is renewed within
        // half of it.
        process_of(&owner.text()).map(|_| (LEASE / 3, left / 2))
    }

    /// Checks the suspects again that can be decided within `most`; returns the ones that were not renewed.
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
            // A claim that expires, or that lasts as long as a session, proves no death.
            let is_ours = name.contains(&format!("{here}:"));
            assert_eq!(is_nobody_s(&holding(Lease::None), &[]), dead && is_ours);
            assert!(!is_nobody_s(&holding(Lease::Timed), &[]));
            assert!(!is_nobody_s(&holding(Lease::Session), &[]));
            assert_eq!(is_dead(&owner, &[], has_for_ever), dead, "{name}");
        }
    }
}
