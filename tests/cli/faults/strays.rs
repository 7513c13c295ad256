//! Commands that leave their group, session, parents or environment.
//!
//! The work holds a lock, which the kernel releases with its last process: the lock shows whether two attempts worked
//! concurrently.

use std::{fs, time::Duration};

use rustix::process::{Pid, Signal, kill_process};

use serde_json::json;

use super::{conduct::finishes, size};
use crate::{
    conduct::{Stage, on_every_board},
    support::{
        Running, SOON, Tag, comes_true,
        process::{guards, signal},
        wait_until,
    },
};

on_every_board!(job_claimed_ahead_does_not_run_twice);

/// Work that runs alone or logs a conflict, and ignores signals.
const WORK: &str = "trap '' TERM HUP INT\n\
    exec 9>>\"lock.$1\"\n\
    flock -n 9 || { echo \"double $1\" >> log; exit 0; }\n\
    echo \"start $1\" >> log\n\
    [ -e may-end ] || sleep \"$2\"\n";

/// The ways to escape, by name.
const WAYS: [(&str, &str); 6] = [
    ("plain", "sh work plain TAG"),
    ("timeout", "timeout 600 sh work timeout TAG"),
    ("setsid", "setsid --wait sh work setsid TAG"),
    ("orphan", "(setsid sh work orphan TAG &); sleep TAG"),
    (
        "bare",
        "(env -i \"PATH=$PATH\" setsid sh work bare TAG &); sleep TAG",
    ),
    (
        "lone",
        "(env -i \"PATH=$PATH\" setsid sh work lone TAG &); (setsid sleep TAG &); exec sleep TAG",
    ),
];

/// The commands that start work.
#[derive(Clone, Copy)]
enum Starter {
    Conduct,
    Run,
    Claim,
}

/// The damage to the watchers of commands.
#[derive(Clone, Copy)]
enum Harm {
    /// They continue after the claims have expired.
    ConductorStopped,
    BothStopped,
    BothKilled,
}

impl Starter {
    /// Starts each way once, with leases of three seconds.
    fn start(self, stage: &Stage, tag: &Tag) -> Vec<Running> {
        let scripts = WAYS.map(|(name, script)| (name, script.replace("TAG", tag.text())));
        if !matches!(self, Self::Run) {
            for (name, script) in &scripts {
                stage.post(name, script);
            }
        }
        let started = match self {
            Self::Conduct => vec![stage.start(&["-j6", "--lease", "3s"])],
            Self::Run | Self::Claim => scripts
                .iter()
                .map(|(name, script)| {
                    let filter = format!("name={name}");
                    let how = match self {
                        Self::Run => vec!["run", *name],
                        _ => vec!["claim", "--next", "--filter", filter.as_str()],
                    };
                    let command = ["--lease", "3s", "--", "sh", "-c", script];
                    stage.env.jobboard(&[&how[..], &command].concat()).spawn()
                })
                .collect(),
        };
        works(stage, WAYS.len());
        started
    }
}

impl Harm {
    fn is_done_to(self, performers: &[Running]) {
        let performers: Vec<Pid> = performers.iter().map(pid).collect();
        let guards = || -> Vec<Pid> { performers.iter().flat_map(|&it| guards(it)).collect() };
        wait_until("all are guarded", || guards().len() == performers.len());
        let guards = guards();
        let (guards, what) = match self {
            Self::ConductorStopped => (&[][..], Signal::STOP),
            Self::BothStopped => (&guards[..], Signal::STOP),
            Self::BothKilled => (&guards[..], Signal::KILL),
        };
        // The guards first, so that they cannot react.
        for &pid in guards.iter().chain(&performers) {
            signal(pid, what);
        }
    }
}

/// Whether the board is locked against writes.
fn is_locked(stage: &Stage) -> bool {
    let database = stage.env.database();
    database.busy_timeout(Duration::from_millis(200)).unwrap();
    database.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_err()
}

fn pid(running: &Running) -> Pid {
    Pid::from_raw(i32::try_from(running.pid()).unwrap()).unwrap()
}

/// Waits for this many starts of work.
fn works(stage: &Stage, times: usize) {
    wait_until("the work has begun", || {
        let log = stage.log();
        assert!(!log.iter().any(|it| it.starts_with("double")), "{log:?}");
        log.len() >= times
    });
}

/// Damages the watchers, and requires that no work of a job overlaps with the next attempt.
fn nothing_works_twice(starter: Starter, harm: Harm) {
    let stage = Stage::embedded().unwrap();
    let tag = Tag::new();
    fs::write(stage.env.file("work"), WORK).unwrap();
    let first = starter.start(&stage, &tag);
    harm.is_done_to(&first);
    wait_until("no process was stopped during a write", || {
        if matches!(harm, Harm::BothKilled) || !is_locked(&stage) {
            return true;
        }
        // The lock blocks the board until the process continues.
        first.iter().for_each(|it| it.signal(Signal::CONT));
        comes_true(SOON, || !is_locked(&stage));
        first.iter().for_each(|it| it.signal(Signal::STOP));
        false
    });
    fs::write(stage.env.file("may-end"), "").unwrap();
    let next = stage.start(&["-j6", "--lease", "3s"]);
    works(&stage, 2 * WAYS.len());
    next.kill();
    for running in first {
        let _ = kill_process(pid(&running), Signal::KILL);
        running.ended();
    }
}

