//! Ends the remains of a job after its conductor and guard died or were stopped together.

use std::{cell::OnceCell, collections::HashSet, fs, mem, time::Duration};

use rustix::process::{Pid, Signal, getpid};
use tokio::{sync::Mutex, time};

use super::{
    ORPHAN_GRACE, WORD,
    schedule::{CHECK_PAUSE, KILL_TIMEOUT},
};
#[cfg(test)]
use crate::process::simulation;
use crate::process::{
    clock::Boottime,
    group::Stat,
    label::Label,
    lineage::{PinnedProcess, Processes, numbered, scan},
};

/// For the first claim on a job, a scan from this long before the claim is recent enough.
///
/// A later process would mean that its job ended and came back under the same uuid. But no other conductor can end a
/// job before its lease has expired, and no lease is shorter than this.
pub(crate) const BEFORE_FIRST: Duration = Duration::from_secs(1);

/// The jobs with processes on this machine, as of the last scan.
///
/// The attempt count does not show whether a job was started: not every attempt counts.
#[derive(Debug, Default)]
pub(crate) struct LeftOver(Mutex<LabelScan>);

#[derive(Debug, Default)]
struct LabelScan {
    since: Boottime,
    others: HashSet<(Pid, u64)>,
    jobs: HashSet<u32>,
}

impl LeftOver {
    /// Ends the processes that earlier attempts at a job left on this machine, or waits until their guards do.
    ///
    /// The holder of the claim calls this before it starts a command. A scan is valid if it began after `since`: the
    /// claim, or [`BEFORE_FIRST`] before the first claim on a job.
    pub(crate) async fn end(&self, uuid: &str, since: Boottime) {
        let mut seen = self.0.lock().await;
        if seen.since <= since {
            let before = mem::take(&mut *seen);
            // On a busy machine this takes its time, in which claims have to be renewed.
            let now = scan(move || before.once_more()).await;
            // One that failed would fail again.
            *seen = now.unwrap_or_default();
        }
        let is_any = seen.jobs.contains(&Label::of_job(uuid));
        drop(seen);
        // Usually there is none.
        if is_any {
            end_left_over(Label::of_job(uuid)).await;
        }
    }
}

impl LabelScan {
    /// Scans again; reads the labels of new processes only.
    fn once_more(self) -> Self {
        let mut now = Self {
            since: Boottime::now(),
            ..Self::default()
        };
        for process in numbered() {
            let label = match self.others.contains(&process) {
                true => None,
                false => Label::carried_by(process.0),
            };
            match label {
                Some(label) => _ = now.jobs.insert(label.job()),
                None => _ = now.others.insert(process),
            }
        }
        now
    }
}

async fn end_left_over(job: u32) {
    let begin = Boottime::now();
    let (mut asked, mut killed) = (HashSet::new(), None);
    loop {
        let left = scan(move || left_over(job)).await;
        // A search that failed would fail again.
        let left = left.unwrap_or_default();
        // A process that the kernel holds, or another user's, cannot be ended. On a busy machine the time counts from
        // the first kill.
        let since = match left.iter().all(|(_, is_guarded)| *is_guarded) {
            true => Some(begin),
            false => killed,
        };
        if left.is_empty() || since.is_some_and(|it: Boottime| (it + KILL_TIMEOUT).is_past()) {
            return;
        }
        for (process, is_guarded) in left {
            // The claim was free, so its guard has killed it: it is about to be gone.
            if is_guarded {
                continue;
            }
            if (begin + ORPHAN_GRACE).is_past() {
                killed.get_or_insert_with(Boottime::now);
                process.signal(Signal::KILL);
            } else if asked.insert(process) {
                process.terminate();
            }
        }
        time::sleep(CHECK_PAUSE).await;
    }
}

/// Returns the processes, and whether a living guard will end each.
fn left_over(job: u32) -> Vec<(PinnedProcess, bool)> {
    let processes = Processes::now();
    let guards: OnceCell<HashSet<u32>> = OnceCell::new();
    let is_guarded = |label: Label| {
        let guards = guards.get_or_init(|| processes.pids().filter_map(watched_by).collect());
        guards.contains(&label.conductor())
    };
    // Whoever runs below a command of this very job is no remainder of it.
    let ours = Label::of(getpid());
    let bearers = processes.bearers(|label| label.job() == job && Some(label) != ours);
    let ancestry = processes.ancestry(getpid());
    let (guarded, unguarded): (Vec<_>, Vec<_>) = bearers
        .into_iter()
        .partition(|&(_, label)| is_guarded(label));
    let below = |bearers: Vec<(Pid, Label)>| {
        let mut below = processes.below(bearers.into_iter().map(|(pid, _)| pid));
        below.retain(|process| !ancestry.contains(&process.pid));
        below.into_iter()
    };
    let guarded = below(guarded).map(|process| (process, true));
    let unguarded = below(unguarded).map(|process| (process, false));
    guarded.chain(unguarded).collect()
}

/// Returns the conductor of a guard, if the process is a running guard.
fn watched_by(pid: Pid) -> Option<u32> {
    #[cfg(test)]
    if simulation::is_ours(pid) {
        return simulation::watched_by(pid);
    }
    let arguments = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
    let mut arguments = arguments.split(|&byte| byte == 0).skip(1);
    if arguments.next()? != WORD.as_bytes() {
        return None;
    }
    let conductor = u32::from_str_radix(str::from_utf8(arguments.next()?).ok()?, 16).ok()?;
    let is_stopped = matches!(Stat::of(pid)?.state, 'T' | 't');
    (!is_stopped).then_some(conductor)
}
