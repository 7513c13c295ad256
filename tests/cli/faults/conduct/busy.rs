//! Busy machines and silent networks: commands end before their claims.

use std::{
    fs,
    process::{Child, Command},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open},
};

use crate::{
    conduct::Stage,
    faults::{random, size},
    support::{ProxyMode, Running, Tag, wait_until},
};

/// Processes that keep processors busy.
struct Busy(Vec<Child>);

impl Busy {
    fn with(count: usize) -> Self {
        let script = "while :; do :; done";
        let start = |_| Command::new("sh").args(["-c", script]).spawn().unwrap();
        Self((0..count).map(start).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits for the death of a process, and returns its time.
fn death(pid: Pid) -> thread::JoinHandle<SystemTime> {
    let end = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    thread::spawn(move || {
        while poll(&mut [PollFd::new(&end, PollFlags::IN)], None).is_err() {}
        SystemTime::now()
    })
}

/// Runs a command that ignores TERM under a claim through a proxy.
fn start(stage: &Stage, board: &str, how: &str, tag: &Tag) -> Running {
    let script = format!("trap '' TERM; exec sleep {}", tag.text());
    let command = ["--lease", "3s", "--", "sh", "-c", &script];
    match how {
        "conduct" => {
            stage.post("a", &script);
            stage.start(&["--board", board, "--lease", "3s"])
        }
        "claim" => {
            stage.post("a", "true");
            let claim = ["--board", board, "claim", "--next"];
            stage.env.jobboard(&[&claim[..], &command].concat()).spawn()
        }
        _ => {
            let run = ["--board", board, "run", "a"];
            stage.env.jobboard(&[&run[..], &command].concat()).spawn()
        }
    }
}

/// Returns the time between the end of the command and the next claim of its job, after the network fell silent.
fn margin(stage: &Stage, how: &str) -> Duration {
    let (board, proxy) = stage.through_proxy();
    let tag = Tag::new();
    let performer = start(stage, &board, how, &tag);
    wait_until("the command runs", || tag.sleepers().len() == 1);
    let death = death(tag.sleepers()[0]);
    let next = "claim --next --wait 60s -- sh -c".split(' ');
    let next: Vec<_> = next.chain(["date +%s%N > begun"]).collect();
    let next = stage.env.jobboard(&next).spawn();
    // Renewals are pending at different times in each round.
    thread::sleep(Duration::from_millis(1_000 + random(1_000)));
    proxy.set(ProxyMode::Halt);
    next.ended().succeeded();
    let begun = fs::read_to_string(stage.env.file("begun")).unwrap();
    let begun = UNIX_EPOCH + Duration::from_nanos(begun.trim().parse().unwrap());
    assert!(death.is_finished(), "{how}: two at a time");
    let death = death.join().unwrap();
    performer.signal(Signal::KILL);
    performer.ended();
    begun.duration_since(death).expect("two at a time")
}

/// Makes the network silent repeatedly, with this many busy processes.
fn ends_in_time(stage: &Stage, how: &str, busy: usize, rounds: usize) {
    // From then on the server caches all scripts.
    stage.env.ok("run warm-up -- true");
    let _busy = Busy::with(busy);
    let margins = (0..rounds).map(|_| margin(stage, how));
    let mut margins: Vec<_> = margins.collect();
    margins.sort();
    eprintln!(
        "faults: {how} beside {busy} busy loops: the command was gone {:.2?} to {:.2?} before its claim was \
         another one's, {rounds} rounds",
        margins[0],
        margins[rounds - 1],
    );
}

/// Tests each way to perform a job; daily only the first.
fn all_end_in_time(open: fn() -> Option<Stage>) {
    for how in ["run", "claim", "conduct"].into_iter().take(size(3, 1)) {
        for busy in [2, 0, 8].into_iter().take(size(3, 1)) {
            need!(stage = open());
            ends_in_time(&stage, how, busy, size(10, 1));
        }
    }
}

#[test]
fn commands_on_redis_end_in_time_under_load() {
    all_end_in_time(Stage::redis);
}

#[test]
fn commands_on_zookeeper_end_in_time_under_load() {
    all_end_in_time(Stage::zookeeper);
}
