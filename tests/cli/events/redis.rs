//! Events that are special to Redis.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::json;

use super::{Watched, count, is_full, kinds, watch};
use crate::support::{Env, Peer, Server, wait_until, words};

#[test]
fn expired_claim_is_reported_on_time_on_a_busy_server() {
    need!(mut watched = Watched::<Server>::new());
    // The server searches all of them for expired keys.
    let script = "for n = 1, 5000 do redis.call('SET', 'other:' .. n, n, 'PX', 3600000 + n) end";
    watched.server.run(&["EVAL", script, "0"]);
    let post = json!({"do": "post", "name": "resize"});
    let uuid = watched.peer.request(&post).as_str().unwrap().to_owned();
    watched.next(1);
    let mut worst = Duration::ZERO;
    for _ in 0..if is_full() { 10 } else { 2 } {
        let asked = Instant::now();
        watched
            .peer
            .request(&json!({"do": "claim", "uuid": uuid, "who": "ada", "expiry": 0.4}));
        let events = watched.next(2);
        let late = asked.elapsed().saturating_sub(Duration::from_millis(400));
        assert_eq!(kinds(&events), ["claimed", "expired"]);
        worst = worst.max(late);
    }
    eprintln!("faults: the latest expiry was reported {worst:.1?} after its deadline");
}

#[test]
fn board_is_polled_if_the_server_cannot_push() {
    thread::scope(|scope| {
        for (rights, lack) in [
            ("~* &* +@all -client|tracking", "is polled"),
            ("~* resetchannels +@all", "sends no events"),
            (READER, "sends no events"),
        ] {
            scope.spawn(move || expect_polling(rights, lack));
        }
    });
}

/// All rights to read while listening, without the channel and optional accelerations.
const READER: &str = "~taskflow:* resetchannels +hello +client|setname +info +hscan +hmget +hlen \
                      +mget +get +exists +type +pttl +client|tracking +multi +exec";

#[test]
fn documented_rights_without_the_channel_suffice_to_wait_and_conduct() {
    need!(server = Server::start());
    let backends = include_str!("../../../docs/backends.md");
    let mut quoted = backends.split('`');
    let rights = quoted.find(|it| it.starts_with("~taskflow:*")).unwrap();
    let rights = rights.split(' ').filter(|it| !it.starts_with('&'));
    let user = ["ACL", "SETUSER", "eve", "on", "nopass"];
    server.run(&user.into_iter().chain(rights).collect::<Vec<_>>());
    let env = Env::new();
    server.serves(&env, "");
    let eve = format!("redis://eve@{}", server.host());
    let first = env.post("first");
    let waiting = env.jobboard(&["wait", "--empty", "--board", &eve]).spawn();
    waiting.says("sends no events");
    let words = words("conduct --allow-any --filter name=cmd --max-jobs 2");
    let conducting = env
        .jobboard(&[&words[..], &["--board", &eve]].concat())
        .spawn();
    // The second one is posted while it listens.
    for done in 1..=2 {
        env.ok("post cmd -- true");
        wait_until("it is consumed", || {
            conducting.stderr().matches("job_consumed").count() == done
        });
    }
    conducting.ended().succeeded();
    env.ok(format!("consume {first} --force --yes"));
    waiting.ended().succeeded();
}

fn expect_polling(rights: &str, lack: &str) {
    need!(server = Server::start());
    need!(mut peer = Peer::start(&server, "taskflow"));
    server.run(
        &["ACL", "SETUSER", "eve", "on", "nopass"]
            .into_iter()
            .chain(rights.split(' '))
            .collect::<Vec<_>>(),
    );
    let env = Env::new();
    server.serves(&env, "");
    let eve = format!("redis://eve@{}", server.host());
    let watching = watch(&env, &["--board", &eve]);
    watching.says(lack);
    let ours = env.post("ours");
    let theirs = peer.request(&json!({"do": "post", "name": "theirs"}));
    for uuid in [ours.as_str(), theirs.as_str().unwrap()] {
        peer.request(&json!({"do": "claim", "uuid": uuid, "who": "ada"}));
        let claimed = || {
            let lines = watching.stdout();
            let mut lines = lines.lines();
            lines.any(|line| line.contains("\"claimed\"") && line.contains(uuid))
        };
        wait_until("the claim is reported", claimed);
        peer.request(&json!({"do": "consume", "uuid": uuid, "who": "ada"}));
    }
    wait_until("both ends are reported", || {
        count(&watching.stdout(), "consumed") == 2
    });
    assert_eq!(count(&watching.stdout(), "posted"), 2);
    watching.signal(Signal::INT);
    let run = watching.ended();
    assert_eq!(run.stderr.matches(lack).count(), 1, "{run}");
}
