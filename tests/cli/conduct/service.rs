//! A conductor under a service manager: its notifications and their times.

use std::{fs, time::Duration};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use serde_json::json;

use super::{Stage, WAITS, on_one_board};
use crate::support::{
    Invocation, Manager, ProxyMode, Tag,
    process::{guards, signal},
    stays, wait_until,
};

on_one_board!(
    status_is_sent_and_the_socket_is_not_inherited,
    ready_is_sent_only_after_the_registration,
);

fn ready_is_sent_only_after_the_registration(stage: &Stage) {
    let first = stage.start(&["--name", "w1"]);
    let manager = Manager::start(&stage.env);
    let second = manager.over(stage.conduct(&["--name", "w1"])).spawn();
    stage.says(&second, "name_taken");
    manager.shows("not registered yet");
    stays("not ready", Duration::from_secs(1), || {
        manager.count("READY=1") == 0
    });
    first.stops();
    manager.hears("READY=1");
    let listed = stage.env.json("conductors --json");
    assert_eq!(
        (&listed[0]["name"], &listed[0]["pid"]),
        (&json!("w1"), &json!(second.pid()))
    );
    second.stops();
    assert_eq!(manager.count("READY=1"), 1, "{:?}", manager.heard());
    assert_eq!(manager.count("STOPPING=1"), 1, "{:?}", manager.heard());
}

fn status_is_sent_and_the_socket_is_not_inherited(stage: &Stage) {
    let manager = Manager::start(&stage.env);
    let conduct = manager.over(stage.conduct(&["-j2"]));
    let conductor = conduct.env("WATCHDOG_USEC", "60000000").spawn();
    manager.shows("0 of 2 running, no runnable jobs");
    let own = Pid::from_raw(conductor.pid().try_into().unwrap()).unwrap();
    for _ in 0..3 {
        stage.post("waits", &format!("env >> seen; {WAITS}"));
    }
    manager.shows("2 of 2 running, 1 runnable");
    let guard = guards(own)[0].as_raw_nonzero();
    let seen = fs::read_to_string(stage.env.file("seen")).unwrap()
        + &fs::read_to_string(format!("/proc/{guard}/environ")).unwrap();
    assert!(seen.contains("JOBBOARD_JOB"), "{seen}");
    for name in ["NOTIFY_SOCKET", "WATCHDOG"] {
        assert!(!seen.contains(name), "{seen}");
    }
    conductor.signal(Signal::TERM);
    manager.hears("STOPPING=1");
    manager.shows("ending, 2 of 2 running");
    // The extension is repeated during a long shutdown.
    wait_until("its time is extended", || {
        manager.count("EXTEND_TIMEOUT_USEC=15000000") > 2
    });
    fs::write(stage.env.file("go"), "").unwrap();
    conductor.ended().succeeded();
    assert_eq!(manager.count("READY=1"), 1);
}

/// Makes a conductor's board unreachable and reachable again, and requires no watchdog signal meanwhile.
fn watchdog_follows_the_board(
    run: Invocation,
    manager: &Manager,
    go: impl FnOnce(),
    back: impl FnOnce(),
) {
    let run = manager.over(run).env("WATCHDOG_USEC", "3000000");
    let conductor = run.spawn();
    manager.hears("READY=1");
    let lives = || manager.count("WATCHDOG=1");
    wait_until("it lives, with nothing to do", || lives() > 2);
    go();
    manager.shows("the board has been unreachable for ");
    let before = lives();
    let is_long = |it: &str| {
        let (_, rest) = it.split_once("the board has been unreachable for ")?;
        rest.split_once('s')?
            .0
            .parse::<u32>()
            .ok()
            .filter(|it| *it >= 5)
    };
    wait_until("it has been unreachable for long", || {
        is_long(&manager.status()).is_some()
    });
    assert_eq!(lives(), before, "{:?}", manager.heard());
    back();
    manager.shows("0 of 1 running, no runnable jobs");
    wait_until("it lives again", || lives() > before);
    wait_until("it is over", || !manager.status().contains("away"));
    conductor.stops();
}

#[test]
fn watchdog_stops_when_the_server_is_gone() {
    need!(stage = Stage::redis_keeping_data());
    let manager = Manager::start(&stage.env);
    let run = stage.conduct(&[]);
    let server = std::cell::RefCell::new(stage);
    let stop = || server.borrow_mut().stop_server();
    watchdog_follows_the_board(run, &manager, stop, || server.borrow_mut().start_server());
}

