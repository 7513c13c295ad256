//! Events that are special to ZooKeeper.

use serde_json::{Value, json};

use super::{Watched, kinds};
use crate::{interop::shared::Shared, support::ZooKeeper};

/// Returns the node of the only job on the board.
fn node(watched: &mut Watched<ZooKeeper>) -> String {
    let jobs = watched.env.json("list --json");
    format!(
        "{}/{}",
        watched.server.path(),
        jobs[0]["key"].as_str().unwrap()
    )
}

#[test]
fn unclaimable_job_is_not_waited_for() {
    need!(mut watched = Watched::<ZooKeeper>::new());
    let uuid = watched.post("stuck");
    watched.next(1);
    let lock = format!("{}.lock", node(&mut watched));
    watched
        .peer
        .request(&json!({"do": "create", "path": lock, "data": "{}"}));
    let wait = ["wait", "--any", "--timeout", "300ms"];
    assert_eq!(watched.env.run(wait).code, 124);
    watched.env.fails(6, "claim --next");
    // A job that cannot be claimed does not block the next one.
    let next = watched.post("next");
    assert_eq!(watched.env.run("claim --next -o uuid").posted(), next);
    watched.next(2);
    let waiting = watched.env.jobboard(&["wait", "--any"]).spawn();
    watched.env.ok(format!("abandon {uuid} --force --yes"));
    assert!(waiting.ended().succeeded().starts_with(&uuid));
    let freed = watched.next(1);
    assert_eq!(kinds(&freed), ["abandoned"]);
    assert_eq!(freed[0]["owner"], Value::Null);
}

#[test]
fn unreadable_node_hides_no_other_event() {
    need!(mut watched = Watched::<ZooKeeper>::new());
    let hidden = format!("{}/job0000000099", watched.server.path());
    let secret = json!({"do": "create", "path": hidden, "hidden": true});
    watched.peer.request(&secret);
    let uuid = watched.post("plain");
    // Some servers report it, some do not.
    let mut event = watched.next(1).remove(0);
    if event["key"] == "job0000000099" {
        assert_eq!(event["uuid"], Value::Null);
        event = watched.next(1).remove(0);
    }
    assert_eq!(event["event"], "posted");
    assert_eq!(event["uuid"], uuid.as_str());
}

#[test]
fn boards_with_a_common_trash_are_distinguished() {
    need!(mut watched = Watched::<ZooKeeper>::new());
    let other = watched.server.beside();
    let beside = |words: &[&str]| {
        let words = [&["--board", &other], words].concat();
        let run = watched.env.run(words);
        run.succeeded().trim_end().to_owned()
    };
    let theirs = beside(&["post", "theirs"]);
    let ours = watched.env.post("ours");
    beside(&["trash", &theirs, "--force", "--yes"]);
    for words in [
        ["claim", &ours, "--who", "ada"],
        ["consume", &ours, "--who", "ada"],
    ] {
        watched.env.ok(words);
    }
    // That trash is shared with this board.
    beside(&["purge", &theirs, "--yes"]);
    let events = watched.next(4);
    assert_eq!(kinds(&events), ["posted", "claimed", "consumed", "purged"]);
    assert_eq!(events[3]["uuid"], theirs.as_str());
    assert!(
        events[..3]
            .iter()
            .all(|event| event["uuid"] == ours.as_str())
    );
}

#[test]
fn denied_or_missing_board_ends_a_watch() {
    need!(mut shared = Shared::<ZooKeeper>::new());
    let secret = shared.server.beside();
    let path = &secret[secret.rfind("/test").unwrap()..];
    let hidden = json!({"do": "create", "path": path, "hidden": true});
    shared.peer.request(&hidden);
    let nowhere = "zk://no.such.host.invalid/jobs";
    for board in [nowhere, "zk://eve@127.0.0.1:1/jobs", &secret] {
        shared.env.fails(5, ["watch", "--board", board]);
    }
}
