//! Runs the real conductor on a simulated machine and board, with faults from a seed.
//!
//! Board, clocks, processes and random numbers are simulated; all decisions are made by the real code. The machine
//! detects two commands of one job. The board detects a command that outlives its claim, a settlement without a
//! success, and a client that sends too many requests. After the last fault, every job must end.

mod scenario;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use uuid::Uuid;

use self::scenario::{Figures, Scenario, simulate, simulate_periods};
use crate::{
    board::testing::{needs::is_full, simulated::ClaimLifetime},
    process::simulation::Planted,
};

/// The default number of scenarios: fixed, so that every machine runs the same ones.
const SCENARIOS: u64 = 10;

/// Seeds that once broke a promise.
const FORMER: [u64; 8] = [
    1,
    81,
    1_795_742_444,
    20_262_826,
    20_266_938,
    20_271_158,
    20_275_536,
    20_280_924,
];

/// Returns the scenario of a seed. Claims expire on their own with even seeds, and with sessions otherwise.
fn scenario(seed: u64) -> Scenario {
    Scenario {
        seed,
        lifetime: match seed % 2 {
            0 => ClaimLifetime::Expiry,
            _ => ClaimLifetime::Session,
        },
        loses_writes: seed % 4 == 2,
        spares_conductors: false,
        has_journal: false,
        planted: Planted::ALL.into_iter().find(|it| {
            std::env::var("JOBBOARD_PLANTED").is_ok_and(|name| name == format!("{it:?}"))
        }),
        long: Duration::from_secs(3600),
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Fails if a promise was broken, with the faults and the history of the job.
fn require_sound(figures: &Figures, seed: u64) {
    if let Some(violation) = &figures.violation {
        let job = violation.split(' ').find(|word| is_uuid(word));
        let is_about_it = |line: &&String| {
            job.is_none_or(|job| line.contains(job)) || !line.split(' ').any(is_uuid)
        };
        let mut history: Vec<_> = figures.journal.iter().filter(is_about_it).collect();
        let last = history.split_off(history.len().saturating_sub(60));
        let last: Vec<_> = last.into_iter().map(String::as_str).collect();
        panic!(
            "seed {seed}: {violation}\nrepeat it with JOBBOARD_SEED={seed}\n{}",
            last.join("\n")
        );
    }
}

fn is_uuid(word: &str) -> bool {
    Uuid::try_parse(word.trim_end_matches(':')).is_ok()
}

/// Simulates a seed, and keeps the journal.
fn simulate_seed(seed: u64) -> Figures {
    simulate(Scenario {
        has_journal: true,
        ..scenario(seed)
    })
}

/// Simulates seeds on all processors until this returns false for one.
fn simulate_all(
    first: u64,
    scenario: impl Fn(u64) -> Scenario + Sync,
    goes_on: impl Fn(u64) -> bool + Sync,
) -> Figures {
    let (next, all) = (AtomicU64::new(first), Mutex::new(Figures::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !goes_on(seed) || all.lock().violation.is_some() {
                return;
            }
            let figures = simulate(scenario(seed));
            let mut all = all.lock();
            if all.violation.is_none() && figures.violation.is_some() {
                (all.violation, all.seed) = (figures.violation.clone(), seed);
            }
            all.add(&figures);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    all.into_inner()
}

/// `JOBBOARD_SEED` selects one seed, `JOBBOARD_SIMULATE` sets a duration in seconds, and `JOBBOARD_PLANTED` plants a
/// fault.
#[test]
fn conductors_keep_their_promises_through_faults() {
    if let Some(seed) = variable("JOBBOARD_SEED") {
        let figures = simulate_seed(seed);
        eprintln!("{}", figures.journal.join("\n"));
        return require_sound(&figures, seed);
    }
    let long = variable("JOBBOARD_SIMULATE").map(Duration::from_secs);
    for seed in FORMER.into_iter().filter(|_| long.is_none()) {
        require_sound(&simulate(scenario(seed)), seed);
    }
    let start = Instant::now();
    let first = variable("JOBBOARD_FIRST_SEED").unwrap_or(0);
    let all = simulate_all(first, scenario, |seed| match long {
        Some(long) => start.elapsed() < long,
        None => seed - first < SCENARIOS,
    });
    if all.violation.is_some() {
        require_sound(&simulate_seed(all.seed), all.seed);
    }
    eprintln!("faults: simulated {all} in {:?}", start.elapsed());
}

/// Simulates seven days, or in the suite seven half hours.
///
/// Each period ends with an empty board. A record per job would add at least half a megabyte a day.
#[test]
fn memory_of_conductors_is_bounded() {
    let long = if is_full() { 24 * 60 } else { 30 };
    for seed in [0, 1] {
        let scenario = Scenario {
            long: Duration::from_secs(long * 60),
            spares_conductors: true,
            ..scenario(seed)
        };
        let figures = simulate_periods(scenario, 7);
        assert_eq!(figures.violation, None, "seed {seed}");
        let mut growth = figures.growth;
        eprintln!("faults: memory of seed {seed} grew by {growth:?} bytes");
        growth.sort_unstable();
        assert!(growth[3] < 64_000, "{growth:?}");
    }
}

/// Each planted fault is found within a minute.
#[test]
fn planted_faults_are_found() {
    if !is_full() {
        return;
    }
    let mut missed = Vec::new();
    for planted in Planted::ALL {
        let start = Instant::now();
        let spoiled = |seed| Scenario {
            planted: Some(planted),
            ..scenario(seed)
        };
        let found = simulate_all(0, spoiled, |_| start.elapsed().as_secs() < 60);
        let (took, scenarios) = (start.elapsed(), found.scenarios);
        eprintln!(
            "faults: {planted:?} {:?} after {took:?}, {scenarios} scenarios",
            found.violation
        );
        if found.violation.is_none() {
            missed.push(planted);
        }
    }
    assert_eq!(missed, []);
}

#[test]
fn seed_repeats_its_scenario_exactly() {
    for seed in [1, 2] {
        let [one, other] = [(); 2].map(|()| simulate_seed(seed).journal);
        let differs = one.iter().zip(&other).position(|(one, other)| one != other);
        if let Some(at) = differs {
            panic!("line {at}: {} / {}", one[at], other[at]);
        }
        assert_eq!(one.len(), other.len());
        assert!(one.len() > 100);
    }
}
