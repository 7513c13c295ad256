//! Arbitrary board contents: no command hangs or polls its server in a loop.
//!
//! `JOBBOARD_FAULTS=full` makes the boards large. A failure prints its seed.

mod redis;
mod zookeeper;

use std::{
    thread,
    time::{Duration, Instant},
};

use super::{random, size};
use crate::support::{Env, Outcome, Running, SOON, comes_true, wait_until, words};

/// The limit of requests per second for all waiting commands on an unchanged board.
const BUSY: f64 = 20.0;

/// Possible sidecars.
const SIDES: [&str; 23] = [
    "",
    "x",
    "[]",
    "{}",
    "null",
    "{\"v\":1",
    r#"{"v":1}"#,
    r#"{"v":3}"#,
    r#"{"attempts":"x"}"#,
    r#"{"failures":5}"#,
    r#"{"v":1,"not_before":5}"#,
    r#"{"v":1,"not_before":"xx"}"#,
    r#"{"v":1,"not_before":"2999-01-01T00:00:00+02:00"}"#,
    r#"{"v":1,"attempts":"x"}"#,
    r#"{"v":1,"attempts":-1}"#,
    r#"{"v":1,"attempts":4294967295,"postponed":4294967295}"#,
    r#"{"v":1,"attempts":1e999}"#,
    r#"{"v":1,"of_others":1e999}"#,
    r#"{"v":1,"owner":5,"fence":{}}"#,
    r#"{"v":1,"ahead":"yes"}"#,
    r#"{"v":1,"ahead":true,"fence":"9"}"#,
    r#"{"v":1,"failures":[{"reason":"r"}]}"#,
    r#"{"v":1,"failures":{"0":null}}"#,
];

/// Repeatable chance.
struct Chance(u64);

impl Chance {
    fn new() -> Self {
        Self(random(u64::MAX))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn mutate(&mut self, record: &[u8]) -> Vec<u8> {
        let mut record = record.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(record.len().max(1));
            match self.below(5) {
                0 => record.truncate(at),
                1 => record.extend([self.below(256) as u8, 0xc0]),
                2 => record.insert(at.min(record.len()), self.below(256) as u8),
                _ if record.is_empty() => {}
                _ => record[at] = self.below(256) as u8,
            }
        }
        record
    }

    fn side(&mut self) -> Vec<u8> {
        let side = SIDES[self.below(SIDES.len())].as_bytes();
        match self.below(3) {
            0 => self.mutate(side),
            _ => side.to_vec(),
        }
    }
}

/// Runs a command that must end, with any result.
fn ends(env: &Env, words: &[&str]) -> Outcome {
    let mut run = env.jobboard(words).spawn();
    if !comes_true(SOON * 4, || run.has_ended()) {
        let stderr = run.stderr();
        let end = stderr.len().saturating_sub(2000);
        panic!("{words:?} hangs, and printed: {}", &stderr[end..]);
    }
    let ended = run.ended();
    assert!(
        !ended.stderr.contains("panicked") && ended.code != 101,
        "{words:?}: {}",
        ended.stderr
    );
    ended
}

/// Runs all commands that end by themselves; the last one drains the board.
fn meet(env: &Env, job: &str) {
    for words in [
        &["list"][..],
        &["list", "--json"],
        &["list", "--trash", "--json"],
        &["list", "--filter", "details.a=1", "--count"],
        &["show", job, "--json"],
        &["owner", job],
        &["ping"],
        &["conductors", "--json"],
        &["explain"],
        &["explain", job, "--json"],
        &["wait", "--empty", "--timeout", "1s"],
        &["wait", "--any", "--timeout", "1s"],
        &["watch", "--timeout", "1s"],
        &["claim", "--next"],
        &["claim", "--next", "--", "true"],
        &words("conduct --allow-any --max-jobs 2 --idle-exit 2s"),
    ] {
        ends(env, words);
    }
    // Unrunnable jobs need no retry.
    let drain = words("conduct --allow-any --drain -j2 --max-attempts 1");
    let drained = ends(env, &drain);
    assert!([0, 7].contains(&drained.code), "{}", drained.stderr);
    assert!(
        !drained.stderr.contains("board_unreachable"),
        "{}",
        drained.stderr
    );
    ends(env, &["claim", "--next", "--wait", "1s"]);
}

/// Starts all commands that wait for events.
fn waiters(env: &Env) -> Vec<Running> {
    [
        &["conduct", "--allow-any"][..],
        &words("conduct --allow-any -j4 --filter state=UNCLAIMED"),
        &["claim", "--next", "--wait", "1h"],
        &["claim", "--next", "--wait", "1h", "--", "true"],
        &["wait", "--any"],
        &["wait", "--empty"],
        &["watch"],
    ]
    .into_iter()
    .map(|words| env.jobboard(words).spawn())
    .collect()
}

/// Requires that waiting commands send hardly any requests, after their start.
fn becomes_idle(waiters: Vec<Running>, asked: impl Fn() -> u64) {
    let pause = Duration::from_secs(1);
    let mut last = asked();
    wait_until("they have begun", || {
        thread::sleep(pause);
        let now = asked();
        let grown = now - std::mem::replace(&mut last, now);
        grown < BUSY as u64
    });
    let (before, start) = (asked(), Instant::now());
    thread::sleep(Duration::from_secs(size(20, 4) as u64));
    let rate = (asked() - before) as f64 / start.elapsed().as_secs_f64();
    eprintln!("faults: {rate:.1} requests a second of all who wait on a mutated board");
    assert!(
        rate < BUSY,
        "{rate} requests a second while nothing changes"
    );
    for waiter in waiters {
        let ended = waiter.kill();
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
}
