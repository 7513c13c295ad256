//! Events of shared boards, for every actor and every fault.

mod load;
mod redis;
mod resync;
mod verbs;
mod waiting;
mod zookeeper;

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    interop::shared::Shared,
    support::{Env, Host, Peer, Running, Server, ZooKeeper, is_full, json_lines},
};

/// Roughly the delay between two reads.
const QUIET: Duration = Duration::from_millis(100);

/// A board with events.
trait EventSource: Host {
    /// Whether claims may have an expiry that can change.
    const HAS_EXPIRY: bool;

    /// Starts a server that the test may stop.
    fn alone() -> Option<Self>;

    /// Whether a client listens to the board.
    fn is_listened_to(&self) -> bool;

    fn stop(&mut self);

    fn start_again(&mut self);
}

impl EventSource for Server {
    const HAS_EXPIRY: bool = true;

    fn alone() -> Option<Self> {
        Self::start()
    }

    fn is_listened_to(&self) -> bool {
        let answer = self.run(&["PUBSUB", "NUMSUB", "taskflow:events"]);
        answer.ends_with('1')
    }

    fn stop(&mut self) {
        self.kill();
    }

    fn start_again(&mut self) {
        self.start_again();
    }
}

impl EventSource for ZooKeeper {
    const HAS_EXPIRY: bool = false;

    fn alone() -> Option<Self> {
        Self::start_own()
    }

    fn is_listened_to(&self) -> bool {
        self.is_watched()
    }

    fn stop(&mut self) {
        self.process().stop();
    }

    fn start_again(&mut self) {
        self.process().start_again();
    }
}

/// A board, a watcher of it, and Python TaskFlow.
struct Watched<H> {
    env: Env,
    peer: Peer,
    server: H,
    watching: Running,
    seen: usize,
}

impl<H: EventSource> Watched<H> {
    fn new() -> Option<Self> {
        Some(Self::on(Shared::new()?))
    }

    fn on(shared: Shared<H>) -> Self {
        let watching = watch(&shared.env, &[]);
        Self {
            env: shared.env,
            peer: shared.peer,
            server: shared.server,
            watching,
            seen: 0,
        }
    }

    fn next(&mut self, count: usize) -> Vec<Value> {
        let lines = self.watching.prints(self.seen + count);
        let events = json_lines(&lines[self.seen..].join("\n"));
        self.seen = lines.len();
        events
    }

    /// Requires exactly these events, and returns their delay.
    fn yields(&mut self, expected: &[&str], act: impl FnOnce(&mut Self)) -> Duration {
        thread::sleep(if is_full() { QUIET * 10 } else { QUIET });
        act(self);
        let done = Instant::now();
        let events = self.next(expected.len());
        let took = done.elapsed();
        assert_eq!(kinds(&events), expected, "{events:?}");
        took
    }

    /// Makes TaskFlow perform a verb on a job.
    fn does(&mut self, verb: &str, uuid: &str) {
        let request = json!({"do": verb, "uuid": uuid, "who": "ada"});
        self.peer.request(&request);
    }

    fn post(&mut self, name: &str) -> String {
        let post = json!({"do": "post", "name": name, "priority": "HIGH"});
        self.peer.request(&post).as_str().unwrap().to_owned()
    }
}

fn watch(env: &Env, more: &[&str]) -> Running {
    let watching = env.jobboard(&[&["watch", "--json"], more].concat()).spawn();
    watching.says("watching ");
    watching
}

fn kinds(events: &[Value]) -> Vec<&str> {
    let kinds = events.iter().map(|event| event["event"].as_str().unwrap());
    kinds.collect()
}

fn kinds_in(stream: &str) -> Vec<String> {
    let events = json_lines(whole(stream));
    kinds(&events).into_iter().map(str::to_owned).collect()
}

/// Returns the complete lines of a stream.
fn whole(stream: &str) -> &str {
    &stream[..stream.rfind('\n').map_or(0, |end| end + 1)]
}

fn count(stream: &str, kind: &str) -> usize {
    stream.matches(&format!("\"event\":\"{kind}\"")).count()
}

/// Returns the owner of each job on the board.
fn listed(env: &Env) -> BTreeMap<String, Value> {
    let jobs = env.json("list --json");
    let jobs = jobs.as_array().unwrap().iter();
    jobs.map(|job| {
        (
            job["uuid"].as_str().unwrap().to_owned(),
            job["owner"].clone(),
        )
    })
    .collect()
}
