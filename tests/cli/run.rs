//! `jobboard run` without a terminal.

mod ending;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::support::{
    Env, Outcome, Running, Tag, play,
    process::{guards, is_alive, no_echo, signal, watches},
    wait_until,
};

/// The longest time that a command may outlive its watchers.
const SURVIVAL: Duration = Duration::from_secs(2);

#[must_use]
fn run(env: &Env, words: &[&str]) -> Outcome {
    env.run([&["run", "resize"], words].concat())
}

/// Starts a command for a job, and waits until it sleeps.
fn start(env: &Env, tag: &Tag, words: &[&str]) -> Running {
    let mut running = env.jobboard(&[&["run", "resize"], words].concat()).spawn();
    tag.sleeps(&mut running, 1);
    running
}

/// Returns a script that sleeps forever, with this reaction to TERM.
fn stubborn(tag: &Tag, when_asked: &str) -> String {
    let tag = tag.text();
    format!("trap '{when_asked}' TERM; while :; do sleep {tag}; done")
}

#[test]
fn unexecutable_file_is_not_passed_to_a_shell() {
    let env = Env::new();
    let program = env.file("garbage");
    fs::write(&program, "echo a shell has run this\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, executable).unwrap();
    let run = run(&env, &["--", program.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str()), (126, ""), "{run:?}");
    run.warns("cannot execute");
}

#[test]
fn unusable_environment_is_reported() {
    let env = Env::new();
    let few = "ulimit -n 6; exec \"$@\"";
    let without = "unshare --mount sh -c 'mount -t tmpfs none /proc && exec \"$@\"' sh \"$@\"";
    let mut cases = vec![(few, "`ulimit -n 1024`")];
    if rustix::process::geteuid().is_root() {
        cases.push((without, "`mount -t proc proc /proc`"));
    }
    for (surroundings, way_out) in cases {
        let run = env.jobboard(&["run", "a", "--", "true"]);
        let run = run.in_shell(surroundings).run();
        assert_eq!((run.code, run.stderr.lines().count()), (125, 1), "{run:?}");
        run.warns(way_out);
    }
}

#[test]
fn command_gets_the_variables_of_its_job() {
    let env = Env::new();
    let script = "env | grep ^JOBBOARD_ | sort; exit 1";
    let run = run(&env, &["--who", "ada", "--", "sh", "-c", script]);
    let job = env.show("@1");
    let text: Vec<_> = run
        .stdout
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    let [attempt, conductor, details, fence, _guard, uuid, name] = text[..] else {
        panic!("{run:?}")
    };
    assert_eq!(attempt, ("JOBBOARD_ATTEMPT", "1"));
    assert_eq!(details.0, "JOBBOARD_DETAILS_FILE");
    assert_eq!(uuid, ("JOBBOARD_JOB", job["uuid"].as_str().unwrap()));
    assert_eq!(name, ("JOBBOARD_NAME", "resize"));
    assert_eq!(conductor.0, "JOBBOARD_CONDUCTOR");
    assert_eq!(job["last_failure"]["conductor"], conductor.1);
    assert!(conductor.1.starts_with("ada:"), "{conductor:?}");
    assert_eq!(fence.0, "JOBBOARD_FENCE");
    assert!(fence.1.parse::<u64>().is_ok(), "{fence:?}");
}

/// Prints the mode and the content of the details file, twice, and standard input.
const DETAILS: &str = "stat -Lc %a \"$JOBBOARD_DETAILS_FILE\"; \
                       (cat \"$JOBBOARD_DETAILS_FILE\"); cat \"$JOBBOARD_DETAILS_FILE\" -";

#[test]
fn details_file_has_the_details_under_run_claim_and_conduct() {
    let env = Env::new();
    let run = env.jobboard(&["run", "a", "size:=4", "--", "sh", "-c", DETAILS]);
    let run = run.stdin("typed\n").run();
    let details = serde_json::json!({"size": 4, "command": ["sh", "-c", DETAILS]});
    let expected =
        |details: &serde_json::Value, input| format!("600\n{details}\n{details}\n{input}");
    assert_eq!(run.succeeded(), expected(&details, "typed\n"));

    let post = |words: &[&str]| env.run([&["post", "a"], words].concat()).posted();
    post(&["size:=5"]);
    let claim = env.jobboard(&["claim", "--next", "--", "sh", "-c", DETAILS]);
    let claimed = claim.stdin("typed\n").run();
    let details = serde_json::json!({"size": 5});
    assert_eq!(claimed.succeeded(), expected(&details, "typed\n"));

    let script = format!("({DETAILS}) > seen");
    post(&["size:=6", "--", "sh", "-c", &script]);
    env.ok("conduct --drain");
    let details = serde_json::json!({"size": 6, "command": ["sh", "-c", script]});
    let seen = fs::read_to_string(env.file("seen")).unwrap();
    assert_eq!(seen, expected(&details, ""));
}

#[test]
fn command_does_not_inherit_secrets() {
    let env = Env::new();
    let board = format!("sqlite:{}", env.file("board.db").display());
    let run = env
        .jobboard(&format!("run resize --board {board} -- env"))
        .env("JOBBOARD_PASSWORD", "swordfish")
        .env("JOBBOARD_URL", "redis://ada:trustno1@[::1]:1/0")
        .env("JOBBOARD_WHO", "ada")
        .env("NOTIFY_SOCKET", "@manager")
        .env("WATCHDOG_USEC", "1000000")
        .run();
    let text = run.succeeded();
    // Nor may it notify our service manager.
    for secret in [
        "swordfish",
        "trustno1",
        "JOBBOARD_PASSWORD",
        "JOBBOARD_URL",
        "NOTIFY_",
        "WATCHDOG_",
    ] {
        assert!(
            !text.contains(secret) && !run.stderr.contains(secret),
            "{run:?}"
        );
    }
    assert!(text.contains("JOBBOARD_WHO=ada\n"), "{run:?}");
}

#[test]
fn command_cannot_read_secrets_of_its_runner() {
    let env = Env::new();
    // Root may read everything.
    let directory = env.file("nobody");
    fs::create_dir(&directory).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&directory, Some(65534), Some(65534)).unwrap();
    }
    let board = format!("sqlite:{}", directory.join("board.db").display());
    let script = "tr '\\0' '\\n' < /proc/$PPID/environ; echo over >> \"$0\"";
    let over = directory.join("over");
    let words = |begin: &[&'static str]| -> Vec<String> {
        let ours = [
            "--board",
            &board,
            "--",
            "sh",
            "-c",
            script,
            over.to_str().unwrap(),
        ];
        begin
            .iter()
            .chain(&ours)
            .map(|it| (*it).to_owned())
            .collect()
    };
    let start = |begin: &[&'static str]| {
        let words = words(begin);
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let invocation = env.jobboard(&words).env("JOBBOARD_PASSWORD", "swordfish");
        invocation.unprivileged().spawn()
    };
    let run = start(&["run", "a"]).ended();
    assert_eq!(run.succeeded(), "", "{run:?}");
    let watching = start(&["watch", "--count", "1"]);
    watching.says("watching");
    let run = start(&["run", "b"]).ended();
    assert_eq!(run.succeeded(), "", "{run:?}");
    let watched = watching.ended();
    assert_eq!(watched.succeeded(), "", "{watched:?}");
    assert_eq!(fs::read_to_string(&over).unwrap(), "over\n".repeat(3));
}

