//! One scenario: conductors, a poster, an operator and a peer work through faults until every job has ended.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta};
use clap::Parser;
use futures_util::TryStreamExt;
use serde_json::json;
use tokio::{
    task::JoinHandle,
    time::{self, Instant},
};
use uuid::Uuid;

use crate::{
    board::{
        Board, BoardExt, ClaimRules, Detail, Query,
        filter::Filters,
        testing::simulated::{ClaimLifetime, Server, SimulatedBoard, Weather},
    },
    conductor::{
        ConductorStatus, Destination, Halted, Settings, TimeLimit, Until,
        policy::{Policy, ProgramCache, Programs, Variables},
        progress::Reporter,
        shared::Shared,
        work,
    },
    job::{
        Aftermath, Authority, Claimant, Conductor, ConductorReport, Draft, Entry, Failure, Job,
        Outcome, Owner, Pause, Priority, RELEASED, Remark, Restore, Settlement, Shelf, Term,
        Witness,
    },
    process::{
        clock,
        signal::Signals,
        simulation::{Dice, Machine, Planted, Standing, guard_of, part_of},
    },
    retry::RetryPolicy,
};

const LEASE: Duration = Duration::from_secs(30);

/// The longest wait for a job to end after the last fault. While the clock was wrong, so was the back-off.
const SETTLING: Duration = Duration::from_secs(2 * 3600);

const MOST_CONDUCTORS: u64 = 3;

/// Clients other than the conductors, which are numbered from `FIRST`.
const POSTER: u32 = 1;
const OPERATOR: u32 = 2;
const PEER: u32 = 3;
const FIRST: u32 = 16;

#[derive(Debug, Clone, Copy)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    pub(super) lifetime: ClaimLifetime,
    pub(super) planted: Option<Planted>,
    /// How long faults happen.
    pub(super) long: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) violation: Option<String>,
    pub(super) journal: Vec<String>,
    simulated: Duration,
    jobs: u64,
    commands: u64,
    requests: u64,
    scenarios: u64,
    faults: BTreeMap<&'static str, u64>,
}

impl Figures {
    pub(super) fn add(&mut self, other: &Self) {
        self.simulated += other.simulated;
        self.jobs += other.jobs;
        self.commands += other.commands;
        self.requests += other.requests;
        self.scenarios += 1;
        for (&fault, times) in &other.faults {
            *self.faults.entry(fault).or_default() += times;
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.simulated.as_secs_f64() / 3600.0;
        let faults: u64 = self.faults.values().sum();
        write!(
            f,
            "{hours:.1} hours in {} scenarios: {} jobs, {} commands, {} requests, {faults} faults {:?}",
            self.scenarios, self.jobs, self.commands, self.requests, self.faults
        )
    }
}

#[derive(Debug, clap::Parser)]
struct Retry {
    #[command(flatten)]
    policy: RetryPolicy,
}

fn retry() -> RetryPolicy {
    Retry::parse_from(["conduct", "--retry-max", "60s"]).policy
}

struct RunningConductor {
    program: u32,
    task: JoinHandle<()>,
}

struct World {
    machine: Arc<Machine>,
    server: Arc<Server>,
    scenario: Scenario,
    next: u32,
    running: Vec<Option<RunningConductor>>,
    figures: Figures,
    posted: Vec<String>,
}

pub(super) fn simulate(scenario: Scenario) -> Figures {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (machine, _running) = Machine::start(scenario.seed, scenario.planted);
        let rate = machine.with_dice(|dice| 0.998 + 0.004 * dice.chance());
        let server = Server::start(&machine, scenario.lifetime, rate, LEASE);
        let conductors = 1 + machine.with_dice(|dice| dice.below(MOST_CONDUCTORS));
        let mut world = World {
            machine,
            server,
            scenario,
            next: FIRST,
            running: (0..conductors).map(|_| None).collect(),
            figures: Figures::default(),
            posted: Vec::new(),
        };
        world.play().await;
        world.finish()
    })
}

impl World {
    fn draw<T>(&self, draw: impl FnOnce(&mut Dice) -> T) -> T {
        self.machine.with_dice(draw)
    }

    fn board(&self, client: u32) -> Arc<SimulatedBoard> {
        Arc::new(SimulatedBoard::new(&self.server, client))
    }