macro_rules! nothing_works_twice {
    ($($test:ident: $starter:ident, $harm:ident;)*) => {
        $(#[test] fn $test() { nothing_works_twice(Starter::$starter, Harm::$harm); })*
    };
}
nothing_works_twice! {
    nothing_is_left_of_what_a_stopped_conductor_started: Conduct, ConductorStopped;
    nothing_is_left_of_what_a_stopped_run_started: Run, ConductorStopped;
    nothing_is_left_of_what_a_stopped_claim_started: Claim, ConductorStopped;
    what_a_conductor_stopped_with_its_guard_has_left_is_ended: Conduct, BothStopped;
    what_a_conductor_killed_with_its_guard_has_left_is_ended: Conduct, BothKilled;
    what_a_run_killed_with_its_guard_has_left_is_ended: Run, BothKilled;
    what_a_claim_killed_with_its_guard_has_left_is_ended: Claim, BothKilled;
}

fn job_claimed_ahead_does_not_run_twice(stage: &Stage) {
    let tag = Tag::new();
    fs::write(stage.env.file("work"), WORK).unwrap();
    // A job after short ones is claimed ahead, and its start is not reported.
    stage.post_many(30, "true");
    stage.post("ahead", &format!("sh work ahead {}", tag.text()));
    let first = [stage.start(&["--lease", "2s"])];
    works(stage, 1);
    Harm::BothKilled.is_done_to(&first);
    fs::write(stage.env.file("may-end"), "").unwrap();
    let next = stage.start(&["--lease", "2s"]);
    works(stage, 2);
    next.kill();
}

#[test]
fn leftovers_end_when_the_uuid_is_posted_again() {
    let stage = Stage::embedded().unwrap();
    let tag = Tag::new();
    fs::write(stage.env.file("work"), WORK).unwrap();
    // It checked all processes before anything was left.
    let next = stage.start(&["--filter", "name=again"]);
    let done = stage.post("again", "true");
    stage.env.ok(format!("wait {done}"));
    let script = format!("sh work it {}", tag.text());
    let job = stage.post("once", &script);
    let first = [stage.start(&["--filter", "name=once", "--lease", "1s"])];
    works(&stage, 1);
    Harm::BothKilled.is_done_to(&first);
    wait_until("its claim has expired", || {
        stage.env.run(format!("claim {job} --who ada")).code == 0
    });
    stage.env.ok(format!("consume {job} --who ada"));
    fs::write(stage.env.file("may-end"), "").unwrap();
    let again = format!("post again --uuid {job} -- sh -c '{script}'");
    stage.env.ok(again);
    works(&stage, 2);
    next.kill();
}

#[test]
fn command_dies_with_its_watchers() {
    let stage = Stage::embedded().unwrap();
    let tag = Tag::new();
    for way in [&["run", "a"][..], &["claim", "--next"], &["conduct"]] {
        let performer = match way {
            ["conduct"] => {
                // Even a job that was claimed ahead with short ones.
                stage.post_many(10, "true");
                stage.post("a", &format!("exec sleep {}", tag.text()));
                stage.start(&[])
            }
            _ => {
                stage.env.post("a");
                let command = [way, &["--", "sleep", tag.text()]].concat();
                stage.env.jobboard(&command).spawn()
            }
        };
        wait_until("the command runs", || tag.sleepers().len() == 1);
        Harm::BothKilled.is_done_to(&[performer]);
        // No other attempt of the job ends its leftovers.
        wait_until("the command is gone", || tag.sleepers().is_empty());
    }
}

#[test]
fn ended_command_leaves_no_process() {
    let stage = Stage::embedded().unwrap();
    let (tag, neighbour) = (Tag::new(), Tag::new());
    fs::write(stage.env.file("work"), WORK).unwrap();
    // The neighbour keeps its own processes.
    let script = format!("setsid sleep {} & setsid sleep {0}", neighbour.text());
    stage.post("neighbour", &script);
    let conductor = stage.start(&["-j2"]);
    wait_until("it runs", || neighbour.sleepers().len() == 2);
    for (name, script) in &WAYS[3..5] {
        let ends = script.replace(
            "; sleep TAG",
            "; until grep -q NAME log; do sleep 0.01; done",
        );
        let script = ends.replace("TAG", tag.text()).replace("NAME", name);
        let job = stage.post(name, &script);
        stage.env.ok(format!("wait {job}"));
        assert!(tag.sleepers().is_empty(), "{name}");
        let run = ["run", name, "--", "sh", "-c", &script];
        fs::remove_file(stage.env.file("log")).unwrap();
        stage.env.ok(run);
        assert!(tag.sleepers().is_empty(), "{name}");
    }
    assert_eq!(neighbour.sleepers().len(), 2);
    conductor.kill();
    neighbour.is_gone_by(std::time::Instant::now() + Duration::from_secs(2));
}

#[test]
fn new_process_is_not_taken_for_a_leftover_of_another_job() {
    let stage = Stage::embedded().unwrap();
    let (idle, left) = (Tag::new(), Tag::new());
    // Among many processes a scan takes long, and others start meanwhile.
    let many = size(600, 300);
    let script = format!(
        "exec > /dev/null 2>&1; for i in $(seq {many}); do sleep {} & done; wait",
        idle.text()
    );
    let _crowd = stage.env.program("sh".as_ref(), &["-c", &script]).spawn();
    wait_until("there are many", || idle.sleepers().len() == many);
    let script = format!(
        "case $JOBBOARD_JOB in [0-3]*) (setsid sleep {} &) ;; esac; exec sleep 0.05",
        left.text()
    );
    stage.post_many(size(600, 250), &script);
    let conduct = "--drain -j8 --max-attempts 1 --on-failure trash -q --output discard";
    let mut conductor = stage
        .conduct(&conduct.split(' ').collect::<Vec<_>>())
        .spawn();
    finishes(&mut conductor, SOON * 4);
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
    conductor.ended().succeeded();
    assert!(left.sleepers().is_empty());
}

#[test]
fn process_born_at_the_end_of_its_command_is_ended() {
    let stage = Stage::embedded().unwrap();
    let tag = Tag::new();
    let script = format!("setsid sh -c 'sleep {} & exit 0' & exit 0", tag.text());
    stage.post_many(size(600, 60), &script);
    stage.conduct(&["--drain", "-j2"]).run().succeeded();
    let left = tag.sleepers();
    left.iter().for_each(|&pid| signal(pid, Signal::KILL));
    assert_eq!(left.len(), 0);
}

#[test]
fn relabelled_orphan_that_forks_endlessly_ends_with_its_job() {
    // Nothing but a container guarantees it: on a busy machine, all scans may miss the process.
    let ends = (0..3).any(|_| relabelled_orphan_ends());
    assert!(ends, "it continued to fork three times");
}

fn relabelled_orphan_ends() -> bool {
    let stage = Stage::embedded().unwrap();
    let tag = Tag::new();
    let forks = "[ -e stop ] || sh ./fork \"$1\" & exit 0";
    fs::write(stage.env.file("fork"), forks).unwrap();
    // The label of another conductor, no environment, and neither group nor parent.
    let script = format!(
        "setsid prlimit --rttime=5000000000000000000 env -i PATH=\"$PATH\" sh ./fork {} & \
         until [ -e go ]; do sleep 0.01; done",
        tag.text()
    );
    let forking = || {
        let command = |pid: Pid| fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
        let is_one = |it: &[u8]| {
            let text = String::from_utf8_lossy(it);
            text.contains("./fork\0") && text.contains(tag.text())
        };
        let mut all = all_pids().into_iter();
        all.any(|pid| command(pid).is_ok_and(|it| it.starts_with(b"sh\0") && is_one(&it)))
    };
    let conductor = stage.start(&["-j2"]);
    let job = stage.post("forks", &script);
    wait_until("it forks", forking);
    fs::write(stage.env.file("go"), "").unwrap();
    stage.env.ok(format!("wait {job}"));
    // A scan may miss a process that forks meanwhile.
    let is_left = (0..50).any(|_| forking());
    fs::write(stage.env.file("stop"), "").unwrap();
    conductor.kill();
    !is_left
}

#[test]
fn ended_orphans_are_reaped() {
    let env = crate::support::Env::new();
    let tag = Tag::new();
    let script = format!(
        "for i in 1 2 3 4 5; do (sleep 0.01 &); done; sleep {}",
        tag.text()
    );
    let run = env.jobboard(&format!("run a -- sh -c '{script}'")).spawn();
    let performer = || tag.performer().as_raw_nonzero().get();
    let of_performer = |pid: Pid| {
        crate::support::process::stat(pid)
            .is_some_and(|it| it.parent == performer() && it.state == 'Z')
    };
    wait_until("it sleeps", || tag.sleepers().len() == 1);
    wait_until("nothing is left", || {
        !all_pids().into_iter().any(of_performer)
    });
    run.kill();
}

#[test]
fn killing_all_processes_of_a_name_spares_the_guard() {
    let env = crate::support::Env::new();
    let tag = Tag::new();
    let mut run = env
        .jobboard(&["run", "a", "--", "sleep", tag.text()])
        .spawn();
    tag.sleeps(&mut run, 1);
    let guard = guards(tag.performer())[0];
    let directory = format!("/proc/{}", guard.as_raw_nonzero());
    for file in ["comm", "cmdline"] {
        let text = fs::read_to_string(format!("{directory}/{file}")).unwrap();
        assert!(
            text.starts_with("claim-guard") && !text.contains("jobboard"),
            "{text}"
        );
    }
    run.kill();
}

fn all_pids() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}
