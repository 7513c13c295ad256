//! Faults around conductors: many processes, kills, suspended processes and lost servers.
//!
//! Commands hold a lock while they run, which the kernel releases at any end: the lock shows whether two of them ran a
//! job concurrently. `JOBBOARD_FAULTS=full` makes the counts large.

mod busy;
mod clocks;
mod commands;
mod ensemble;
mod failover;
mod lost_replies;
mod matrix;
mod outages;
mod output;
mod releases;
mod silent_servers;
mod unwritable;
mod upgrades;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use super::{random, size};
use crate::{
    conduct::{Stage, on_every_board},
    support::{
        Manager, Running, SOON, Tag, comes_true,
        process::{self, is_alive},
        wait_until, words,
    },
};

on_every_board!(
    many_conductors_run_every_job_once,
    killed_conductor_ends_its_commands_and_the_jobs_run_again,
    no_command_survives_a_conductor_killed_while_starting_it,
    stopped_conductor_loses_its_jobs_before_another_runs_them,
    many_postponing_jobs_all_finish,
    jobs_next_to_a_killer_of_conductors_lose_no_attempt,
);

/// The longest time that a command may outlive its conductor.
const SURVIVAL: Duration = Duration::from_secs(2);

/// Wraps a script in the lock, and logs a conflict.
fn alone(script: &str) -> String {
    format!(
        "exec 9>lock.$JOBBOARD_JOB; flock -n 9 || {{ echo double $JOBBOARD_JOB >> log; exit 0; }}; \
         echo start $JOBBOARD_JOB $JOBBOARD_FENCE >> log; {script}; \
         echo end $JOBBOARD_JOB $JOBBOARD_FENCE >> log"
    )
}

/// The log entries of a job.
#[derive(Debug, Default)]
struct Runs {
    starts: usize,
    ends: usize,
}

/// Reads the log, and requires that no job ran twice concurrently.
fn runs(stage: &Stage) -> BTreeMap<String, Runs> {
    let mut runs: BTreeMap<String, Runs> = BTreeMap::new();
    for line in stage.log() {
        let mut words = line.split(' ');
        let (what, job) = (words.next().unwrap(), words.next().unwrap());
        let of_job = runs.entry(job.to_owned()).or_default();
        match what {
            "start" => of_job.starts += 1,
            "end" => of_job.ends += 1,
            _ => panic!("{line}"),
        }
    }
    runs
}

/// Requires that each job ran exactly once, and that none remains.
fn each_ran_once(stage: &Stage, mut jobs: Vec<String>) {
    let runs = runs(stage);
    jobs.sort();
    assert!(runs.keys().eq(&jobs), "some jobs were not run");
    let once = |runs: &Runs| (runs.starts, runs.ends) == (1, 1);
    assert!(runs.values().all(once), "{runs:?}");
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
}

/// Waits for a long-running process.
pub(super) fn finishes(running: &mut Running, most: Duration) {
    let has_ended = comes_true(most, || running.has_ended());
    assert!(has_ended, "still at work: {}", running.stderr());
}

fn many_conductors_run_every_job_once(stage: &Stage) {
    let (count, crowd) = (size(10_000, 150), size(8, 4));
    let jobs = stage.post_many(count, &alone("true"));
    let start = Instant::now();
    let drain = ["--drain", "-j4", "-q", "--output", "discard"];
    let crowd: Vec<_> = (0..crowd).map(|_| stage.conduct(&drain).spawn()).collect();
    for mut conductor in crowd {
        finishes(&mut conductor, SOON * 20);
        conductor.ended().succeeded();
    }
    eprintln!(
        "faults: {count} jobs were conducted in {:.1?}",
        start.elapsed()
    );
    each_ran_once(stage, jobs);
}

fn killed_conductor_ends_its_commands_and_the_jobs_run_again(stage: &Stage) {
    let times = size(50, 2);
    let tag = Tag::new();
    // They end once the test permits it.
    let script = alone(&format!("[ -e may-end ] || sleep {}", tag.text()));
    let jobs = stage.post_many(3, &script);
    let mut lost = 0;
    let conduct = words("-j3 --lease 2s --max-attempts 1000 --retry-delay 10ms");
    for time in 1..=times {
        let conductor = stage.start(&conduct);
        wait_until("all run", || tag.sleepers().len() == 3);
        // On a busy machine a claim may be lost without a kill.
        lost += conductor.stderr().matches("claim_lost").count();
        conductor.kill();
        wait_until("none runs any more", || tag.commands().is_empty());
        let attempts = jobs
            .iter()
            .map(|job| stage.env.show(job)["attempts"].clone());
        let attempts: usize = attempts.map(|it| it.as_u64().unwrap() as usize).sum();
        assert_eq!(attempts, time * 3 + lost);
    }
    fs::write(stage.env.file("may-end"), "").unwrap();
    stage
        .conduct(&[&conduct[..], &["--drain"]].concat())
        .run()
        .succeeded();
    let runs = runs(stage);
    assert!(
        runs.values()
            .all(|runs| runs.starts > times && runs.ends == 1),
        "{runs:?}"
    );
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
    eprintln!("faults: {times} conductors were killed, and each job ran once more after each");
}

