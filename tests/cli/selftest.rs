//! `jobboard selftest`.

mod cleanup;
mod server_faults;

use std::{collections::BTreeMap, fs};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    conduct::Stage,
    support::{Env, Outcome, Peer, Running, Server, wait_until},
};

/// Enough time for all checks; a busy machine gets more.
const LONG: &str = "15s";
const LONGER: [&str; 3] = ["1m"; 3];

/// Promises that a sound board keeps at any speed.
const SURE: [&str; 6] = [
    "keeps",
    "one-winner",
    "fence",
    "ends",
    "whole",
    "interrupted",
];

/// A board with a user's jobs, and access to its storage.
struct Scene {
    stage: Stage,
    peer: Option<Peer>,
}

impl Scene {
    fn new(stage: Stage) -> Option<Self> {
        let peer = match stage.zookeeper_board() {
            Some(server) => Some(Peer::on(server)?),
            None => None,
        };
        let env = &stage.env;
        env.post_many(4);
        env.claim("@2", "ada");
        env.trash("@3");
        Some(Self { stage, peer })
    }

    /// One of each kind.
    fn each() -> impl Iterator<Item = Self> {
        let stages = [
            Stage::embedded(),
            Stage::redis_keeping_data(),
            Stage::zookeeper(),
        ];
        stages.into_iter().flatten().filter_map(Self::new)
    }

    fn env(&self) -> &Env {
        &self.stage.env
    }

    /// Returns everything stored next to and below the user's board.
    fn stored(&mut self) -> Vec<String> {
        if let Some(server) = self.stage.redis_server() {
            return server.everything().into_iter().map(|it| it.0).collect();
        }
        if let Some(server) = self.stage.zookeeper_board() {
            let nodes = json!({ "do": "nodes", "path": server.top() });
            // Some nodes may disappear meanwhile.
            let nodes = self.peer.as_mut().unwrap().ask(&nodes).unwrap_or_default();
            let nodes = nodes
                .as_object()
                .into_iter()
                .flat_map(serde_json::Map::keys);
            return nodes.cloned().collect();
        }
        let directory = fs::read_dir(self.env().board().parent().unwrap()).unwrap();
        let names = directory.map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// Whether a scratch board exists.
    fn has_scratch(&mut self) -> bool {
        self.stored().iter().any(|it| it.contains("selftest-"))
    }

    /// Starts a selftest, and waits until it works.
    fn at_work(&mut self) -> Running {
        let words = ["selftest", "--yes", "--json", "--for", "10m"];
        let run = self.env().jobboard(&words).spawn();
        wait_until("it is at work", || self.is_posted_to());
        run
    }

    /// Kills a selftest while it has a scratch board. It may remove one at any time, so it is stopped first.
    fn kill_one(&mut self) {
        let run = self.at_work();
        wait_until("it has a scratch board", || {
            run.signal(Signal::STOP);
            // A removal that was under way may follow the first look.
            let is_caught = (0..2).all(|_| self.has_scratch());
            if !is_caught {
                run.signal(Signal::CONT);
            }
            is_caught
        });
        run.kill();
    }

    /// Whether a scratch board has jobs; it is registered by then.
    fn is_posted_to(&mut self) -> bool {
        if self.stage.is_network() {
            let is_job = |it: &String| it.contains("/job0") || it.ends_with(".jobboard");
            let jobs = |it: &String| it.contains("selftest-") && is_job(it);
            return self.stored().iter().any(jobs);
        }
        let stored = self.stored();
        let board = stored
            .iter()
            .find(|it| it.contains("selftest-") && !it.contains("-wal") && !it.contains("-shm"));
        let Some(board) = board.filter(|it| !it.ends_with("-signal")) else {
            return false;
        };
        let path = self.env().board().with_file_name(board);
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
        let jobs = rusqlite::Connection::open_with_flags(path, flags).and_then(|file| {
            file.query_row("SELECT count(*) FROM job", [], |row| row.get::<_, i64>(0))
        });
        jobs.is_ok_and(|jobs| jobs > 0)
    }
}

fn selftest(env: &Env, words: &[&str]) -> Outcome {
    env.run([&["selftest", "--yes", "--json"], words].concat())
}

/// Repeats a run with more time until all checks fit.
fn with_time(run: impl Fn(&str) -> Outcome) -> Outcome {
    let mut outcome = run(LONG);
    for long in LONGER {
        if !outcome.stdout.contains("out of time") {
            break;
        }
        outcome = run(long);
    }
    outcome
}

fn selftest_whole(env: &Env) -> Outcome {
    with_time(|long| selftest(env, &["--for", long]))
}

/// Repeats a run until it reports one leftover. Once the killed client's registration expires, its board
/// may belong to a test that is just starting, until the board is a minute old.
fn find_leftover(env: &Env, words: &[&str], member: &str) -> Value {
    let mut found = json!([]);
    wait_until("the leftover is found", || {
        let report = selftest(env, words).values().pop().unwrap();
        found = report[member].clone();
        found != json!([])
    });
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    found
}

/// Returns the result of each promise.
fn promises(report: &Value) -> BTreeMap<String, Value> {
    let promises = report["promises"].as_array().unwrap().iter();
    promises
        .map(|it| (it["promise"].as_str().unwrap().to_owned(), it.clone()))
        .collect()
}

/// Returns the grade of each promise.
fn grades(report: &Value) -> BTreeMap<String, String> {
    let promises = promises(report).into_iter();
    promises
        .map(|(name, it)| (name, it["grade"].as_str().unwrap().to_owned()))
        .collect()
}

#[test]
fn sound_board_passes_every_check_without_leftovers() {
    for mut scene in Scene::each() {
        let (jobs, stored) = (scene.env().everything(), scene.stored());
        let run = selftest_whole(scene.env());
        let report = run.json();
        let grades = grades(&report);
        assert_eq!(grades.len(), 13, "{report}");
        for (promise, grade) in &grades {
            // ZooKeeper servers do not report their sync settings.
            let is_unseen = promise == "durable" && scene.stage.zookeeper_board().is_some();
            let why = promises(&report)[promise]["why"]
                .as_str()
                .unwrap()
                .to_owned();
            let is_busy = promise == "renewal" && why.contains("too busy");
            let is_tried = grade == "ok" || grade == "weak" || is_unseen || is_busy;
            assert!(is_tried, "{promise}: {report:#}");
            // The speed of a busy machine proves nothing.
            let is_time = ["answers", "expiry", "events", "clock", "durable"];
            let is_kept = grade == "ok" || is_busy || is_time.contains(&promise.as_str());
            assert!(is_kept, "{promise}: {report:#}");
        }
        assert_eq!(
            (&report["left"], &report["removed"]),
            (&json!(null), &json!([]))
        );
        assert_eq!(scene.env().everything(), jobs);
        assert_eq!(scene.stored(), stored);
    }
}

#[test]
fn next_selftest_removes_leftovers_of_a_killed_one() {
    for mut scene in Scene::each() {
        let (jobs, stored) = (scene.env().everything(), scene.stored());
        scene.kill_one();
        let left = find_leftover(scene.env(), &["--dry-run"], "left");
        assert!(scene.has_scratch());
        let removed = find_leftover(scene.env(), &["--for", "2s"], "removed");
        assert_eq!(removed, left);
        assert_eq!(scene.env().everything(), jobs);
        assert_eq!(scene.stored(), stored);
        scene.kill_one();
        find_leftover(scene.env(), &["--clean"], "removed");
        assert_eq!(scene.stored(), stored);
    }
}

#[test]
fn running_selftest_is_spared_and_cleans_up_when_interrupted() {
    for mut scene in Scene::each() {
        let (jobs, stored) = (scene.env().everything(), scene.stored());
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            let run = scene.at_work();
            let report = selftest(scene.env(), &["--clean"]).json();
            assert_eq!(report["removed"], json!([]), "{report}");
            wait_until("it is there", || scene.has_scratch());
            run.signal(signal);
            let run = run.ended();
            assert_eq!(run.failed(code).matches("interrupted").count(), 1, "{run}");
            assert_eq!(scene.stored(), stored);
        }
        assert_eq!(scene.env().everything(), jobs);
    }
}

