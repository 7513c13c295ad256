//! Jobs end while their clients or the server die at any step: each job is on the board or in the history, exactly
//! once.
//!
//! `JOBBOARD_FAULTS=full` makes them many.

use std::{collections::BTreeSet, thread, time::Duration};

use rustix::process::Signal;

use super::{random, size};
use crate::{
    conduct::{Stage, on_every_board},
    support::Running,
};

const WRITERS: usize = 8;

on_every_board!(
    faults_history_keeps_the_configured_number,
    faults_interrupted_end_is_on_the_board_or_in_the_history,
);

fn faults_history_keeps_the_configured_number(stage: &Stage) {
    let history = size(10_000, 160);
    let url = stage.url();
    stage.env.configure(&format!(
        "default = \"a\"\n[board.a]\nurl = {url}\nhistory = {history}\n"
    ));
    let posted = post(stage, history + 1);
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let name = format!("job-{writer}-*");
            let consume = ["consume", "--force", "--yes", "-q", "--name", &name];
            stage.env.jobboard(&consume).spawn()
        })
        .collect();
    for writer in writers {
        writer.ended().succeeded();
    }
    let past = uuids(stage, &["--history"]);
    assert_eq!(past.len(), history);
    let distinct: BTreeSet<_> = past.into_iter().collect();
    assert_eq!(
        (distinct.len(), distinct.is_subset(&posted)),
        (history, true)
    );
    assert!(uuids(stage, &[]).is_empty());
}

fn faults_interrupted_end_is_on_the_board_or_in_the_history(stage: &Stage) {
    let mut posted = BTreeSet::new();
    for round in 0..size(100, 6) {
        posted.extend(post(stage, 90));
        let ender = ender(stage, round);
        thread::sleep(Duration::from_micros(random(300_000)));
        ender.signal(Signal::KILL);
        ender.ended();
        is_in_one_place(stage, &posted);
    }
}

#[test]
fn faults_history_survives_a_killed_server_redis() {
    if let Some(stage) = Stage::redis_keeping_data() {
        survives_its_server(stage);
    }
}

#[test]
fn faults_history_survives_a_killed_server_zookeeper() {
    if let Some(stage) = Stage::own_zookeeper() {
        survives_its_server(stage);
    }
}

fn survives_its_server(mut stage: Stage) {
    let mut posted = BTreeSet::new();
    for round in 0..size(40, 2) {
        posted.extend(post(&stage, 90));
        let ender = ender(&stage, 2 * round);
        thread::sleep(Duration::from_micros(random(150_000)));
        stage.stop_server();
        ender.ended();
        stage.start_server();
        is_in_one_place(&stage, &posted);
    }
}

/// Starts a client that ends all jobs, manually or by running them.
fn ender(stage: &Stage, round: usize) -> Running {
    match round % 2 {
        0 => {
            let consume = ["consume", "--force", "--yes", "-q", "--name", "job-*"];
            stage.env.jobboard(&consume).spawn()
        }
        _ => stage.conduct(&["--drain", "-j4", "--lease", "2s"]).spawn(),
    }
}

fn post(stage: &Stage, count: usize) -> BTreeSet<String> {
    let line = |number: usize| {
        let name = format!("job-{}-{number}", number % WRITERS);
        let details = serde_json::json!({"command": ["true"]});
        format!(
            "{}\n",
            serde_json::json!({"name": name, "details": details})
        )
    };
    let jobs: String = (0..count).map(line).collect();
    let post = stage.env.jobboard(&["post", "--from", "-", "-o", "uuid"]);
    let posted = post.stdin(jobs).run();
    posted.succeeded().lines().map(str::to_owned).collect()
}

fn uuids(stage: &Stage, words: &[&str]) -> Vec<String> {
    let list = [&["list", "-o", "uuid"], words].concat();
    let listed = stage.env.run(list);
    listed.succeeded().lines().map(str::to_owned).collect()
}

fn is_in_one_place(stage: &Stage, posted: &BTreeSet<String>) {
    let (board, past) = (uuids(stage, &[]), uuids(stage, &["--history"]));
    let count = board.len() + past.len();
    let found: BTreeSet<_> = board.into_iter().chain(past).collect();
    assert_eq!((&found, found.len()), (posted, count));
}