#[test]
fn watchdog_stops_when_the_server_is_frozen() {
    need!(stage = Stage::redis());
    let manager = Manager::start(&stage.env);
    let info = stage.redis_server().unwrap().run(&["INFO", "server"]);
    let pid = info.split("process_id:").nth(1).unwrap();
    let pid = pid.lines().next().unwrap().trim().parse().unwrap();
    let server = Pid::from_raw(pid).unwrap();
    let run = stage.conduct(&["--op-timeout", "1s"]);
    let go = || signal(server, Signal::STOP);
    watchdog_follows_the_board(run, &manager, go, || signal(server, Signal::CONT));
}

#[test]
fn watchdog_stops_when_the_network_is_silent() {
    for stage in [Stage::redis(), Stage::zookeeper()].into_iter().flatten() {
        let manager = Manager::start(&stage.env);
        let (board, proxy) = stage.through_proxy();
        let run = stage.conduct(&["--op-timeout", "1s", "--board", &board, "--lease", "4s"]);
        let go = || proxy.set(ProxyMode::Halt);
        watchdog_follows_the_board(run, &manager, go, || proxy.set(ProxyMode::PassOn));
    }
}

#[test]
fn hanging_conductor_stops_the_watchdog_and_its_command_ends() {
    let stage = Stage::embedded().unwrap();
    let (tag, manager) = (Tag::new(), Manager::start(&stage.env));
    stage.post("a", &format!("exec sleep {}", tag.text()));
    let conduct = manager.over(stage.conduct(&["--lease", "2s"]));
    let conductor = conduct.env("WATCHDOG_USEC", "3000000").spawn();
    stage.says(&conductor, "running_start");
    conductor.signal(Signal::STOP);
    wait_until("its claim is lost", || tag.commands().is_empty());
    let before = manager.count("WATCHDOG=1");
    stays("no sign", Duration::from_secs(1), || {
        manager.count("WATCHDOG=1") == before
    });
    conductor.signal(Signal::CONT);
    wait_until("it lives again", || manager.count("WATCHDOG=1") > before);
}

#[test]
fn unreachable_service_manager_is_reported_and_stops_no_job() {
    let stage = Stage::embedded().unwrap();
    for socket in [
        "notify",
        "vsock:2:1",
        "/nowhere/notify",
        "@no-such-service-manager",
    ] {
        stage.post("a", "echo ran >> log");
        let conduct = stage.conduct(&["--drain"]).env("NOTIFY_SOCKET", socket);
        let run = conduct.run();
        run.succeeded();
        assert_eq!(run.stderr.matches("not_notified").count(), 1, "{run}");
    }
    assert_eq!(stage.log().len(), 4);
}

#[test]
fn conductor_with_blocked_output_ends_in_time() {
    need!(stage = Stage::embedded());
    let manager = Manager::start(&stage.env);
    stage.post("talks", "echo began >> log; yes");
    let (reader, writer) = std::io::pipe().unwrap();
    let run = stage.conduct(&["--grace", "1s"]);
    let mut conductor = manager.over(run).spawn_into(writer);
    wait_until("it began", || stage.log() == ["began"]);
    // By now its output pipe is full.
    stays("it talks", Duration::from_secs(1), || {
        !conductor.has_ended()
    });
    conductor.signal(Signal::TERM);
    manager.hears("EXTEND_TIMEOUT_USEC");
    conductor.ended().succeeded();
    drop(reader);
    assert_eq!(stage.env.names(), ["talks"]);
}

#[test]
fn guard_that_cannot_restart_is_reported_until_it_can() {
    need!(stage = Stage::embedded());
    let conductor = stage.start(&[]);
    let own = Pid::from_raw(conductor.pid().try_into().unwrap()).unwrap();
    let guard = guards(own)[0];
    // No more files than are open already.
    let files = |current| {
        let limit = getrlimit(Resource::Nofile);
        let current = Some(current);
        prlimit(Some(own), Resource::Nofile, Rlimit { current, ..limit }).unwrap()
    };
    let before = files(4);
    signal(guard, Signal::KILL);
    stage.says(&conductor, "not_watched reason=");
    stays("it is reported once", Duration::from_secs(1), || {
        conductor.stderr().matches("not_watched").count() == 1
    });
    files(before.current.unwrap_or(1024));
    wait_until("a guard runs again", || {
        guards(own).iter().any(|now| *now != guard)
    });
    stage.post("fine", "echo fine >> log");
    wait_until("it is performed", || stage.log() == ["fine"]);
    conductor.stops();
}
