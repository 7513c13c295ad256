//! Claims and settlements that succeed without a reply.

use std::fs;

use rustix::process::Signal;

use super::{alone, runs};
use crate::{
    conduct::Stage,
    faults::size,
    support::{Proxy, ProxyMode, Running, Tag, members, process::no_echo, wait_until, words},
};

/// The requests that identify claims and settlements of a board.
pub(super) struct Way {
    pub(super) claim: &'static str,
    pub(super) settle: &'static str,
    /// Settlements only, and no heartbeat of a conductor.
    consume: &'static str,
}

/// A ZooKeeper transaction that first checks a version: only claims do so.
pub(super) const CHECKS_FIRST: &str = "\0\0\0\u{e}\0\0\0\u{d}\0";

/// A transaction that first deletes a node: it consumes a job.
pub(super) const REMOVES_FIRST: &str = "\0\0\0\u{e}\0\0\0\u{2}\0";

/// The counter of claims on Redis, which a conductor needs for nothing else.
pub(super) const FENCE: &str = "taskflow:fence";

pub(super) fn redis() -> Option<(Stage, Way)> {
    let way = Way {
        claim: FENCE,
        settle: "EVALSHA",
        consume: CONSUMES,
    };
    Some((Stage::redis()?, way))
}

pub(super) fn zookeeper() -> Option<(Stage, Way)> {
    let way = Way {
        claim: CHECKS_FIRST,
        settle: REMOVES_FIRST,
        consume: REMOVES_FIRST,
    };
    Some((Stage::zookeeper()?, way))
}

/// Starts a conductor behind a proxy.
pub(super) fn start_remote(stage: &Stage, words: &[&str]) -> (Running, Proxy) {
    let (board, proxy) = stage.through_proxy();
    let conductor = stage.start(&[&["--board", &board], words].concat());
    (conductor, proxy)
}

/// Starts a conductor behind a proxy, and lets it run a job.
fn start(stage: &Stage, words: &[&str]) -> (Running, Proxy) {
    let (conductor, proxy) = start_remote(stage, words);
    // The first claim may be refused until the server caches all scripts.
    stage.post("warm-up", "true");
    wait_until("one has been run", || stage.env.names().is_empty());
    (conductor, proxy)
}

fn is_released_and_run(opened: Option<(Stage, Way)>) {
    need!((stage, way) = opened);
    let (conductor, proxy) = start(&stage, &[]);
    proxy.cut_at(way.claim, ProxyMode::PassOn);
    stage.post("a", "echo ran $JOBBOARD_ATTEMPT >> log");
    stage.logged(1);
    assert!(proxy.has_sprung());
    conductor.stops();
    // The unconfirmed claim was no attempt.
    assert_eq!(stage.log(), ["ran 1"]);
    assert!(stage.env.names().is_empty());
}

fn is_released_at_the_end(opened: Option<(Stage, Way)>) {
    need!((stage, way) = opened);
    let (conductor, proxy) = start(&stage, &[]);
    proxy.cut_at(way.claim, ProxyMode::HangUp);
    let job = stage.post("a", "echo ran >> log");
    stage.says(&conductor, "board_unreachable");
    wait_until("it is claimed", || stage.env.state(&job) == "CLAIMED");
    conductor.signal(Signal::TERM);
    stage.says(&conductor, "stopping");
    proxy.set(ProxyMode::PassOn);
    conductor.ended().succeeded();
    let job = stage.env.show(&job);
    assert_eq!(members(&job, "state attempts"), "UNCLAIMED 0");
    assert!(stage.log().is_empty());
}

fn is_settled_once(opened: Option<(Stage, Way)>) {
    need!((stage, way) = opened);
    let (conductor, proxy) = start(&stage, &[]);
    stage.post(
        "a",
        "echo started >> log; until [ -e go ]; do sleep 0.01; done",
    );
    stage.logged(1);
    proxy.cut_at(way.consume, ProxyMode::PassOn);
    fs::write(stage.env.file("go"), "").unwrap();
    stage.says(&conductor, "board_reached");
    assert!(proxy.has_sprung());
    conductor.signal(Signal::TERM);
    let run = conductor.ended();
    run.succeeded();
    assert_eq!(stage.log(), ["started"]);
    assert!(stage.env.names().is_empty());
    // This conductor consumed the job.
    run.warns("summary ran=2 consumed=2 abandoned=0 trashed=0 lost=0");
}

/// The word that consumes jobs on Redis.
const CONSUMES: &str = "\r\nconsume\r\n";

/// Posts a job whose first attempt waits for the file `go`.
fn post_waiting(stage: &Stage) -> String {
    let script = "[ $JOBBOARD_ATTEMPT = 1 ] || exit 0; echo started >> log; \
                  until [ -e go ]; do sleep 0.01; done";
    stage.post("a", script)
}

/// An operator forces a running job, and the job ends; the refusal gets lost.
fn is_taken_away(stage: &Stage, job: &str, proxy: &Proxy) {
    stage.logged(1);
    stage.env.ok(format!("abandon {job} --force --yes"));
    proxy.cut_at(CONSUMES, ProxyMode::PassOn);
    fs::write(stage.env.file("go"), "").unwrap();
}

