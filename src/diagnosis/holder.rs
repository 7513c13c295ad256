//! Whether the holder of a claim is alive.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::{self, Instant};

pub(crate) use super::runner::Death;
use super::runner::{Runner, death};
use crate::{
    board::{Board, BoardError, JobRef},
    job::{ClaimEnd, Entry, Holding, Location, MOVER, Owner},
    lease::USUAL_LEASE,
    process::{group::has_ended, lease_times::least_left},
};

/// The clock difference that is ignored.
pub(crate) const SKEW: TimeDelta = TimeDelta::seconds(5);

/// The expiry that TaskFlow's users choose by default.
const EXPIRY_OF_PEERS: Duration = Duration::from_secs(30);

/// A move on another machine counts as ended after this long: its process cannot be checked from here.
const MAX_MOVE: TimeDelta = TimeDelta::minutes(10);

const MAX_SUSPECTS: usize = 1000;

const MIN_PAUSE: Duration = Duration::from_secs(1);

/// Whether a claim is from before its owner registered.
pub(super) fn is_older(claimed_on: Option<DateTime<Utc>>, since: DateTime<Utc>) -> bool {
    claimed_on.is_some_and(|on| on + SKEW < since)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A conductor that is alive: its place in the list.
    Conductor(usize),
    /// Its process is gone, or it is a conductor that no longer answers.
    Dead {
        host: String,
        death: Death,
        /// When the first conductor with its name registered, if one did.
        since: Option<DateTime<Utc>>,
    },
    Other,
}

impl Holder {
    pub(crate) fn has_certainly_died(&self) -> bool {
        matches!(self, Self::Dead { death, .. } if *death == Death::Certain)
    }

    /// Decides about a claim from the conductors and the process table.
    ///
    /// Only conductors hold claims without expiry under the name of a process. On another machine such an owner is
    /// therefore dead unless it is a running conductor.
    pub(crate) fn of(owner: &Owner, end: ClaimEnd, runners: &[Runner]) -> Self {
        let known = runners.iter().enumerate();
        let known = known.filter(|(_, it)| it.conductor.owner.is(owner));
        if let Some((at, _)) = known.clone().find(|(_, it)| !it.is_silent) {
            return Self::Conductor(at);
        }
        let conductors = known.map(|(_, it)| &it.conductor);
        // Each of them may have made the claim: the least certain state decides.
        if let Some((death, last)) =
            (conductors.clone().map(|it| (death(it), it))).max_by_key(|(death, _)| *death)
        {
            return Self::Dead {
                host: last.host.clone(),
                death,
                since: conductors.map(|it| it.since).min(),
            };
        }
        let (text, is_forever) = (owner.text(), end == ClaimEnd::Never);
        match process_of(&text).filter(|_| !owner.is_of_move()) {
            Some((host, pid)) if has_ended(host, pid, None).unwrap_or(is_forever) => Self::Dead {
                host: host.to_owned(),
                // One machine may have several pid namespaces.
                death: match is_forever && has_ended(host, pid, None) == Some(true) {
                    true => Death::Certain,
                    false => Death::Unproven,
                },
                since: None,
            },
            _ => Self::Other,
        }
    }
}

/// Whether the process of a move to another board has ended; `None` if it ran on another machine.
pub(crate) fn has_mover_ended(owner: &Owner) -> Option<bool> {
    let text = owner.text();
    let (host, pid) = process_of(text.strip_prefix(MOVER)?)?;
    has_ended(host, pid, None)
}

