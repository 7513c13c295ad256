//! The end of claims: abandon, consume and trash, and when conductors may retry a job released by force.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    action::{Action, Force},
    select::{Choice, Chosen, Named},
};
use crate::{
    board::{self, Board, BoardError, Settled},
    context::Context,
    diagnosis::{Death, Holder, Snapshot, process_of},
    duration,
    exit::CommandError,
    job::{Aftermath, Authority, ClaimEnd, Entry, ExpectedState, Failure, Owner, RELEASED},
    lease::USUAL_LEASE,
    output::{count_jobs, listed},
    process::{label::Label, lineage::Processes},
};

/// The number of owners that a warning names.
const SAMPLE: usize = 3;

/// Refuses to act under the name of a process: only the process knows whether its command has ended.
pub(crate) fn refuse_process_name(ctx: &Context) -> anyhow::Result<()> {
    let who = ctx.who();
    if process_of(&who.text()).is_none() {
        return Ok(());
    }
    let message = format!("{who} is the name of a process; only that process may end its claim");
    let hint =
        "use --force: `jobboard` asks first, and conductors wait until the command has ended";
    Err(CommandError::refused(message).hint(hint).into())
}

/// Refuses a job that its former owner may still run, as the board knows it.
pub(crate) fn require_end_of_command(entry: &Entry, now: DateTime<Utc>) -> Result<(), BoardError> {
    let until = entry.job().and_then(|job| job.attempts.may_run_until(now));
    until.map_or(Ok(()), |until| Err(BoardError::MayStillRun { until }))
}

pub(crate) fn stated_owner(name: Option<&str>) -> anyhow::Result<Option<Owner>> {
    name.map(Owner::new)
        .transpose()
        .map_err(|error| CommandError::usage(format!("--owner: {error}")).into())
}

pub(super) fn authority(force: &Force, entry: &Entry, who: &Owner) -> Authority {
    match force {
        Force::None => Authority::Owner(who.clone()),
        Force::Any => Authority::Force(ExpectedState::of(entry)),
        Force::Of(owner) => {
            let owner = Owner::from_stored(owner.as_bytes());
            Authority::Force(match entry.is_owned_by(&owner) {
                // Another claim of the same name is not the claim that the operator saw.
                true => ExpectedState::of(entry),
                false => ExpectedState::Claimed {
                    owner: Some(owner),
                    fence: None,
                },
            })
        }
    }
}

pub(super) fn judged(
    entry: &Entry,
    force: &Force,
    answer: board::Result<Settled>,
) -> anyhow::Result<Settled> {
    match (force, answer) {
        (_, Err(error @ BoardError::NotClaimed)) => Err(match entry {
            Entry::Job(_) => error.into(),
            // That it is unreadable matters more than that it is unclaimed.
            Entry::Malformed(record) => BoardError::from(record).into(),
        }),
        (Force::Of(owner), Err(BoardError::Changed)) => {
            let owner = Owner::from_stored(owner.as_bytes());
            Err(match entry.is_owned_by(&owner) {
                true => BoardError::Changed.into(),
                false => CommandError::NotHeldBy(owner).into(),
            })
        }
        (_, answer) => Ok(answer?),
    }
}

pub(super) fn foresee_refusals(ctx: &Context, chosen: &mut Chosen, who: &Owner) {
    let all = chosen.entries().count();
    let others = all - chosen.entries().filter(|it| it.is_owned_by(who)).count();
    if chosen.choice == Choice::Filtered && others > 0 {
        ctx.out.note(format!(
            "not claimed by {who}, skipped without --force: {others} of {}",
            count_jobs(all as u64)
        ));
    }
    for Named { entry, .. } in &mut chosen.jobs {
        if let Ok(Entry::Malformed(record)) = entry {
            *entry = Err(BoardError::from(&*record).into());
        }
    }
}

/// Returns the warning for jobs that a move holds: released, each may run on both boards.
pub(super) fn moved<'a>(entries: impl Iterator<Item = &'a Entry>) -> Option<String> {
    let owners = entries.filter_map(|entry| entry.holding()?.owner.as_ref());
    match owners.filter(|owner| owner.is_of_move()).count() {
        0 => None,
        count => Some(format!(
            "a move holds {}, which may also be on another board: `jobboard help unfinished-move`",
            count_jobs(count as u64)
        )),
    }
}

/// Decides whether conductors have to wait until the old command has certainly ended.
#[derive(Debug)]
pub(super) enum Release {
    /// The operator guarantees that the command has ended.
    Now,
    /// Conductors wait unless the owner's process and all processes of the command are gone.
    Checked {
        snapshot: Box<Snapshot>,
        /// The labelled processes on this machine, by job.
        running: HashMap<u32, BTreeSet<i32>>,
    },
}

impl Release {
    /// `None` unless the action releases claims by force.
    pub(super) async fn of(action: &Action, board: &dyn Board) -> Option<Self> {
        match action {
            Action::Abandon { now: true, .. } if action.is_forced() => Some(Self::Now),
            Action::Abandon { .. } | Action::Trash { .. } if action.is_forced() => {
                Some(Self::checked(board).await)
            }
            _ => None,
        }
    }

