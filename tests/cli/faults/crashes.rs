//! Kills of processes that run jobs.
//!
//! `JOBBOARD_FAULTS=full` makes them many.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{is_intact, random, size};
use crate::support::{Env, Running, Tag, process::all, wait_until};

/// The longest time that a command may outlive its watchers.
const SURVIVAL: Duration = Duration::from_secs(2);

/// A killed run, and the observations of its command.
struct Victim {
    tag: Tag,
    /// Not reaped before its end is known: its command may still hold the output.
    _run: Running,
    killed: Instant,
    /// The last observation of the command, after the kill.
    survived: Option<Duration>,
}

impl Victim {
    /// Starts a run with a command that ignores TERM, and kills it at a random moment.
    fn strike(env: &Env) -> Self {
        let tag = Tag::new();
        let script = format!("trap '' TERM; sleep {0}; sleep {0}", tag.text());
        let words = ["run", "resize", "--lease", "2s", "--", "sh", "-c", &script];
        let mut run = env.jobboard(&words).spawn();
        thread::sleep(Duration::from_micros(random(30_000)));
        run.signal(Signal::KILL);
        wait_until("it is dead", || run.has_ended());
        Self {
            tag,
            _run: run,
            killed: Instant::now(),
            survived: None,
        }
    }
}

/// Records which commands still exist.
fn look(victims: &mut [Victim]) {
    let now = Instant::now();
    let arguments: BTreeSet<String> = all().into_iter().flat_map(|(_, words)| words).collect();
    for victim in victims {
        let tag = victim.tag.text();
        if arguments.iter().any(|argument| argument.contains(tag)) {
            victim.survived = Some(now - victim.killed);
        }
    }
}

#[test]
fn faults_no_command_survives_the_kill_of_its_run() {
    let rounds = size(200, 10);
    let env = Env::new();
    env.post("first");
    let mut victims = Vec::new();
    for _ in 0..rounds {
        victims.push(Victim::strike(&env));
        look(&mut victims);
    }
    let last = victims.last().unwrap().killed;
    // Late starts count too.
    while last.elapsed() < SURVIVAL + Duration::from_millis(200) {
        look(&mut victims);
        thread::sleep(Duration::from_millis(10));
    }
    let survived: Vec<_> = victims
        .iter()
        .filter_map(|victim| victim.survived)
        .collect();
    let longest = survived.iter().max().copied().unwrap_or_default();
    assert!(longest <= SURVIVAL, "a command survived for {longest:?}");
    let claimed = free(&env);
    eprintln!(
        "faults: of {rounds} killed runs {} left a command, the last of which was gone after \
         {longest:.1?}; {claimed} jobs could be claimed again",
        survived.len()
    );
}

/// Requires that every job is claimable after its lease, and returns their number.
fn free(env: &Env) -> usize {
    is_intact(env);
    let jobs = env.names().len();
    let claim = "claim --next --wait 20s";
    for _ in 0..jobs {
        env.ok(claim);
    }
    jobs
}