    fn start_conductor(&mut self, at: usize) {
        self.next += 1;
        let (program, lifetime) = (self.next, self.scenario.lifetime);
        let board = self.board(program);
        let (name, jobs) = (format!("c{at}"), 6 - 2 * at);
        let machine = Arc::clone(&self.machine);
        machine.note(format!("{name} starts as {program}"));
        let task = tokio::spawn(part_of(Some(program), async move {
            if lifetime == ClaimLifetime::Session {
                board.keep_session(LEASE);
            }
            let (reporter, mut notes) = Reporter::new();
            let draining = tokio::spawn(async move { while notes.recv().await.is_some() {} });
            let shared = Shared::new(board, settings(&name, program, jobs, &reporter));
            let mut signals = Signals::catch(&[]).unwrap();
            let done = work(&Arc::new(shared.unwrap()), &mut signals).await;
            match done {
                // A board may refuse a new conductor. In practice, its service manager starts it again.
                Err(Halted::Board(error)) => machine.note(format!("{name} ends: {error}")),
                other => machine.violate(format!("{name} ended unasked: {other:?}")),
            }
            draining.abort();
        }));
        self.running[at] = Some(RunningConductor { program, task });
    }

    async fn play(&mut self) {
        for at in 0..self.running.len() {
            self.start_conductor(at);
        }
        let end = Instant::now() + self.scenario.long;
        let mut next_fault = Instant::now() + Duration::from_secs(30);
        let mut next_job = Instant::now();
        while Instant::now() < end && self.machine.violation().is_none() {
            time::sleep_until(next_fault.min(next_job)).await;
            if next_job <= Instant::now() {
                let jobs = self.draw(|dice| {
                    if dice.below(20) == 0 {
                        40
                    } else {
                        1 + dice.below(4)
                    }
                });
                self.post(jobs).await;
                let pause = (Duration::from_secs(1), Duration::from_secs(40));
                next_job = Instant::now() + self.draw(|dice| dice.between(pause));
            }
            if next_fault <= Instant::now() {
                self.fault().await;
                let pause = (Duration::from_millis(100), Duration::from_secs(60));
                next_fault = Instant::now() + self.draw(|dice| dice.between(pause));
            }
        }
        if self.machine.violation().is_none() {
            self.settle().await;
        }
    }

    async fn post(&mut self, jobs: u64) {
        let drafts = (0..jobs).map(|_| {
            let (high, low) = self.draw(|dice| (dice.next(), dice.next()));
            Draft {
                uuid: Uuid::from_u64_pair(high, low),
                chosen: false,
                name: "job".to_owned(),
                priority: Priority::Normal,
                book: None,
                details: json!({ "command": ["/bin/true"] }).into(),
                former: None,
            }
        });
        let drafts: Vec<_> = drafts.collect();
        let Ok(answers) = self.board(POSTER).post(&drafts, None).await else {
            return;
        };
        for (draft, answer) in drafts.iter().zip(answers) {
            if answer.is_ok() {
                self.posted.push(draft.uuid.to_string());
            }
        }
    }

    async fn fault(&mut self) {
        for place in &mut self.running {
            place.take_if(|running| running.task.is_finished());
        }
        let at = self.draw(|dice| dice.below(self.running.len() as u64) as usize);
        let program = self.running[at].as_ref().map(|it| it.program);
        let fault = match (self.draw(|dice| dice.below(18)), program) {
            (which @ 0..9, Some(program)) => self.harm(which, at, program),
            (0..9, None) => {
                self.start_conductor(at);
                "started"
            }
            (which, _) => self.disturb(which).await,
        };
        *self.figures.faults.entry(fault).or_default() += 1;
        self.machine.note(format!("{fault}: c{at}"));
    }

    fn until(&self, most: u64) -> Instant {
        let long = (Duration::from_millis(200), Duration::from_secs(most));
        Instant::now() + self.draw(|dice| dice.between(long))
    }

