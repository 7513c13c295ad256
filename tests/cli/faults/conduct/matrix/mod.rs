//! The matrix of faults: each kind of fault on each kind of board, while jobs of every shape run.
//!
//! A run has one board, one kind of fault and four workers: two conductors, one `claim` and one `run`. The commands
//! have all shapes: plain, under `timeout`, under `setsid`, with an orphaned grandchild, deaf to TERM, with a cleared
//! environment. They hold a lock while any of their processes lives, and keep a log, which decides whether a run is
//! good. The history of each job is recorded too, and must have an order in which every answer is correct
//! (`support/history`). In `all_clients` shells, an operator and peers use the same jobs. `scripts/faults` explains
//! how to choose cells and counts.

mod actors;
mod all_clients;
mod cell;
mod chance;
mod history_from_logs;
mod judge;
mod not_guaranteed;
mod planted_faults;
mod run;
mod strike;
mod worker;

use std::{
    collections::BTreeMap,
    env,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use self::{
    cell::Cell,
    judge::Report,
    run::{Size, run},
};
use crate::faults::{random, size};

/// The cells of each run of the suite.
const EVERYDAY: &str =
    "embedded/kill-both redis/stop-conductor redis/swallow-claim zookeeper/stall-both";

/// The cells with all clients of each run of the suite.
const EVERYDAY_OF_ALL: &str = "embedded/locked redis/cut zookeeper/stall-both";

const SHAPES: &str = "plain timeout setsid deaf bare orphan bare-orphan";

/// Returns a variable that selects a part of the matrix.
fn asked(name: &str) -> Option<String> {
    env::var(format!("JOBBOARD_FAULTS_{name}")).ok()
}

fn number(name: &str, otherwise: usize) -> usize {
    asked(name).map_or(otherwise, |text| text.parse().expect(name))
}

/// Returns the cells whose names begin or end with one of these words.
fn chosen(words: &str) -> Vec<Cell> {
    let is_meant = |cell: &Cell| {
        let name = cell.to_string();
        words
            .split_whitespace()
            .any(|word| name.starts_with(word) || name.ends_with(word))
    };
    let cells: Vec<_> = Cell::all().into_iter().filter(is_meant).collect();
    assert!(!cells.is_empty(), "no cell is like {words}");
    cells
}

#[test]
fn faults_never_lose_strand_or_duplicate_a_job() {
    let size = Size {
        jobs: number("JOBS", size(300, 12)),
        strikes: number("STRIKES", size(40, 3)),
        lease: number("LEASE", 2) as u64,
        shapes: asked("SHAPES").unwrap_or_else(|| SHAPES.to_owned()),
    };
    each_cell(EVERYDAY, |cell, seed| run(cell, &size, seed));
}

/// Runs the selected cells, some concurrently, and requires that all are good.
fn each_cell(everyday: &str, run: impl Fn(Cell, u64) -> Option<Report> + Sync) {
    let cells = match asked("CELLS") {
        Some(words) => chosen(&words),
        None if size(1, 0) == 1 => Cell::all(),
        None => chosen(everyday),
    };
    let (runs, at_once) = (number("RUNS", size(20, 1)), number("AT_ONCE", 4));
    let seed = asked("SEED").map_or_else(|| random(1 << 32), |text| text.parse().expect("SEED"));
    let rounds =
        (0..runs as u64).flat_map(|round| cells.iter().map(move |cell| (*cell, seed + round)));
    let waiting = Mutex::new(rounds);
    let reports: Mutex<BTreeMap<String, Vec<(u64, Report)>>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap().next();
                    need!((cell, seed) = next);
                    let start = Instant::now();
                    // A failing run must not hide the results of the others.
                    let run = &run;
                    let run = scope.spawn(move || run(cell, seed)).join();
                    let Some(report) = run.unwrap_or_else(|_| Some(Report::failed())) else {
                        continue;
                    };
                    print_summary(cell, seed, start.elapsed(), &report);
                    let mut reports = reports.lock().unwrap();
                    reports
                        .entry(cell.to_string())
                        .or_default()
                        .push((seed, report));
                }
            });
        }
    });
    let reports = reports.into_inner().unwrap();
    table(&reports);
    let all = reports.values().flatten();
    let bad = all.filter(|(_, report)| !report.is_good()).count();
    assert_eq!(bad, 0, "runs with problems");
}

fn print_summary(cell: Cell, seed: u64, took: Duration, report: &Report) {
    eprintln!(
        "faults: {cell} seed {seed}: {} jobs, {} attempts, {} acts, {} strikes in {took:.1?}, {}",
        report.jobs.len(),
        report.attempts,
        report.acts,
        report.strikes,
        if report.is_good() { "good" } else { "BAD" }
    );
    if !report.is_good() {
        eprintln!(
            "  lost {:?}\n  doubled {:?}\n  left {:?}\n  survivors {}\n  {:?}",
            report.lost, report.doubled, report.left, report.survivors, report.complaints
        );
        for wrong in &report.wrong {
            eprint!("{wrong}");
        }
    }
}

fn table(reports: &BTreeMap<String, Vec<(u64, Report)>>) {
    eprintln!(
        "faults: {:<28} {:>4} {:>6} {:>8} {:>6} {:>7} {:>7} {:>4} {:>7} {:>6} {:>6} {:>4} {:>9} {:>5}",
        "cell",
        "runs",
        "jobs",
        "attempts",
        "acts",
        "strikes",
        "pause",
        "lost",
        "doubled",
        "untrue",
        "unsure",
        "left",
        "survivors",
        "wrong"
    );
    for (cell, runs) in reports {
        let sum =
            |count: fn(&Report) -> usize| runs.iter().map(|(_, run)| count(run)).sum::<usize>();
        let pause = runs
            .iter()
            .map(|(_, run)| run.pause)
            .max()
            .unwrap_or_default();
        eprintln!(
            "faults: {cell:<28} {:>4} {:>6} {:>8} {:>6} {:>7} {:>6.1}s {:>4} {:>7} {:>6} {:>6} {:>4} {:>9} {:>5}",
            runs.len(),
            sum(|run| run.jobs.len()),
            sum(|run| run.attempts),
            sum(|run| run.acts),
            sum(|run| run.strikes),
            pause.as_secs_f64(),
            sum(|run| run.lost.len()),
            sum(|run| run.doubled.len()),
            sum(|run| run.wrong.len()),
            sum(|run| run.undecided),
            sum(|run| run.left.len()),
            sum(|run| run.survivors),
            sum(|run| run.complaints.len()),
        );
    }
}
