//! Claims and settlements of commands without a reply.

use std::fs;

use serde_json::Value;

use super::lost_replies::{Way, redis, zookeeper};
use crate::{
    conduct::Stage,
    faults::size,
    support::{Invocation, Outcome, Proxy, ProxyMode, wait_until},
};

/// A name that identifies its requests in the traffic.
const NAME: &str = "the-one-and-only";

/// A board behind a proxy.
struct Remote {
    stage: Stage,
    way: Way,
    proxy: Proxy,
    board: String,
}

impl Remote {
    fn open((stage, way): (Stage, Way)) -> Self {
        let (board, proxy) = stage.through_proxy();
        // From then on the server caches all scripts.
        stage.env.ok("run warm-up -- true");
        stage.post("warm-up", "true");
        stage.env.ok("claim --next -- true");
        Self {
            stage,
            way,
            proxy,
            board,
        }
    }

    fn jobboard(&self, words: &[&str]) -> Invocation {
        let all = [&["--board", &self.board, "--op-timeout", "5s"], words].concat();
        self.stage.env.jobboard(&all)
    }

    /// Runs a command whose claim succeeds without a reply.
    fn unheard(&self, words: &[&str]) -> Outcome {
        self.proxy.cut_at(self.way.claim, ProxyMode::PassOn);
        let run = self.jobboard(words).run();
        assert!(self.proxy.has_sprung());
        run
    }

    fn log(&self) -> Vec<String> {
        self.stage.log()
    }
}

/// Requires that an error names the job that may be claimed, and that its suggestion works.
fn suggests_release(remote: &Remote, run: &Outcome, code: i32, job: &str) {
    run.failed(code);
    let error: Value = run.error();
    assert_eq!(error["kind"], "unknown", "{run:?}");
    assert!(error["message"].to_string().contains(job), "{run:?}");
    let free = format!("abandon --force {job}`");
    assert!(error["hint"].to_string().contains(&free), "{run:?}");
    let free = ["abandon", "--force", "--yes", job];
    wait_until("it is free", || {
        let _ = remote.stage.env.run(free);
        remote.stage.env.state(job) == "UNCLAIMED"
    });
}

fn manual_claim_with_a_lost_reply_is_unknown_and_named(remote: &Remote) {
    for _ in 0..size(20, 1) {
        let job = remote.stage.post("a", "true");
        for claim in [&["claim", "--next"][..], &["claim", &job]] {
            let run = remote.unheard(&[claim, &["--who", "ada", "--json"]].concat());
            assert_eq!(remote.stage.env.show(&job)["owner"], "ada", "{run:?}");
            suggests_release(remote, &run, 1, &job);
        }
        remote.stage.env.ok(format!("trash --force --yes {job}"));
    }
}

fn kept_claim_with_a_lost_reply_is_claimed_again(remote: &Remote) {
    for _ in 0..size(20, 1) {
        for next in [true, false] {
            let job = remote.stage.post("a", "true");
            let which = if next { "--next" } else { &job };
            let script = "echo ran $JOBBOARD_ATTEMPT >> log";
            let run = remote.unheard(&["claim", which, "--", "sh", "-c", script]);
            run.succeeded();
            assert_eq!(remote.log(), ["ran 1"]);
            assert!(remote.stage.env.names().is_empty());
            fs::remove_file(remote.stage.env.file("log")).unwrap();
        }
    }
}

fn held_claim_with_a_lost_reply_is_released_at_the_end(remote: &Remote) {
    let job = remote.stage.post("a", "true");
    remote.proxy.cut_at(remote.way.claim, ProxyMode::PassOn);
    let holder = remote.jobboard(&["claim", "--next", "--hold"]).spawn();
    holder.prints(1);
    assert!(remote.proxy.has_sprung());
    assert_eq!(remote.stage.env.state(&job), "CLAIMED");
    remote.proxy.cut_at(remote.way.settle, ProxyMode::PassOn);
    holder.stops();
    assert_eq!(remote.stage.env.state(&job), "UNCLAIMED");
}

fn job_posted_claimed_with_a_lost_reply_is_run(remote: &Remote) {
    for _ in 0..size(20, 1) {
        remote.proxy.cut_at(NAME, ProxyMode::PassOn);
        let run = ["run", NAME, "--", "sh", "-c", "echo ran >> log"];
        remote.jobboard(&run).run().succeeded();
        assert!(remote.proxy.has_sprung());
        assert_eq!(remote.log(), ["ran"]);
        assert!(remote.stage.env.names().is_empty());
        fs::remove_file(remote.stage.env.file("log")).unwrap();
    }
}

fn settlement_with_a_lost_reply_is_complete(remote: &Remote) {
    for code in [0, 3] {
        let job = remote.stage.post("a", "true");
        let script = format!("echo ran >> log; until [ -e go ]; do sleep 0.01; done; exit {code}");
        let claim = ["claim", "--next", "--", "sh", "-c", &script];
        let running = remote.jobboard(&claim).spawn();
        remote.stage.logged(1);
        remote.proxy.cut_at(remote.way.settle, ProxyMode::PassOn);
        fs::write(remote.stage.env.file("go"), "").unwrap();
        running.ended().has_code(code);
        assert!(remote.proxy.has_sprung());
        match code {
            0 => assert!(remote.stage.env.names().is_empty()),
            _ => assert_eq!(remote.stage.env.state(&job), "UNCLAIMED"),
        }
        fs::remove_file(remote.stage.env.file("go")).unwrap();
        fs::remove_file(remote.stage.env.file("log")).unwrap();
    }
}

fn silent_board_leaves_all_unknown_and_named(remote: &Remote) {
    let kept = ["claim", "--next", "--lease", "3s", "--json", "--", "true"];
    for (claim, code) in [(&kept[..], 125), (&["claim", "--next", "--json"], 1)] {
        let job = remote.stage.post("a", "true");
        remote.proxy.set_at(remote.way.claim, ProxyMode::Silent);
        let run = remote.jobboard(claim).run();
        remote.proxy.set(ProxyMode::PassOn);
        suggests_release(remote, &run, code, &job);
        remote.stage.env.ok(format!("consume --force --yes {job}"));
    }
}

macro_rules! on_servers {
    ($($promise:ident),* $(,)?) => {
        on_servers!(@on redis $($promise)*);
        on_servers!(@on zookeeper $($promise)*);
    };
    (@on $server:ident $($promise:ident)*) => {
        mod $server {$(
            #[test]
            fn $promise() {
                if let Some(opened) = super::$server() {
                    super::$promise(&super::Remote::open(opened));
                }
            }
        )*}
    };
}
on_servers!(
    manual_claim_with_a_lost_reply_is_unknown_and_named,
    kept_claim_with_a_lost_reply_is_claimed_again,
    held_claim_with_a_lost_reply_is_released_at_the_end,
    job_posted_claimed_with_a_lost_reply_is_run,
    settlement_with_a_lost_reply_is_complete,
    silent_board_leaves_all_unknown_and_named,
);