    /// Returns the warning for an action that takes jobs from owners that may still run them.
    pub(super) async fn foreseen<'a>(
        action: &Action,
        board: &dyn Board,
        entries: impl Iterator<Item = &'a Entry>,
    ) -> Option<String> {
        let release = Self::of(action, board).await?;
        release.warning(entries, matches!(action, Action::Trash { .. }))
    }

    /// Looks for the owners and their commands. An unreadable registry proves nothing.
    pub(super) async fn checked(board: &dyn Board) -> Self {
        let snapshot = Snapshot::new(board.capabilities(), None, Utc::now());
        let conductors = board.conductors().await.ok();
        let (sees, conductors) = (conductors.is_some(), conductors.unwrap_or_default());
        let mut snapshot = snapshot.with_conductors(conductors);
        snapshot.sees_conductors = sees;
        // After the registry: a dead conductor starts no command.
        let mut running = HashMap::<_, BTreeSet<_>>::new();
        for (pid, label) in Processes::now().bearers(|_| true) {
            let processes = running.entry(label.job()).or_default();
            processes.insert(pid.as_raw_nonzero().get());
        }
        let snapshot = Box::new(snapshot);
        Self::Checked { snapshot, running }
    }

    pub(super) fn aftermath(&self, entry: &Entry) -> Aftermath {
        let Some(left) = left(entry) else {
            return Aftermath::None;
        };
        let owner = entry.holding().and_then(|it| it.owner.as_ref());
        let owner = owner.map_or_else(String::new, Owner::to_string);
        let failure = Failure::reported(RELEASED, &owner);
        let doubt = self.doubt(entry);
        Aftermath::Failed {
            not_before: doubt.and_then(|_| failure.time.checked_add_signed(left)),
            failure,
        }
    }

    /// Records a failure only if the job must wait in the trash.
    pub(super) fn aftermath_in_trash(&self, entry: &Entry) -> Aftermath {
        match self.aftermath(entry) {
            Aftermath::Failed {
                not_before: None, ..
            } => Aftermath::None,
            aftermath => aftermath,
        }
    }

    /// Refuses a job that its former owner may still run, unless the command has certainly ended since the release.
    pub(super) fn require_end(&self, entry: &Entry, now: DateTime<Utc>) -> Result<(), BoardError> {
        let refused = require_end_of_command(entry, now);
        let (Self::Checked { snapshot, running }, Some(job)) = (self, entry.job()) else {
            return refused;
        };
        let former = job.attempts.failures.last();
        let is_gone = former.is_some_and(|it| {
            let owner = Owner::from_stored(it.conductor.as_bytes());
            let holder = snapshot.holder(&owner, ClaimEnd::Timed, Some(it.time));
            holder.has_certainly_died()
        });
        match is_gone && !running.contains_key(&Label::of_job(&job.uuid)) {
            true => Ok(()),
            false => refused,
        }
    }

    fn doubt(&self, entry: &Entry) -> Option<String> {
        let Self::Checked { snapshot, running } = self else {
            return None;
        };
        let (job, holding) = (entry.job()?, entry.holding()?);
        let Some(owner) = &holding.owner else {
            return Some("the owner is unreadable".to_owned());
        };
        match snapshot.holder(owner, holding.end, holding.claimed_on) {
            holder if holder.has_certainly_died() => {
                let pids = running.get(&Label::of_job(&job.uuid))?;
                let pids = listed(pids.iter().take(SAMPLE).map(i32::to_string));
                Some(format!("{} is still running (process {pids})", job.name))
            }
            Holder::Conductor(_) => Some(format!("{owner} is still running")),
            Holder::Dead {
                death: Death::Stopped(pid),
                ..
            } => Some(format!("{owner} is stopped (process {pid}) and may resume")),
            Holder::Dead { .. } | Holder::Other => {
                Some(format!("{owner}'s process cannot be checked from here"))
            }
        }
    }

    /// Reports how long conductors wait, and the reason; one sentence for all jobs.
    fn warning<'a>(
        &self,
        entries: impl Iterator<Item = &'a Entry>,
        is_trash: bool,
    ) -> Option<String> {
        let waits = entries.filter_map(|entry| Some((left(entry)?, self.doubt(entry)?)));
        let waits: Vec<_> = waits.collect();
        let left = waits.iter().map(|(left, _)| *left).max()?;
        let until = clock(Utc::now(), left)?;
        let doubts: BTreeSet<_> = waits.iter().map(|(_, doubt)| doubt.as_str()).collect();
        let mut doubt = listed(doubts.iter().take(SAMPLE).copied());
        if doubts.len() > SAMPLE {
            doubt += ", and others";
        }
        let jobs = match waits.len() {
            1 => String::new(),
            jobs => format!(" for {}, the last of them", count_jobs(jobs as u64)),
        };
        Some(match is_trash {
            true => format!("{doubt}: `restore` and `retry` refuse{jobs} until {until}"),
            false => format!(
                "{doubt}: conductors wait{jobs} until {until}; `--now`, here or with `retry`, ends the wait"
            ),
        })
    }
}

/// Returns a time today, or else with its date, and the time left.
fn clock(now: DateTime<Utc>, left: TimeDelta) -> Option<String> {
    let until = now.checked_add_signed(left)?;
    let format = match until.date_naive() == now.date_naive() {
        true => "%H:%M UTC",
        false => "%Y-%m-%d %H:%M UTC",
    };
    let left = duration::brief(left.to_std().ok()?);
    Some(format!("{} ({left})", until.format(format)))
}

fn left(entry: &Entry) -> Option<TimeDelta> {
    let job = entry.job().filter(|job| job.attempts.count > 0)?;
    let holding = job.holding.as_ref().filter(|it| it.fence.is_some())?;
    let left = match holding.end {
        ClaimEnd::Never => return None,
        ClaimEnd::Timed | ClaimEnd::Session => holding.expires_in.or(holding.outlives),
    };
    TimeDelta::from_std(left.unwrap_or(USUAL_LEASE)).ok()
}
