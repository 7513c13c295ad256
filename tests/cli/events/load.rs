//! Bursts, large boards and idle watches.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::json;

use super::{EventSource, QUIET, Watched, count, is_full, watch};
use crate::{
    faults::size,
    support::{Env, Server, ZooKeeper, wait_until},
};

/// Returns the resident memory of a process in KiB.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn processor_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

#[test]
fn burst_is_reported_completely_or_as_a_resync_on_redis() {
    burst_is_reported_completely_or_as_a_resync::<Server>();
}

#[test]
fn burst_is_reported_completely_or_as_a_resync_on_zookeeper() {
    burst_is_reported_completely_or_as_a_resync::<ZooKeeper>();
}

fn burst_is_reported_completely_or_as_a_resync<H: EventSource>() {
    need!(mut watched = Watched::<H>::new());
    let jobs = size(1000, 100);
    let pid = watched.watching.pid();
    let before = memory(pid);
    watched
        .peer
        .request(&json!({"do": "burst", "count": jobs, "who": "ada"}));
    let stream = || watched.watching.stdout();
    wait_until("everything is reported, or a resync", || {
        let stream = stream();
        let counts = ["posted", "claimed", "consumed"].map(|kind| count(&stream, kind));
        counts == [jobs; 3] || count(&stream, "resync") > 0
    });
    let counts = ["posted", "claimed", "consumed", "resync"].map(|kind| count(&stream(), kind));
    eprintln!(
        "faults: of a burst of {jobs} jobs by TaskFlow on {}, posted, claimed, consumed and resync \
         were reported {counts:?} times",
        H::KIND
    );

    // Our own posts are reported one by one in any case.
    let from = stream().lines().count();
    let uuids = watched.env.post_many(jobs);
    let lines: String = uuids.iter().map(|uuid| format!("{uuid}\n")).collect();
    for verb in ["trash", "purge"] {
        let all = [verb, "-", "--yes", "--force"];
        let all = if verb == "purge" { &all[..3] } else { &all[..] };
        let run = watched.env.jobboard(all).stdin(lines.clone()).run();
        run.succeeded();
    }
    let counts = || {
        let stream = stream();
        let lines = stream.lines().skip(from).map(str::to_owned);
        // The last event of TaskFlow may still be pending.
        let ours: Vec<_> = lines
            .filter(|line| uuids.iter().any(|uuid| line.contains(uuid)))
            .collect();
        let ours = ours.join("\n");
        ["posted", "trashed", "purged", "claimed"].map(|kind| count(&ours, kind))
    };
    wait_until("our posts are reported", || counts()[2] == jobs);
    assert_eq!(counts(), [jobs, jobs, jobs, 0]);
    let grown = memory(pid).saturating_sub(before);
    eprintln!(
        "faults: watching {} events on {} grew the memory by {grown} KiB",
        jobs * 6,
        H::KIND
    );
    assert!(grown < 20 * 1024, "{grown} KiB");
}

#[test]
fn watching_a_large_board_has_bounded_cost() {
    need!(watched = Watched::<ZooKeeper>::new());
    let jobs = size(100_000, 1000);
    watched.env.post_many(jobs);
    let start = Instant::now();
    let second = watch(&watched.env, &[]);
    let pid = second.pid();
    let (began, used_at_start) = (start.elapsed(), processor_time(pid));
    let at_start = memory(pid);
    let start = Instant::now();
    let changes = size(5000, 100);
    // A hundred at a time, as in practice.
    for _ in 0..changes / 100 {
        watched.env.post_many(100);
    }
    let text = || count(&second.stdout(), "posted");
    wait_until("all is reported", || text() >= changes);
    let (took, used) = (start.elapsed(), processor_time(pid) - used_at_start);
    eprintln!(
        "faults: a watch of {jobs} jobs began within {began:.1?} (processor {used_at_start:.1?}, \
         {at_start} KiB); {} changes within {took:.1?} took it {used:.1?} of a processor, and it \
         has {} KiB",
        changes,
        memory(pid)
    );
    // It stores that many jobs without their contents.
    assert!(memory(pid) < 150 * 1024);
    assert_eq!(text(), changes);
}

#[test]
fn idle_watch_uses_no_processor() {
    let (redis, zookeeper) = (Watched::<Server>::new(), Watched::<ZooKeeper>::new());
    let file = Env::new();
    let beside = watch(&file, &[]);
    let redis = redis.as_ref().map(|it| ("Redis", &it.env, &it.watching));
    let zookeeper = zookeeper.as_ref();
    let zookeeper = zookeeper.map(|it| ("ZooKeeper", &it.env, &it.watching));
    let mut boards: Vec<_> = redis.into_iter().chain(zookeeper).collect();
    boards.push(("a file", &file, &beside));
    for (_, env, watching) in &boards {
        env.post_many(100);
        watching.prints(100);
    }
    thread::sleep(QUIET);
    let before: Vec<_> = boards
        .iter()
        .map(|(_, _, watching)| (Instant::now(), processor_time(watching.pid())))
        .collect();
    thread::sleep(Duration::from_secs(if is_full() { 20 } else { 1 }));
    for ((what, _, watching), (start, before)) in boards.iter().zip(before) {
        let used = processor_time(watching.pid()) - before;
        let share = used.as_secs_f64() / start.elapsed().as_secs_f64();
        eprintln!(
            "faults: an idle watch of {what} uses {:.2} % of a core",
            share * 100.0
        );
        let limit = if is_full() { 0.005 } else { 0.05 };
        assert!(share < limit, "{what}: {share}");
        watching.signal(Signal::INT);
    }
}
