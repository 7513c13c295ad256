//! After any fault: a resync, and then correct events.

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{EventSource, count, listed, watch, whole};
use crate::{
    interop::shared::Shared,
    support::{Env, Host, Peer, Running, SOON, Server, ZooKeeper, comes_true, wait_until},
};

/// A watcher of a board with a fault.
struct Witness<H> {
    env: Env,
    server: H,
    watching: Running,
}

type Fault<H> = fn(&mut Witness<H>);

/// Applies an event to the owners of the jobs.
fn follow(board: &mut BTreeMap<String, Value>, event: &Value) {
    need!(uuid = event["uuid"].as_str());
    match event["event"].as_str().unwrap() {
        "posted" | "restored" | "abandoned" | "expired" => {
            board.insert(uuid.to_owned(), Value::Null);
        }
        "claimed" | "extended" => {
            board.insert(uuid.to_owned(), event["owner"].clone());
        }
        "consumed" | "trashed" => {
            board.remove(uuid);
        }
        other => panic!("{other}"),
    }
}

/// Applies the lines of a stream from one on; known facts may be repeated.
fn followed(board: &BTreeMap<String, Value>, stream: &str, from: usize) -> BTreeMap<String, Value> {
    let mut board = board.clone();
    for line in whole(stream).lines().skip(from) {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["event"] != "resync" {
            follow(&mut board, &event);
        }
    }
    board
}

/// Performs several changes, by both clients.
fn something_happens(env: &Env, peer: &mut Peer, name: &str) {
    let ours = env.post(name);
    let post = json!({"do": "post", "name": name});
    let theirs = peer.request(&post).as_str().unwrap().to_owned();
    env.claim(&theirs, "ada");
    peer.request(&json!({"do": "claim", "uuid": ours, "who": "bob"}));
    peer.request(&json!({"do": "consume", "uuid": theirs, "who": "ada"}));
}

#[test]
fn fault_is_followed_by_a_resync_and_the_current_state_on_redis() {
    let faults: [(&str, Fault<Server>); 4] = [
        ("restart", |it| {
            it.server.kill();
            it.server.start_again();
        }),
        ("kill", |it| {
            it.server.run(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        }),
        ("flushall", |it| {
            it.server.run(&["FLUSHALL"]);
        }),
        ("flushdb", |it| {
            it.server.run(&["FLUSHDB"]);
        }),
    ];
    thread::scope(|scope| {
        for (fault, break_it) in faults {
            scope.spawn(move || truth_after(fault, "", Server::start(), break_it));
        }
    });
}

#[test]
fn fault_is_followed_by_a_resync_and_the_current_state_on_zookeeper() {
    type Start = fn() -> Option<ZooKeeper>;
    let faults: [(&str, &str, Start, Fault<ZooKeeper>); 3] = [
        // An outage that a busy machine does not end early.
        ("outage", "?session=4s", ZooKeeper::start_own, |it| {
            it.server.process().stop();
            // The session ends within that time by any clock.
            thread::sleep(Duration::from_secs(6));
            it.server.process().start_again();
        }),
        ("stop", "?session=4s", Host::start, |it| {
            it.watching.signal(Signal::STOP);
            wait_until("the session has expired", || !it.server.is_watched());
            it.env.post("meanwhile");
            it.watching.signal(Signal::CONT);
        }),
        ("meddling", "", Host::start, |it| {
            let mut peer = Peer::on(&it.server).unwrap();
            let node = format!("{}/job0000000000", it.server.path());
            let posting = json!({"uuid": "00000000-0000-4000-8000-000000000000", "name": "new"});
            let write = json!({"do": "write", "path": node, "data": posting.to_string()});
            peer.request(&write);
        }),
    ];
    thread::scope(|scope| {
        for (fault, tail, start, break_it) in faults {
            scope.spawn(move || truth_after(fault, tail, start(), break_it));
        }
    });
}

fn truth_after<H: EventSource>(fault: &str, tail: &str, server: Option<H>, break_it: Fault<H>) {
    need!(Shared {
        env,
        mut peer,
        server,
    } = server.and_then(Shared::on));
    env.post_many(20);
    let board = format!("{}{tail}", server.board());
    let watching = watch(&env, &["--board", &board]);
    something_happens(&env, &mut peer, "before");
    // The peer would reconnect slowly.
    drop(peer);
    let mut witness = Witness {
        env,
        server,
        watching,
    };
    witness.expect_current_state_after(fault, break_it);
}

impl<H: EventSource> Witness<H> {
    fn expect_current_state_after(&mut self, fault: &str, break_it: Fault<H>) {
        wait_until("earlier events are reported", || {
            self.watching.stdout().contains("\"consumed\"")
        });
        let start = Instant::now();
        break_it(self);
        let stream = || self.watching.stdout();
        wait_until("a resync is reported", || stream().contains("\"resync\""));
        eprintln!(
            "faults: after {fault}, a resync came within {:.1?}",
            start.elapsed()
        );
        let mut peer = Peer::on(&self.server).unwrap();
        // A busy machine can separate the messages of one change, and the watcher then asks for one more listing.
        let follows = (0..3).any(|_| self.stream_follows_the_board(fault, &mut peer));
        assert!(
            follows,
            "{fault}: each change leads to a resync: {}",
            stream()
        );
    }

    /// From the last resync on, the stream and the board must agree. Returns whether no resync came meanwhile.
    fn stream_follows_the_board(&self, fault: &str, peer: &mut Peer) -> bool {
        let stream = || self.watching.stdout();
        let before = stream();
        // Events during the listing are in the stream; repetition is harmless.
        let known = listed(&self.env);
        for round in 0..3 {
            something_happens(&self.env, peer, &format!("after-{round}"));
        }
        let last = self.env.post("last");
        wait_until("the last post is reported", || stream().contains(&last));
        let is_again = || count(&stream(), "resync") > count(&before, "resync");
        // The claims of the dropped peer may expire until its session ends.
        let (mut followed_board, mut board) = (BTreeMap::new(), BTreeMap::new());
        let agree = comes_true(SOON, || {
            followed_board = followed(&known, &stream(), before.lines().count());
            board = listed(&self.env);
            followed_board == board || is_again()
        });
        assert!(
            agree,
            "{fault}: {followed_board:?} is not {board:?}: {}",
            stream()
        );
        !is_again()
    }
}
