//! One scenario: conductors, a poster, an operator and a peer work through faults until every job has ended.

mod clients;
mod conductors;
mod faults;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use chrono::TimeDelta;
use tokio::{
    runtime::{Builder, Runtime},
    task::{JoinHandle, LocalSet},
    time::{self, Instant},
};

use crate::{
    board::{
        Board,
        testing::simulated::{ActiveFaults, ClaimLifetime, Server, SimulatedBoard, Store},
    },
    job::AuditEntry,
    process::simulation::{Dice, Machine, MachineScope, Planted, Standing, guard_of},
};

const LEASE: Duration = Duration::from_secs(30);

/// The longest wait for a job to end after the last fault. While the clock was wrong, so was the back-off.
const SETTLING: Duration = Duration::from_secs(2 * 3600);

const MAX_CONDUCTORS: u64 = 3;

/// When all conductors have connected again after the last fault, and have noticed that the clock was set; and how
/// long they may then ignore a job.
const CONNECTING: Duration = Duration::from_secs(60);
const PICKUP: Duration = Duration::from_secs(15);

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
    /// Whether the server may restart without its last writes.
    pub(super) loses_writes: bool,
    pub(super) spares_conductors: bool,
    pub(super) has_journal: bool,
}

#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) violation: Option<String>,
    /// The seed of the violation, if these are the figures of several.
    pub(super) seed: u64,
    pub(super) journal: Vec<String>,
    simulated: Duration,
    jobs: u64,
    commands: u64,
    requests: u64,
    pub(super) scenarios: u64,
    faults: BTreeMap<&'static str, u64>,
    /// By how many bytes the memory grew in each period.
    pub(super) growth: Vec<i64>,
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

struct RunningProgram {
    program: u32,
    task: JoinHandle<()>,
}

struct World {
    machine: Arc<Machine>,
    server: Arc<Server>,
    scenario: Scenario,
    next: u32,
    running: Vec<Option<RunningProgram>>,
    /// Programs that run one job, as `claim --next -- COMMAND` does.
    shells: Vec<RunningProgram>,
    figures: Figures,
    posted: Vec<String>,
}

pub(super) fn simulate(scenario: Scenario) -> Figures {
    simulate_periods(scenario, 1)
}

/// Repeats a scenario on one machine. All jobs end, and are forgotten, in each period.
pub(super) fn simulate_periods(scenario: Scenario, periods: u32) -> Figures {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    // The terminal code of shells stays on one thread.
    let local = LocalSet::new();
    let (mut world, _running) = World::create(&runtime, scenario);
    for _ in 0..periods {
        let memory = allocation_counter::measure(|| {
            local.block_on(&runtime, world.play());
            world.check_all_posted();
        });
        world.figures.growth.push(memory.bytes_current);
    }
    runtime.block_on(async { world.finish() })
}

