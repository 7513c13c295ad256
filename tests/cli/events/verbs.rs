//! Every verb by every client: one event, in order and soon.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{EventSource, QUIET, Watched, is_full, kinds, kinds_in, watch};
use crate::{
    interop::shared::Shared,
    support::{Env, Host, Peer, Server, ZooKeeper, stays},
};

#[test]
fn every_verb_of_taskflow_emits_its_event_on_redis() {
    thread::scope(|scope| {
        scope.spawn(|| Watched::<Server>::new().map(each_verb_of_taskflow));
        scope.spawn(|| nameless().map(each_verb_of_taskflow));
    });
}

/// Returns a board without a namespace.
fn nameless() -> Option<Watched<Server>> {
    let server = Server::start()?;
    let mut peer = Peer::start(&server, "")?;
    peer.request(&json!({"do": "list"}));
    let env = Env::new();
    server.serves(&env, "?namespace=");
    Some(Watched::on(Shared { env, peer, server }))
}

#[test]
fn every_verb_of_taskflow_emits_its_event_on_zookeeper() {
    thread::scope(|scope| {
        scope.spawn(|| Watched::<ZooKeeper>::new().map(each_verb_of_taskflow));
        // With this path, trashed jobs have other names.
        scope.spawn(|| {
            let shared = Shared::on(ZooKeeper::start()?.in_chroot("/job"))?;
            each_verb_of_taskflow(Watched::on(shared));
            Some(())
        });
    });
}

fn each_verb_of_taskflow<H: EventSource>(mut watched: Watched<H>) {
    let size = if is_full() { 1000 } else { 100 };
    watched.env.post_many(size);
    watched.next(size);
    let mut took = Vec::new();
    for (end, ended) in [("consume", "consumed"), ("trash", "trashed")] {
        let mut uuid = String::new();
        took.push(watched.yields(&["posted"], |it| uuid = it.post("resize")));
        let verbs = [
            ("claim", "claimed"),
            ("abandon", "abandoned"),
            ("claim", "claimed"),
        ];
        for (verb, event) in verbs {
            took.push(watched.yields(&[event], |it| it.does(verb, &uuid)));
        }
        if H::HAS_EXPIRY {
            for (expiry, event) in [(60, "extended"), (0, "expired")] {
                let extend = json!({"do": "extend", "uuid": uuid, "expiry": expiry});
                took.push(watched.yields(&[event], |it| _ = it.peer.request(&extend)));
            }
            took.push(watched.yields(&["claimed"], |it| it.does("claim", &uuid)));
        }
        took.push(watched.yields(&[ended], |it| it.does(end, &uuid)));
    }
    took.sort();
    let (median, slowest) = (took[took.len() / 2], took[took.len() - 1]);
    eprintln!(
        "faults: events of TaskFlow on {} came after {median:.1?}, the slowest after {slowest:.1?}",
        H::KIND
    );
    // Other tests may delay each event.
    if is_full() {
        assert!(slowest < Duration::from_millis(50), "{took:?}");
    }
}

#[test]
fn events_of_peers_name_the_actor_and_the_job() {
    expect_actor::<Server>();
    expect_actor::<ZooKeeper>();
}

fn expect_actor<H: EventSource>() {
    need!(mut watched = Watched::<H>::new());
    let uuid = watched.post("resize");
    let posted = watched.next(1).remove(0);
    watched.does("claim", &uuid);
    let claimed = watched.next(1).remove(0);
    watched.does("trash", &uuid);
    let trashed = watched.next(1).remove(0);
    assert!(posted["sequence"].is_i64());
    for event in [&claimed, &trashed] {
        assert_eq!(event["uuid"], uuid.as_str());
        assert_eq!(event["name"], "resize");
        assert_eq!(event["owner"], "ada");
        assert_eq!(event["sequence"], posted["sequence"]);
    }
    // A ZooKeeper node shows its creation time, even for peers; a claim on Redis must publish it.
    assert_eq!(claimed["fence"] == Value::Null, H::HAS_EXPIRY, "{claimed}");
    assert_eq!(claimed["fence"], trashed["fence"]);
}

#[test]
fn every_own_verb_emits_its_event_once_on_redis() {
    thread::scope(|scope| {
        for tail in ["", "?namespace=", "?bare=true"] {
            scope.spawn(move || {
                let server = Server::start()?;
                let url = server.url(tail);
                each_own_verb(&url, true);
                Some(())
            });
        }
    });
}

