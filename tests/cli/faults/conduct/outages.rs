//! Server outages while jobs run.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{alone, runs};
use crate::{
    conduct::Stage,
    faults::size,
    support::{Running, SOON, comes_true, wait_until},
};

/// The longest delay of the work after an outage.
const RESUMPTION: Duration = Duration::from_secs(5);

/// The script of a job that runs until the test permits its end.
fn until_allowed() -> String {
    alone("while [ ! -e may-end ]; do sleep 0.05; done")
}

fn may_end(stage: &Stage) {
    fs::write(stage.env.file("may-end"), "").unwrap();
}

/// Posts a job, and returns the time from a moment to its end.
fn work_is_done(stage: &Stage, since: Instant) -> Duration {
    let other = stage.post("b", &alone("true"));
    let is_done = || runs(stage).get(&other).is_some_and(|runs| runs.ends == 1);
    assert!(comes_true(SOON * 2, is_done), "no work is done");
    since.elapsed()
}

/// Posts a job after an outage, and requires that it runs soon.
fn work_goes_on(stage: &Stage, back: Instant) -> Duration {
    let took = work_is_done(stage, back);
    // A slow machine needs that time even without an outage.
    let usual = work_is_done(stage, Instant::now());
    assert!(
        took < RESUMPTION + usual * 4,
        "{took:?}, and then {usual:?}"
    );
    took
}

fn ends_well(conductor: &mut Option<Running>) -> crate::support::Outcome {
    let mut conductor = conductor.take().unwrap();
    assert!(!conductor.has_ended());
    conductor.signal(Signal::TERM);
    let run = conductor.ended();
    run.succeeded();
    run
}

/// An outage of a server that keeps acknowledged data, while jobs run.
fn outage_of(stage: Option<Stage>, away: Duration, is_kept: bool) {
    need!(mut stage = stage);
    let job = stage.post("a", &until_allowed());
    // A kept claim must survive even a slow server start.
    let lease = if is_kept { "20s" } else { "4s" };
    let mut conductor = Some(stage.start(&["-j2", "--lease", lease]));
    stage.logged(1);
    stage.stop_server();
    thread::sleep(away);
    stage.start_server();
    let back = Instant::now();
    may_end(&stage);
    let took = work_goes_on(&stage, back);
    wait_until("all is done", || stage.env.names().is_empty());
    let run = ends_well(&mut conductor);
    let runs = runs(&stage);
    assert_eq!(runs[&job].ends, 1);
    assert_eq!(runs[&job].starts, if is_kept { 1 } else { 2 }, "{run:?}");
    // Logged once at each end of the outage; a short outage may go unnoticed.
    let count = |event| run.stderr.matches(event).count();
    let (gone, back) = (count("board_unreachable"), count("board_reached"));
    assert_eq!(gone, back, "{run:?}");
    assert!(gone == 1 || is_kept && gone == 0, "{run:?}");
    eprintln!("faults: the server was away for {away:.1?}, and work went on {took:.1?} later");
}

#[test]
fn redis_outage_within_a_lease_disturbs_no_job() {
    for _ in 0..size(5, 1) {
        outage_of(Stage::redis_keeping_data(), Duration::from_secs(1), true);
    }
}

#[test]
fn redis_outage_beyond_a_lease_reruns_jobs() {
    for seconds in [6, 9, 12, 15, 18].into_iter().take(size(5, 1)) {
        let away = Duration::from_secs(seconds);
        outage_of(Stage::redis_keeping_data(), away, false);
    }
}

#[test]
fn zookeeper_outage_within_a_session_disturbs_no_job() {
    for _ in 0..size(5, 1) {
        outage_of(Stage::own_zookeeper(), Duration::ZERO, true);
    }
}

#[test]
fn zookeeper_outage_beyond_a_session_reruns_jobs() {
    for seconds in [6, 9, 12, 15, 18].into_iter().take(size(5, 1)) {
        let away = Duration::from_secs(seconds);
        outage_of(Stage::own_zookeeper(), away, false);
    }
}

#[test]
fn session_that_outlives_its_claims_does_not_keep_their_jobs() {
    need!(mut stage = Stage::own_zookeeper());
    let job = stage.post("a", &until_allowed());
    let mut conductor = Some(stage.start(&["--lease", "4s"]));
    stage.logged(1);
    stage.stop_server();
    // The old session may exist or not: the server restarts its count.
    stage.says(conductor.as_ref().unwrap(), "claim_lost");
    stage.start_server();
    may_end(&stage);
    wait_until("it is run again", || {
        runs(&stage).get(&job).is_some_and(|runs| runs.ends == 1)
    });
    ends_well(&mut conductor);
    assert_eq!(runs(&stage)[&job].starts, 2);
}

#[test]
fn session_survives_a_long_outage_of_the_only_server() {
    need!(mut stage = Stage::own_zookeeper());
    let job = stage.post("a", &until_allowed());
    let mut conductor = Some(stage.start(&["-j2", "--lease", "1m"]));
    stage.logged(1);
    stage.stop_server();
    thread::sleep(Duration::from_secs(size(20, 7) as u64));
    stage.start_server();
    let took = work_goes_on(&stage, Instant::now());
    may_end(&stage);
    wait_until("all is done", || stage.env.names().is_empty());
    ends_well(&mut conductor);
    assert_eq!((runs(&stage)[&job].starts, runs(&stage)[&job].ends), (1, 1));
    eprintln!("faults: the same session went on {took:.1?} after the server was back");
}

#[test]
fn locked_file_is_used_again_soon_after_unlocking() {
    need!(stage = Stage::embedded());
    let job = stage.post("a", &until_allowed());
    let mut conductor = Some(stage.start(&["-j2"]));
    stage.logged(1);
    let locked = stage.env.database();
    locked.execute_batch("BEGIN IMMEDIATE").unwrap();
    may_end(&stage);
    thread::sleep(Duration::from_secs(size(20, 7) as u64));
    locked.execute_batch("ROLLBACK").unwrap();
    let took = work_goes_on(&stage, Instant::now());
    wait_until("all is done", || stage.env.names().is_empty());
    ends_well(&mut conductor);
    assert_eq!((runs(&stage)[&job].starts, runs(&stage)[&job].ends), (1, 1));
    eprintln!("faults: work went on {took:.1?} after the file was free again");
}
