//! `jobboard post`.

use serde_json::json;

use crate::support::{Env, play, wait_until};

#[test]
fn slow_lines_are_posted_as_they_arrive() {
    use std::io::Write;

    let env = Env::new();
    let mut run = env.jobboard(&["post", "--from", "-"]).piped_stdin().spawn();
    let mut stdin = run.stdin();
    for count in 1..=2 {
        stdin.write_all(b"{\"name\":\"a\"}\n").unwrap();
        crate::support::wait_until("the answer", || run.stdout().lines().count() == count);
        assert_eq!(env.names().len(), count);
    }
    drop(stdin);
    run.ended().succeeded();
}

#[test]
fn post_with_wait_ends_with_the_job() {
    let env = Env::new();
    for (verb, code) in [("consume", 0), ("trash", 9)] {
        let waiting = env.jobboard(&["post", "resize", "--wait"]).spawn();
        crate::support::wait_until("the post", || !waiting.stdout().is_empty());
        let uuid = waiting.stdout().trim().to_owned();
        env.ok(format!("{verb} {uuid} --force --yes"));
        assert_eq!(waiting.ended().code, code);
    }
}

#[test]
fn post_with_wait_prints_the_reason_of_a_failure() {
    let env = Env::new();
    let post = "post resize --wait -- sh -c 'echo boom >&2; exit 3'";
    let waiting = env.jobboard(post).spawn();
    crate::support::wait_until("the post", || !waiting.stdout().is_empty());
    assert_eq!(env.run("conduct --drain --max-attempts 1").code, 7);
    let run = waiting.ended();
    assert_eq!(run.code, 9, "{run}");
    for message in ["  boom", "; last failure: exit 3: boom"] {
        run.warns(message);
    }
}

#[test]
fn listed_job_can_be_posted_again() {
    let env = Env::new();
    let post = "post resize size:=40 at:={\"$ext\":1,\"text\":\"2024-02-29T13:05:09.123456\"} raw:={\"$bytes\":\"AP8=\"} --priority HIGH --book b:33333333-3333-4333-8333-333333333333";
    let uuid = env.run(post).posted();
    env.claim("@1", "ada");
    let listed = env.run("list -o jsonl");
    let board = ["--board", "sqlite:other.db"];
    let post = ["post", "--from", "-", "--board", "sqlite:other.db"];
    let run = env.jobboard(&post).stdin(listed.succeeded()).run();
    assert_eq!(run.succeeded(), format!("{uuid}\n"));
    let copy = env.json([&["show", &uuid, "--json"][..], &board].concat());
    let original = env.show(&uuid);
    for key in ["uuid", "name", "details", "priority", "book"] {
        assert_eq!(copy[key], original[key], "{key}");
    }
    assert_eq!(copy["state"], "UNCLAIMED");
    // And the listing of the copy can be posted again, byte for byte.
    let again = env.run([&["list", "-o", "jsonl"][..], &board].concat());
    let run = env.jobboard("post --from -").stdin(again.succeeded()).run();
    run.fails(7, "already exists on the board");
}

#[test]
fn waiting_for_a_posted_job_reports_its_end_and_a_missing_conductor() {
    let env = Env::new();
    let run = env.run("post a --wait --timeout 1ms --json -- true");
    run.exits(124, "no conductor is running");
    let waiting = env.jobboard("post b --wait --json -- true").spawn();
    wait_until("both are done", || {
        let _ = env.run(["conduct", "--drain"]);
        env.run("list --history b -o uuid").stdout.contains('-')
    });
    let run = waiting.ended();
    let lines: Vec<serde_json::Value> = run
        .succeeded()
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["done"], &lines[1]["done"]),
        (&json!("posted"), &json!("complete"))
    );
    assert_eq!(lines[1]["outcome"], "consumed");
}

