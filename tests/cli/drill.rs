//! `drill`: failover on a live board.

use serde_json::Value;

use crate::support::{Env, Host, Server, ZooKeeper, play, wait_until, words};

macro_rules! on_each_board {
    ($($name:ident,)*) => {
        mod embedded {
            $(#[test] fn $name() { super::$name(super::Env::new(), ()); })*
        }

        mod redis {
            $(#[test] fn $name() {
                need!(server = <super::Server as super::Host>::start());
                super::$name(super::at(&server), server);
            })*
        }

        mod zookeeper {
            $(#[test] fn $name() {
                need!(server = <super::ZooKeeper as super::Host>::start());
                super::$name(super::at(&server), server);
            })*
        }
    };
}

on_each_board! {
    jobs_of_dead_conductors_are_taken_over,
    interrupted_drill_leaves_nothing,
}

fn at(server: &impl Host) -> Env {
    let env = Env::new();
    let board = server.board();
    env.uses(&board);
    env
}

fn is_empty(env: &Env) {
    assert_eq!(env.names(), [""; 0]);
    assert_eq!(env.run(["list", "--trash", "-o", "uuid"]).succeeded(), "");
}

fn jobs_of_dead_conductors_are_taken_over<S>(env: Env, _server: S) {
    let own = env.post("own");
    let drill = env.run("drill --yes --lease 2s --json");
    let report = drill.json();
    assert_eq!(report["finished"], 12, "{drill}");
    for kind in ["crash", "stop"] {
        assert_eq!(report[kind]["jobs"], report[kind]["picked_up"], "{drill}");
        assert!(report[kind]["jobs"].as_u64() > Some(0), "{drill}");
    }
    for count in words("lost finished_twice finished_by_former_owner events_missed") {
        assert_eq!(report[count], 0, "{drill}");
    }
    // None, if the stopped conductor itself notices that its claims have ended.
    assert!(report["refused"].is_u64(), "{drill}");
    // Its own jobs are gone, and the user's job is not touched.
    assert_eq!(env.run(["list", "-o", "uuid"]).succeeded().trim_end(), own);
}

fn interrupted_drill_leaves_nothing<S>(env: Env, _server: S) {
    let drill = env.jobboard(&["drill", "--yes", "--lease", "60s"]).spawn();
    wait_until("a job of the drill is claimed", || {
        let claimed = env.run("list --state claimed -o uuid");
        !claimed.stdout.is_empty()
    });
    drill.signal(rustix::process::Signal::INT);
    drill.ended().has_code(130);
    is_empty(&env);
    let there = env.json(["conductors", "--json"]);
    let is_running = |it: &Value| it["silent"] != true;
    assert!(!there.as_array().unwrap().iter().any(is_running), "{there}");
}

#[test]
fn drill_asks_first() {
    play(
        r#"
        # a drill asks first
        0 post own
        8 drill => --yes
        8 drill --yes --read-only

        # a drill on a copy leaves the board unchanged
        0 post own
        0 drill --yes --copy --lease 2s -> failover works
        0 list --columns name,state,attempts == own\tUNCLAIMED\t0
        0 list --trash --count == 0
        0 selftest --dry-run -> left nothing behind
        "#,
    );
}
