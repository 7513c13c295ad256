//! Sudden deaths of those who perform jobs.
//!
//! `JOBBOARD_FAULTS=full` makes them many.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{is_intact, random, size};
use crate::support::{
    env::{Env, Running, wait_until},
    process::{Tag, all},
};

/// How long a command may outlive those who were to watch over it.
const SURVIVAL: Duration = Duration::from_secs(2);

/// A run that was killed, and what has been seen of its command since.
struct Victim {
    tag: Tag,
    /// Until its end is known it must not be reaped: its command may have its output still.
    _run: Running,
    killed: Instant,
    /// How long after that the command was last seen.
    survived: Option<Duration>,
}

impl Victim {
    /// Starts a run with a command that does not end upon request, and kills it at some moment.
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

/// Looks once which commands are still there.
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
    // Those that started late count too.
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

/// Requires that every job can be claimed once its lease is over, and returns how many there are.
fn free(env: &Env) -> usize {
    is_intact(env);
    let jobs = env.names().len();
    let claim = ["claim", "--next", "--wait", "20s"];
    for _ in 0..jobs {
        env.jobboard(&claim).run().succeeded();
    }
    jobs
}
