//! Tests of a real guard process: the test binary is its own helper.

use std::{env, future::Future, thread, time::Duration};

use rustix::process::{Signal, kill_process};

use super::*;
use crate::process::{
    child::{CommandEnd, Process},
    clock::Boottime,
    command::CommandSpec,
    label::{JOB, MARK},
    lineage::Processes,
};

const KILLED: CommandEnd = CommandEnd::Signal(Signal::KILL.as_raw());
const TERMINATED: CommandEnd = CommandEnd::Signal(Signal::TERM.as_raw());

#[test]
fn long_message_is_written_as_fast_as_it_is_read() {
    let (input, line) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    fcntl_setfl(&line, OFlags::NONBLOCK).unwrap();
    let (line, bytes) = (File::from(line), vec![b'x'; 1 << 20]);
    let first = write_some(&line, &bytes, Duration::ZERO).unwrap();
    assert!((1..bytes.len()).contains(&first), "{first}");
    let reader = thread::spawn(move || io::copy(&mut File::from(input), &mut io::sink()).unwrap());
    let rest = write_some(&line, &bytes[first..], Duration::from_secs(60)).unwrap();
    drop(line);
    assert_eq!(first + rest, bytes.len());
    assert_eq!(reader.join().unwrap(), 1 << 20);
}

#[test]
#[ignore = "serves the other tests as their guard"]
fn serve_as_guard() {
    // Only a guard is started without any environment.
    if env::vars_os().next().is_none() {
        main().unwrap();
    }
}

fn guard(mark: &str) -> Guard {
    let args = ["--exact", "--ignored", "--nocapture"].map(OsString::from);
    let this = "process::guard::tests::serve_as_guard".into();
    let launch = Launch {
        program: "/proc/self/exe".into(),
        args: args.into_iter().chain([this]).collect(),
        // This process has other children, of other tests.
        adopts: false,
    };
    Guard::start(launch, mark).unwrap()
}

fn start(mark: &str, script: &str) -> Process {
    start_for("", mark, script)
}

fn start_for(job: &str, mark: &str, script: &str) -> Process {
    let argv = ["sh", "-c", script].map(OsString::from);
    let mut command = CommandSpec::here(&argv, Some("/usr/bin:/bin".as_ref())).unwrap();
    command.set(MARK, mark);
    command.set(JOB, job);
    Process::start(&command).unwrap()
}

fn unique(name: &str) -> String {
    format!("test:{name}:{}", uuid::Uuid::new_v4())
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    time::timeout(Duration::from_secs(10), future)
        .await
        .unwrap()
}

