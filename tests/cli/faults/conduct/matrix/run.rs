//! One run of a cell: jobs, workers, and a fault.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use super::{
    cell::{Cell, Fault},
    chance::Dice,
    history_from_logs,
    judge::{self, Report},
    strike::Scene,
    worker::{Way, Worker},
};
use crate::{
    conduct::Kind,
    support::{Env, History, Tag, comes_true},
};

/// The longest idle time of a board with jobs.
const CALM: Duration = Duration::from_secs(30);

/// The time limit for the work after the last fault.
const WORK: Duration = Duration::from_secs(300);

/// The longest time that leftovers may outlive their workers.
const SURVIVAL: Duration = Duration::from_secs(5);

pub(super) const SCRIPT: &str = include_str!("job.sh");

#[derive(Debug, Clone)]
pub(super) struct Size {
    pub(super) jobs: usize,
    /// The most strikes of a fault; none once nearly all jobs have ended.
    pub(super) strikes: usize,
    /// The shortest lease in seconds; every second lease is one second longer.
    pub(super) lease: u64,
    pub(super) shapes: String,
}

/// Ends all workers when dropped.
pub(super) struct Ending<'a>(pub(super) &'a [Worker]);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(Worker::end);
    }
}

/// Runs a cell once; `None` without its server.
pub(super) fn run(cell: Cell, size: &Size, seed: u64) -> Option<Report> {
    let mut dice = Dice::of(seed);
    let (env, mut server) = cell.stage()?.apart();
    let history = History::new();
    let lease = Duration::from_secs(size.lease + dice.below(2));
    let tag = Tag::new();
    let script = env.file("job");
    fs::write(&script, SCRIPT).unwrap();
    let variables = [
        ("LONG", tag.text().to_owned()),
        ("LEASE", lease.as_secs().to_string()),
        ("SHAPES", size.shapes.clone()),
    ];
    let posted = post(&env, &script, size.jobs);
    let ways = [
        Way::Conduct,
        Way::Conduct,
        Way::Claim,
        Way::Run(size.jobs / 6),
    ];
    let workers = workers(server.as_ref(), lease, &script, &ways);
    let (mut strikes, mut left, mut complaints) = (0, Vec::new(), Vec::new());
    thread::scope(|scope| {
        let (env, variables, history) = (&env, &variables, &history);
        // Ends the workers even if a check fails.
        let ending = Ending(&workers);
        let start = |worker| scope.spawn(move || Worker::work(worker, env, variables, history));
        let working: Vec<_> = workers.iter().map(start).collect();
        let mut scene = Scene {
            env,
            server: server.as_mut(),
            workers: &workers,
            others: &[],
            lease,
        };
        while strikes < size.strikes && judge::ended(env) < size.jobs * 9 / 10 {
            thread::sleep(dice.tenths(lease, 1, 8));
            scene.strike(cell.fault, &mut dice);
            strikes += 1;
        }
        let sight = Sight::until_calm(env, lease);
        (left, complaints) = (sight.left, sight.complaints);
        drop(ending);
        complaints.extend(
            working
                .into_iter()
                .flat_map(|worker| worker.join().unwrap()),
        );
    });
    history_from_logs::write_down(&history, &env, &workers, lease);
    let judged = Report::judge(&env, &posted, left).with(&env, &history);
    if cell.fault == Fault::Nothing {
        complaints.extend(needless(&judged, &workers));
    }
    let report = Report {
        strikes,
        survivors: survivors(&tag),
        complaints,
        ..judged
    };
    if !report.is_good() {
        keep(
            &env,
            &workers,
            &history,
            &format!("{cell}-{seed}").replace('/', "-"),
        );
    }
    Some(report)
}

fn post(env: &Env, script: &Path, count: usize) -> Vec<String> {
    let line = json!({"name": "posted", "details": {"command": ["sh", script]}});
    let lines = format!("{line}\n").repeat(count);
    let posted = env.jobboard(&["post", "--from", "-"]).stdin(lines).run();
    posted.succeeded().lines().map(str::to_owned).collect()
}

