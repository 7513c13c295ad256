//! Conductors of two releases on one board.

use std::path::Path;

use super::{alone, each_ran_once, finishes};
use crate::{
    conduct::Stage,
    faults::size,
    support::{SOON, words},
};

/// `scripts/faults releases` builds the other release. Without one this test has nothing to compare.
#[test]
fn two_releases_share_a_board() {
    let Some(other) = std::env::var_os("JOBBOARD_OTHER_RELEASE") else {
        return;
    };
    for stage in [Stage::redis, Stage::zookeeper] {
        need!(stage = stage());
        let count = size(2_000, 60);
        let jobs = stage.post_many(count, &alone("sleep 0.01"));
        let drain = words("conduct --allow-any --drain -j4 --output discard");
        let other = |_| stage.env.program(Path::new(&other), &drain).spawn();
        let ours = |_| stage.env.jobboard(&drain).spawn();
        let crowd: Vec<_> = (0..2).map(other).chain((0..2).map(ours)).collect();
        for mut conductor in crowd {
            finishes(&mut conductor, SOON * 4);
            let run = conductor.ended();
            run.succeeded();
            assert!(!run.stderr.contains("consumed=0"), "{run:?}");
        }
        each_ran_once(&stage, jobs);
        eprintln!("faults: {count} jobs ran once each with conductors of two releases");
    }
}
