//! Moves between all kinds of boards, while workers run jobs on both and the movers are killed.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use serde_json::json;

use super::{preload, random, size};
use crate::{
    copy::behind_a_proxy,
    dump::boards::Boards,
    support::{Env, Peer, ProxyMode, Running, wait_until},
};

/// Runs jobs on a board until stopped, and returns their uuids.
fn work(env: &Env, url: &str, peer: Option<Peer>, stop: &AtomicBool) -> Vec<String> {
    let mut ran = Vec::new();
    let mut peer = peer;
    loop {
        let is_last = stop.load(Ordering::Relaxed);
        match &mut peer {
            Some(peer) => {
                let consumed =
                    peer.request(&json!({"do": "work", "who": "worker", "pause": 0.005}));
                let consumed = consumed.as_array().unwrap().iter();
                ran.extend(consumed.map(|uuid| uuid.as_str().unwrap().to_owned()));
            }
            None => {
                let claim = format!("--board {url} claim --next -o uuid --who worker");
                let claimed = env.run(claim);
                if claimed.code == 0 {
                    let job = claimed.posted();
                    let consume = format!("--board {url} consume {job} --who worker");
                    env.ok(consume);
                    ran.push(job);
                    continue;
                }
            }
        }
        if is_last {
            return ran;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a move, perhaps through a cutting proxy, and perhaps with a clock one hour ahead.
fn start(boards: &Boards, clock: Option<&str>, (from, to): (&str, &str)) -> Running {
    let words = ["copy", "--move", "--yes", "--to", &boards.url(to)];
    let run = boards.on(from, &words);
    match clock.filter(|_| random(2) == 0) {
        Some(clock) => run.env("LD_PRELOAD", clock).env("AHEAD", "3600").spawn(),
        None => run.spawn(),
    }
}

/// Posts jobs; some have a uuid that ended on the target before, and some come from Python.
fn post(boards: &Boards, (one, other): (&str, &str), jobs: usize) {
    let uuid = |number: usize| format!("1f0c9a58-8f0e-4d0a-8a43-{number:012x}");
    for number in 0..jobs / 10 {
        let job = uuid(number);
        boards.ok(other, format!("post old --uuid {job}"));
        boards.ok(other, format!("consume {job} --force --yes"));
    }
    let line = |number: usize| match number < jobs / 10 {
        true => format!("{{\"name\":\"job\",\"uuid\":\"{}\"}}\n", uuid(number)),
        false => "{\"name\":\"job\"}\n".to_owned(),
    };
    let lines: String = (0..jobs / 2).map(line).collect();
    boards
        .on(one, &["post", "--from", "-"])
        .stdin(lines)
        .run()
        .succeeded();
    let mut peer = boards.peer(one);
    for _ in jobs / 2..jobs {
        match &mut peer {
            Some(peer) => drop(peer.request(&json!({"do": "post", "name": "job"}))),
            None => drop(boards.run(one, &["post", "job"]).posted()),
        }
    }
}

/// Stops the workers when dropped.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Moves jobs in both directions while workers use both boards, and requires that each job runs exactly once.
fn every_job_runs_once(from: &str, to: &str, jobs: usize, strikes: usize) {
    let boards = Boards::new();
    let (one, other) = (boards.another(from), boards.another(to));
    let clock = preload(&boards.env, "clock.c");
    let (here, there) = (boards.url(&one), boards.url(&other));
    boards.env.configure(&format!(
        "[board.one]\nurl = \"{here}\"\nhistory = 0\n[board.other]\nurl = \"{there}\"\nhistory = 0\n"
    ));
    post(&boards, (&one, &other), jobs);
    let listed = boards.run(&one, &["list", "-o", "uuid"]);
    let mut all: Vec<_> = listed.succeeded().lines().map(str::to_owned).collect();
    all.sort_unstable();
    assert_eq!(all.len(), jobs);
    let stop = AtomicBool::new(false);
    let (urls, peers) = ([here, there], [boards.peer(&one), boards.peer(&other)]);
    let mut ran = thread::scope(|scope| {
        let env = &boards.env;
        let stop = &stop;
        // Ends the workers also if a check fails.
        let stops = Stops(stop);
        let workers = urls.iter().zip(peers);
        let workers: Vec<_> = workers
            .map(|(url, peer)| scope.spawn(move || work(env, url, peer, stop)))
            .collect();
        for strike in 0..strikes {
            // Every second board keeps no history.
            let names = match random(2) {
                0 => (one.as_str(), other.as_str()),
                _ => ("one", "other"),
            };
            strike_moves(&boards, clock.as_deref(), names, strike);
        }
        wait_until("nothing is left of the moves", || {
            let pairs = [(&one, &other), (&other, &one)];
            pairs.iter().all(|(from, to)| finishes(&boards, from, to))
        });
        let count = |board| {
            let counted = boards.run(board, &["list", "--count"]);
            counted.succeeded().trim().parse::<usize>().unwrap()
        };
        let count = || count(&one) + count(&other);
        let mut left = count();
        // Only a standstill is an error: a busy machine may take long.
        while left > 0 {
            wait_until("another job ends", || count() < left);
            left = count();
        }
        drop(stops);
        let ran = workers.into_iter().map(|worker| worker.join().unwrap());
        ran.collect::<Vec<_>>()
    });
    let (here, there) = (ran[0].len(), ran[1].len());
    let mut ran: Vec<_> = ran.drain(..).flatten().collect();
    ran.sort_unstable();
    let mut counts = BTreeMap::<_, usize>::new();
    ran.iter()
        .for_each(|job| *counts.entry(job).or_default() += 1);
    let twice: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
    assert_eq!(twice, [], "{from} {to}: run twice");
    assert_eq!(ran, all, "{from} {to}");
    eprintln!(
        "faults: moves {from} to {to}: {jobs} jobs, {strikes} strikes, {here} run on the source and {there} on the target, none lost, none twice"
    );
}

/// Resumes moves, and removes copies for an operator whose jobs ended on the source without a trace. No commit record
/// is deleted here, so such a job has run.
fn finishes(boards: &Boards, from: &str, to: &str) -> bool {
    let words = [
        "copy",
        "--resume",
        "--yes",
        "-o",
        "jsonl",
        "--to",
        &boards.url(to),
    ];
    let resumed = boards.run(from, &words);
    for line in resumed.stderr.lines() {
        let report: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        let message = report["error"]["message"].as_str().unwrap_or_default();
        if message.contains("nor a record of its end") {
            let words = report["error"]["commands"][1].as_array().unwrap().iter();
            let words: Vec<_> = words.skip(1).map(|it| it.as_str().unwrap()).collect();
            let trash = boards.env.jobboard(&[&words[..], &["--yes"]].concat());
            trash.run().succeeded();
        }
    }
    resumed.code == 0
}

/// Starts one move, or two opposite ones, and kills or disconnects them at random.
fn strike_moves(boards: &Boards, clock: Option<&str>, (one, other): (&str, &str), strike: usize) {
    let has_server = ["redis-", "zookeeper-"]
        .iter()
        .any(|it| other.starts_with(it));
    if has_server && random(4) == 0 {
        let (proxy, url) = behind_a_proxy(boards, other);
        proxy.cut_after(random(40) as u32, ProxyMode::PassOn);
        boards.run(one, &["copy", "--move", "--yes", "--to", &url]);
        return;
    }
    let mut movers = vec![start(boards, clock, (one, other))];
    if strike % 2 == 1 {
        movers.push(start(boards, clock, (other, one)));
    }
    thread::sleep(Duration::from_millis(random(150)));
    movers.into_iter().for_each(|mover| drop(mover.kill()));
}

#[test]
fn moved_jobs_run_exactly_once() {
    let kinds = Boards::new().kinds();
    thread::scope(|scope| {
        for from in &kinds {
            let kinds = &kinds;
            scope.spawn(move || {
                for to in kinds {
                    every_job_runs_once(from, to, size(560, 16), size(60, 4));
                }
            });
        }
    });
}
