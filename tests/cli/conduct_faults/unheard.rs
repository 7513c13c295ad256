//! Claims and settlements that were made without the conductor's hearing of it.

use std::fs;

use rustix::process::Signal;

use crate::{
    conduct::Stage,
    env::{Running, wait_until},
    proxy::{Mood, Proxy},
};

/// What a board is asked by which claims alone can be told, and a job's being consumed while nothing
/// else happens; and where its server listens.
struct Way {
    claim: &'static str,
    consume: &'static str,
    port: u16,
}

/// A request of several steps, the first of which checks a version.
const CHECKS_FIRST: &str = "\0\0\0\u{e}\0\0\0\u{d}\0";

/// One of which the first removes a node.
const REMOVES_FIRST: &str = "\0\0\0\u{e}\0\0\0\u{2}\0";

/// The counter of claims, which who only conducts needs for nothing else.
const FENCE: &str = "taskflow:fence";

fn redis() -> Option<(Stage, Way)> {
    let stage = Stage::redis()?;
    let port = stage.redis_server().unwrap().port();
    let way = Way {
        claim: FENCE,
        consume: "EVALSHA",
        port,
    };
    Some((stage, way))
}

fn zookeeper() -> Option<(Stage, Way)> {
    let mut stage = Stage::zookeeper()?;
    let port = stage.zookeeper_server().unwrap().port();
    let way = Way {
        claim: CHECKS_FIRST,
        consume: REMOVES_FIRST,
        port,
    };
    Some((stage, way))
}

/// Starts a conductor that reaches its board through a proxy.
fn start(stage: &Stage, way: &Way) -> (Running, Proxy) {
    let proxy = Proxy::start(way.port);
    let (server, there) = (format!(":{}", way.port), format!(":{}", proxy.port));
    let board = stage.board().replace(&server, &there);
    let conductor = stage.start(&["--board", &board]);
    // The first claim may be refused, to be made once the server has all that it takes.
    stage.post("warm-up", "true");
    wait_until("one has been run", || stage.env.names().is_empty());
    (conductor, proxy)
}

fn is_given_back_and_run(opened: Option<(Stage, Way)>) {
    let Some((stage, way)) = opened else { return };
    let (conductor, proxy) = start(&stage, &way);
    proxy.cut_at(way.claim, Mood::PassOn);
    stage.post("a", "echo ran $JOBBOARD_ATTEMPT >> log");
    stage.logged(1);
    assert!(proxy.has_sprung());
    conductor.signal(Signal::TERM);
    conductor.ended().succeeded();
    // The claim that nobody heard of was no attempt.
    assert_eq!(stage.log(), ["ran 1"]);
    assert!(stage.env.names().is_empty());
}

fn is_given_back_at_the_end(opened: Option<(Stage, Way)>) {
    let Some((stage, way)) = opened else { return };
    let (conductor, proxy) = start(&stage, &way);
    proxy.cut_at(way.claim, Mood::HangUp);
    let job = stage.post("a", "echo ran >> log");
    stage.says(&conductor, "board_unreachable");
    wait_until("it is claimed", || stage.env.state(&job) == "CLAIMED");
    conductor.signal(Signal::TERM);
    stage.says(&conductor, "stopping");
    proxy.set(Mood::PassOn);
    conductor.ended().succeeded();
    let job = stage.env.show(&job);
    assert_eq!(
        (&job["state"], &job["attempts"]),
        (&"UNCLAIMED".into(), &0.into())
    );
    assert!(stage.log().is_empty());
}

fn is_settled_once(opened: Option<(Stage, Way)>) {
    let Some((stage, way)) = opened else { return };
    let (conductor, proxy) = start(&stage, &way);
    stage.post(
        "a",
        "echo started >> log; until [ -e go ]; do sleep 0.01; done",
    );
    stage.logged(1);
    proxy.cut_at(way.consume, Mood::PassOn);
    fs::write(stage.env.file("go"), "").unwrap();
    stage.says(&conductor, "board_reached");
    assert!(proxy.has_sprung());
    conductor.signal(Signal::TERM);
    let run = conductor.ended();
    run.succeeded();
    assert_eq!(stage.log(), ["started"]);
    assert!(stage.env.names().is_empty());
    // The job is gone, and by nobody else's doing.
    assert!(
        run.stderr
            .contains("summary ran=2 consumed=2 abandoned=0 trashed=0 lost=0"),
        "{run:?}"
    );
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
    is_given_back_and_run,
    is_given_back_at_the_end,
    is_settled_once,
);