async fn made(path: &std::path::Path) {
    soon(async {
        while !path.exists() {
            time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

fn in_ms(terminate: u64, kill: u64) -> Deadlines {
    let now = Boottime::now();
    Deadlines {
        terminate: now + Duration::from_millis(terminate),
        kill: now + Duration::from_millis(kill),
    }
}

fn command(mark: &str, terminate: u64, kill: u64) -> GuardedCommand {
    command_for("", mark, in_ms(terminate, kill))
}

fn command_for(job: &str, mark: &str, deadlines: Deadlines) -> GuardedCommand {
    let label = Label::new(mark, job);
    GuardedCommand { deadlines, label }
}

fn marked(mark: &str) -> Vec<Pid> {
    let label = Label::new(mark, "");
    let bearers = Processes::now().bearers(|it| it == label);
    bearers.into_iter().map(|(pid, _)| pid).collect()
}

#[tokio::test]
async fn command_with_an_expired_lease_is_terminated_first() {
    let mark = unique("term");
    let guard = guard(&mark);
    let process = start(&mark, "exec sleep 60");
    let command = command(&mark, 100, 60_000);
    guard.watch(process.group(), command).unwrap();
    assert_eq!(soon(process.ended()).await.unwrap(), TERMINATED);
    assert!(command.deadlines.terminate.is_past());
    process.clear_away(&guard).await;
}

#[tokio::test]
async fn stubborn_command_is_killed_with_its_children() {
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("ready");
    let mark = unique("kill");
    let guard = guard(&mark);
    let script = format!(
        "trap '' TERM; sleep 60 & touch {}; wait; sleep 60",
        ready.display()
    );
    let process = start(&mark, &script);
    made(&ready).await;
    guard
        .watch(process.group(), command(&mark, 50, 150))
        .unwrap();
    assert_eq!(soon(process.ended()).await.unwrap(), KILLED);
    none_has(&mark).await;
}

#[tokio::test]
async fn extended_lease_keeps_its_command_and_a_forgotten_group_survives() {
    let mark = unique("extend");
    let guard = guard(&mark);
    let jobs = ["kept", "forgotten", "lost"];
    let [kept, forgotten, lost] = jobs.map(|job| {
        let process = start_for(job, &mark, "exec sleep 60");
        let command = command_for(job, &mark, in_ms(600, 60_000));
        guard.watch(process.group(), command).unwrap();
        process
    });
    guard.extend(kept.group(), in_ms(60_000, 60_000)).unwrap();
    guard.forget(forgotten.group());
    guard.flush();
    assert_eq!(soon(lost.ended()).await.unwrap(), TERMINATED);
    time::timeout(Duration::from_millis(150), async {
        tokio::select! { _ = kept.ended() => (), _ = forgotten.ended() => () }
    })
    .await
    .unwrap_err();
    guard.forget(kept.group());
    guard.flush();
}

#[tokio::test]
async fn stopped_command_is_ended() {
    let mark = unique("stopped");
    let guard = guard(&mark);
    let process = start(&mark, "exec sleep 60");
    process.group().signal(Signal::STOP);
    guard
        .watch(process.group(), command(&mark, 50, 60_000))
        .unwrap();
    assert_eq!(soon(process.ended()).await.unwrap(), TERMINATED);
}

#[tokio::test]
async fn dead_guard_is_replaced_with_the_same_state() {
    let mark = unique("replaced");
    let guard = guard(&mark);
    let process = start(&mark, "exec sleep 60");
    guard
        .watch(process.group(), command(&mark, 500, 60_000))
        .unwrap();
    let first = helper_pid(&guard);
    kill_process(first, Signal::KILL).unwrap();
    let replaced = async {
        while helper_pid(&guard) == first {
            time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! { never = guard.keep_alive(drop) => match never {}, () = soon(replaced) => {} }
    guard.check().unwrap();
    assert_eq!(soon(process.ended()).await.unwrap(), TERMINATED);
}

#[tokio::test]
async fn dead_guard_is_noticed_at_the_next_message() {
    let mark = unique("watched");
    let guard = guard(&mark);
    let first = helper_pid(&guard);
    kill_process(first, Signal::KILL).unwrap();
    let end = guard.state.lock().helper.as_ref().unwrap().end.clone();
    soon(end.wait()).await;
    let process = start(&mark, "exec sleep 60");
    guard
        .watch(process.group(), command(&mark, 50, 60_000))
        .unwrap();
    assert_ne!(helper_pid(&guard), first);
    assert_eq!(soon(process.ended()).await.unwrap(), TERMINATED);
}

#[tokio::test]
async fn death_of_the_conductor_ends_exactly_its_commands() {
    let (mark, other) = (unique("dies"), unique("lives"));
    let guard = guard(&mark);
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("ready");
    let announced = start(&mark, "exec sleep 60");
    let unannounced = start(&mark, "exec sleep 60");
    let script = format!(
        "trap '' TERM; touch {}; sleep 60; sleep 60",
        ready.display()
    );
    let stubborn = start(&mark, &script);
    let foreign = start(&other, "exec sleep 60");
    made(&ready).await;
    guard
        .watch(announced.group(), command(&mark, 60_000, 60_000))
        .unwrap();
    drop(guard);
    assert_eq!(soon(announced.ended()).await.unwrap(), TERMINATED);
    assert_eq!(soon(unannounced.ended()).await.unwrap(), TERMINATED);
    assert_eq!(soon(stubborn.ended()).await.unwrap(), KILLED);
    none_has(&mark).await;
    let is_alive = time::timeout(Duration::from_millis(50), foreign.ended());
    is_alive.await.unwrap_err();
}

#[tokio::test]
async fn clean_end_needs_no_sweep() {
    let mark = unique("bye");
    let guard = guard(&mark);
    let unwatched = start(&mark, "exec sleep 60");
    let end = guard.state.lock().helper.as_ref().unwrap().end.clone();
    drop(guard);
    soon(end.wait()).await;
    let is_alive = time::timeout(Duration::from_millis(50), unwatched.ended());
    is_alive.await.unwrap_err();
}

fn helper_pid(guard: &Guard) -> Pid {
    let state = guard.state.lock();
    state.helper.as_ref().and_then(Helper::pid).unwrap()
}

async fn none_has(mark: &str) {
    soon(async {
        while !marked(mark).is_empty() {
            time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn announced_but_unconfirmed_command_is_ended_by_its_label() {
    let mark = unique("announced");
    let guard = guard(&mark);
    guard.expect(command(&mark, 100, 60_000)).unwrap();
    let process = start(&mark, "exec sleep 60");
    assert_eq!(soon(process.ended()).await.unwrap(), TERMINATED);
}

#[tokio::test]
async fn confirmed_or_withdrawn_announcement_ends_no_process() {
    let mark = unique("good");
    let guard = guard(&mark);
    let ward_of_watched = |limits| command_for("watched", &mark, limits);
    guard.expect(ward_of_watched(in_ms(50, 60_000))).unwrap();
    let watched = start_for("watched", &mark, "exec sleep 60");
    guard
        .watch(watched.group(), ward_of_watched(in_ms(60_000, 60_000)))
        .unwrap();
    guard.expect(command(&mark, 50, 60_000)).unwrap();
    guard.not_started();
    let unwatched = start(&mark, "exec sleep 60");
    // An orderly end: the processes that it spared are out of danger.
    guard.expect(command(&mark, 300, 60_000)).unwrap();
    assert_eq!(soon(unwatched.ended()).await.unwrap(), TERMINATED);
    assert!(futures_util::FutureExt::now_or_never(watched.ended()).is_none());
    watched.group().terminate();
    assert_eq!(soon(watched.ended()).await.unwrap(), TERMINATED);
}