#[test]
fn every_own_verb_emits_its_event_once_on_zookeeper() {
    thread::scope(|scope| {
        for path in ["/jobs", "/job"] {
            scope.spawn(move || {
                let server = ZooKeeper::start()?.in_chroot(path);
                each_own_verb(&server.board(), false);
                Some(())
            });
        }
    });
}

#[test]
fn every_own_verb_emits_its_event_once_on_a_file() {
    let env = Env::new();
    let url = format!("sqlite:{}", env.file("jobs.db").display());
    each_own_verb(&url, true);
}

fn each_own_verb(url: &str, has_expiry: bool) {
    let env = Env::new();
    env.uses(url);
    let watching = watch(&env, &[]);
    let mut expected: Vec<&str> = Vec::new();
    let mut does = |events: &[&'static str], arguments: &[&str]| {
        env.ok(arguments);
        expected.extend(events);
    };
    let uuid = env.post("resize");
    does(&["posted"], &["list"]);
    does(&["claimed"], &["claim", &uuid, "--who", "ada"]);
    if has_expiry {
        let extend = ["extend", &uuid, "--who", "ada", "--expiry", "2h"];
        does(&["extended"], &extend);
    }
    does(&["abandoned"], &["abandon", &uuid, "--who", "ada"]);
    does(&["claimed"], &["claim", &uuid, "--who", "ada"]);
    does(&["abandoned"], &["abandon", &uuid, "--force", "--yes"]);
    does(&["trashed"], &["trash", &uuid, "--force", "--yes"]);
    does(&["restored"], &["restore", &uuid, "--yes"]);
    does(&["claimed"], &["claim", &uuid, "--who", "ada"]);
    does(&["trashed"], &["trash", &uuid, "--who", "ada"]);
    does(&["purged"], &["purge", &uuid, "--yes"]);
    let unique = ["post", "nightly", "--unique", "nightly"];
    does(&["posted"], &unique);
    let nightly = env.run(unique).posted();
    does(&["consumed"], &["consume", &nightly, "--force", "--yes"]);
    let whole = ["posted", "claimed", "consumed"];
    // It takes a moment, so that no watch can miss it.
    does(&whole, &["run", "here", "--", "sleep", "0.1"]);
    watching.prints(expected.len());
    // Later reads find nothing unannounced.
    stays("no more events arrive", QUIET, || {
        kinds_in(&watching.stdout()) == expected
    });
}

#[test]
fn end_of_a_session_emits_the_events_of_its_nodes() {
    need!(mut watched = Watched::<ZooKeeper>::new());
    let mut conf = watched.server.conf();
    conf["timeout"] = json!(1);
    let uuid = watched.post("resize");
    watched.next(1);
    for is_clean in [true, false] {
        let mut brief = Peer::with(&conf).unwrap();
        let claim = json!({"do": "claim", "uuid": uuid, "who": "ada"});
        brief.request(&claim);
        let register = json!({"do": "register", "name": "a@b", "host": "host", "pid": 7});
        brief.request(&register);
        let joined = watched.next(2);
        assert_eq!(kinds(&joined), ["claimed", "conductor-joined"]);
        assert_eq!(joined[1]["owner"], "a@b");
        if is_clean {
            brief.request(&json!({"do": "close"}));
        }
        let start = Instant::now();
        drop(brief);
        let mut left = watched.next(2);
        // The order of removal is undefined.
        left.sort_by_key(|event| event["event"].to_string());
        assert_eq!(kinds(&left), ["abandoned", "conductor-left"]);
        assert_eq!(left[0]["owner"], "ada");
        assert_eq!(left[1]["owner"], "a@b");
        eprintln!(
            "faults: the end of a session was reported {:.1?} after {}",
            start.elapsed(),
            if is_clean { "its close" } else { "its crash" }
        );
    }
}

#[test]
fn held_claim_is_reported_from_start_to_end() {
    need!(mut watched = Watched::<ZooKeeper>::new());
    let uuid = watched.post("resize");
    watched.next(1);
    for signal in [Signal::TERM, Signal::KILL] {
        let hold = ["claim", &uuid, "--hold", "--who", "ada", "--lease", "1s"];
        let holder = watched.env.jobboard(&hold).spawn();
        let claimed = watched.next(1).remove(0);
        assert_eq!(claimed["event"], "claimed");
        holder.signal(signal);
        let abandoned = watched.next(1).remove(0);
        assert_eq!(abandoned["event"], "abandoned", "{signal:?}");
        assert_eq!(abandoned["owner"], claimed["owner"]);
        assert_eq!(abandoned["fence"], claimed["fence"]);
        drop(holder);
    }
}
