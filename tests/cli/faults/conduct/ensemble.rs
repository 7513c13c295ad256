//! Conductors on an ensemble whose leader dies while jobs run.

use super::{alone, each_ran_once, finishes};
use crate::{
    conduct::Stage,
    faults::size,
    support::{SOON, comes_true, wait_until},
};

#[test]
fn leader_death_costs_no_conductor_and_no_job() {
    need!(mut stage = Stage::ensemble());
    let deaths = size(5, 1);
    let count = deaths * size(120, 24);
    let jobs = stage.post_many(count, &alone("sleep 0.1"));
    let drain = ["--drain", "-j4", "--lease", "20s", "--output", "discard"];
    let crowd: Vec<_> = (0..2).map(|_| stage.start(&drain)).collect();
    for death in 1..=deaths {
        // In the middle of the work: each job logs its start and end.
        let part = 2 * count * death / (deaths + 1);
        let is_there = comes_true(SOON * 2, || stage.log().len() >= part);
        assert!(is_there, "{}", crowd[0].stderr());
        let ensemble = stage.zookeeper_ensemble().unwrap();
        let dead = wait_for_leader(ensemble);
        ensemble.member(dead).stop();
        wait_for_leader(ensemble);
        ensemble.member(dead).start_again();
    }
    for mut conductor in crowd {
        finishes(&mut conductor, SOON * 4);
        let run = conductor.ended();
        run.succeeded();
        assert!(!run.stderr.contains("claim_lost"), "{run:?}");
    }
    each_ran_once(&stage, jobs);
    eprintln!("faults: {count} jobs were run once each while {deaths} leaders died");
}

fn wait_for_leader(ensemble: &mut crate::support::servers::zookeeper::Ensemble) -> usize {
    let mut leader = None;
    wait_until("a leader is elected", || {
        leader = ensemble.leader_at();
        leader.is_some()
    });
    leader.unwrap()
}
