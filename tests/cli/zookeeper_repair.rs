//! Repairs of a damaged board on ZooKeeper.

use rustix::process::Signal;
use zookeeper_client::{Acls, Client, CreateMode};

use crate::support::{
    env::{Env, wait_until},
    servers::zookeeper::Process,
};

fn open() -> Option<(Env, Process)> {
    let server = Process::start(&[])?;
    let env = Env::new();
    let url = format!("zk://127.0.0.1:{}/taskflow/jobs", server.port());
    env.configure(&format!("default = \"zk\"\n[board.zk]\nurl = \"{url}\"\n"));
    Some((env, server))
}

fn create(server: &Process, path: &str, data: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let hosts = format!("127.0.0.1:{}", server.port());
        let client = Client::connect(&hosts).await.unwrap();
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        client
            .create(path, data.as_bytes(), &options)
            .await
            .unwrap();
    });
}

#[test]
fn lock_without_an_owner_can_be_forced() {
    need!((env, server) = open());
    for lock in ["{}", "{", "", r#"{"owner": 5}"#] {
        let uuid = env.run("post odd -o uuid").posted();
        let shown = env.show(&uuid);
        let key = shown["key"].as_str().unwrap();
        create(&server, &format!("/taskflow/jobs/{key}.lock"), lock);
        let shown = env.show(&uuid);
        assert_eq!(shown["owner"], serde_json::Value::Null);
        assert!(shown["problem"].is_string(), "{shown}");
        let state = if lock == "{}" { "UNCLAIMED" } else { "CLAIMED" };
        assert_eq!(shown["state"], state);
        let refused = env.run(format!("claim {uuid} --json"));
        refused.failed(4);
        assert!(refused.stderr.contains("already-claimed"), "{refused}");
        env.fails(4, format!("abandon {uuid}"));
        env.ok(format!("abandon {uuid} --force --yes"));
        env.ok(format!("claim {uuid}"));
        env.ok(format!("consume {uuid}"));
    }
}

#[test]
fn interrupted_hold_ends_its_claim_immediately() {
    need!((env, _server) = open());
    let uuid = env.run("post held -o uuid").posted();
    for signal in [Signal::TERM, Signal::INT] {
        let holding = env.jobboard(&["claim", &uuid, "--hold"]).spawn();
        wait_until("it is claimed", || env.state(&uuid) == "CLAIMED");
        holding.signal(signal);
        holding.ended().succeeded();
        assert_eq!(env.state(&uuid), "UNCLAIMED");
    }
}

#[test]
fn board_is_no_broken_record_of_its_parent() {
    need!((env, server) = open());
    env.post("resize");
    env.ok("consume @0 --force --yes");
    let parent = format!("zk://127.0.0.1:{}/taskflow", server.port());
    let on_parent = |words: &[&str]| {
        let board = ["--board", parent.as_str()];
        env.jobboard(&[words, &board].concat()).run()
    };
    assert!(on_parent(&["list"]).succeeded().contains("MALFORMED"));
    for verb in ["trash", "consume"] {
        let forced = on_parent(&[verb, "--filter", "state=MALFORMED", "--force", "--yes"]);
        assert!(
            forced
                .failed(4)
                .contains("the parent node of another board"),
            "{forced}"
        );
    }
    // The same board as before, which was used once.
    assert_eq!(env.ok("list"), "");
    assert_eq!(env.run("list").stderr, "");
    env.post("again");
}

#[test]
fn unused_board_differs_from_its_neighbour_in_the_trash() {
    need!((env, server) = open());
    env.post("resize");
    env.ok("trash @0 --force --yes");
    let mistyped = format!("zk://127.0.0.1:{}/taskflow/job", server.port());
    let list = env.jobboard(&["list", "--board", &mistyped]).run();
    list.succeeded();
    assert!(list.stderr.contains("no job was ever posted"), "{list}");
}

#[test]
fn unreadable_owner_still_counts_as_claimed() {
    need!((env, server) = open());
    env.post("resize");
    create(&server, "/taskflow/jobs/job0000000000.lock", "{");
    let asked = env.run("consume @0 --force");
    assert!(
        asked.failed(8).contains("by an unreadable owner"),
        "{asked}"
    );
}
