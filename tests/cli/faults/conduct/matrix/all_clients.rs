//! All clients concurrently: shells, an operator and Python services on the same few jobs, while conductors run their
//! commands and a fault strikes.
//!
//! Jobs may be trashed and consumed at any time here, so none has to finish: the judge checks whether all answers are
//! consistent.

use std::{
    collections::BTreeSet,
    fs,
    sync::Mutex,
    thread::{self, Scope},
    time::Duration,
};

use serde_json::Value;

use super::{
    EVERYDAY_OF_ALL,
    actors::{Crew, Hand},
    cell::{Board, Cell, Fault, Part},
    chance::Dice,
    each_cell, history_from_logs,
    judge::Report,
    number,
    run::{Ending, SCRIPT, keep, survivors, workers},
    strike::{Other, Scene},
    worker::{Way, Worker},
};
use crate::{
    conduct::Kind,
    faults::size,
    support::{History, Tag},
};

/// The number of each kind of client.
const SHELLS: usize = 2;
const OPERATORS: usize = 1;
const SERVICES: usize = 2;

#[test]
fn answers_to_all_concurrent_clients_are_consistent() {
    let seconds = Duration::from_secs(number("SECONDS", size(30, 3)) as u64);
    let strikes = number("STRIKES", size(40, 3));
    each_cell(EVERYDAY_OF_ALL, |cell, seed| {
        run(cell, seconds, strikes, seed)
    });
}

/// The clients next to the workers, and their connections.
struct People<'a> {
    crew: &'a Crew<'a>,
    others: &'a [Other],
    /// For each client with its own proxy.
    boards: Vec<Option<String>>,
    /// The board configuration of services.
    conf: Option<Value>,
    seed: u64,
}

impl<'a> People<'a> {
    fn hand(&self, at: usize, name: &str) -> Hand<'a> {
        Hand {
            board: self.boards[at].clone(),
            dice: Dice::of(self.seed + at as u64),
            ..Hand::new(self.crew, &format!("{name}-{at}"), &self.others[at])
        }
    }

    fn start<'scope>(&self, scope: &'scope Scope<'scope, '_>)
    where
        'a: 'scope,
    {
        let crew = self.crew;
        for (at, by) in self.others.iter().enumerate() {
            if at < SHELLS {
                let hand = self.hand(at, "shell");
                scope.spawn(move || hand.type_on());
            } else if at < SHELLS + OPERATORS {
                let hand = self.hand(at, "operator");
                scope.spawn(move || hand.operate());
            } else {
                let (name, dice) = (format!("python-{at}"), Dice::of(self.seed + at as u64));
                let conf = self.conf.clone().unwrap_or_default();
                scope.spawn(move || crew.serve(&name, &conf, by, dice));
            }
        }
    }
}

/// Prepares the clients, each with its own proxy except services.
fn others(server: Option<&Kind>) -> (Vec<Other>, Vec<Option<String>>) {
    let other = |_| {
        let (board, proxy) = server.map(Kind::through_proxy).unzip();
        let process = Mutex::default();
        (Other { proxy, process }, board)
    };
    let (mut others, boards): (Vec<_>, Vec<_>) = (0..SHELLS + OPERATORS).map(other).unzip();
    let services = if server.is_some() { SERVICES } else { 0 };
    others.extend((0..services).map(|_| Other::default()));
    (others, boards)
}

/// Runs a cell for some seconds; `None` without its server.
fn run(cell: Cell, most: Duration, strikes_at_most: usize, seed: u64) -> Option<Report> {
    let mut dice = Dice::of(seed);
    let (env, mut server) = cell.stage()?.apart();
    let (history, tag) = (History::new(), Tag::new());
    let lease = Duration::from_secs(1);
    let script = env.file("job");
    fs::write(&script, SCRIPT).unwrap();
    let variables = [
        ("LONG", tag.text().to_owned()),
        ("LEASE", "0.5".to_owned()),
        ("SHAPES", "plain setsid deaf".to_owned()),
    ];
    let ways = [Way::Conduct, Way::Conduct, Way::Claim];
    let workers = workers(server.as_ref(), lease, &script, &ways);
    let (others, boards) = others(server.as_ref());
    let mut crew = Crew::new(&env, &history, script.to_str().unwrap());
    crew.can_lapse = cell.board != Board::ZooKeeper;
    crew.is_sure = !matches!(cell.fault, Fault::Restart | Fault::HungUp);
    let people = People {
        crew: &crew,
        others: &others,
        boards,
        conf: server.as_ref().and_then(Kind::conf),
        seed,
    };
    people.hand(0, "shell").post(true);
    let (mut strikes, mut complaints) = (0, Vec::new());
    thread::scope(|scope| {
        let (env, variables, history) = (&env, &variables, &history);
        // Ends the clients even if a check fails.
        let ends = (Over(&crew), Ending(&workers));
        let start = |worker| scope.spawn(move || Worker::work(worker, env, variables, history));
        let working: Vec<_> = workers.iter().map(start).collect();
        people.start(scope);
        let mut scene = Scene {
            env,
            server: server.as_mut(),
            workers: &workers,
            others: &others,
            lease,
        };
        while strikes < strikes_at_most && history.now() < most {
            thread::sleep(dice.tenths(lease, 1, 8));
            scene.strike(cell.fault, &mut dice);
            strikes += 1;
        }
        thread::sleep(most.saturating_sub(history.now()));
        drop(ends);
        let ended = working.into_iter().map(|worker| worker.join().unwrap());
        complaints.extend(ended.flatten());
    });
    history_from_logs::write_down(&history, &env, &workers, lease);
    let mut report = judged(cell, &crew, &tag);
    report.strikes = strikes;
    report.complaints.extend(complaints);
    if !report.is_good() {
        let name = format!("everybody-{cell}-{seed}").replace('/', "-");
        keep(&env, &workers, &history, &name);
    }
    assert!(report.acts > 0, "nobody did anything");
    Some(report)
}

/// Judges by the history alone, after all clients stopped.
fn judged(cell: Cell, crew: &Crew<'_>, tag: &Tag) -> Report {
    // Without conductor and guard, only the next attempt ends leftovers, and no attempt need follow here.
    let survivors = match (survivors(tag), cell.fault) {
        (_, Fault::Kill(Part::Both)) => 0,
        (survivors, _) => survivors,
    };
    let report = Report {
        survivors,
        // The history decides this.
        lost: BTreeSet::new(),
        doubled: BTreeSet::new(),
        ..Report::judge(crew.env, &crew.jobs(), Vec::new())
    };
    report.with(crew.env, crew.history)
}

/// Stops all clients when dropped.
struct Over<'a>(&'a Crew<'a>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
