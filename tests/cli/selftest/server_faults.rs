//! Untrustworthy servers, and their diagnosis.

use std::{
    cell::RefCell,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use serde_json::{Value, json};

use super::{SURE, grades, promises, selftest, selftest_whole, with_time};
use crate::{
    conduct::Stage,
    support::{Env, Host, Proxy, ProxyMode, Running, Server, texts, wait_until, words},
};

fn redis(arguments: &[&str]) -> Option<(Env, Server)> {
    let (env, server) = Server::with_env(arguments)?;
    env.post("resize");
    Some((env, server))
}

/// Starts a selftest, and waits until it has posted jobs.
fn at_work(env: &Env, server: &Server, long: &str) -> Running {
    let words = ["selftest", "--yes", "--json", "--for", long];
    let run = env.jobboard(&words).spawn();
    wait_until("it is at work", || {
        let jobs = ["--scan", "--pattern", "*selftest-*:listings"];
        !server.run(&jobs).is_empty()
    });
    run
}

/// Requires that only the user's keys remain.
fn is_clean(server: &Server) {
    assert_eq!(server.run(&["--scan", "--pattern", "*selftest-*"]), "");
}

#[test]
fn lost_claims_and_jobs_are_detected() {
    for suffix in [".owned", ":listings"] {
        need!((env, server) = redis(&[]));
        let script = format!(
            "for _, key in ipairs(redis.call('KEYS', '*selftest-*{suffix}')) do redis.call('DEL', key) end"
        );
        let is_over = AtomicBool::new(false);
        let run = thread::scope(|scope| {
            // Deletes keys all the time, like an evicting server.
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    server.run(&["EVAL", &script, "0"]);
                }
            });
            let run = selftest_whole(&env);
            is_over.store(true, Ordering::SeqCst);
            run
        });
        assert_eq!(run.code, 7, "{run}");
        let report = run.values().pop().unwrap();
        assert_eq!(report["verdict"], "broken", "{report:#}");
        let renewal = &promises(&report)["renewal"];
        let is_busy = renewal["why"].as_str().unwrap().contains("too busy");
        assert!(renewal["grade"] == "broken" || is_busy, "{report:#}");
        assert_eq!(env.names(), ["resize"]);
        is_clean(&server);
    }
}

#[test]
fn eviction_is_detected_and_explained() {
    for limit in ["100mb", "2mb"] {
        let limits = ["--maxmemory", limit, "--maxmemory-policy", "allkeys-random"];
        need!((env, server) = Server::with_env(&limits));
        let run = selftest(&env, &["--for", "5s"]);
        assert_eq!(run.code, 7, "{run}");
        let report = run.values().pop().unwrap();
        let durable = &promises(&report)["durable"];
        assert_eq!(durable["grade"], "broken", "{report:#}");
        let command = durable["command"].as_array().unwrap();
        assert!(
            command
                .ends_with(&["CONFIG", "SET", "maxmemory-policy", "noeviction"].map(Value::from)),
            "{report:#}"
        );
        is_clean(&server);
    }
}

#[test]
fn missing_right_costs_one_check() {
    need!((env, server) = redis(&["--appendonly", "yes"]));
    server.run(&["ACL", "SETUSER", "default", "-subscribe"]);
    let report = selftest_whole(&env).json();
    let promises = promises(&report);
    assert_eq!(promises["events"]["grade"], "weak", "{report:#}");
    assert_eq!(promises["rights"]["grade"], "weak", "{report:#}");
    assert_eq!(promises["one-winner"]["grade"], "ok", "{report:#}");
    is_clean(&server);
    server.run(&["ACL", "SETUSER", "default", "-del"]);
    let report = selftest_whole(&env).json();
    assert_ne!(report["verdict"], "broken", "{report:#}");
    server.run(&["FLUSHALL"]);
    server.run(&["ACL", "SETUSER", "default", "+del", "-eval", "-evalsha"]);
    let before = server.everything();
    let run = selftest(&env, &[]);
    assert_eq!(run.code, 5, "{run}");
    let report = run.value();
    assert_eq!(report["verdict"], "unknown", "{report:#}");
    let grades = grades(&report);
    assert_eq!(grades["one-winner"], "untried", "{report:#}");
    assert_eq!(
        (&grades["durable"][..], &grades["rights"][..]),
        ("weak", "weak")
    );
    assert_eq!(server.everything(), before);
}

