//! Conductors on a machine whose wall clock is set while jobs run.

use std::fs;

use serde_json::json;

use super::{alone, finishes, runs};
use crate::{
    conduct::{Stage, on_every_board},
    faults::{preload, size},
    support::env::{SOON, wait_until},
};

on_every_board!(clock_steps_end_no_claim);

/// In seconds, and a jump of many years.
const STEPS: [&str; 6] = ["3600", "-3600", "86400", "0", "-400000000", "400000000"];

fn clock_steps_end_no_claim(stage: &Stage) {
    need!(clock = preload(&stage.env, "clock.c"));
    let (steps, ahead) = (size(60, 6), stage.env.file("ahead"));
    fs::write(&ahead, "0").unwrap();
    let count = steps * 6;
    let mut jobs = stage.post_many(count, &alone("sleep 0.1"));
    let conduct = |_| {
        let conduct = stage.conduct(&["-j3", "--lease", "3s", "--output", "discard"]);
        let conduct = conduct.env("LD_PRELOAD", &clock).env("AHEAD_FILE", &ahead);
        let running = conduct.spawn();
        stage.says(&running, "conducting");
        running
    };
    let crowd: Vec<_> = (0..2).map(conduct).collect();
    for step in 0..steps {
        stage.logged(2 * count * step / (steps + 1));
        fs::write(&ahead, STEPS[step % STEPS.len()]).unwrap();
    }
    wait_until("all have run", || stage.log().len() >= 2 * count);
    for mut conductor in crowd {
        conductor.signal(rustix::process::Signal::TERM);
        finishes(&mut conductor, SOON);
        let run = conductor.ended();
        run.succeeded();
        assert!(!run.stderr.contains("claim_lost"), "{run:?}");
    }
    let runs = runs(stage);
    jobs.sort();
    assert!(runs.keys().eq(&jobs), "some jobs were not run");
    let once = |runs: &super::Runs| (runs.starts, runs.ends) == (1, 1);
    assert!(runs.values().all(once), "{runs:?}");
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
    eprintln!("faults: {count} jobs ran once each while the clock was set {steps} times");
}
