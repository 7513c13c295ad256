//! Conductors on ZooKeeper: their claims and registry entry depend on a session.

use std::fs;

use chrono::{DateTime, Utc};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::Stage;
use crate::support::{Peer, Running, wait_until};

fn conductors(stage: &Stage) -> Vec<String> {
    stage.env.run("conductors --json").each("name")
}

fn ends_well(conductor: Running) -> String {
    conductor.signal(Signal::TERM);
    let run = conductor.ended();
    run.succeeded();
    run.stderr
}

#[test]
fn granted_session_timeout_is_used_and_reported_once() {
    need!(stage = Stage::zookeeper());
    // The test servers grant at most a minute.
    let conductor = stage.start(&["--lease", "2m"]);
    for count in 1..=3 {
        stage.post("a", "echo ran >> log");
        stage.logged(count);
    }
    let log = ends_well(conductor);
    let granted = "lease_granted wanted=2m granted=1m";
    assert_eq!(log.matches(granted).count(), 1, "{log}");
    assert_eq!(log.matches("lease_granted").count(), 1, "{log}");
    let run = stage.conduct(&["--lease", "2s", "--drain"]).run();
    run.succeeded();
    assert!(!run.stderr.contains("lease_granted"), "{run:?}");
}

#[test]
fn conductor_with_an_expired_session_registers_again() {
    need!(stage = Stage::zookeeper());
    let conductor = stage.start(&["--name", "w1", "--lease", "1s"]);
    assert_eq!(conductors(&stage), ["w1"]);
    conductor.signal(Signal::STOP);
    wait_until("its session ends", || conductors(&stage).is_empty());
    conductor.signal(Signal::CONT);
    wait_until("it is registered", || conductors(&stage) == ["w1"]);
    // The entry belongs to the session of the claims, not to a temporary one.
    stage.post("a", "echo ran >> log");
    stage.logged(1);
    assert_eq!(conductors(&stage), ["w1"]);
    ends_well(conductor);
    assert_eq!(conductors(&stage), [""; 0]);
}

#[test]
fn name_of_a_dead_conductor_is_free_after_its_session() {
    need!(stage = Stage::zookeeper());
    let words = ["--name", "w1", "--lease", "1s"];
    stage.start(&words).kill();
    let next = stage.conduct(&words).spawn();
    stage.says(&next, "name_taken");
    stage.says(&next, "conducting");
    assert_eq!(conductors(&stage), ["w1"]);
    ends_well(next);
}

#[test]
fn taskflow_conductors_and_ours_coexist() {
    need!(mut stage = Stage::zookeeper());
    let server = stage.zookeeper_server().unwrap();
    need!(mut peer = Peer::on(server));
    peer.request(&json!({"do": "register", "name": "py", "host": "h1", "pid": 7}));
    let flow = json!({"do": "post", "name": "flow", "details": {"flow_uuid": "x"}});
    peer.request(&flow);
    let conductor = stage.start(&["--name", "rs"]);
    assert_eq!(conductors(&stage), ["py", "rs"]);
    stage.says(&conductor, "skipped jobs=1");
    let nodes = stage.zookeeper_server().unwrap().nodes(&mut peer);
    let entries: Vec<Value> = nodes
        .as_object()
        .unwrap()
        .iter()
        .filter(|(path, node)| path.contains(".entities/") && node["is_ephemeral"] == true)
        .filter_map(|(_, node)| serde_json::from_str(node["data"].as_str()?).ok())
        .collect();
    let keys = |entry: &Value| {
        entry
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(entries.len(), 2, "{nodes}");
    assert_eq!(keys(&entries[0]), keys(&entries[1]));
    ends_well(conductor);
    assert_eq!(conductors(&stage), ["py"]);
    assert_eq!(stage.env.names(), ["flow"]);
}

#[test]
fn session_lost_during_an_outage_is_replaced_once() {
    need!(mut stage = Stage::own_zookeeper());
    let conductor = stage.start(&["--name", "w1", "--lease", "1s"]);
    stage.stop_server();
    stage.says(&conductor, "board_unreachable");
    stage.start_server();
    // The old session may survive the restart, and its name is taken until then.
    wait_until("it is registered", || conductors(&stage) == ["w1"]);
    stage.post("a", "echo ran >> log");
    stage.logged(1);
    ends_well(conductor);
}

#[test]
fn forcibly_released_job_is_not_retaken_within_the_session_timeout() {
    need!(stage = Stage::zookeeper());
    for (lease, least, most) in [("2s", 0, 2), ("1m", 50, 60)] {
        let conductor = stage.start(&["--lease", lease]);
        let job = stage.post("a", "echo ran >> log; sleep 600");
        stage.logged(1);
        let freed = Utc::now();
        let force = ["abandon", &job, "--force", "--yes"];
        stage.env.ok(force);
        let shown = stage.env.show(&job);
        let until: DateTime<Utc> = shown["not_before"].as_str().unwrap().parse().unwrap();
        let alone = (until - freed).num_milliseconds();
        // Plus the duration of the call itself.
        assert!(
            (least * 1000..most * 1000 + 1500).contains(&alone),
            "{lease}: {shown}"
        );
        conductor.kill();
        stage.env.ok(format!("consume {job} --force --yes"));
        fs::remove_file(stage.env.file("log")).unwrap();
    }
}
