//! Servers that cannot be trusted, and what is said of them.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use serde_json::{Value, json};

use super::{LONG, grades, promises, selftest, selftest_whole};
use crate::support::{
    env::Env,
    proxy::{Mood, Proxy},
    servers::Server,
};

fn redis(arguments: &[&str]) -> Option<(Env, Server)> {
    let server = Server::start_with(arguments)?;
    let env = Env::new();
    server.serves(&env, "");
    env.post("resize");
    Some((env, server))
}

/// The user's keys alone.
fn is_clean(server: &Server) {
    assert_eq!(server.run(&["--scan", "--pattern", "*selftest-*"]), "");
}

#[test]
fn a_server_that_loses_claims_or_jobs_is_told() {
    for suffix in [".owned", ":listings"] {
        let Some((env, server)) = redis(&[]) else {
            return;
        };
        let script = format!(
            "for _, key in ipairs(redis.call('KEYS', '*selftest-*{suffix}')) do redis.call('DEL', key) end"
        );
        let is_over = AtomicBool::new(false);
        let run = thread::scope(|scope| {
            // As one that evicts would do, all the while.
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    server.run(&["EVAL", &script, "0"]);
                }
            });
            let run = selftest(&env, &["--for", "5s"]);
            is_over.store(true, Ordering::SeqCst);
            run
        });
        assert_eq!(run.code, 7, "{run}");
        let told = run.values().pop().unwrap();
        assert_eq!(told["verdict"], "broken", "{told:#}");
        assert_eq!(grades(&told)["renewal"], "broken", "{told:#}");
        assert_eq!(env.names(), ["resize"]);
        is_clean(&server);
    }
}

#[test]
fn a_server_that_evicts_is_told_with_what_mends_it() {
    for limit in ["100mb", "2mb"] {
        let limits = ["--maxmemory", limit, "--maxmemory-policy", "allkeys-random"];
        let Some(server) = Server::start_with(&limits) else {
            return;
        };
        let env = Env::new();
        server.serves(&env, "");
        let run = selftest(&env, &["--for", "5s"]);
        assert_eq!(run.code, 7, "{run}");
        let told = run.values().pop().unwrap();
        let durable = &promises(&told)["durable"];
        assert_eq!(durable["grade"], "broken", "{told:#}");
        let remedy = durable["remedy"].as_str().unwrap();
        assert!(
            remedy.ends_with("CONFIG SET maxmemory-policy noeviction"),
            "{told:#}"
        );
        is_clean(&server);
    }
}

#[test]
fn rights_that_are_missing_cost_their_part_and_no_more() {
    let Some((env, server)) = redis(&["--appendonly", "yes"]) else {
        return;
    };
    server.run(&["ACL", "SETUSER", "default", "-subscribe"]);
    let told = selftest_whole(&env).json();
    let promises = promises(&told);
    assert_eq!(promises["events"]["grade"], "weak", "{told:#}");
    assert_eq!(promises["rights"]["grade"], "weak", "{told:#}");
    assert_eq!(promises["one-winner"]["grade"], "ok", "{told:#}");
    is_clean(&server);
    server.run(&["ACL", "SETUSER", "default", "-del"]);
    let told = selftest(&env, &["--for", LONG]).json();
    assert_ne!(told["verdict"], "broken", "{told:#}");
    server.run(&["FLUSHALL"]);
    server.run(&["ACL", "SETUSER", "default", "+del", "-eval", "-evalsha"]);
    let before = server.everything();
    let run = selftest(&env, &[]);
    assert_eq!(run.code, 5, "{run}");
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(told["verdict"], "unknown", "{told:#}");
    let grades = grades(&told);
    assert_eq!(grades["one-winner"], "untried", "{told:#}");
    assert_eq!(
        (&grades["durable"][..], &grades["rights"][..]),
        ("weak", "weak")
    );
    assert_eq!(server.everything(), before);
}

#[test]
fn a_way_that_swallows_answers_is_told_and_what_is_left_can_be_removed() {
    for mood in [Mood::Silent, Mood::Stall] {
        let Some((env, server)) = redis(&[]) else {
            return;
        };
        let proxy = Proxy::start(server.port());
        let url = format!("redis://127.0.0.1:{}", proxy.port);
        proxy.set_at("keeper:", mood);
        let run = selftest(&env, &["--for", "5s", "--board", &url]);
        assert_eq!(run.code, 7, "{run}");
        let told = run.values().pop().unwrap();
        assert_eq!(grades(&told)["answers"], "broken", "{told:#}");
        assert!(run.stderr.contains("left behind"), "{run}");
        let command = told["left"]["command"].as_str().unwrap();
        assert!(run.stderr.contains(command), "{run}");
        proxy.set(Mood::PassOn);
        let mut words: Vec<_> = command.split(' ').skip(1).collect();
        words.extend(["--yes", "--json"]);
        let told = env.jobboard(&words).run().json();
        assert_eq!(told["removed"].as_array().unwrap().len(), 1, "{told}");
        is_clean(&server);
    }
}

#[test]
fn a_server_that_goes_away_meanwhile_is_told() {
    let Some((env, mut server)) = redis(&[]) else {
        return;
    };
    let words = ["selftest", "--yes", "--json", "--for", "20s"];
    let run = env.jobboard(&words).spawn();
    crate::support::env::wait_until("it is at work", || {
        !server
            .run(&["--scan", "--pattern", "*selftest-*:listings"])
            .is_empty()
    });
    server.kill();
    let run = run.ended();
    assert_eq!(run.code, 7, "{run}");
    let told = run.values().pop().unwrap();
    assert_eq!(grades(&told)["answers"], "broken", "{told:#}");
    assert_ne!(told["left"], json!(null), "{told:#}");
}