#[test]
fn background_processes_are_killed() {
    let env = Env::new();
    let tag = Tag::new();
    let script = format!("sleep {} & exit 4", tag.text());
    assert_eq!(run(&env, &["--", "sh", "-c", &script]).code, 4);
    assert!(tag.commands().is_empty());
}

#[test]
fn ends_of_children_are_seen_although_a_parent_ignores_them() {
    let env = Env::new();
    let ignoring = |words: &[&str]| {
        let own = ["--ignore-signal=CHLD", env!("CARGO_BIN_EXE_jobboard")];
        let words = [&own, words].concat();
        env.program("env".as_ref(), &words).run()
    };
    let slow = ["--", "sh", "-c", "cat > cat; sleep 0.1; exit 3"];
    let run = ignoring(&[&["run", "a", "--on-failure", "trash"], &slow[..]].concat());
    assert_eq!(run.code, 3, "{run}");
    let watch = ["watch", "--since", "1h", "--count", "2", "--", "sh", "-c"];
    let run = ignoring(&[&watch, &["cat > cat; sleep 0.1"][..]].concat());
    assert_eq!(run.code, 0, "{run}");
    env.ok("post b -- sleep 0.1");
    ignoring(&["conduct", "--drain", "--allow-any"]).succeeded();
    // The reason is that of the program.
    let script = env.file("lost");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    ignoring(&["run", "c", "--", script.to_str().unwrap()]).has_code(127);
}