/// Prepares workers, each with its own connection.
pub(super) fn workers(
    server: Option<&Kind>,
    lease: Duration,
    script: &Path,
    ways: &[Way],
) -> Vec<Worker> {
    let lease = format!("{}ms", lease.as_millis());
    let script = script.to_str().unwrap();
    let workers = ways.iter().map(|&way| {
        let command = match way {
            Way::Conduct => {
                "conduct -j3 --max-attempts 100000 --retry-delay 10ms --retry-max 100ms \
                 --output discard --log json"
            }
            Way::Claim => "claim --next --wait 1s --max-attempts 100000",
            Way::Run(_) => "run ran --max-attempts 100000",
        };
        let mut words = command
            .split(' ')
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>();
        words.extend(["--lease", &lease]);
        let mut board = String::new();
        let proxy = server.map(|server| {
            let proxy;
            (board, proxy) = server.through_proxy();
            words.extend(["--board", &board]);
            proxy
        });
        match way {
            Way::Conduct if server.is_some() => words.push("--allow-any"),
            Way::Conduct => {}
            Way::Claim | Way::Run(_) => words.extend(["--", "sh", script]),
        }
        Worker::new(way, words.into_iter().map(str::to_owned).collect(), proxy)
    });
    workers.collect()
}

/// The observation of a board that should become empty.
struct Sight {
    left: Vec<Value>,
    /// Claims without a started command, and the time of their discovery.
    idle: HashMap<(String, String), Instant>,
    complaints: Vec<String>,
}

impl Sight {
    /// Watches until no job is left, or the board is idle.
    fn until_calm(env: &Env, lease: Duration) -> Self {
        let mut sight = Self {
            left: Vec::new(),
            idle: HashMap::new(),
            complaints: Vec::new(),
        };
        let start = Instant::now();
        let (mut since, mut seen) = (start, None);
        loop {
            let log = fs::read_to_string(env.file("log")).unwrap_or_default();
            let run = env.run("list --json");
            // A busy server may time out.
            if run.code == 0 {
                sight.left = run.json().as_array().unwrap().clone();
                sight.find_idle_claims(&log, lease * 4 + CALM / 6);
                let claims: Vec<_> = sight.left.iter().map(claim).collect();
                let now = Some((claims, log.len()));
                if seen != now {
                    (since, seen) = (Instant::now(), now);
                }
            }
            let is_empty = sight.left.is_empty() && seen.is_some();
            if is_empty || since.elapsed() > CALM || start.elapsed() > WORK {
                if seen.is_none() {
                    sight.complaints.push(run.stderr);
                }
                return sight;
            }
            thread::sleep(Duration::from_millis(300));
        }
    }

    /// Reports each claim that started nothing for this long.
    fn find_idle_claims(&mut self, log: &str, most: Duration) {
        let claimed = self.left.iter().filter(|job| job["state"] == "CLAIMED");
        let idle = claimed.map(claim).filter(|(job, fence)| {
            let start = format!("start {job} {fence} ");
            !log.lines().any(|line| line.starts_with(&start))
        });
        let now = Instant::now();
        let idle = idle.map(|claim| {
            let since = self.idle.get(&claim).copied().unwrap_or(now);
            (claim, since)
        });
        self.idle = idle.collect();
        for ((job, fence), since) in &mut self.idle {
            if since.elapsed() > most {
                let complaint = format!("{job} is claimed, fence {fence}, and not run");
                self.complaints.push(complaint);
                // Report it once.
                *since += CALM + WORK;
            }
        }
    }
}

/// Returns the job and the fence of a claim.
fn claim(job: &Value) -> (String, String) {
    let text = |key: &str| job[key].as_str().unwrap_or_default().to_owned();
    (text("uuid"), text("fence"))
}

/// Counts the remaining processes of jobs, and ends them.
pub(super) fn survivors(tag: &Tag) -> usize {
    comes_true(SURVIVAL, || tag.commands().is_empty());
    let left = tag.commands();
    for &pid in &left {
        let _ = kill_process(pid, Signal::KILL);
    }
    left.len()
}

/// Reports commands that ended without a fault: a job starts again only after a lost claim, as on a busy machine.
fn needless(report: &Report, workers: &[Worker]) -> Option<String> {
    let logs: String = workers.iter().map(Worker::logs).collect();
    let lost = ["claim_lost", "was taken from us"].map(|words| logs.matches(words).count());
    let more = report.attempts.saturating_sub(report.jobs.len());
    (more > lost.iter().sum()).then(|| format!("{more} more attempts than jobs, lost: {lost:?}"))
}

/// Keeps the logs of a failed run.
pub(super) fn keep(env: &Env, workers: &[Worker], history: &History, name: &str) {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("faults")
        .join(name);
    fs::create_dir_all(&directory).unwrap();
    for file in ["log", "holders"] {
        let _ = fs::copy(env.file(file), directory.join(file));
    }
    for (number, worker) in workers.iter().enumerate() {
        fs::write(directory.join(format!("worker-{number}")), worker.logs()).unwrap();
    }
    fs::write(directory.join("history"), history.text()).unwrap();
    eprintln!("faults: kept in {}", directory.display());
}
