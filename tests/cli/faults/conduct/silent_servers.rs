//! Silent networks that lose nothing: which client owns the jobs afterwards.

use std::{fs, thread, time::Duration};

use rustix::process::Signal;

use super::{alone, finishes, lost_replies::start_remote, runs};
use crate::{
    conduct::Stage,
    faults::{random, size},
    support::{ProxyMode, Running, SOON, comes_true},
};

const LEASE: Duration = Duration::from_secs(3);

/// Durations of silence, in parts of the lease.
///
/// The longest ones end the claims for their owner, perhaps not for the server.
const SILENCES: [f64; 5] = [0.83, 0.63, 0.4, 1.1, 1.5];

/// Makes the network silent once for each duration, while three jobs run.
///
/// The same conductor must finish each job, whatever owner the server records.
fn no_job_stays_claimed_without_a_runner(stage: &Stage, words: &[&str]) {
    let lease = format!("{}s", LEASE.as_secs());
    for silence in SILENCES.iter().cycle().take(size(40, 2)) {
        let script = alone("until [ -e may-end ]; do sleep 0.05; done");
        let jobs = stage.post_many(3, &script);
        let words = [&["-j3", "--lease", &lease], words].concat();
        let (mut conductor, proxy) = start_remote(stage, &words);
        stage.logged(3);
        // Renewals are pending at different times in each round.
        thread::sleep(Duration::from_millis(random(2_000)));
        proxy.set(ProxyMode::Halt);
        thread::sleep(LEASE.mul_f64(*silence));
        proxy.set(ProxyMode::PassOn);
        let left_behind = |conductor: &Running| {
            let listed = stage.env.run("list").stdout;
            let text = conductor.stderr();
            format!("left behind after {silence} of a lease: {listed}{text}")
        };
        let all_run = comes_true(SOON, || {
            times(&conductor, "running_start") >= 3 + times(&conductor, "claim_lost")
        });
        assert!(all_run, "{}", left_behind(&conductor));
        fs::write(stage.env.file("may-end"), "").unwrap();
        let all_end = comes_true(SOON, || stage.env.names().is_empty());
        assert!(all_end, "{}", left_behind(&conductor));
        if !words.contains(&"--drain") {
            conductor.signal(Signal::TERM);
        }
        finishes(&mut conductor, SOON);
        conductor.ended().succeeded();
        let runs = runs(stage);
        assert!(jobs.iter().all(|job| runs[job].ends >= 1), "{runs:?}");
        fs::remove_file(stage.env.file("may-end")).unwrap();
        fs::remove_file(stage.env.file("log")).unwrap();
    }
}

fn times(conductor: &Running, event: &str) -> usize {
    conductor.stderr().matches(event).count()
}

macro_rules! on_servers {
    ($($server:ident),*) => {$(
        mod $server {
            #[test]
            fn no_job_stays_claimed_without_a_runner() {
                if let Some(stage) = super::Stage::$server() {
                    super::no_job_stays_claimed_without_a_runner(&stage, &[]);
                }
            }

            #[test]
            fn drain_of_a_silent_board_ends() {
                if let Some(stage) = super::Stage::$server() {
                    super::no_job_stays_claimed_without_a_runner(&stage, &["--drain"]);
                }
            }
        }
    )*};
}
on_servers!(redis, zookeeper);
