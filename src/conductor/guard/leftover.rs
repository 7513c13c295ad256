//! What is left of a job whose conductor and guard have died, or were stopped, at one stroke.

use std::{cell::OnceCell, collections::HashSet, fs, time::Duration};

use rustix::process::{Pid, Signal, getpid};
use tokio::{task, time};

use super::{
    WORD,
    course::{PAUSE, PERSISTENCE},
};
use crate::conductor::{
    clock::Boottime,
    group::Stat,
    label::Label,
    lineage::{Kin, Processes, pids},
};

/// How long it has to end by itself.
const GRACE: Duration = Duration::from_millis(500);

/// Ends what earlier attempts at a job have left on this machine, or waits until their guards have.
///
/// To be called by whoever has the claim, before anything is started under it.
pub(crate) async fn end_left_over(uuid: &str) {
    let begin = Boottime::now();
    let mut asked = HashSet::new();
    loop {
        let job = uuid.to_owned();
        // On a busy machine this takes its time, in which claims have to be renewed.
        let left = task::spawn_blocking(move || left_over(&job)).await;
        // A search that failed would fail again.
        let left = left.unwrap_or_default();
        // What the kernel holds, or belongs to somebody else, cannot be ended.
        if left.is_empty() || (begin + PERSISTENCE).is_past() {
            return;
        }
        for (kin, is_guarded) in left {
            // The claim was free, so its guard has killed it: it is about to be gone.
            if is_guarded {
                continue;
            }
            if (begin + GRACE).is_past() {
                kin.signal(Signal::KILL);
            } else if asked.insert(kin) {
                kin.terminate();
            }
        }
        time::sleep(PAUSE).await;
    }
}

/// Returns them, and of each whether a guard that lives will end it.
fn left_over(uuid: &str) -> Vec<(Kin, bool)> {
    // Hardly ever is there anybody.
    let bears = |pid| Label::carried_by(pid).is_some_and(|label| label.is_of_job(uuid));
    if !pids().any(bears) {
        return Vec::new();
    }
    let processes = Processes::now();
    let guards: OnceCell<HashSet<u32>> = OnceCell::new();
    let is_guarded = |label: Label| {
        let guards = guards.get_or_init(|| processes.pids().filter_map(watched_by).collect());
        guards.contains(&label.conductor())
    };
    // Whoever runs below a command of this very job is no remainder of it.
    let ours = Label::of(getpid());
    let bearers = processes.bearers(|label| label.is_of_job(uuid) && Some(label) != ours);
    let ancestry = processes.ancestry(getpid());
    let (guarded, unguarded): (Vec<_>, Vec<_>) = bearers
        .into_iter()
        .partition(|&(_, label)| is_guarded(label));
    let below = |bearers: Vec<(Pid, Label)>| {
        let mut below = processes.below(bearers.into_iter().map(|(pid, _)| pid));
        below.retain(|kin| !ancestry.contains(&kin.pid));
        below.into_iter()
    };
    let guarded = below(guarded).map(|kin| (kin, true));
    let unguarded = below(unguarded).map(|kin| (kin, false));
    guarded.chain(unguarded).collect()
}

/// Returns whose commands a process watches over, if it is a guard and goes about it.
fn watched_by(pid: Pid) -> Option<u32> {
    let arguments = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
    let mut arguments = arguments.split(|&byte| byte == 0).skip(1);
    if arguments.next()? != WORD.as_bytes() {
        return None;
    }
    let conductor = u32::from_str_radix(str::from_utf8(arguments.next()?).ok()?, 16).ok()?;
    let is_stopped = matches!(Stat::of(pid)?.state, 'T' | 't');
    (!is_stopped).then_some(conductor)
}