#[test]
fn rights_of_watchers_are_checked() {
    need!((env, server) = redis(&["--appendonly", "yes"]));
    for right in ["multi", "exec"] {
        server.run(&["ACL", "SETUSER", "default", &format!("-{right}")]);
        let report = selftest(&env, &["--read-only"]).json();
        let rights = &promises(&report)["rights"];
        assert_eq!(rights["grade"], "weak", "{report:#}");
        let why = rights["why"].as_str().unwrap();
        assert!(
            why.contains(&format!("has no right to use {right}")),
            "{report:#}"
        );
        server.run(&["ACL", "SETUSER", "default", &format!("+{right}")]);
    }
    // Against missing rights on keys, rights to commands do not help.
    server.run(&words(
        "ACL SETUSER default resetkeys ~other:* resetchannels",
    ));
    let report = selftest(&env, &["--read-only"]).json();
    let rights = &promises(&report)["rights"];
    let command = rights["command"].as_array().unwrap().iter();
    let grant = command.map(|word| word.as_str().unwrap());
    let grant: Vec<_> = grant
        .skip_while(|word| *word != "SETUSER")
        .skip(1)
        .collect();
    assert_eq!(
        grant,
        ["default", "~taskflow:*", "&taskflow:events"],
        "{report:#}"
    );
    server.run(&[&["ACL", "SETUSER"], &grant[..]].concat());
    let report = selftest(&env, &["--read-only"]).json();
    assert_eq!(grades(&report)["rights"], "ok", "{report:#}");
}

#[test]
fn denied_scan_leaves_nothing_and_names_unremovable_boards() {
    need!((env, server) = redis(&["--appendonly", "yes"]));
    at_work(&env, &server, "10m").kill();
    server.run(&["ACL", "SETUSER", "default", "-scan"]);
    let killed = server.run(&["HKEYS", "taskflow:selftest-boards"]);
    let report = selftest(&env, &["--for", "5s"]).json();
    assert_eq!(report["left"], json!(null), "{report:#}");
    let unseen = report["unseen"][0].as_str().unwrap();
    assert!(unseen.contains("scan"), "{report:#}");
    assert_eq!(server.run(&["HKEYS", "taskflow:selftest-boards"]), killed);
    let others = server.run(&["KEYS", "*selftest-2*"]);
    let mut others = others.lines().filter(|key| !key.contains(&killed));
    assert_eq!(others.next(), None);
    let run = selftest(&env, &["--clean"]);
    let message = &run.stderr;
    let is_reported =
        message.contains("cannot check whether selftest-2") && message.contains("scan");
    assert!(run.code == 7 && is_reported, "{run}");
    server.run(&["ACL", "SETUSER", "default", "+scan"]);
    wait_until("it is removed", || {
        let report = selftest(&env, &["--clean"]).json();
        report["removed"] == json!([killed])
    });
    is_clean(&server);
}

#[test]
fn foreign_job_on_the_board_is_detected() {
    need!((env, server) = redis(&["--appendonly", "yes"]));
    let run = with_time(|long| {
        let run = at_work(&env, &server, long);
        let stray = "for _, key in ipairs(redis.call('KEYS', '*selftest-*:listings')) do \
                     redis.call('HSET', key, 'stray', 'x') end";
        server.run(&["EVAL", stray, "0"]);
        run.ended()
    });
    assert_eq!(run.code, 7, "{run}");
    let report = run.values().pop().unwrap();
    let keeps = &promises(&report)["keeps"];
    assert_eq!(keeps["grade"], "broken", "{report:#}");
    let why = keeps["why"].as_str().unwrap();
    assert!(why.contains("17 are on the board"), "{report:#}");
    is_clean(&server);
}