fn no_command_survives_a_conductor_killed_while_starting_it(stage: &Stage) {
    let (times, mut slowest) = (size(200, 4), Duration::ZERO);
    let tag = Tag::new();
    stage.post_many(8, &format!("exec sleep {}", tag.text()));
    for _ in 0..times {
        let conductor = stage
            .conduct(&["-j8", "--lease", "1s", "--max-attempts", "100000"])
            .spawn();
        wait_until("it starts some", || {
            // The earlier claims have to expire first.
            !tag.sleepers().is_empty()
        });
        thread::sleep(Duration::from_micros(random(4_000)));
        let killed = Instant::now();
        conductor.kill();
        tag.is_gone_by(killed + SURVIVAL);
        slowest = slowest.max(killed.elapsed());
    }
    eprintln!(
        "faults: {times} conductors were killed as they started some, none left for {slowest:.1?}"
    );
}

fn stopped_conductor_loses_its_jobs_before_another_runs_them(stage: &Stage) {
    let lease = Duration::from_secs(2);
    let tag = Tag::new();
    let script = alone(&format!("[ -e may-end ] || sleep {}", tag.text()));
    let job = stage.post("a", &script);
    let mut first = stage.start(&["--lease", "2s"]);
    tag_runs(&tag);
    fs::write(stage.env.file("may-end"), "").unwrap();
    let stopped = Instant::now();
    first.signal(Signal::STOP);
    let mut second = stage.conduct(&["--lease", "2s", "--drain"]).spawn();
    // Commands are terminated a sixth of the lease before its end, and killed soon after.
    tag.is_gone_by(stopped + lease);
    let gone = stopped.elapsed();
    finishes(&mut second, SOON);
    second.ended().succeeded();
    thread::sleep((lease * 3).saturating_sub(stopped.elapsed()));
    first.signal(Signal::CONT);
    stage.says(&first, "claim_lost");
    assert!(!first.has_ended());
    first.signal(Signal::TERM);
    let first = first.ended();
    first.warns("consumed=0 abandoned=0 trashed=0 lost=1");
    let runs = runs(stage);
    assert_eq!((runs[&job].starts, runs[&job].ends), (2, 1));
    eprintln!(
        "faults: a stopped conductor's command was gone after {gone:.1?} of a lease of {lease:?}"
    );
}

fn tag_runs(tag: &Tag) {
    wait_until("the command runs", || !tag.sleepers().is_empty());
}

/// Returns the jobs on the board except one.
fn innocent_of(stage: &Stage, culprit: &str) -> Vec<Value> {
    let listed = stage.env.json("list --json");
    let jobs = listed.as_array().unwrap().iter();
    jobs.filter(|job| job["uuid"] != *culprit)
        .cloned()
        .collect()
}

fn jobs_next_to_a_killer_of_conductors_lose_no_attempt(stage: &Stage) {
    let script = "echo $JOBBOARD_JOB $JOBBOARD_ATTEMPT >> log";
    // Short jobs, so that the jobs after them are claimed ahead, including the culprit.
    let short = stage.post_many(40, script);
    let culprit = stage.post_with(
        "b",
        "echo $JOBBOARD_ATTEMPT >> deaths; kill -9 $PPID; sleep 9",
        &[],
    );
    let behind = stage.post_many(20, script);
    let conduct = ["--lease", "1s", "--drain", "--max-attempts", "2", "-q"];
    let (mut deaths, mut in_turn, mut had_claimed) = (0, 0, 0);
    loop {
        let before = stage.log().len();
        let mut conductor = stage.conduct(&conduct).spawn();
        finishes(&mut conductor, SOON);
        let run = conductor.ended();
        if run.code != 137 {
            assert_eq!(run.code, 7, "{run:?}");
            break;
        }
        deaths += 1;
        in_turn += usize::from(stage.log().len() == before);
        let mut innocent = innocent_of(stage, &culprit);
        let is_claimed = |job: &Value| job["state"] == "CLAIMED";
        had_claimed += innocent.iter().filter(|job| is_claimed(job)).count();
        wait_until("their claims lapse", || {
            innocent = innocent_of(stage, &culprit);
            !innocent.iter().any(is_claimed)
        });
        // A job that had ended without a settlement counts as tried.
        let log = stage.log();
        let has_run = |job: &Value| log.contains(&format!("{} 1", job["uuid"].as_str().unwrap()));
        assert!(
            innocent
                .iter()
                .all(|job| job["attempts"] == 0 || has_run(job)),
            "{innocent:?}"
        );
    }
    // A job claimed ahead counts no attempt. Only an ended, unsettled job precedes it again.
    assert!(deaths >= 2 && in_turn <= 2, "{in_turn} of {deaths}");
    // A fast machine finds some.
    eprintln!("faults: {had_claimed} neighbours of a job that kills its conductor were claimed");
    let log = stage.log();
    let ran: BTreeSet<_> = log
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let all = [short, behind].concat();
    assert_eq!(ran, all.iter().map(String::as_str).collect());
    assert_eq!(stage.env.names(), [""; 0]);
    assert_eq!(stage.env.show(&culprit)["state"], "TRASHED");
}

