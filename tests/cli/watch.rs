//! `jobboard watch`.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Env, Running, Server, json_lines, members, wait_until, words};

/// Starts a watch, and returns once it misses no event.
fn watch(env: &Env, arguments: &[&str]) -> Running {
    let watching = env.jobboard(&[&["watch"], arguments].concat()).spawn();
    watching.says("watching ");
    watching
}

fn consume(env: &Env, job: &str) {
    env.ok(format!("consume {job} --who ada"));
}

/// Returns the events and names in lines of JSON.
fn events_and_names(lines: &[String]) -> Vec<String> {
    let values = json_lines(&lines.join("\n"));
    let text = |value: &Value| members(value, "event name");
    values.iter().map(text).collect()
}

#[test]
fn each_event_is_a_line() {
    let env = Env::new();
    env.post("old");
    let watching = watch(&env, &["--count", "5"]);
    env.post("resize");
    env.claim("@2", "ada");
    consume(&env, "@2");
    env.trash("@1");
    env.ok("restore @1 --yes");
    insta::assert_snapshot!(watching.ended(), @"
    exit code 0
    --- stdout
    TIME	posted	00000001-0000-0000-0000-000000000000	resize			00000001-0000-0000-0000-000000000000
    TIME	claimed	00000001-0000-0000-0000-000000000000	resize	ada	1	00000001-0000-0000-0000-000000000000
    TIME	consumed	00000001-0000-0000-0000-000000000000	resize	ada	1	00000001-0000-0000-0000-000000000000
    TIME	trashed	00000002-0000-0000-0000-000000000000	old			00000002-0000-0000-0000-000000000000	user@host
    TIME	restored	00000002-0000-0000-0000-000000000000	old			00000002-0000-0000-0000-000000000000	user@host
    --- stderr
    watching sqlite:ROOT/state/jobboard/board.db: 1 job on the board, 0 in the trash
    ");
}

#[test]
fn json_events_are_printed_immediately() {
    let env = Env::new();
    let watching = watch(&env, &["--json"]);
    let uuid = env.post("resize");
    let posted: Value = serde_json::from_str(&watching.prints(1)[0]).unwrap();
    assert_eq!(posted["event"], "posted");
    assert_eq!(posted["uuid"], uuid.as_str());
    assert_eq!(posted["key"], uuid.as_str());
    assert_eq!(members(&posted, "owner fence"), "null null");
    env.claim(&uuid, "ada");
    let claimed: Value = serde_json::from_str(&watching.prints(2)[1]).unwrap();
    assert_eq!(members(&claimed, "owner fence"), "ada 1");
}

#[test]
fn missing_board_can_be_watched() {
    let env = Env::new();
    let watching = watch(&env, &["--json", "--count", "1"]);
    watching.says("no job was ever posted");
    assert!(!env.board().exists());
    env.post("first");
    assert_eq!(events_and_names(&watching.prints(1)), ["posted first"]);
    watching.ended().succeeded();
}

#[test]
fn timeout_fails_only_with_a_missing_count() {
    let env = Env::new();
    env.post("resize");
    let run = env.run("watch --count 1 --timeout 50ms -q");
    insta::assert_snapshot!(run, @"
    exit code 124
    --- stdout
    --- stderr
    error: watched for 50ms without reaching --count 1
    hint: `jobboard list` shows the jobs on the board
    ");
    env.ok("watch --timeout 50ms");
}

#[test]
fn only_requested_events_are_printed_and_counted() {
    let env = Env::new();
    let kinds = [
        "--event", "consumed", "--event", "extended", "--json", "--count", "2",
    ];
    let watching = watch(&env, &kinds);
    for name in ["one", "two"] {
        let uuid = env.post(name);
        env.claim(&uuid, "ada");
        consume(&env, &uuid);
    }
    let seen = events_and_names(&watching.prints(2));
    assert_eq!(seen, ["consumed one", "consumed two"]);
    watching.ended().succeeded();
    env.run("watch --event stolen").fails(2, "stolen");
}

#[test]
fn filter_follows_a_job_until_it_is_removed() {
    let env = Env::new();
    let before = env.run("post before size:=3").posted();
    let watching = watch(&env, &["--filter", "details.size>2", "--json"]);
    let small = env.run("post small size:=1").posted();
    let large = env.run("post large size:=3").posted();
    // A removed job is judged by its last known state.
    watching.prints(1);
    for uuid in [&before, &small, &large] {
        env.claim(uuid, "ada");
        consume(&env, uuid);
    }
    let expected = [
        "posted large",
        "claimed before",
        "consumed before",
        "claimed large",
        "consumed large",
    ];
    let seen = events_and_names(&watching.prints(expected.len()));
    assert_eq!(seen, expected);
}

#[test]
fn filter_applies_to_the_job_after_the_event() {
    let env = Env::new();
    let watching = watch(&env, &["--filter", "owner=ada", "--json"]);
    for who in ["ada", "bob"] {
        let uuid = env.post(who);
        env.claim(&uuid, who);
        env.ok(format!("abandon {uuid} --who {who}"));
        env.claim(&uuid, who);
        env.ok(format!("consume {uuid} --who {who}"));
    }
    let seen = events_and_names(&watching.prints(3));
    assert_eq!(seen, ["claimed ada", "claimed ada", "consumed ada"]);
}

#[test]
fn command_runs_once_per_event_in_sequence() {
    let env = Env::new();
    let script = "exec 9>lock; flock -n 9 || echo overlap >> seen; cat >> seen; sleep 0.01";
    let watching = watch(&env, &["--count", "20", "--", "sh", "-c", script]);
    env.post_many(20);
    assert_eq!(watching.ended().succeeded(), "");
    let seen = fs::read_to_string(env.file("seen")).unwrap();
    let lines: Vec<_> = seen.lines().map(str::to_owned).collect();
    let expected: Vec<_> = (0..20).map(|at| format!("posted job-{at}")).collect();
    assert_eq!(events_and_names(&lines), expected);
}

#[test]
fn commands_of_recorded_events_run_before_those_of_later_ones() {
    let env = Env::new();
    for name in ["job-0", "job-1", "job-2"] {
        env.post(name);
    }
    let script = "touch started; until [ -e go ]; do sleep 0.1; done; cat >> seen";
    let watching = watch(
        &env,
        &["--since", "1h", "--count", "4", "--", "sh", "-c", script],
    );
    wait_until("a command runs", || env.file("started").exists());
    env.post("live");
    fs::write(env.file("go"), "").unwrap();
    watching.ended().succeeded();
    let seen = fs::read_to_string(env.file("seen")).unwrap();
    let lines: Vec<_> = seen.lines().map(str::to_owned).collect();
    let expected = [
        "posted job-0",
        "posted job-1",
        "posted job-2",
        "posted live",
    ];
    assert_eq!(events_and_names(&lines), expected);
}

#[test]
fn failed_command_is_reported_and_does_not_end_the_watch() {
    let env = Env::new();
    let script = "grep -q '\"name\":\"job-1\"' && exit 3; exit 0";
    let watching = watch(&env, &["--count", "3", "--", "sh", "-c", script]);
    env.post_many(3);
    watching.ended().exits(7, "exit 3");
    env.run("watch -- no-such-program").has_code(127);
    let failing = watch(
        &env,
        &["--count", "1", "--json", "--", "sh", "-c", "exit 3"],
    );
    env.post_many(1);
    let error = "\"message\":\"the event handler failed: exit 3\"";
    failing.ended().exits(7, error);
}

#[test]
fn commands_of_earlier_events_run_after_the_timeout() {
    let env = Env::new();
    let script = "until [ -e go ]; do sleep 0.1; done; cat >> seen";
    let mut watching = watch(&env, &["--timeout", "6s", "--", "sh", "-c", script]);
    let began = Instant::now();
    env.post_many(2);
    wait_until("the time is up", || {
        began.elapsed() > Duration::from_millis(6500)
    });
    assert!(!watching.has_ended());
    fs::write(env.file("go"), "").unwrap();
    watching.ended().succeeded();
    let seen = fs::read_to_string(env.file("seen")).unwrap();
    assert_eq!(seen.lines().count(), 2, "{seen}");
    let script = "sleep 2.2; cat >> recorded";
    let watch = words("watch --since 1h --timeout 4s -- sh -c");
    env.run([&watch[..], &[script]].concat()).succeeded();
    let recorded = fs::read_to_string(env.file("recorded")).unwrap();
    assert_eq!(recorded.lines().count(), 2, "{recorded}");
}

#[test]
fn signal_ends_the_watch_and_its_command() {
    let env = Env::new();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let run = {
            let watching = watch(&env, &["--json"]);
            watching.signal(signal);
            watching.ended()
        };
        assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{run}");
        assert!(!run.stderr.contains("error"), "{run}");
        let pid = env.file("pid");
        let _ = fs::remove_file(&pid);
        let script = "echo $$ > new; mv new pid; exec sleep 60";
        let watching = watch(&env, &["--", "sh", "-c", script]);
        env.post("resize");
        wait_until("the command runs", || pid.exists());
        watching.signal(signal);
        assert_eq!(watching.ended().code, code);
        let process = fs::read_to_string(&pid).unwrap();
        let status = format!("/proc/{}", process.trim());
        wait_until("the command ends", || !fs::exists(&status).unwrap());
    }
}

#[test]
fn watch_ends_with_unread_output() {
    use rustix::event::{PollFd, PollFlags, poll};

    for (words, signal, code) in [
        (&[][..], Some(Signal::TERM), 143),
        (&["--timeout", "4s"], None, 0),
    ] {
        let env = Env::new();
        let (_unread, writer) = std::io::pipe().unwrap();
        rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
        let pipe = writer.try_clone().unwrap();
        let words = [&["watch"], words].concat();
        let watching = env.jobboard(&words).spawn_into(writer);
        watching.says("watching ");
        env.post_many(100);
        wait_until("the pipe is full", || {
            let mut fds = [PollFd::new(&pipe, PollFlags::OUT)];
            let now = rustix::event::Timespec::default();
            poll(&mut fds, Some(&now)).unwrap() == 0
        });
        if let Some(signal) = signal {
            watching.signal(signal);
        }
        watching.ended().has_code(code);
    }
}

#[test]
fn watch_ends_when_its_reader_closes() {
    let env = Env::new();
    env.post("resize");
    // The board does not change meanwhile.
    let run = env.jobboard("watch").in_shell("\"$@\" 2> err | true").run();
    run.succeeded();
    let errors = fs::read_to_string(env.file("err")).unwrap_or_default();
    assert!(!errors.contains("error"), "{errors}");
}

#[test]
fn lost_server_is_waited_for() {
    need!((env, mut server) = Server::with_env(&[]));
    let watching = watch(&env, &["--json"]);
    env.post("before");
    server.kill();
    watching.says("retrying");
    server.start_again();
    watching.says("reconnected to");
    env.post("after");
    let seen = events_and_names(&watching.prints(3));
    assert_eq!(seen, ["posted before", "resync null", "posted after"]);
    watching.signal(Signal::INT);
    let run = watching.ended();
    assert_eq!(run.stderr.matches("retrying").count(), 1, "{run}");
}

#[test]
fn absent_server_is_waited_for_and_a_wrong_address_is_not() {
    need!((env, mut server) = Server::with_env(&[]));
    server.kill();
    let watching = env.jobboard(&["watch", "--json"]).spawn();
    watching.says("retrying");
    let impatient = env.jobboard(&["watch"]).spawn();
    impatient.says("retrying");
    impatient.signal(Signal::INT);
    assert_eq!(impatient.ended().code, 130);
    server.start_again();
    watching.says("watching ");
    env.post("first");
    assert_eq!(events_and_names(&watching.prints(1)), ["posted first"]);
    server.run(&["CONFIG", "SET", "requirepass", "secret"]);
    for board in [server.url(""), "redis://no.such.host.invalid".to_owned()] {
        env.fails(5, ["watch", "--board", &board]);
    }
}

#[test]
fn foreign_text_cannot_control_a_terminal() {
    let env = Env::new();
    let watching = watch(&env, &["--count", "1", "-o", "table"]);
    env.post("\u{202e}red");
    let run = watching.ended();
    run.prints("\\u{202e}red");
    assert!(!run.stdout.contains(['\u{1b}', '\u{202e}']), "{run}");
}
