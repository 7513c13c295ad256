//! Servers that go away and return during an operation.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{BufRead, BufReader, Read},
    process::Command,
};

use rustix::process::Signal;
use serde_json::Value;

use super::hold::hold;
use crate::{
    interop::shared::Shared,
    support::{
        env::{Outcome, Running, wait_until},
        servers::{Host, ZooKeeper},
    },
};

/// A listing in progress whose output is not read.
struct Listing {
    running: Running,
    output: BufReader<File>,
    first: String,
}

impl Listing {
    /// Starts to list a board larger than a pipe.
    fn begin(shared: &Shared<ZooKeeper>, board: &str) -> Self {
        let pipe = shared.env.file("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let list = ["--board", board, "list", "--sort", "none", "-o", "jsonl"];
        let script = "exec \"$@\" >pipe";
        let running = shared.env.jobboard(&list).in_shell(script).spawn();
        let mut output = BufReader::with_capacity(1, File::open(pipe).unwrap());
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        Self {
            running,
            output,
            first,
        }
    }

    /// Reads the remaining listing.
    fn end(mut self) -> (Vec<Value>, Outcome) {
        let mut text = self.first;
        self.output.read_to_string(&mut text).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        (lines.collect(), self.running.ended())
    }
}

/// Posts more than a pipe holds.
fn fill(shared: &Shared<ZooKeeper>) -> BTreeSet<String> {
    let lines: String = (0..2000)
        .map(|number| {
            format!("{{\"name\": \"job-{number}\", \"details\": {{\"x\": \"{number:0300}\"}}}}\n")
        })
        .collect();
    let post = ["post", "--from", "-"];
    let posted = shared.env.jobboard(&post).stdin(lines).run();
    let posted = posted.succeeded().lines().map(str::to_owned);
    posted.collect()
}

/// Requires that a listing was complete, or an error.
fn is_honest(listed: &[Value], outcome: &Outcome, posted: &BTreeSet<String>) {
    let uuids: BTreeSet<_> = listed
        .iter()
        .map(|job| job["uuid"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(uuids.len(), listed.len(), "some job is there twice");
    match outcome.code {
        0 => assert_eq!(uuids, *posted),
        _ => {
            assert_eq!(outcome.code, 5, "{outcome}");
            assert!(uuids.is_subset(posted));
            assert!(outcome.stderr.contains("127.0.0.1"), "{outcome}");
        }
    }
}

#[test]
fn listing_during_a_restart_is_complete_or_an_error() {
    need!(server = ZooKeeper::start_own());
    need!(mut shared = Shared::on(server));
    let posted = fill(&shared);
    let board = shared.server.board();
    let listing = Listing::begin(&shared, &board);
    shared.server.process().start_again();
    let (listed, outcome) = listing.end();
    is_honest(&listed, &outcome, &posted);
    let listed = shared.env.run("list --count");
    assert_eq!(listed.succeeded(), "2000\n");
}

#[test]
fn listing_with_an_expired_session_is_complete_or_an_error() {
    need!(server = ZooKeeper::start_own());
    need!(mut shared = Shared::on(server));
    let posted = fill(&shared);
    let sessions = |shared: &mut Shared<ZooKeeper>| -> u32 {
        let answer = shared.server.process().asked("mntr");
        let line = answer
            .lines()
            .find_map(|line| line.strip_prefix("zk_global_sessions"));
        line.unwrap().trim().parse().unwrap()
    };
    let before = sessions(&mut shared);
    let board = format!("{}?session=1s", shared.server.board());
    let listing = Listing::begin(&shared, &board);
    assert_eq!(sessions(&mut shared), before + 1);
    listing.running.signal(Signal::STOP);
    wait_until("the session has expired", || {
        sessions(&mut shared) == before
    });
    listing.running.signal(Signal::CONT);
    let (listed, outcome) = listing.end();
    is_honest(&listed, &outcome, &posted);
}

#[test]
fn claim_is_held_across_a_restart() {
    need!(server = ZooKeeper::start_own());
    need!(mut shared = Shared::on(server));
    let mut held = hold(&mut shared, "20s");
    shared.server.process().start_again();
    // The peer would reconnect slowly.
    let shown = shared.env.show(&held.job);
    assert_eq!(shown["owner"], held.owner);
    assert!(!held.holder.has_ended());
    held.holder.signal(Signal::TERM);
    held.holder.ended().succeeded();
    assert_eq!(shared.env.state(&held.job), "UNCLAIMED");
}

#[test]
fn holder_reports_a_permanently_lost_server() {
    need!(server = ZooKeeper::start_own());
    need!(mut shared = Shared::on(server));
    let held = hold(&mut shared, "2s");
    shared.server.process().stop();
    let ended = held.holder.ended();
    assert_eq!(ended.code, 4, "{ended}");
    assert!(ended.stderr.contains("the claim on the job"), "{ended}");
    let list = shared.env.run("list --json");
    list.failed(5);
    assert_eq!(list.error()["kind"], "unreachable");
    let post = shared.env.run("post resize --json");
    post.failed(5);
    shared.server.process().start_again();
    let count = shared.env.run("list --count");
    assert_eq!(count.succeeded(), "1\n");
}