#[test]
fn exit_codes_and_advice_of_commands() {
    play(
        r#"
        # commands that cannot run
        127 run resize -- nosuch => error: program nosuch not found
        127 run resize --json -- nosuch => {"error":{"code":127,"kind":"failed","message":"program nosuch not found"
        none
        file file
        125 run resize --board sqlite:file/board.db --json -- echo ran => {"error":{"code":125,"kind":"failed"
        125 run resize --read-only --json -- echo ran => {"error":{"code":125,"kind":"refused"
        none

        # a successful command consumes the job
        0 run resize -- sh -c 'echo out; echo err >&2' == out => err
        names

        # the exit code is passed on, without advice if quiet
        11 run resize -- sh -c 'exit 11'
        137 run resize -- sh -c 'kill -9 $$'
        134 run resize -- sh -c 'kill -6 $$'
        1 run resize -q -- false => (nothing)
        names resize resize resize resize

        # a failed command returns the job to the board
        7 run resize lb=1 -- sh -c 'exit 7' => resize is back on the board; retry in 1s: exit 7\nresize is not retried until a conductor runs; to retry resize now: `jobboard retry 00000001-0000-0000-0000-000000000000`, then `jobboard conduct --drain --filter name=resize`\nto remove resize: `jobboard trash --force 00000001-0000-0000-0000-000000000000`
        0 list --columns state,attempts == UNCLAIMED\t1
        0 show @1 --json -> "exit_code":7 -> "lb":"1" -> "command":["sh","-c","exit 7"]
        0 retry @1
        7 conduct --drain --max-attempts 2
        0 list --trash --columns name == resize
        0 purge @1 --yes

        # the advice selects the job by its exact name, and runs no other job
        1 run 'a "b", *' --retry-delay 0s -- false => then `jobboard conduct --drain --filter 'name="a ""b"", [*]"'`
        1 run 'a "b", c' --retry-delay 0s -- false => `jobboard conduct --drain --filter 'name="a ""b"", c"'`
        7 conduct --drain --max-attempts 2 --filter 'name="a ""b"", [*]"'
        names a "b", c
        0 list --trash --columns name == a "b", *

        # a failed job can be trashed
        137 run resize --on-failure trash -- sh -c 'kill -9 $$' => resize is in the trash: signal 9\nresize is not retried until you restore it; to retry resize now: `jobboard retry 00000001-0000-0000-0000-000000000000`, then `jobboard conduct --drain --filter name=resize`\nto remove resize: `jobboard purge 00000001-0000-0000-0000-000000000000`
        names
        0 show @1 --json -> "state":"TRASHED" -> "signal":9

        # a file that is no program costs no attempt
        126 run resize -- /etc/passwd => error: cannot execute /etc/passwd: permission denied
        0 list --count --filter attempts>0 == 0
        0 list --count --state CLAIMED == 0

        # the job of an earlier run is retried, also before its back-off ends
        1 run resize --unique nightly --retry-delay 0s -- sh -c 'echo ran; exit 1' == ran
        5 run resize --unique nightly --retry-delay 0s -- sh -c 'echo $JOBBOARD_ATTEMPT; exit 5' == 2 => retrying resize, which an earlier run left on the board\nwarning: resize has a command of its own, which is ignored; `jobboard conduct` runs such commands\nresize is back on the board: exit 5\nresize is not retried until a conductor or the same `run --unique` command claims it; to retry resize now: repeat this command\nto remove resize: `jobboard trash --force 00000001-0000-0000-0000-000000000000`
        0 list --columns attempts == 2
        0 run resize --unique nightly --retry-delay 0s -- true
        names
        1 run resize --unique daily -- sh -c 'exit 1'
        0 run resize --unique daily -- sh -c 'echo ran' == ran
        names

        # a claimed job is not run again
        0 post resize --unique nightly
        0 claim @1 --who ada
        0 run resize --unique nightly -- echo ran == (nothing) => did not run resize, which is still on the board: the job is claimed by ada
        0 owner @1 == ada
        "#,
    );
}
