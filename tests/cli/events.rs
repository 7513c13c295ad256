//! What is told of a board on Redis that others use as well, whoever did it and whatever breaks.

use std::{
    collections::BTreeMap,
    fs, thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    env::{Env, Running, wait_until},
    servers::{Peer, Server},
};

/// About as long as a look is put off that follows another one.
const QUIET: Duration = Duration::from_millis(100);

fn is_full() -> bool {
    std::env::var_os("JOBBOARD_FAULTS").is_some_and(|asked| asked == "full")
}

/// A board, somebody who watches it, and Python TaskFlow.
struct Watched {
    env: Env,
    peer: Peer,
    server: Server,
    watching: Running,
    seen: usize,
}

impl Watched {
    fn new(tail: &str, namespace: &str) -> Option<Self> {
        let server = Server::start()?;
        let mut peer = Peer::start(&server, namespace)?;
        // Python takes its time to start.
        peer.told(&json!({"do": "list"}));
        let env = Env::new();
        server.serves(&env, tail);
        let watching = watch(&env, &[]);
        Some(Self {
            env,
            peer,
            server,
            watching,
            seen: 0,
        })
    }

    /// Returns the next events.
    fn next(&mut self, count: usize) -> Vec<Value> {
        let lines = self.watching.prints(self.seen + count);
        let events = lines[self.seen..].iter();
        let events: Vec<Value> = events
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        self.seen = lines.len();
        events
    }

