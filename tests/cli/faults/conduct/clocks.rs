//! Conductors at work while the machine's wall clock is set.

use std::{collections::BTreeSet, fs};

use super::{alone, each_ran_once, finishes};
use crate::{
    conduct::{Stage, on_every_board},
    faults::{preload, size},
    support::{SOON, wait_until},
};

on_every_board!(clock_steps_end_no_claim);

/// In seconds, and a jump of many years.
const STEPS: [&str; 6] = ["3600", "-3600", "86400", "0", "-400000000", "400000000"];

fn clock_steps_end_no_claim(stage: &Stage) {
    need!(clock = preload(&stage.env, "clock.c"));
    let (steps, ahead) = (size(60, 6), stage.env.file("ahead"));
    fs::write(&ahead, "0").unwrap();
    let count = steps * 6;
    let jobs = stage.post_many(count, &alone("sleep 0.1"));
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
        let years = run.stderr.lines().filter_map(|line| line.get(..9));
        let years: BTreeSet<_> = years.filter(|it| it.starts_with("time=")).collect();
        assert!(years.len() > 1, "the clock was not set: {run:?}");
    }
    each_ran_once(stage, jobs);
    eprintln!("faults: {count} jobs ran once each while the clock was set {steps} times");
}