#[test]
fn posts_and_refusals() {
    play(
        r#"
        # a dry run prints the record and posts nothing
        0 post resize size:=10 --dry-run -o table == {\n  "uuid": "00000001-0000-0000-0000-000000000000",\n  "name": "resize",\n  "priority": "NORMAL",\n  "details": {\n    "size": 10\n  }\n}
        none

        # a taken uuid is refused
        0 post resize --uuid 5f3a0000-0000-4000-8000-000000000001
        4 post other --uuid 5f3a0000-0000-4000-8000-000000000001 => cannot post other on sqlite:ROOT/state/jobboard/board.db: a job with the uuid 5f3a0000-0000-4000-8000-000000000001 already exists on the board\nhint: nothing changed; `jobboard show 5f3a0000-0000-4000-8000-000000000001` shows the existing job

        # a unique job is posted once
        0 post nightly --unique nightly --json -> "done":"posted"
        0 post nightly --unique nightly --json -> "done":"exists" -> "uuid":"00000001-0000-0000-0000-000000000000"
        names nightly
        0 consume @1 --force --yes
        0 post nightly --unique nightly --json -> "done":"posted"

        # lines are posted with results in order
        0 post --from - -o jsonl << {"name":"a","details":{"n":1},"priority":"high"}\n\n{"name":"b","unique":"b"}\n{"name":"b","unique":"b"}\n{"name":"last"} == {"line":1,"uuid":"00000001-0000-0000-0000-000000000000","name":"a","done":"posted","sequence":1}\n{"line":3,"uuid":"00000002-0000-0000-0000-000000000000","name":"b","done":"posted","sequence":2}\n{"line":4,"uuid":"00000002-0000-0000-0000-000000000000","name":"b","done":"exists","sequence":null}\n{"line":5,"uuid":"00000003-0000-0000-0000-000000000000","name":"last","done":"posted","sequence":4}
        names a b last

        # --check-first posts nothing if a line is bad or a uuid is there twice
        7 post --from - --check-first << {"name":"a"}\n[]\n => error: standard input, line 2: a line must be a JSON object such as {"name": "resize"}, not an array\nnothing was posted\nerror: failed for 1 of 2 lines
        7 post --from - --check-first << {"name":"a"}\n{"name":"b","uuid":"5f3a0000-0000-4000-8000-000000000001"}\n{"name":"b","uuid":"5f3a0000-0000-4000-8000-000000000001"}\n => line 3 => nothing was posted
        none

        # a post with --wait ends at the timeout
        124 post resize --wait --timeout 1s == 00000001-0000-0000-0000-000000000000 => no conductor is running; resize waits until a worker claims it\nerror: cannot wait for 00000001-0000-0000-0000-000000000000 on sqlite:ROOT/state/jobboard/board.db: the job did not end within 1s\nhint: `jobboard explain 00000001-0000-0000-0000-000000000000` shows its state and the reason
        names resize
        "#,
    );
}

#[test]
fn commands_of_posts() {
    play(
        r#"
        # a command that no conductor can run is rejected with its correction
        2 post a -- ./report => give ./report as an absolute path => `-- ROOT/work/report`
        2 post a -- ../work/report => as an absolute path => `-- ROOT/work/report`
        2 post a -- '' => the command names no program => `-- PROGRAM
        2 post a max_attempts=2 -- true => must be a positive JSON number => `max_attempts:=2`
        2 post a max_attempts:=0 -- true => must be a positive JSON number => `max_attempts:=3`
        2 post a timeout:=5 -- true => must be a duration => `timeout=5s`
        2 post a timeout=5y -- true => must be a duration => `timeout=5m`
        2 post a env:=1 -- true => must be an object of strings => env:=
        2 post a env:={"PATH":"/"} -- true => the variable `PATH` => PATH
        2 post a cwd=work -- true => must be an absolute path => `cwd=ROOT/work/work`
        2 post a command:=["./report"] => as an absolute path => `-- ROOT/work/report`
        2 post a -- 'df -h' => `jobboard post a -- df -h`
        2 post a -- 'df -h | wc' => `jobboard post a -- sh -c LINE`
        2 post a -- 'mysql --password=x1' => separate the words
        none
        7 post --from - << {"name":"a","details":{"command":["./report"]}} => absolute path
        0 post a -- true
        2 change @1 --set max_attempts=2 => `max_attempts:=2`

        # other machines may have the program, and other workers may read other details
        0 post a -- no-such-program
        0 post a timeout:=5
        0 post a command=any
        0 post a max_attempts:=2 -- true

        # likely mistakes are noted with the correction
        0 post a priority=HIGH => `--priority HIGH` sets the priority
        0 post a -- '/opt/my tool --all' => put `sh -c` before it
        0 post a -- false max_attempts:=1 => `max_attempts:=1` is an argument of the command
        0 post a maxattempts:=1 -- true => did you mean `max_attempts`?
        0 post a size:=20 -- true --max=1 => (nothing)
        0 post a max_attempts:=1 -- true => (nothing)

        # a post prints only the uuid, and facts and a command become details
        0 post resize size=10 fast:=true -- echo 'a b' == 00000001-0000-0000-0000-000000000000 => (nothing)
        0 show @1 --json -> "details":{"size":"10","fast":true,"command":["echo","a b"]}

        # a unique job with a failed predecessor names its failure
        0 post nightly --unique k max_attempts:=1 -- sh -c 'echo disk full >&2; exit 3' => (nothing)
        7 conduct --drain
        0 post nightly --unique k max_attempts:=1 -- sh -c 'echo disk full >&2; exit 3' == 00000001-0000-0000-0000-000000000000 => in the trash (exit 3: disk full)

        # a priority, a book and a uuid are stored
        0 post a --priority very_high --uuid 5f3a0000-0000-4000-8000-000000000001 == 5f3a0000-0000-4000-8000-000000000001
        0 show @1 --json -> "priority":"VERY_HIGH"
        0 post a --book flows:1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b
        0 show @2 --json -> "book":{"name":"flows"

        # details come from a file or standard input
        file details.json {"from": "file"}
        0 post a --details @details.json
        0 post a --details - more=1 << {"from": "stdin"}
        0 show @1 --json -> "details":{"from":"file"}
        0 show @2 --json -> "details":{"from":"stdin","more":"1"}
        "#,
    );
}