#[test]
fn forced_job_is_not_reported_as_consumed_after_a_lost_refusal() {
    need!((stage, _) = redis());
    let (conductor, proxy) = start(&stage, &["--lease", "60s"]);
    let job = post_waiting(&stage);
    is_taken_away(&stage, &job, &proxy);
    stage.says(&conductor, "claim_lost");
    assert!(proxy.has_sprung());
    assert_eq!(stage.env.state(&job), "UNCLAIMED");
    conductor.signal(Signal::TERM);
    let run = conductor.ended();
    run.warns("summary ran=2 consumed=1 abandoned=0 trashed=0 lost=1");
}

#[test]
fn claim_reports_a_forced_job_after_a_lost_refusal() {
    need!((stage, _) = redis());
    let (board, proxy) = stage.through_proxy();
    let job = post_waiting(&stage);
    let script = "echo started >> log; until [ -e go ]; do sleep 0.01; done";
    let claim = ["claim", &job, "--board", &board, "--lease", "60s", "--"];
    let claim = [&claim[..], &["sh", "-c", script]].concat();
    let run = stage.env.jobboard(&claim).spawn();
    is_taken_away(&stage, &job, &proxy);
    let run = run.ended();
    assert!(proxy.has_sprung());
    assert_eq!(run.code, 125, "{run}");
    assert_eq!(stage.env.state(&job), "UNCLAIMED");
}

/// Restores the replies, and requires that the job ends.
fn recovers_and_ends(stage: &Stage, conductor: Running, proxy: &Proxy) {
    stage.says(&conductor, "board_unreachable");
    assert!(proxy.has_sprung());
    proxy.set(ProxyMode::PassOn);
    wait_until("it is done", || stage.env.names().is_empty());
    conductor.stops();
}

/// A conductor gets no reply to this request, or to any later one.
fn ends_without_a_reply(opened: Option<(Stage, Way)>, word: fn(&Way) -> &'static str, code: u8) {
    need!((stage, way) = opened);
    for round in 1..=size(10, 1) {
        let words = words("--lease 3s --op-timeout 1s --retry-delay 10ms");
        let (conductor, proxy) = start(&stage, &words);
        proxy.set_at(word(&way), ProxyMode::Silent);
        let script = alone(&format!("[ $JOBBOARD_ATTEMPT -gt 1 ] || exit {code}"));
        let job = stage.post("a", &script);
        recovers_and_ends(&stage, conductor, &proxy);
        assert!(
            (1..=3).contains(&runs(&stage)[&job].starts),
            "in round {round}"
        );
    }
}

fn claim_during_silence(opened: Option<(Stage, Way)>) {
    ends_without_a_reply(opened, |way| way.claim, 0);
}

fn success_during_silence(opened: Option<(Stage, Way)>) {
    ends_without_a_reply(opened, |way| way.settle, 0);
}

fn failure_during_silence(opened: Option<(Stage, Way)>) {
    ends_without_a_reply(opened, |way| way.settle, 1);
}

fn late_claim(opened: Option<(Stage, Way)>) {
    need!((stage, way) = opened);
    for _ in 0..size(10, 1) {
        // Longer than the test, so that it does not expire.
        let (conductor, proxy) = start(&stage, &["--lease", "60s", "--op-timeout", "1s"]);
        proxy.set_at(way.claim, ProxyMode::Halt);
        let job = stage.post("a", &alone("true"));
        recovers_and_ends(&stage, conductor, &proxy);
        let runs = &runs(&stage)[&job];
        assert_eq!((runs.starts, runs.ends), (1, 1));
    }
}

fn second_signal_during_a_claim(opened: Option<(Stage, Way)>) {
    need!((stage, way) = opened);
    let (conductor, proxy) = start(&stage, &["-j2", "--lease", "60s"]);
    let tag = Tag::new();
    stage.post(
        "deaf",
        &format!("trap '' TERM; sleep {0}; sleep {0}", tag.text()),
    );
    wait_until("it runs", || tag.sleepers().len() == 1);
    proxy.set_at(way.claim, ProxyMode::Halt);
    stage.post("a", "true");
    wait_until("a claim is under way", || proxy.has_sprung());
    conductor.signal(Signal::INT);
    stage.says(&conductor, "stopping");
    no_echo();
    conductor.signal(Signal::INT);
    wait_until("the command is killed", || tag.commands().is_empty());
    proxy.set(ProxyMode::PassOn);
    conductor.ended().succeeded();
}

macro_rules! on_servers {
    ($($promise:ident),* $(,)?) => {
        mod redis {
            $(#[test] fn $promise() { super::$promise(super::redis()); })*
        }
        mod zookeeper {
            $(#[test] fn $promise() { super::$promise(super::zookeeper()); })*
        }
    };
}
on_servers!(
    is_released_and_run,
    is_released_at_the_end,
    is_settled_once,
    claim_during_silence,
    success_during_silence,
    failure_during_silence,
    late_claim,
    second_signal_during_a_claim,
);