#[test]
fn selftest_asks_first_and_names_its_place() {
    let env = Env::new();
    env.post("resize");
    let directory = || fs::read_dir(env.board().parent().unwrap()).unwrap().count();
    let before = directory();
    let unasked = env.run("selftest --for 5s");
    let error = unasked.failed(8);
    assert!(
        error.contains("run a 5s server test") && error.contains("--yes"),
        "{unasked}"
    );
    let declined = env.jobboard("selftest").at_terminal(80).stdin("n\n").run();
    assert_eq!(declined.code, 8, "{declined}");
    let shown = env.json("selftest --dry-run --json");
    let place = shown["place"].as_str().unwrap();
    let board = format!("sqlite:{}.selftest-", env.board().display());
    assert!(place.starts_with(&board), "{shown}");
    assert_eq!(directory(), before);
    for (words, message) in [
        (&["--for", "1s"][..], "2s to 1h"),
        (&["--for", "2h"], "2s to 1h"),
        (&["--for", "soon"], "--for"),
        (&["--clean", "--dry-run"], "cannot be used with"),
    ] {
        env.run([&["selftest"], words].concat()).fails(2, message);
    }
}

#[test]
fn read_only_selftest_only_reads() {
    for mut scene in Scene::each() {
        let stored = scene.stored();
        let report = selftest(scene.env(), &["--read-only"]).json();
        assert_eq!(report["verdict"], "unknown", "{report:#}");
        let promises = promises(&report);
        assert_eq!(promises["rights"]["grade"], "ok", "{report:#}");
        assert_eq!(promises["one-winner"]["grade"], "untried", "{report:#}");
        let why = promises["one-winner"]["why"].as_str().unwrap();
        assert!(why.contains("read-only"), "{report:#}");
        assert_eq!(scene.stored(), stored);
        selftest(scene.env(), &["--clean", "--read-only"]).failed(8);
    }
}

#[test]
fn selftest_prints_the_same_words_in_a_pipe_and_on_a_terminal() {
    let env = Env::new();
    let mut run = env.run("selftest --yes --for 6s");
    wait_until("the machine is not too busy", || {
        let late = ["were not renewed in time", "out of time"];
        let is_quick = !late.iter().any(|text| run.stdout.contains(text));
        if !is_quick {
            run = env.run("selftest --yes --for 6s");
        }
        is_quick
    });
    let verdict = run.stdout.lines().last().unwrap();
    assert!(verdict.starts_with("weak: "), "{run}");
    run.shows("one-winner");
    env.jobboard("selftest --yes --for 6s")
        .at_terminal(80)
        .run()
        .shows("one-winner");
    // The directory existed for this test only.
    assert!(!env.board().parent().unwrap().exists());
}

#[test]
fn unreachable_board_is_an_error() {
    need!((env, mut server) = Server::with_env(&[]));
    server.kill();
    let run = selftest(&env, &[]);
    assert_eq!(run.code, 5, "{run}");
    assert_eq!(run.error()["kind"], "unreachable", "{run}");
}