/// Whether a move counts as ended: its process has, or it ran on another machine and began long ago.
pub(crate) fn is_move_over(
    owner: &Owner,
    began: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> bool {
    let is_old = began.is_none_or(|began| now - began > MAX_MOVE);
    has_mover_ended(owner).unwrap_or(is_old)
}

pub(crate) fn is_of_broken_move(owner: &Owner) -> bool {
    has_mover_ended(owner) == Some(true)
}

/// Whether a claim is a move's claim on the copy that it posted.
///
/// Only the source board knows whether the copy may run, so only the move or `copy --resume` may end the claim.
pub(crate) fn is_copy_of_move(holding: &Holding) -> bool {
    let owner = holding.owner.as_ref();
    holding.end == ClaimEnd::Never && owner.is_some_and(Owner::is_of_move)
}

/// Whether a claim on the source board is a leftover of a broken move.
pub(crate) fn is_left_by_move(holding: &Holding) -> bool {
    let owner = holding.owner.as_ref();
    // Another board decides about a move's claim on a copy.
    !is_copy_of_move(holding) && owner.is_some_and(is_of_broken_move)
}

/// Returns the host and the pid from a name like `…HOST:PID:RANDOM`.
pub(crate) fn process_of(name: &str) -> Option<(&str, u32)> {
    let (rest, random) = name.rsplit_once(':')?;
    let (rest, pid) = rest.rsplit_once(':')?;
    let is_random = random.len() == 8 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    let host = rest.rsplit(':').next()?;
    is_random.then_some((host, pid.parse().ok()?))
}

/// Claims with less time left than a living owner leaves. A second look decides.
#[derive(Debug, Default)]
pub(crate) struct Recheck(Vec<Suspect>);

#[derive(Debug)]
struct Suspect {
    job: JobRef,
    holding: Holding,
    at: Instant,
    pause: Duration,
}

/// Returns how long to watch a claim that should have been renewed by now.
pub(crate) fn doubt(
    holding: &Holding,
    conductor: Option<&Runner>,
    has_peers: bool,
    octavia_expiry: Option<Duration>,
) -> Option<Duration> {
    let is_timed = holding.end == ClaimEnd::Timed;
    let owner = holding.owner.as_ref().filter(|_| is_timed)?;
    let left = holding.expires_in?;
    // `jobboard` numbers its claims, and peers do not.
    let (least, pause) = if holding.fence.is_none() {
        if !has_peers {
            return None;
        }
        // TaskFlow's conductors check every quarter of the expiry, and renew after half of it.
        (octavia_expiry.unwrap_or(EXPIRY_OF_PEERS) / 4, MIN_PAUSE)
    } else if let Some(lease) = conductor.and_then(Runner::lease) {
        (least_left(lease), MIN_PAUSE)
    } else if process_of(&owner.text()).is_some() {
        // Only processes renew theirs. The lease is unknown, but a claim with this much left is renewed within half of
        // it.
        (least_left(USUAL_LEASE), left / 2)
    } else {
        return None;
    };
    (left < least).then_some(pause)
}

impl Recheck {
    pub(crate) fn add(&mut self, entry: &Entry, pause: Duration) {
        if let Some(holding) = entry.holding()
            && self.0.len() < MAX_SUSPECTS
        {
            self.0.push(Suspect {
                job: JobRef::Key(entry.key().clone()),
                holding: holding.clone(),
                at: Instant::now(),
                pause: pause.max(MIN_PAUSE),
            });
        }
    }

    /// Looks again at the claims that can be decided within `most`, and returns those that were not renewed.
    pub(crate) async fn not_renewed(
        mut self,
        board: &dyn Board,
        most: Duration,
    ) -> Result<Vec<Entry>, BoardError> {
        self.0.retain(|it| it.pause <= most);
        let Some(pause) = self.0.iter().map(|it| it.pause).max() else {
            return Ok(Vec::new());
        };
        time::sleep(pause).await;
        let references: Vec<_> = self.0.iter().map(|it| it.job.clone()).collect();
        let found = board.find(Location::Board, &references).await?;
        let pairs = self.0.iter().zip(found);
        let late = pairs.filter_map(|(before, mut found)| {
            let entry = found.pop()?;
            let now = entry.holding()?;
            let is_same =
                (&now.owner, &now.fence) == (&before.holding.owner, &before.holding.fence);
            let left = |holding: &Holding| holding.expires_in.unwrap_or_default();
            let waned = left(&before.holding).saturating_sub(left(now)) > before.at.elapsed() / 2;
            (is_same && waned).then_some(entry)
        });
        Ok(late.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        diagnosis::{runner::runners, tests::conductor},
        job::Conductor,
        process::{group::process_start, host_name},
    };

    #[test]
    fn process_is_recognised_in_an_owner_name() {
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
    fn owner_has_certainly_died_if_all_its_conductors_have() {
        let silent = |process: Option<String>| {
            let mut conductor = Conductor {
                host: host_name(),
                pid: i32::MAX as u32,
                silence: Some(Duration::from_secs(60)),
                ..conductor()
            };
            conductor.report.process = process;
            conductor
        };
        for (others, is_certain) in [
            (vec![], true),
            (vec![silent(process_start())], true),
            // The process may be on another boot of the machine.
            (vec![silent(None)], false),
            (vec![silent(process_start()), silent(None)], false),
        ] {
            let conductors = [vec![silent(process_start())], others].concat();
            let owner = conductors[0].owner.clone();
            let holder = Holder::of(&owner, ClaimEnd::Timed, &runners(conductors));
            assert_eq!(holder.has_certainly_died(), is_certain, "{holder:?}");
        }
    }

    #[test]
    fn dead_owners_are_detected_by_process_or_expired_claim() {
        let here = host_name();
        let ours = std::process::id();
        let dead = |host: &str, death| Holder::Dead {
            host: host.to_owned(),
            death,
            since: None,
        };
        let gone = format!("ada:{here}:{}:c0ffee01", i32::MAX);
        for (name, lease, holder) in [
            (
                format!("{here}:{ours}:c0ffee01"),
                ClaimEnd::Never,
                Holder::Other,
            ),
            (gone.clone(), ClaimEnd::Never, dead(&here, Death::Certain)),
            // A claim that expires may be renewed from another pid namespace.
            (gone, ClaimEnd::Timed, dead(&here, Death::Unproven)),
            (
                "elsewhere.:1:c0ffee01".to_owned(),
                ClaimEnd::Never,
                dead("elsewhere.", Death::Unproven),
            ),
            (
                "elsewhere.:1:c0ffee01".to_owned(),
                ClaimEnd::Timed,
                Holder::Other,
            ),
            ("ada@elsewhere.".to_owned(), ClaimEnd::Never, Holder::Other),
        ] {
            let owner = Owner::from_stored(name.as_str());
            assert_eq!(Holder::of(&owner, lease, &[]), holder, "{name}");
        }
    }
}
