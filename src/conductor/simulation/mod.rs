//! Runs the real conductor on a simulated machine and board, with faults from a seed.
//!
//! Board, clocks, processes and random numbers are simulated; all decisions are made by the real code. The machine
//! detects two commands of one job. The board detects a command that outlives its claim, a settlement without a
//! success, and a client that sends too many requests. After the last fault, every job must end.

mod scenario;

use std::time::{Duration, Instant};

use self::scenario::{Figures, Scenario, simulate};
use crate::{
    board::testing::{needs::is_full, simulated::ClaimLifetime},
    process::simulation::Planted,
};

/// The default number of scenarios: fixed, so that every machine runs the same ones.
const SCENARIOS: u64 = 10;

/// Returns the scenario of a seed. Claims expire on their own with even seeds, and with sessions otherwise.
fn scenario(seed: u64) -> Scenario {
    Scenario {
        seed,
        lifetime: match seed % 2 {
            0 => ClaimLifetime::Expiry,
            _ => ClaimLifetime::Session,
        },
        planted: Planted::ALL.into_iter().find(|it| {
            std::env::var("JOBBOARD_PLANTED").is_ok_and(|name| name == format!("{it:?}"))
        }),
        long: Duration::from_secs(3600),
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn require_sound(figures: &Figures, seed: u64) {
    if let Some(violation) = &figures.violation {
        let journal = &figures.journal;
        let last = &journal[journal.len().saturating_sub(60)..];
        panic!(
            "seed {seed}: {violation}\nrepeat it with JOBBOARD_SEED={seed}\n{}",
            last.join("\n")
        );
    }
}

/// `JOBBOARD_SEED` selects one seed, `JOBBOARD_SIMULATE` sets a duration in seconds, and `JOBBOARD_PLANTED` plants a
/// fault.
#[test]
fn conductors_keep_their_promises_through_faults() {
    if let Some(seed) = variable("JOBBOARD_SEED") {
        let figures = simulate(scenario(seed));
        eprintln!("{}", figures.journal.join("\n"));
        return require_sound(&figures, seed);
    }
    let long = variable("JOBBOARD_SIMULATE").map(Duration::from_secs);
    let (start, mut all) = (Instant::now(), Figures::default());
    let first = variable("JOBBOARD_FIRST_SEED").unwrap_or(0);
    for seed in first.. {
        let figures = simulate(scenario(seed));
        require_sound(&figures, seed);
        all.add(&figures);
        let is_enough = match long {
            Some(long) => start.elapsed() > long,
            None => seed - first + 1 >= SCENARIOS,
        };
        if is_enough {
            break;
        }
    }
    eprintln!("faults: simulated {all} in {:?}", start.elapsed());
}

/// Each planted fault is found within forty scenarios.
#[test]
fn planted_faults_are_found() {
    if !is_full() {
        return;
    }
    let mut missed = Vec::new();
    for planted in Planted::ALL {
        let start = Instant::now();
        let found = (0..40).find_map(|seed| {
            let planted = Some(planted);
            let violation = simulate(Scenario {
                planted,
                ..scenario(seed)
            })
            .violation?;
            Some((seed, violation))
        });
        eprintln!("{planted:?} after {:?}: {found:?}", start.elapsed());
        if found.is_none() {
            missed.push(planted);
        }
    }
    assert_eq!(missed, []);
}

#[test]
fn seed_repeats_its_scenario_exactly() {
    for seed in [1, 2] {
        let [one, other] = [(); 2].map(|()| simulate(scenario(seed)).journal);
        let differs = one.iter().zip(&other).position(|(one, other)| one != other);
        if let Some(at) = differs {
            panic!("line {at}: {} / {}", one[at], other[at]);
        }
        assert_eq!(one.len(), other.len());
        assert!(one.len() > 100);
    }
}