fn many_postponing_jobs_all_finish(stage: &Stage) {
    let count = size(64, 16);
    let script = "echo x >> tries.$JOBBOARD_JOB; [ $(wc -l < tries.$JOBBOARD_JOB) -ge 4 ] || exit 75; \
                  echo done >> log";
    stage.post_many(count, script);
    let conduct = words("--drain -j8 --max-attempts 1 --retry-delay 20ms -q");
    let mut conductor = stage.conduct(&conduct).spawn();
    finishes(&mut conductor, SOON * 2);
    conductor.ended().succeeded();
    assert_eq!(stage.log(), vec!["done"; count]);
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
}

#[test]
fn first_process_reaps_and_forwards_signals() {
    need!(stage = Stage::embedded());
    let unshare = |words: &[&str]| {
        let program = std::path::Path::new("unshare");
        stage.env.program(
            program,
            &[&["--pid", "--fork", "--mount-proc"], words].concat(),
        )
    };
    if unshare(&["true"]).run().code != 0 {
        eprintln!("skipped: this user cannot make a namespace of processes");
        return;
    }
    // An orphan that becomes a child of the first process and ends.
    stage.post(
        "a",
        "setsid sh -c 'sleep 0.2' > /dev/null 2>&1 & echo orphaned >> log",
    );
    stage.post(
        "b",
        "while ps -eo stat= | grep -q Z; do sleep 0.05; done; echo reaped >> log; ps -o ppid= -p $PPID >> log",
    );
    let manager = Manager::start(&stage.env);
    let conduct = unshare(&[env!("CARGO_BIN_EXE_jobboard"), "conduct"]).in_session();
    let conduct = manager.over(conduct).env("WATCHDOG_USEC", "60000000");
    let conductor = conduct.env("WATCHDOG_PID", "1").spawn();
    manager.hears("WATCHDOG=1");
    stage.logged(3);
    let log = stage.log();
    assert_eq!(
        (log[0].as_str(), log[1].as_str(), log[2].trim()),
        ("orphaned", "reaped", "1")
    );
    // `unshare` runs outside the namespace; the first process is its child.
    let mut all = process::all().into_iter().map(|(pid, _)| pid);
    let parent = i32::try_from(conductor.pid()).unwrap();
    let is_first = |&pid: &Pid| process::stat(pid).is_some_and(|stat| stat.parent == parent);
    let first = all.find(is_first).unwrap();
    for (signal, message) in [
        (Signal::USR1, "=quiet\n"),
        (Signal::USR2, "=state "),
        (Signal::HUP, "=reloaded\n"),
        // A job that wrote its last line may still be unsettled.
        (Signal::ALARM, "=stopping"),
    ] {
        process::signal(first, signal);
        stage.says(&conductor, message);
    }
    conductor.ended().warns("summary ran=2 consumed=2");
    assert!(!is_alive(first));
}

#[test]
fn denied_board_ends_a_conductor_and_an_outage_does_not() {
    need!(stage = Stage::redis());
    let server = stage.redis_server().unwrap();
    let run = stage
        .env
        .run("conduct --allow-any --board redis://no-such-host.invalid --json");
    assert_eq!(run.code, 5, "{run:?}");
    let mut conductor = stage.start(&[]);
    server.run(&["CONFIG", "SET", "requirepass", "hunter2"]);
    // The server denies its next connection.
    server.run_as("hunter2", &["CLIENT", "KILL", "TYPE", "normal"]);
    server.run_as("hunter2", &["CLIENT", "KILL", "TYPE", "pubsub"]);
    wait_until("it gives up", || conductor.has_ended());
    assert_eq!(conductor.ended().code, 5);
    let away = ["conduct", "--allow-any", "--board", "redis://127.0.0.1:1"];
    let conductor = stage.env.jobboard(&away).spawn();
    stage.says(&conductor, "board_unreachable");
    conductor.stops();
}