    /// Requires that something yields exactly these events, and returns how long they took to come.
    fn yields(&mut self, expected: &[&str], act: impl FnOnce(&mut Self)) -> Duration {
        thread::sleep(if is_full() { QUIET * 10 } else { QUIET });
        act(self);
        let done = Instant::now();
        let events = self.next(expected.len());
        let kinds: Vec<_> = events
            .iter()
            .map(|event| event["event"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, expected, "{events:?}");
        done.elapsed()
    }
}

fn watch(env: &Env, more: &[&str]) -> Running {
    let watching = env.jobboard(&[&["watch", "--json"], more].concat()).spawn();
    watching.says("watching ");
    watching
}

fn does(watched: &mut Watched, verb: &str, uuid: &str) {
    watched
        .peer
        .told(&json!({"do": verb, "uuid": uuid, "who": "ada"}));
}

#[test]
fn every_verb_of_taskflow_yields_its_event_soon() {
    thread::scope(|scope| {
        for (tail, namespace) in [("", "taskflow"), ("?namespace=", "")] {
            scope.spawn(move || each_verb_of_taskflow(tail, namespace));
        }
    });
}

fn each_verb_of_taskflow(tail: &str, namespace: &str) {
    let Some(mut watched) = Watched::new(tail, namespace) else {
        return;
    };
    watched.env.post_many(if is_full() { 1000 } else { 100 });
    watched.next(if is_full() { 1000 } else { 100 });
    let mut took = Vec::new();
    for end in ["consume", "trash"] {
        let mut uuid = String::new();
        took.push(watched.yields(&["posted"], |it| {
            let post = json!({"do": "post", "name": "resize", "priority": "HIGH"});
            uuid = it.peer.told(&post).as_str().unwrap().to_owned();
        }));
        let verbs = [
            ("claim", "claimed"),
            ("abandon", "abandoned"),
            ("claim", "claimed"),
        ];
        for (verb, event) in verbs {
            took.push(watched.yields(&[event], |it| does(it, verb, &uuid)));
        }
        took.push(watched.yields(&["extended"], |it| {
            it.peer
                .told(&json!({"do": "extend", "uuid": uuid, "expiry": 60}));
        }));
        took.push(watched.yields(&["expired"], |it| {
            it.peer
                .told(&json!({"do": "extend", "uuid": uuid, "expiry": 0}));
        }));
        took.push(watched.yields(&["claimed"], |it| does(it, "claim", &uuid)));
        let ended = if end == "trash" {
            "trashed"
        } else {
            "consumed"
        };
        took.push(watched.yields(&[ended], |it| does(it, end, &uuid)));
    }
    took.sort();
    eprintln!(
        "faults: events of TaskFlow came after {:.1?}, the slowest after {:.1?}",
        took[took.len() / 2],
        took[took.len() - 1]
    );
    // One of them may have had to wait for a processor.
    let (limit, slow) = if is_full() { (50, 50) } else { (100, 1000) };
    assert!(
        took[took.len() / 2] < Duration::from_millis(limit),
        "{took:?}"
    );
    assert!(
        took[took.len() - 1] < Duration::from_millis(slow),
        "{took:?}"
    );
}

#[test]
fn who_did_it_and_to_what_is_told_also_of_peers() {
    let Some(mut watched) = Watched::new("", "taskflow") else {
        return;
    };
    let post = json!({"do": "post", "name": "resize"});
    let uuid = watched.peer.told(&post).as_str().unwrap().to_owned();
    watched.next(1);
    does(&mut watched, "claim", &uuid);
    let claimed = watched.next(1).remove(0);
    does(&mut watched, "trash", &uuid);
    let trashed = watched.next(1).remove(0);
    for event in [claimed, trashed] {
        assert_eq!(event["uuid"], uuid.as_str());
        assert_eq!(event["name"], "resize");
        assert_eq!(event["owner"], "ada");
        assert_eq!(event["sequence"], 1);
        assert_eq!(event["fence"], Value::Null);
    }
}

#[test]
fn every_verb_of_ours_yields_its_event_once() {
    thread::scope(|scope| {
        for tail in ["", "?namespace=", "?bare=true"] {
            scope.spawn(move || each_verb_of_ours(tail));
        }
    });
}

fn each_verb_of_ours(tail: &str) {
    let Some(server) = Server::start() else {
        return;
    };
    let env = Env::new();
    server.serves(&env, tail);
    let watching = watch(&env, &[]);
    let run = |arguments: &[&str]| {
        let run = env.jobboard(arguments).run();
        run.succeeded();
    };
    let uuid = env.post("resize");
    run(&["claim", &uuid, "--who", "ada", "--expiry", "1h"]);
    run(&["extend", &uuid, "--who", "ada", "--expiry", "2h"]);
    run(&["abandon", &uuid, "--who", "ada"]);
    run(&["claim", &uuid, "--who", "ada"]);
    run(&["abandon", &uuid, "--force", "--yes"]);
    run(&["trash", &uuid, "--force", "--yes"]);
    run(&["restore", &uuid, "--yes"]);
    run(&["claim", &uuid, "--who", "ada"]);
    run(&["trash", &uuid, "--who", "ada"]);
    run(&["purge", &uuid, "--yes"]);
    run(&["run", "here", "--", "true"]);
    let expected = [
        "posted",
        "claimed",
        "extended",
        "abandoned",
        "claimed",
        "abandoned",
        "trashed",
        "restored",
        "claimed",
        "trashed",
        "purged",
        "posted",
        "claimed",
        "consumed",
    ];
    let told: Vec<_> = watching.prints(expected.len());
    // What is looked at afterwards finds nothing that was not told.
    thread::sleep(QUIET);
    let lines = watching.stdout();
    let kinds: Vec<_> = lines
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["event"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(kinds, expected, "{told:?}");
}

#[test]
fn a_claim_that_lapses_is_told_at_its_deadline_however_busy_the_server_is_with_others() {
    let Some(mut watched) = Watched::new("", "taskflow") else {
        return;
    };
    // The server looks for what has lapsed among all of them.
    let script = "for n = 1, 5000 do redis.call('SET', 'other:' .. n, n, 'PX', 3600000 + n) end";
    watched.server.run(&["EVAL", script, "0"]);
    let post = json!({"do": "post", "name": "resize"});
    let uuid = watched.peer.told(&post).as_str().unwrap().to_owned();
    watched.next(1);
    let mut worst = Duration::ZERO;
    for _ in 0..if is_full() { 10 } else { 2 } {
        let asked = Instant::now();
        watched
            .peer
            .told(&json!({"do": "claim", "uuid": uuid, "who": "ada", "expiry": 0.4}));
        let kinds: Vec<_> = watched
            .next(2)
            .iter()
            .map(|event| event["event"].clone())
            .collect();
        let late = asked.elapsed().saturating_sub(Duration::from_millis(400));
        assert_eq!(kinds, ["claimed", "expired"]);
        worst = worst.max(late);
    }
    eprintln!("faults: an expiry was told {worst:.1?} after its deadline at the latest");
    let limit = if is_full() { 250 } else { 1000 };
    assert!(worst < Duration::from_millis(limit), "{worst:?}");
}

/// Breaks something.
type Fault = fn(&mut Server);

/// Makes the owner of each job on the board what it is after an event.
fn follow(board: &mut BTreeMap<String, Value>, event: &Value) {
    let Some(uuid) = event["uuid"].as_str() else {
        return;
    };
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

/// Returns the owner of each job on the board.
fn listed(env: &Env) -> BTreeMap<String, Value> {
    let jobs = env.jobboard(&["list", "--json"]).run().json();
    let jobs = jobs.as_array().unwrap().iter();
    jobs.map(|job| {
        (
            job["uuid"].as_str().unwrap().to_owned(),
            job["owner"].clone(),
        )
    })
    .collect()
}

/// Does this and that, by both.
fn something_happens(env: &Env, peer: &mut Peer, name: &str) {
    let ours = env.post(name);
    let post = json!({"do": "post", "name": name});
    let theirs = peer.told(&post).as_str().unwrap().to_owned();
    env.claim(&theirs, "ada");
    peer.told(&json!({"do": "claim", "uuid": ours, "who": "bob"}));
    peer.told(&json!({"do": "consume", "uuid": theirs, "who": "ada"}));
}

#[test]
fn after_whatever_broke_a_resync_is_followed_by_the_truth() {
    let faults: [(&str, Fault); 4] = [
        ("restart", |server| {
            server.kill();
            server.start_again();
        }),
        ("kill", |server| {
            server.run(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        }),
        ("flushall", |server| {
            server.run(&["FLUSHALL"]);
        }),
        ("flushdb", |server| {
            server.run(&["FLUSHDB"]);
        }),
    ];
    thread::scope(|scope| {
        for (fault, break_it) in faults {
            scope.spawn(move || truth_after(fault, break_it));
        }
    });
}

fn truth_after(fault: &str, break_it: Fault) {
    let Some(server) = Server::start() else {
        return;
    };
    let Some(mut peer) = Peer::start(&server, "taskflow") else {
        return;
    };
    let (env, mut server) = (Env::new(), server);
    server.serves(&env, "");
    env.post_many(20);
    let watching = watch(&env, &[]);
    something_happens(&env, &mut peer, "before");
    wait_until("all before it is told", || {
        watching.stdout().contains("\"consumed\"")
    });
    break_it(&mut server);
    wait_until("a resync is told", || {
        watching.stdout().contains("\"resync\"")
    });
    // From the moment in which the resync was told on, the stream and the board must agree.
    let mut board = listed(&env);
    let from = watching.stdout().lines().count();
    peer = Peer::start(&server, "taskflow").unwrap();
    for round in 0..3 {
        something_happens(&env, &mut peer, &format!("after-{round}"));
    }
    let end = listed(&env);
    let last = env.post("last");
    wait_until("the last post is told", || {
        watching.stdout().contains(&last)
    });
    wait_until("the stream says what the board says", || {
        board = listed_before(&board, &watching.stdout(), from);
        board.remove(&last);
        board == end || watching.stdout().matches("\"resync\"").count() > 1
    });
    assert_eq!(board, end, "{fault}: {}", watching.stdout());
    assert_eq!(
        watching.stdout().matches("\"resync\"").count(),
        1,
        "{fault}"
    );
}

/// Follows the lines of a stream from one on, which may say again what is known.
fn listed_before(
    board: &BTreeMap<String, Value>,
    stream: &str,
    from: usize,
) -> BTreeMap<String, Value> {
    let mut board = board.clone();
    let whole = &stream[..stream.rfind('\n').map_or(0, |end| end + 1)];
    for line in whole.lines().skip(from) {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["event"] != "resync" {
            follow(&mut board, &event);
        }
    }
    board
}

/// Returns how many events of a kind there are.
fn count(stream: &str, kind: &str) -> usize {
    stream.matches(&format!("\"event\":\"{kind}\"")).count()
}

/// Returns the memory that a process has now, in KiB.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Returns the processor time that a process has used.
fn processor_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

#[test]
fn a_burst_is_told_whole_or_owned_up_to() {
    let Some(mut watched) = Watched::new("", "taskflow") else {
        return;
    };
    let jobs = if is_full() { 1000 } else { 100 };
    let pid = watched.watching.pid();
    let before = memory(pid);
    watched
        .peer
        .told(&json!({"do": "burst", "count": jobs, "who": "ada"}));
    let stream = || watched.watching.stdout();
    wait_until("the end of all is told", || {
        let stream = stream();
        count(&stream, "consumed") >= jobs || count(&stream, "resync") > 0
    });
    let is_settled = || {
        let stream = stream();
        let told = ["posted", "claimed", "consumed"].map(|kind| count(&stream, kind));
        told == [jobs; 3] || count(&stream, "resync") > 0
    };
    wait_until("all is told, or that it is not", is_settled);
    let told = ["posted", "claimed", "consumed", "resync"].map(|kind| count(&stream(), kind));
    eprintln!(
        "faults: of a burst of {jobs} jobs by TaskFlow, posted, claimed, consumed and resync were told {told:?} times"
    );

    // Ours are told one by one, whatever happens meanwhile.
    let from = stream().lines().count();
    let uuids = watched.env.post_many(jobs);
    let lines: String = uuids.iter().map(|uuid| format!("{uuid}\n")).collect();
    for verb in ["trash", "purge"] {
        let all = [verb, "-", "--yes", "--force"];
        let all = if verb == "purge" { &all[..3] } else { &all[..] };
        let run = watched.env.jobboard(all).stdin(lines.clone()).run();
        run.succeeded();
    }
    let told = || {
        let stream = stream();
        let lines = stream.lines().skip(from).map(str::to_owned);
        // The last of TaskFlow's may still be coming.
        let ours: Vec<_> = lines
            .filter(|line| uuids.iter().any(|uuid| line.contains(uuid)))
            .collect();
        let ours = ours.join("\n");
        ["posted", "trashed", "purged", "claimed"].map(|kind| count(&ours, kind))
    };
    wait_until("all of ours is told", || told()[2] == jobs);
    assert_eq!(told(), [jobs, jobs, jobs, 0]);
    let grown = memory(pid).saturating_sub(before);
    eprintln!(
        "faults: watching {} events grew the memory by {grown} KiB",
        jobs * 6
    );
    assert!(grown < 20 * 1024, "{grown} KiB");
}

#[test]
fn a_post_of_taskflow_wakes_whoever_waits_for_a_job() {
    let Some(server) = Server::start() else {
        return;
    };
    let Some(mut peer) = Peer::start(&server, "taskflow") else {
        return;
    };
    peer.told(&json!({"do": "list"}));
    let env = Env::new();
    server.serves(&env, "");
    let mut took = Vec::new();
    for number in 0..if is_full() { 20 } else { 3 } {
        let name = format!("resize-{number}");
        let mut waiting = env
            .jobboard(&["wait", "--any", "--filter", &format!("name={name}")])
            .spawn();
        wait_until("it listens", || {
            server
                .run(&["PUBSUB", "NUMSUB", "taskflow:events"])
                .ends_with('1')
        });
        thread::sleep(QUIET);
        peer.told(&json!({"do": "post", "name": name}));
        let posted = Instant::now();
        wait_until("it is woken", || waiting.has_ended());
        took.push(posted.elapsed());
        assert!(waiting.ended().succeeded().contains(&name));
    }
    took.sort();
    eprintln!(
        "faults: a post of TaskFlow woke `wait --any` after {:.1?}, {:.1?} at the latest",
        took[took.len() / 2],
        took[took.len() - 1]
    );
    let limit = if is_full() { 20 } else { 200 };
    assert!(
        took[took.len() / 2] < Duration::from_millis(limit),
        "{took:?}"
    );
}

#[test]
fn whoever_waits_is_told_how_a_job_of_taskflow_ended() {
    let Some(server) = Server::start() else {
        return;
    };
    let Some(mut peer) = Peer::start(&server, "taskflow") else {
        return;
    };
    let env = Env::new();
    server.serves(&env, "");
    for (verb, code) in [("consume", 0), ("trash", 9)] {
        let uuid = peer.told(&json!({"do": "post", "name": "resize"}));
        let mut waiting = env.jobboard(&["wait", uuid.as_str().unwrap()]).spawn();
        waiting.opens("socket");
        peer.told(&json!({"do": "claim", "uuid": uuid, "who": "ada"}));
        assert!(!waiting.has_ended());
        peer.told(&json!({"do": verb, "uuid": uuid, "who": "ada"}));
        assert_eq!(waiting.ended().code, code);
    }
}

#[test]
fn whoever_waits_waits_on_while_the_server_is_away() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let env = Env::new();
    server.serves(&env, "");
    let waiting = env.jobboard(&["wait", "--any"]).spawn();
    wait_until("it listens", || {
        server
            .run(&["PUBSUB", "NUMSUB", "taskflow:events"])
            .ends_with('1')
    });
    server.kill();
    waiting.says("trying again");
    server.start_again();
    let uuid = env.post("resize");
    let run = waiting.ended();
    assert!(run.succeeded().starts_with(&uuid), "{run}");
    assert_eq!(run.stderr.matches("trying again").count(), 1, "{run}");
}

#[test]
fn an_idle_watch_does_nothing() {
    let Some(mut watched) = Watched::new("", "taskflow") else {
        return;
    };
    watched.env.post_many(100);
    watched.next(100);
    let embedded = Env::new();
    embedded.post("resize");
    let beside = watch(&embedded, &[]);
    thread::sleep(QUIET);
    for (what, pid) in [("Redis", watched.watching.pid()), ("a file", beside.pid())] {
        let (start, before) = (Instant::now(), processor_time(pid));
        thread::sleep(Duration::from_secs(if is_full() { 20 } else { 1 }));
        let used = processor_time(pid) - before;
        let share = used.as_secs_f64() / start.elapsed().as_secs_f64();
        eprintln!(
            "faults: an idle watch of {what} uses {:.2} % of a core",
            share * 100.0
        );
        let limit = if is_full() { 0.005 } else { 0.05 };
        assert!(share < limit, "{share}");
    }
    watched.watching.signal(Signal::INT);
}

#[test]
fn where_the_server_may_not_push_the_board_is_looked_at_again_and_again() {
    thread::scope(|scope| {
        for (right, lack) in [
            ("-client|tracking", "looked at again"),
            ("resetchannels", "not heard"),
        ] {
            scope.spawn(move || told_without(right, lack));
        }
    });
}

fn told_without(right: &str, lack: &str) {
    let Some(server) = Server::start() else {
        return;
    };
    let Some(mut peer) = Peer::start(&server, "taskflow") else {
        return;
    };
    let user = [
        "ACL", "SETUSER", "eve", "on", "nopass", "~*", "&*", "+@all", right,
    ];
    server.run(&user);
    let env = Env::new();
    server.serves(&env, "");
    let eve = format!("redis://eve@{}", server.host());
    let watching = watch(&env, &["--board", &eve]);
    watching.says(lack);
    let ours = env.post("ours");
    let theirs = peer.told(&json!({"do": "post", "name": "theirs"}));
    for uuid in [ours.as_str(), theirs.as_str().unwrap()] {
        peer.told(&json!({"do": "claim", "uuid": uuid, "who": "ada"}));
        let claimed = || {
            let lines = watching.stdout();
            let mut lines = lines.lines();
            lines.any(|line| line.contains("\"claimed\"") && line.contains(uuid))
        };
        wait_until("it is told as claimed", claimed);
        peer.told(&json!({"do": "consume", "uuid": uuid, "who": "ada"}));
    }
    wait_until("both are told as consumed", || {
        count(&watching.stdout(), "consumed") == 2
    });
    assert_eq!(count(&watching.stdout(), "posted"), 2);
    watching.signal(Signal::INT);
    let run = watching.ended();
    assert_eq!(run.stderr.matches(lack).count(), 1, "{run}");
}
