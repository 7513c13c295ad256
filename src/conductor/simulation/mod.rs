//! Runs the conductor that ships on a simulated machine and board, through faults drawn from a seed.
//!
//! Nothing here repeats what a conductor decides: only the edges are simulated, its board, its clocks, its processes
//! and its chance. The promises are checked where they could break: the machine sees two commands of one job, the
//! board sees a command that outlives its claim, a settlement without a success, and clients that ask too often. After
//! the last fault, every job must reach its end.

mod driver;

use std::time::{Duration, Instant};

use self::driver::{Course, Figures, simulate};
use crate::{
    board::testing::{needs::is_full, simulated::Kind},
    process::simulated::Planted,
};

/// The courses of a run without another wish.
const COURSES: u64 = 10;

/// Returns a course from a seed. Half of the seeds have each kind of board.
fn course(seed: u64) -> Course {
    Course {
        seed,
        kind: match seed % 2 {
            0 => Kind::Expiry,
            _ => Kind::Session,
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

/// `JOBBOARD_SEED` chooses one seed, `JOBBOARD_SIMULATE` the seconds to go on, `JOBBOARD_PLANTED` a fault.
#[test]
fn conductors_keep_their_promises_through_faults() {
    if let Some(seed) = variable("JOBBOARD_SEED") {
        let figures = simulate(course(seed));
        eprintln!("{}", figures.journal.join("\n"));
        return require_sound(&figures, seed);
    }
    // A fixed number of courses in the suite, so that every machine runs the same.
    let long = variable("JOBBOARD_SIMULATE").map(Duration::from_secs);
    let (start, mut all) = (Instant::now(), Figures::default());
    let first = variable("JOBBOARD_FIRST_SEED").unwrap_or(0);
    for seed in first.. {
        let figures = simulate(course(seed));
        require_sound(&figures, seed);
        all.add(&figures);
        let is_enough = match long {
            Some(long) => start.elapsed() > long,
            None => seed - first + 1 >= COURSES,
        };
        if is_enough {
            break;
        }
    }
    eprintln!("faults: simulated {all} in {:?}", start.elapsed());
}

/// Every fault that somebody could make is found within a few courses.
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
            let violation = simulate(Course {
                planted,
                ..course(seed)
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
fn seed_repeats_its_course_exactly() {
    for seed in [1, 2] {
        let [one, other] = [(); 2].map(|()| simulate(course(seed)).journal);
        let differs = one.iter().zip(&other).position(|(one, other)| one != other);
        if let Some(at) = differs {
            panic!("line {at}: {} / {}", one[at], other[at]);
        }
        assert_eq!(one.len(), other.len());
        assert!(one.len() > 100);
    }
}
