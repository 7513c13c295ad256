//! Claims in progress at the end of a wait are neither lost nor kept.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::open_behind_proxy;
use crate::support::{Env, Proxy, ProxyMode, Running, Server, members, wait_until};

/// A board behind a proxy, and without it.
struct Stage {
    env: Env,
    server: Server,
    proxy: Proxy,
    direct: Env,
}

impl Stage {
    fn open() -> Option<Self> {
        let (env, server, proxy) = open_behind_proxy()?;
        let direct = Env::new();
        server.serves(&direct, "");
        // The server must cache all scripts: an unknown script is answered before it runs.
        direct.post("warm-up");
        direct.claim("@1", "ada");
        for verb in [
            &["abandon", "@1"][..],
            &["consume", "@1", "--force", "--yes"],
        ] {
            let words = [verb, &["--who", "ada"]].concat();
            direct.ok(&words);
        }
        Some(Self {
            env,
            server,
            proxy,
            direct,
        })
    }

    /// Starts to wait for a job, and posts one once it listens, with a trap in the proxy.
    fn wait(&self, words: &[&str], trap: (&'static str, ProxyMode)) -> (Running, String) {
        let claim = ["claim", "--next", "--who", "ada"];
        self.server.run(&["CONFIG", "RESETSTAT"]);
        let running = self.env.jobboard(&[&claim, words].concat()).spawn();
        wait_until("it listens", || {
            !self.server.run(&["PUBSUB", "CHANNELS"]).is_empty()
        });
        // An outage before the first read would end the wait.
        wait_until("it has read the board", || {
            let stats = self.server.run(&["INFO", "commandstats"]);
            stats.contains("cmdstat_hscan:calls=4,")
        });
        self.proxy.set_at(trap.0, trap.1);
        let job = self.direct.post("resize");
        wait_until("the trap springs", || self.proxy.has_sprung());
        (running, job)
    }
}

#[test]
fn claim_in_progress_at_the_timeout_is_reported() {
    need!(stage = Stage::open());
    let began = Instant::now();
    let words = ["--wait", "2s", "--op-timeout", "20s", "--json"];
    let (running, job) = stage.wait(&words, ("EVALSHA", ProxyMode::Stall));
    wait_until("the time is up", || {
        began.elapsed() > Duration::from_millis(3000)
    });
    stage.proxy.set(ProxyMode::PassOn);
    let report = running.ended().json();
    assert_eq!(
        (&report["done"], &report["uuid"]),
        (&"claimed".into(), &job.as_str().into())
    );
    assert_eq!(stage.direct.show(&job)["owner"], "ada");
}

#[test]
fn claim_in_progress_at_a_signal_is_released() {
    need!(stage = Stage::open());
    for (kept, code) in [(&["--", "touch", "ran"][..], 143), (&["--hold"], 0)] {
        let words = [&["--wait", "20s", "--op-timeout", "20s"], kept].concat();
        let (running, job) = stage.wait(&words, ("EVALSHA", ProxyMode::Stall));
        running.signal(Signal::TERM);
        stage.proxy.set(ProxyMode::PassOn);
        running.ended().has_code(code);
        let job = stage.direct.show(&job);
        assert_eq!(members(&job, "state attempts"), "UNCLAIMED 0");
        assert!(!stage.env.file("ran").exists());
        let uuid = job["uuid"].as_str().unwrap();
        stage.direct.ok(format!("consume {uuid} --force --yes"));
    }
}

#[test]
fn claim_by_hand_in_progress_at_a_signal_is_reported() {
    need!(stage = Stage::open());
    let words = ["--wait", "20s", "--op-timeout", "20s"];
    let (running, job) = stage.wait(&words, ("EVALSHA", ProxyMode::Stall));
    running.signal(Signal::TERM);
    stage.proxy.set(ProxyMode::PassOn);
    assert!(running.ended().succeeded().starts_with(&job));
    assert_eq!(stage.direct.show(&job)["owner"], "ada");
}

#[test]
fn failed_candidate_read_is_retried() {
    need!(stage = Stage::open());
    // After the event the job is looked up; then reading the candidates fails.
    let words = ["--wait", "60s", "--op-timeout", "1s"];
    let (running, job) = stage.wait(&words, ("HSCAN", ProxyMode::HangUp));
    running.says("retrying");
    stage.proxy.set(ProxyMode::PassOn);
    assert!(running.ended().succeeded().starts_with(&job));
}
