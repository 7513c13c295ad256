//! Waiting for changes by other clients.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{EventSource, QUIET, is_full};
use crate::{
    faults::size,
    interop::shared::Shared,
    support::{Env, Running, Server, ZooKeeper, wait_until},
};

/// Starts a wait, and returns once it misses no event.
fn waiting<H: EventSource>(server: &H, env: &Env, arguments: &[&str]) -> Running {
    wait_until("the listener is gone", || !server.is_listened_to());
    let waiting = env.jobboard(&[&["wait"], arguments].concat()).spawn();
    wait_until("it listens", || server.is_listened_to());
    waiting
}

fn report(what: &str, mut took: Vec<Duration>) {
    took.sort();
    let (median, slowest) = (took[took.len() / 2], took[took.len() - 1]);
    eprintln!(
        "faults: a post {what} woke `wait --any` after {median:.1?}, {slowest:.1?} at the latest"
    );
    // How long it takes on a busy machine proves nothing.
    assert!(!is_full() || median < Duration::from_millis(20), "{took:?}");
}

#[test]
fn post_of_taskflow_wakes_a_waiter() {
    thread::scope(|scope| {
        scope.spawn(wakes::<Server>);
        scope.spawn(wakes::<ZooKeeper>);
    });
}

fn wakes<H: EventSource>() {
    need!(mut shared = Shared::<H>::new());
    let mut took = Vec::new();
    for number in 0..size(20, 3) {
        let name = format!("resize-{number}");
        let filter = format!("name={name}");
        let wait = ["--any", "--filter", &filter];
        let mut waiting = waiting(&shared.server, &shared.env, &wait);
        thread::sleep(QUIET);
        shared.peer.request(&json!({"do": "post", "name": name}));
        let posted = Instant::now();
        wait_until("it is woken", || waiting.has_ended());
        took.push(posted.elapsed());
        assert!(waiting.ended().succeeded().contains(&name));
    }
    report(&format!("of TaskFlow on {}", H::KIND), took);
}

#[test]
fn post_on_a_file_wakes_a_waiter() {
    let env = Env::new();
    env.post("other");
    let mut took = Vec::new();
    for number in 0..size(20, 3) {
        let name = format!("resize-{number}");
        let wait = ["wait", "--any", "--filter", &format!("name={name}")];
        let mut waiting = env.jobboard(&wait).spawn();
        waiting.listens();
        thread::sleep(QUIET);
        env.post(&name);
        let posted = Instant::now();
        wait_until("it is woken", || waiting.has_ended());
        took.push(posted.elapsed());
        assert!(waiting.ended().succeeded().contains(&name));
    }
    report("on a file", took);
}

#[test]
fn waiter_learns_how_a_job_of_taskflow_ended() {
    thread::scope(|scope| {
        scope.spawn(expect_exit_codes_of_ends::<Server>);
        scope.spawn(expect_exit_codes_of_ends::<ZooKeeper>);
    });
}

fn expect_exit_codes_of_ends<H: EventSource>() {
    need!(Shared {
        env,
        mut peer,
        server,
    } = Shared::<H>::new());
    let mut does = |verb: &str, uuid: &str| {
        peer.request(&json!({"do": verb, "uuid": uuid, "who": "ada"}));
    };
    for (verb, code) in [("consume", 0), ("trash", 9)] {
        let uuid = env.post("resize");
        let mut waits = waiting(&server, &env, &["--verbose", &uuid]);
        waits.says("waiting for resize");
        does("claim", &uuid);
        assert!(!waits.has_ended());
        does(verb, &uuid);
        assert_eq!(waits.ended().code, code, "{}", H::KIND);
        // `post --wait` waits the same way.
        let mut posts = env.jobboard(&["post", "resize", "--wait"]).spawn();
        wait_until("it listens", || server.is_listened_to());
        let uuid = posts.prints(1)[0].split('\t').next().unwrap().to_owned();
        does("claim", &uuid);
        assert!(!posts.has_ended());
        does(verb, &uuid);
        assert_eq!(posts.ended().code, code, "{}", H::KIND);
    }
    env.post_many(2);
    let mut waits = waiting(&server, &env, &["--empty"]);
    for uuid in super::listed(&env).keys() {
        assert!(!waits.has_ended());
        does("claim", uuid);
        does("consume", uuid);
    }
    waits.ended().succeeded();
}

#[test]
fn waiter_survives_an_outage() {
    thread::scope(|scope| {
        scope.spawn(waits_on::<Server>);
        scope.spawn(waits_on::<ZooKeeper>);
    });
}

fn waits_on<H: EventSource>() {
    need!(mut server = H::alone());
    let env = Env::new();
    // With a session that ends within the outage.
    let tail = if H::HAS_EXPIRY { "" } else { "?session=1s" };
    let url = format!("{}{tail}", server.board());
    env.uses(&url);
    let waiting = waiting(&server, &env, &["--any"]);
    // The first read fails if the server is down already.
    thread::sleep(QUIET * 5);
    server.stop();
    waiting.says("retrying");
    server.start_again();
    let uuid = env.post("resize");
    let run = waiting.ended();
    assert!(run.succeeded().starts_with(&uuid), "{run}");
    assert_eq!(run.stderr.matches("retrying").count(), 1, "{run}");
}