    fn harm(&mut self, which: u64, at: usize, program: u32) -> &'static str {
        match which {
            0 | 1 => {
                self.kill(at, program);
                "killed"
            }
            2 => {
                self.machine.unguard(program);
                self.machine.kill_guard(program);
                self.kill(at, program);
                "killed with its guard"
            }
            3 | 4 => {
                self.stop(program, 120);
                "stopped"
            }
            5 => {
                self.machine.unguard(program);
                self.stop(guard_of(program), 20);
                self.stop(program, 90);
                "stopped with its guard"
            }
            6 => {
                if self.machine.standing(program) != Standing::Runs {
                    self.machine.unguard(program);
                }
                self.machine.kill_guard(program);
                "guard killed"
            }
            _ => {
                let end = self.until(90);
                self.server
                    .change_weather(|it| _ = it.cut.insert(program, end));
                "cut off"
            }
        }
    }

    /// Faults of the server, the network and the clock, and acts of people and peers.
    async fn disturb(&self, which: u64) -> &'static str {
        match which {
            9 => {
                let end = self.until(40);
                self.server.change_weather(|it| it.down_until = Some(end));
                "server down"
            }
            10 => {
                let end = self.until(40);
                self.server
                    .change_weather(|it| it.refuses_until = Some(end));
                "writes refused"
            }
            11 | 12 => {
                let end = self.until(120);
                self.server.change_weather(|it| it.rough_until = Some(end));
                "rough network"
            }
            13 => {
                let seconds = self.draw(|dice| dice.below(7200) as i64 - 3600);
                self.machine.set_wall_clock(TimeDelta::seconds(seconds));
                "clock set"
            }
            14 => {
                self.release_by_force().await;
                "released by force"
            }
            15 => {
                self.retry_all().await;
                "retried"
            }
            16 => {
                self.pause().await;
                "paused"
            }
            _ => {
                self.peer().await;
                "claimed by a peer"
            }
        }
    }

    /// Call it before a conductor stops or dies: a stopped guard does not end its commands.
    fn leave_alone(&self, program: u32) {
        if self.machine.standing(guard_of(program)) != Standing::Runs {
            self.machine.unguard(program);
        }
    }

    fn kill(&mut self, at: usize, program: u32) {
        self.leave_alone(program);
        self.machine.set(program, Standing::Dead);
        if let Some(running) = self.running[at].take() {
            running.task.abort();
        }
    }

    fn stop(&self, program: u32, most: u64) {
        let end = self.until(most);
        self.leave_alone(program);
        self.machine.set(program, Standing::Stopped);
        let machine = Arc::clone(&self.machine);
        tokio::spawn(async move {
            time::sleep_until(end).await;
            machine.set(program, Standing::Runs);
        });
    }

    /// Returns a random job, claimed or unclaimed, as an operator sees it.
    async fn some(&self, board: &SimulatedBoard, shelf: Shelf, is_held: bool) -> Option<Job> {
        let entries = board.entries(Query::all(shelf, Detail::Whole));
        let entries: Vec<_> = entries.try_collect().await.ok()?;
        let jobs = entries.into_iter().filter_map(|entry: Entry| match entry {
            Entry::Job(job) if job.holding.is_some() == is_held => Some(*job),
            _ => None,
        });
        let jobs: Vec<_> = jobs.collect();
        let at = self.draw(|dice| dice.below(jobs.len() as u64) as usize);
        jobs.into_iter().nth(at)
    }

    async fn release_by_force(&self) {
        let board = self.board(OPERATOR);
        let Some(job) = self.some(&board, Shelf::Board, true).await else {
            return;
        };
        let left = job.holding.as_ref().and_then(|it| it.expires_in);
        let left = TimeDelta::from_std(left.unwrap_or(LEASE)).unwrap_or_default();
        let key = job.key.clone();
        let entry = Entry::Job(Box::new(job));
        // The owner may still run it, so conductors wait until the old claim would have ended.
        let aftermath = Aftermath::Failed {
            failure: Failure::reported(RELEASED, "operator"),
            not_before: Some(clock::wall() + left),
        };
        let authority = Authority::Override(Witness::of(&entry));
        let settlement = Settlement::of(key, Outcome::Abandon(aftermath), authority);
        let _ = board.settle(&[settlement]).await;
    }

    async fn retry_all(&self) {
        let board = self.board(OPERATOR);
        while let Some(job) = self.some(&board, Shelf::Trash, false).await {
            let restore = Restore::from_trash(job.key.clone(), None);
            if board.restore(&[restore]).await.is_err() {
                return;
            }
        }
    }

    async fn pause(&self) {
        let board = self.board(OPERATOR);
        let remark = Remark::now("paused", "operator", None);
        let pause = Pause {
            names: "*".to_owned(),
            until: None,
            remark: remark.clone(),
        };
        let _ = board.pause(&pause).await;
        let long = (Duration::from_secs(1), Duration::from_secs(60));
        let long = self.draw(|dice| dice.between(long));
        tokio::spawn(async move {
            time::sleep(long).await;
            while board.resume("*", &remark).await.is_err() {
                time::sleep(Duration::from_secs(1)).await;
            }
        });
    }

    /// Lets a Python service claim a job and finish it in time.
    async fn peer(&self) {
        let board = self.board(PEER);
        let by = Claimant {
            owner: Owner::new("peer").unwrap(),
            term: Term::For(Duration::from_secs(600)),
        };
        let Some(job) = self.some(&board, Shelf::Board, false).await else {
            return;
        };
        let rules = ClaimRules {
            respects_not_before: true,
            ..ClaimRules::BY_HAND
        };
        let Ok(claimed) = board.claim_one(&job.key, &by, rules).await else {
            return;
        };
        let machine = Arc::clone(&self.machine);
        let (_, mut end) = machine.start_command(&job.uuid, None);
        tokio::spawn(async move {
            let ended = end.wait_for(Option::is_some).await.ok().and_then(|it| *it);
            let outcome = match ended.map(|it| it.code()) {
                Some(0) => Outcome::Consume,
                _ => Outcome::Abandon(Aftermath::None),
            };
            for _ in 0..20 {
                let authority = Authority::Claim(by.owner.clone(), claimed.fence.clone());
                let answer = board.settle_one(&job.key, outcome.clone(), authority).await;
                match answer {
                    Err(error) if error.is_away() || !error.is_about_the_claim() => {
                        time::sleep(Duration::from_secs(5)).await;
                    }
                    _ => return,
                }
            }
        });
    }

    /// Ends the faults, and waits until every job has ended.
    async fn settle(&mut self) {
        self.machine.note("faults end");
        // All clients connect again while the last jobs are posted.
        let end = Instant::now() + Duration::from_secs(1);
        self.server.change_weather(|it| {
            *it = Weather {
                down_until: Some(end),
                ..Weather::default()
            };
        });
        time::sleep_until(end).await;
        for at in 0..self.running.len() {
            self.running[at].take_if(|running| running.task.is_finished());
            match self.running[at].as_ref().map(|it| it.program) {
                Some(program) => {
                    self.machine.set(program, Standing::Runs);
                    self.machine.set(guard_of(program), Standing::Runs);
                }
                None => self.start_conductor(at),
            }
        }
        for _ in 0..30 {
            self.post(1).await;
            let pause = (Duration::ZERO, Duration::from_millis(300));
            time::sleep(self.draw(|dice| dice.between(pause))).await;
        }
        let (mut end, mut before) = (Instant::now() + SETTLING, usize::MAX);
        while Instant::now() < end && self.machine.violation().is_none() {
            time::sleep(Duration::from_secs(10)).await;
            // The request for a pause may arrive after the one that ends it.
            let remark = Remark::now("resumed", "operator", None);
            if !self.server.look(|store| store.pauses.is_empty()) {
                let _ = self.board(OPERATOR).resume("*", &remark).await;
            }
            let left = self.server.look(|store| store.jobs_left());
            if left == 0 {
                return;
            }
            if left < before {
                (end, before) = (Instant::now() + SETTLING, left);
            }
        }
        let left = self.posted.iter().filter_map(|uuid| {
            let fate = self.server.look(|store| store.fate(uuid));
            let fate = fate.unwrap_or_else(|| "lost".to_owned());
            let is_over = fate == "consumed" || fate == "trashed";
            (!is_over).then(|| format!("{uuid} is {fate}"))
        });
        let left: Vec<_> = left.collect();
        self.machine.violate(format!(
            "no job ended for two hours after the last fault: {left:?}"
        ));
    }

    fn finish(mut self) -> Figures {
        for uuid in &self.posted {
            if self.server.look(|store| store.fate(uuid)).is_none() {
                self.machine.violate(format!("job {uuid} is lost"));
            }
        }
        self.figures.violation = self.machine.violation();
        self.figures.journal = self.machine.journal();
        self.figures.simulated = self.machine.uptime();
        self.figures.jobs = self.posted.len() as u64;
        self.figures.commands = u64::try_from(self.machine.started()).unwrap_or(0);
        self.figures.requests = self.server.requests();
        self.figures
    }
}

fn settings(name: &str, program: u32, jobs: usize, reporter: &Reporter) -> Settings {
    let until = Until {
        drained: false,
        jobs: None,
        idle: None,
    };
    Settings {
        conductor: Conductor {
            name: name.to_owned(),
            host: "simulated".to_owned(),
            pid: program,
            since: DateTime::default(),
            owner: Owner::new(name).unwrap(),
            silence: None,
            has_left: false,
            report: ConductorReport::default(),
        },
        mark: format!("{name}:{program}"),
        jobs,
        lease: LEASE,
        filters: Filters::default(),
        until,
        policy: Policy {
            programs: Programs::Any,
            variables: Variables::Any,
            handlers: None,
            search: Vec::new(),
            found: Some(ProgramCache::default()),
        },
        retry: retry(),
        output: Destination::Inherit,
        time_limit: TimeLimit {
            usual: None,
            most: None,
        },
        grace: Duration::from_secs(30),
        status: Arc::new(ConductorStatus::new(reporter, until)),
        spans: None,
        withheld: Vec::new(),
        service_manager: None,
    }
}