#[test]
fn server_restart_is_waited_for() {
    need!((env, server) = redis(&["--appendonly", "yes", "--appendfsync", "always"]));
    let server = RefCell::new(server);
    let run = with_time(|long| {
        let run = at_work(&env, &server.borrow(), long);
        server.borrow_mut().kill();
        server.borrow_mut().start_again();
        run.ended()
    });
    let report = run.values().pop().unwrap();
    let grades = grades(&report);
    for (promise, grade) in &grades {
        assert_ne!(grade, "broken", "{promise}: {report:#}");
    }
    for promise in SURE {
        assert_eq!(grades[promise], "ok", "{report:#}");
    }
    assert_eq!(run.code, 0, "{run}");
    is_clean(&server.borrow());
}

#[test]
fn slow_connection_passes_within_the_time_limit() {
    need!((env, server) = redis(&["--appendonly", "yes"]));
    let proxy = Proxy::start(server.port());
    let url = format!("redis://127.0.0.1:{}", proxy.port);
    proxy.set(ProxyMode::Slow);
    let report = selftest(&env, &["--for", "4s", "--board", &url]).json();
    for (promise, grade) in grades(&report) {
        assert_ne!(grade, "broken", "{promise}: {report:#}");
    }
    assert_eq!(report["verdict"], "unknown", "{report:#}");
    let why = promises(&report)["interrupted"]["why"].clone();
    assert!(why.as_str().unwrap().contains("out of time"), "{report:#}");
    // Without the cleanup, and on a busy machine.
    assert!(report["seconds"].as_f64().unwrap() < 6.0, "{report:#}");
    is_clean(&server);
}

#[test]
fn short_claims_are_inconclusive() {
    need!(stage = Stage::zookeeper());
    let url = format!("{}?session=5s", stage.zookeeper_board().unwrap().board());
    let report = selftest(&stage.env, &["--for", "2s", "--board", &url]).json();
    let renewal = &promises(&report)["renewal"];
    assert_eq!(renewal["grade"], "untried", "{report:#}");
}

#[test]
fn unstartable_processes_fail_no_check() {
    let env = Env::new();
    env.post("resize");
    // Without `/proc` the program cannot find itself.
    let without = "mount -t tmpfs none /proc && exec \"$@\"";
    let run = with_time(|long| {
        let words = ["selftest", "--yes", "--json", "--for", long];
        let run = env.jobboard(&words).in_shell(without);
        run.in_namespace().run()
    });
    if run.stderr.contains("mount") || run.stderr.contains("unshare") {
        eprintln!("skipped: we may mount nothing");
        return;
    }
    let report = run.json();
    for promise in ["one-winner", "interrupted"] {
        let seen = &promises(&report)[promise];
        assert_eq!(seen["grade"], "untried", "{report:#}");
        let why = seen["why"].as_str().unwrap();
        assert!(why.contains("cannot start another process"), "{report:#}");
    }
}

#[test]
fn swallowed_replies_are_reported_and_leftovers_can_be_removed() {
    for mode in [ProxyMode::Silent, ProxyMode::Stall] {
        need!((env, server) = redis(&[]));
        let proxy = Proxy::start(server.port());
        let url = format!("redis://127.0.0.1:{}", proxy.port);
        proxy.set_at("keeper:", mode);
        let run = selftest(&env, &["--for", "5s", "--board", &url]);
        assert_eq!(run.code, 7, "{run}");
        let report = run.values().pop().unwrap();
        // The other promises are not affected.
        let broken = grades(&report).into_iter();
        let broken: Vec<_> = broken.filter(|(_, grade)| grade == "broken").collect();
        assert_eq!(broken.len(), 1, "{report:#}");
        assert_eq!(broken[0].0, "answers", "{report:#}");
        run.warns("was not removed");
        let words = texts(&report["left"]["command"]);
        run.warns(words.join(" "));
        proxy.set(ProxyMode::PassOn);
        env.run(&words[1..]).prints("\nremoved       selftest-");
        is_clean(&server);
    }
}

#[test]
fn server_death_is_reported() {
    need!((env, mut server) = redis(&[]));
    let run = at_work(&env, &server, "20s");
    server.kill();
    let run = run.ended();
    assert_eq!(run.code, 7, "{run}");
    let report = run.values().pop().unwrap();
    assert_eq!(grades(&report)["answers"], "broken", "{report:#}");
    assert_ne!(report["left"], json!(null), "{report:#}");
}