impl World {
    fn create(runtime: &Runtime, scenario: Scenario) -> (Self, MachineScope) {
        let _inside = runtime.enter();
        let Scenario {
            seed,
            planted,
            has_journal,
            ..
        } = scenario;
        let (machine, running) = Machine::start(seed, planted, has_journal);
        let rate = machine.with_dice(|dice| 0.998 + 0.004 * dice.chance());
        let server = Server::start(&machine, scenario.lifetime, rate, LEASE);
        let conductors = 1 + machine.with_dice(|dice| dice.below(MAX_CONDUCTORS));
        let world = Self {
            machine,
            server,
            scenario,
            next: FIRST,
            running: (0..conductors).map(|_| None).collect(),
            shells: Vec::new(),
            figures: Figures::default(),
            posted: Vec::new(),
        };
        (world, running)
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut Dice) -> T) -> T {
        self.machine.with_dice(draw)
    }

    fn board(&self, client: u32) -> Arc<SimulatedBoard> {
        Arc::new(SimulatedBoard::new(&self.server, client))
    }

    async fn play(&mut self) {
        for at in 0..self.running.len() {
            if self.running[at].is_none() {
                self.start_conductor(at);
            }
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

    /// Starts the conductors that have ended, as a service manager does.
    fn start_ended(&mut self) {
        for at in 0..self.running.len() {
            self.running[at].take_if(|running| running.task.is_finished());
            if self.running[at].is_none() {
                self.start_conductor(at);
            }
        }
    }

    /// Ends the faults, and waits until every job has ended.
    async fn settle(&mut self) {
        self.machine.note("faults end");
        // All clients connect again while the last jobs are posted.
        let end = Instant::now() + Duration::from_secs(1);
        self.server.change_faults(|it| {
            *it = ActiveFaults {
                down_until: Some(end),
                slow_until: Some(end + Duration::from_secs(10)),
                ..ActiveFaults::default()
            };
        });
        time::sleep_until(end).await;
        let programs = self.running.iter().flatten().map(|it| it.program);
        programs.for_each(|program| self.resume(program));
        self.start_ended();
        self.shells.iter().for_each(|it| self.resume(it.program));
        for _ in 0..30 {
            self.post(1).await;
            let pause = (Duration::ZERO, Duration::from_millis(300));
            time::sleep(self.draw(|dice| dice.between(pause))).await;
        }
        let mut attentive = Instant::now() + CONNECTING;
        let (mut end, mut before) = (Instant::now() + SETTLING, usize::MAX);
        let mut ignored = BTreeMap::new();
        let mut clock_is_set = false;
        while Instant::now() < end && self.machine.violation().is_none() {
            time::sleep(PICKUP / 5).await;
            // A refusal from before the end of the faults may arrive late.
            self.start_ended();
            if Instant::now() > attentive {
                self.check_pickup(&mut ignored);
                if !clock_is_set && self.server.look(Store::only_waits_for_retries) {
                    // Ahead of every earlier setting of the clock: all retries are due, and no event reports it.
                    self.machine.note("clock set");
                    self.set_wall_clock(TimeDelta::hours(2));
                    clock_is_set = true;
                    attentive = Instant::now() + CONNECTING;
                }
            }
            // The request for a pause may arrive after the one that ends it.
            let audit = AuditEntry::now("resumed", "operator", None);
            if !self.server.look(|store| store.pauses.is_empty()) {
                let _ = self.board(OPERATOR).resume("*", &audit).await;
            }
            let left = self.server.look(|store| store.jobs_left());
            if left == 0 {
                return;
            }
            if left < before {
                (end, before) = (Instant::now() + SETTLING, left);
            }
        }
        let known = self.posted.iter();
        let known = known.filter(|uuid| !self.server.look(|store| store.has_lost(uuid)));
        let left = known.filter_map(|uuid| {
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

    fn set_wall_clock(&self, by: TimeDelta) {
        self.server.look(Store::excuse_waiting);
        self.machine.set_wall_clock(by);
    }

    /// Lets a program and its guard go on after a stop.
    fn resume(&self, program: u32) {
        self.machine.set(program, Standing::Runs);
        self.machine.set(guard_of(program), Standing::Runs);
    }

    /// Checks that no job waits while a conductor has a free slot. A lost reply delays a conductor.
    fn check_pickup(&self, ignored: &mut BTreeMap<String, Instant>) {
        let has_slot = |(at, running): (usize, &Option<RunningProgram>)| {
            let claims = self
                .server
                .look(|store| store.count_of(&conductors::name(at)));
            let runs = running.as_ref().is_some_and(|it| !it.task.is_finished());
            runs && claims < conductors::slots(at)
        };
        let is_free = self.running.iter().enumerate().any(has_slot);
        let waiting = self
            .server
            .look(|store| match store.pauses.is_empty() && is_free {
                true => store.claimable().into_iter().map(str::to_owned).collect(),
                false => Vec::new(),
            });
        ignored.retain(|uuid, _| waiting.contains(uuid));
        for uuid in waiting {
            let since = *ignored.entry(uuid.clone()).or_insert_with(Instant::now);
            if since.max(self.server.last_lost_reply()).elapsed() > PICKUP {
                let text = format!("no conductor starts job {uuid}, although one has a free slot");
                self.machine.violate(text);
            }
        }
    }

    fn check_all_posted(&mut self) {
        for uuid in self.posted.drain(..) {
            let is_gone = self
                .server
                .look(|store| store.fate(&uuid).is_none() && !store.has_lost(&uuid));
            if is_gone {
                self.machine.violate(format!("job {uuid} is lost"));
            }
            self.figures.jobs += 1;
        }
        self.server.forget();
        self.machine.forget();
        self.shells.retain(|it| !it.task.is_finished());
    }

    fn finish(mut self) -> Figures {
        self.figures.violation = self.machine.violation();
        self.figures.journal = self.machine.journal();
        self.figures.simulated = self.machine.uptime();
        self.figures.commands = self.machine.commands();
        self.figures.requests = self.server.requests();
        self.figures
    }
}
