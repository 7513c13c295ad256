//! Faults around the program: many processes, kills and full disks.
//!
//! `JOBBOARD_FAULTS=full` makes the first two large.

pub(crate) mod conduct;
pub(crate) mod crashes;
pub(crate) mod history;
pub(crate) mod moves;
pub(crate) mod mutations;
pub(crate) mod redis;
pub(crate) mod strays;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    hash::{BuildHasher, RandomState},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

pub(crate) use crate::support::needs::{has, size};
use crate::support::{Env, Outcome, Running};

pub(crate) fn random(limit: u64) -> u64 {
    RandomState::new().hash_one(0) % limit
}

/// Builds a library of `tests/cli/support` for preloading.
pub(crate) fn preload(env: &Env, source: &str) -> Option<String> {
    if !has("cc") {
        return None;
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/support");
    let library = env.file(source).with_extension("so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library);
    let built = compiler
        .arg(directory.join(source))
        .arg("-ldl")
        .status()
        .unwrap();
    assert!(built.success());
    Some(library.to_str().unwrap().to_owned())
}

fn is_intact(env: &Env) {
    let answer: String = env
        .database()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(answer, "ok");
}

/// Claims until the board is empty, and returns the jobs and the longest duration of a claim.
fn claim_all(env: &Env, who: &str) -> (Vec<String>, Duration) {
    let (mut won, mut worst) = (Vec::new(), Duration::ZERO);
    loop {
        let start = Instant::now();
        let run = env.run(format!("claim --next -o uuid --who {who}"));
        worst = worst.max(start.elapsed());
        if run.code == 6 {
            return (won, worst);
        }
        won.push(run.posted());
    }
}

#[test]
fn concurrent_claimants_claim_every_job_exactly_once() {
    let (crowd, count) = (size(20, 16), size(10_000, 200));
    let env = Env::new();
    let jobs: BTreeSet<_> = env.post_many(count).into_iter().collect();
    let start = Instant::now();
    let won: Vec<_> = thread::scope(|scope| {
        let env = &env;
        let claimers: Vec<_> = (0..crowd)
            .map(|number| scope.spawn(move || claim_all(env, &format!("claimer-{number}"))))
            .collect();
        let won = claimers.into_iter().map(|claimer| claimer.join().unwrap());
        won.collect()
    });
    let worst = won.iter().map(|(_, worst)| *worst).max().unwrap();
    eprintln!(
        "faults: {crowd} processes claimed {count} jobs in {:.1?}, the slowest claim took {worst:.1?}",
        start.elapsed()
    );
    belongs_to_winners(&env, &jobs, &won);
}

/// Requires that each job was claimed once, and that the board agrees.
fn belongs_to_winners(env: &Env, jobs: &BTreeSet<String>, won: &[(Vec<String>, Duration)]) {
    let mut owners = BTreeMap::new();
    for (number, (uuids, _)) in won.iter().enumerate() {
        for uuid in uuids {
            let before = owners.insert(uuid.clone(), format!("claimer-{number}"));
            assert_eq!(before, None, "{uuid} was won twice");
        }
    }
    assert!(owners.keys().eq(jobs), "some jobs were lost");
    let listed = env.json("list --json");
    for job in listed.as_array().unwrap() {
        assert_eq!(job["owner"], owners[job["uuid"].as_str().unwrap()]);
    }
}

/// The known jobs of a board whose clients are killed.
#[derive(Default)]
struct Ledger {
    posted: BTreeSet<String>,
    /// Jobs whose end was requested; they may be gone.
    perhaps_consumed: BTreeSet<String>,
    consumed: BTreeSet<String>,
    claimed: BTreeSet<String>,
}

impl Ledger {
    /// Claims and consumes once, and kills either at random.
    fn work(&mut self, env: &Env) {
        let claim = perhaps_killed(env.jobboard("claim --next -o uuid --who ada").spawn());
        need!(uuid = acknowledged(&claim).pop());
        self.claimed.insert(uuid.clone());
        self.perhaps_consumed.insert(uuid.clone());
        let consume = ["consume", &uuid, "-o", "uuid", "--who", "ada"];
        let consume = perhaps_killed(env.jobboard(&consume).spawn());
        self.consumed.extend(acknowledged(&consume));
    }

    /// Requires that the board has every acknowledged change.
    fn holds(&self, env: &Env) {
        if !env.board().exists() {
            // The first writer was killed too early.
            assert!(self.posted.is_empty());
            return;
        }
        is_intact(env);
        let listed = env.json("list --json");
        let listed = listed.as_array().unwrap();
        let owners: BTreeMap<_, _> = listed
            .iter()
            .map(|job| (job["uuid"].as_str().unwrap(), &job["owner"]))
            .collect();
        for uuid in &self.posted {
            let is_there = owners.contains_key(uuid.as_str());
            assert!(
                is_there || self.perhaps_consumed.contains(uuid),
                "lost {uuid}"
            );
        }
        for uuid in &self.consumed {
            assert!(!owners.contains_key(uuid.as_str()), "{uuid} came back");
        }
        for uuid in &self.claimed {
            let owner = owners.get(uuid.as_str());
            assert!(
                owner.is_none_or(|owner| **owner == "ada"),
                "{uuid} was freed"
            );
        }
    }
}

/// Waits for a process, or kills it at a random moment.
fn perhaps_killed(run: Running) -> Outcome {
    if random(3) > 0 {
        thread::sleep(Duration::from_micros(random(20_000)));
        return run.kill();
    }
    run.ended()
}

/// Returns the completely printed uuids.
fn acknowledged(run: &Outcome) -> Vec<String> {
    let whole = run.stdout.rfind('\n').map_or("", |end| &run.stdout[..end]);
    whole.lines().map(str::to_owned).collect()
}

#[test]
fn acknowledged_changes_survive_killed_writers() {
    let boards = size(25, 1);
    let (mut posts, mut claims, mut ends) = (0, 0, 0);
    for _ in 0..boards {
        let ledger = after_deaths(8);
        posts += ledger.posted.len();
        claims += ledger.claimed.len();
        ends += ledger.consumed.len();
    }
    assert!(posts > 0);
    eprintln!(
        "faults: after {} kills, {posts} posts, {claims} claims and {ends} ends are all there",
        boards * 8
    );
}

/// Kills writers of a board one after the other, and checks it after each.
fn after_deaths(count: usize) -> Ledger {
    let env = Env::new();
    let mut ledger = Ledger::default();
    for death in 0..count {
        let mut posting = env.jobboard(&["post", "--from", "-"]).piped_stdin().spawn();
        let mut stdin = posting.stdin();
        // It writes until the pipe closes.
        let line = b"{\"name\":\"a\",\"details\":{\"n\":1}}\n";
        let feeder = thread::spawn(move || while stdin.write_all(line).is_ok() {});
        for _ in 0..3 {
            ledger.work(&env);
        }
        if death % 2 == 1 {
            // On a slow machine all writers might be killed before their first result.
            posting.prints(1);
        }
        thread::sleep(Duration::from_micros(random(30_000)));
        let killed = posting.kill();
        feeder.join().unwrap();
        assert_eq!(killed.code, 137, "{}", killed.stderr);
        ledger.posted.extend(acknowledged(&killed));
        ledger.holds(&env);
    }
    env.post("resize");
    ledger
}

/// A small file system.
pub(crate) struct SmallDisk(pub(crate) PathBuf);

impl SmallDisk {
    /// Mounts it, if permitted.
    pub(crate) fn mount(directory: PathBuf) -> Option<Self> {
        fs::create_dir(&directory).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]);
        let output = mount.arg(&directory).output().ok()?;
        output.status.success().then_some(Self(directory))
    }

    fn grow(&self) {
        let mut mount = Command::new("mount");
        let status = mount.args(["-o", "remount,size=8m"]).arg(&self.0).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let mut unmount = Command::new("umount");
        // A lazy unmount ends with the last user.
        let _ = unmount.arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn full_disk_is_reported_without_loss() {
    let env = Env::new();
    let Some(disk) = SmallDisk::mount(env.root().join("small")) else {
        eprintln!("faults: skipped the full disk, as this user cannot mount one");
        return;
    };
    let url = format!("sqlite:{}", disk.0.join("board.db").display());
    let run = |call: &[&str]| env.jobboard(&[call, &["--board", &url]].concat());
    let line = format!(
        "{{\"name\":\"a\",\"details\":{{\"a\":\"{}\"}}}}\n",
        "x".repeat(3000)
    );
    let full = run(&["post", "--from", "-"]).stdin(line.repeat(1000)).run();
    assert_eq!(full.code, 1, "{}", full.stderr);
    assert!(full.stderr.contains("full"), "{}", full.stderr);
    let posted: BTreeSet<_> = acknowledged(&full).into_iter().collect();
    let on_board = || {
        let listed = run(&["list", "-o", "uuid"]).run();
        listed
            .succeeded()
            .lines()
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(on_board(), posted);
    let again = run(&["post", "a", "--json"]).run();
    assert!(again.code == 0 || again.error()["message"].to_string().contains("full"));
    disk.grow();
    let uuid = run(&["post", "b"]).run().posted();
    assert!(on_board().is_superset(&posted) && on_board().contains(&uuid));
    eprintln!("faults: {} jobs survived a full disk", posted.len());
}

#[test]
fn initially_full_disk_is_reported() {
    let env = Env::new();
    let Some(disk) = SmallDisk::mount(env.root().join("small")) else {
        eprintln!("faults: skipped the full disk, as this user cannot mount one");
        return;
    };
    let filler = disk.0.join("filler");
    // The write ends when the disk is full.
    let _ = fs::write(&filler, vec![0; 2 << 20]);
    let url = format!("sqlite:{}", disk.0.join("board.db").display());
    let post = || env.run(format!("post a --board {url} --json"));
    let refused = post();
    refused.failed(1);
    let message = refused.error()["message"].to_string();
    assert!(
        message.contains("full") || message.contains("No space"),
        "{message}"
    );
    let hint = refused.error()["hint"].to_string();
    assert!(hint.contains(" doctor` shows the free space"), "{hint}");
    fs::remove_file(filler).unwrap();
    assert_eq!(post().json()["done"], "posted");
}
