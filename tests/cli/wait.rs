//! `jobboard wait`.

use std::time::{Duration, Instant};

use crate::{
    conduct::Stage,
    support::{
        Env, Outcome, ProxyMode, Running, Server, ZooKeeper, play, servers::Host as _, wait_until,
    },
};

/// A Redis board with an awaited job.
struct Lost {
    env: Env,
    server: Server,
}

impl Lost {
    fn open() -> Option<Self> {
        let (env, server) = Server::with_env(&[])?;
        Some(Self { env, server })
    }

    /// Starts a waiting command, and returns it once the server knows its subscription.
    fn waits(&self, words: &[&str]) -> Running {
        let waiting = self.env.jobboard(words).spawn();
        self.has_listeners('1');
        waiting
    }

    fn has_listeners(&self, count: char) {
        wait_until("it listens", || {
            let listeners = ["PUBSUB", "NUMSUB", "taskflow:events"];
            self.server.run(&listeners).trim().ends_with(count)
        });
    }
}

/// Requires that a wait failed without a proof of the end.
fn assert_unproven(run: &Outcome) {
    assert!([3, 9].contains(&run.code), "{run}");
    let message = if run.code == 9 {
        "may have lost the job"
    } else {
        "the job is unknown"
    };
    run.warns(message);
}

#[test]
fn wait_ends_when_all_jobs_are_complete() {
    let env = Env::new();
    env.post_many(2);
    let mut waiting = env.jobboard(&["wait", "@1", "@2"]).spawn();
    waiting.listens();
    for job in ["@1", "@2"] {
        assert!(!waiting.has_ended());
        env.ok(format!("consume {job} --force --yes"));
    }
    let run = waiting.ended();
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    00000001-0000-0000-0000-000000000000	job-0	complete
    00000002-0000-0000-0000-000000000000	job-1	complete
    --- stderr
    ");
}

#[test]
fn trashed_job_has_its_own_exit_code() {
    let env = Env::new();
    env.post("resize");
    let mut waiting = env.jobboard(&["wait", "@1"]).spawn();
    waiting.listens();
    env.trash("@1");
    let run = waiting.ended();
    insta::assert_snapshot!(run, @"
    exit code 9
    --- stdout
    00000001-0000-0000-0000-000000000000	resize	trashed
    --- stderr
    error: resize ended in the trash
    hint: `jobboard explain 00000001-0000-0000-0000-000000000000` shows the reason and the fix
    ");
}

#[test]
fn wait_for_an_empty_board() {
    let env = Env::new();
    let wait = ["wait", "--empty", "--json"];
    assert_eq!(env.json(wait)["done"], "empty");
    env.post("resize");
    let mut waiting = env.jobboard(&["wait", "--empty"]).spawn();
    waiting.listens();
    env.ok("consume @1 --force --yes");
    waiting.ended().succeeded();
}

#[test]
fn wait_for_a_job_that_matches_the_filters() {
    let env = Env::new();
    env.post("resize");
    let mut waiting = env.jobboard("wait --any --filter name=grow").spawn();
    waiting.listens();
    env.post("shrink");
    let uuid = env.post("grow");
    assert!(waiting.ended().succeeded().starts_with(&uuid));
}

#[test]
fn verbose_wait_mentions_that_no_conductor_is_running() {
    let env = Env::new();
    env.post("resize");
    let note = "no conductor is running; resize waits until a worker claims it";
    let run = env.run("wait resize --timeout 1s --verbose");
    run.warns(note);
    let run = env.run("wait resize --timeout 1s");
    assert!(!run.stderr.contains(note), "{run}");
}

#[test]
fn signal_ends_the_wait_with_its_code() {
    use rustix::process::Signal;

    let env = Env::new();
    env.post("resize");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut waiting = env.jobboard(&["wait", "@1"]).spawn();
        waiting.listens();
        waiting.signal(signal);
        let run = waiting.ended();
        assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{run}");
    }
}

#[test]
fn trashed_job_of_the_same_uuid_is_not_the_awaited_one() {
    let env = Env::new();
    let nightly = ["post", "nightly", "--unique", "nightly"];
    env.ok(nightly);
    env.trash("@1");
    let waiting = env.jobboard(&[&nightly[..], &["--wait"]].concat()).spawn();
    wait_until("it is posted", || env.names() == ["nightly"]);
    env.claim("@2", "ada");
    env.ok("consume @2 --who ada");
    waiting.ended().succeeded();
}

#[test]
fn last_end_of_a_uuid_counts() {
    let env = Env::new();
    let nightly = |command: &str| {
        let words = format!("post a max_attempts:=1 --unique n -- {command}");
        let uuid = env.run(words).posted();
        let _ended = env.run("-q conduct --allow-any --drain");
        env.run(format!("wait {uuid}"))
    };
    assert_eq!(nightly("false").code, 9);
    nightly("true").succeeded();
}

#[test]
fn new_job_of_the_same_uuid_is_not_the_awaited_one() {
    let env = Env::new();
    let nightly = "post nightly --unique nightly";
    let uuid = env.run(nightly).posted();
    env.post("other");
    let mut waiting = env.jobboard(&["wait", &uuid, "@2"]).spawn();
    waiting.listens();
    env.claim("@1", "ada");
    env.ok("consume @1 --who ada");
    env.ok(nightly);
    env.claim("@2", "ada");
    env.ok("consume @2 --who ada");
    waiting.ended().succeeded();
}

#[test]
fn wait_ends_once_one_job_cannot_complete() {
    let env = Env::new();
    env.post_many(2);
    let mut waiting = env.jobboard(&["wait", "@1", "@2"]).spawn();
    waiting.listens();
    env.trash("@1");
    assert_eq!(waiting.ended().code, 9);
}

#[test]
fn wait_that_ends_in_an_outage_blames_the_board() {
    need!(mut lost = Lost::open());
    let job = lost.env.post("a");
    let commands = [
        &format!("wait {job} --timeout 20s"),
        "wait --empty --timeout 20s",
        "claim --next --filter name=b --wait 20s --if-none 0",
    ];
    let commands = commands.map(|words| lost.env.jobboard(words).spawn());
    lost.has_listeners('3');
    // A server that is lost between the first exchanges is unreachable from the start.
    wait_until("all clients are idle", || {
        let clients = lost.server.run(&["CLIENT", "LIST"]);
        let asks = |line: &str| line.contains(" idle=0 ") || line.contains(" idle=1 ");
        !clients
            .lines()
            .any(|it| it.contains(" name=jobboard ") && asks(it))
    });
    lost.server.kill();
    for waiting in commands {
        let run = waiting.ended();
        run.fails(124, "the board is still unreachable");
        run.warns("`jobboard ping`");
    }
}

#[test]
fn job_lost_by_the_server_is_not_complete() {
    let strikes: [fn(&mut Lost); 6] = [
        |lost| _ = lost.server.run(&["FLUSHALL"]),
        |lost| {
            lost.server.run(&["FLUSHALL"]);
            lost.env.post_many(3);
        },
        |lost| {
            lost.server.kill();
            lost.server.start_again();
        },
        |lost| {
            lost.server.kill();
            lost.server.start_again();
            let post = || lost.env.run("post b").code == 0;
            wait_until("another one is posted", post);
        },
        |lost| {
            let board = ["DEL", "taskflow:listings", "taskflow:sequence"];
            lost.server.run(&board);
        },
        // As if the server had evicted it.
        |lost| {
            lost.env.ok("claim --next");
            lost.server.run(&["DEL", "taskflow:listings"]);
        },
    ];
    for strike in strikes {
        need!(mut lost = Lost::open());
        let waiting = lost.env.jobboard(&["post", "resize", "--wait"]).spawn();
        let job = waiting.prints(1).remove(0);
        strike(&mut lost);
        let run = waiting.ended();
        assert_eq!(run.code, 9, "{run}");
        assert_unproven(&run);
        lost.env.fails(3, format!("wait {job}"));
    }
}

#[test]
fn job_lost_during_a_lookup_is_not_complete() {
    need!(lost = Lost::open());
    let job = lost.env.post("resize");
    let waiting = lost.waits(&["wait", &job]);
    lost.server.run(&["FLUSHALL"]);
    assert_unproven(&waiting.ended());
}

#[test]
fn job_ended_by_a_peer_is_complete() {
    need!(lost = Lost::open());
    let job = lost.env.post("resize");
    let waiting = lost.waits(&["wait", &job, "@1"]);
    let consume = |job: &str| {
        let time = format!("taskflow:{job}.last_modified");
        lost.server.run(&["DEL", &time]);
        lost.server.run(&["HDEL", "taskflow:listings", job]);
    };
    consume(&job);
    let run = waiting.ended();
    // Before the lookup nothing is known of it.
    assert!([0, 3].contains(&run.code), "{run}");
    let waiting = lost.waits(&["post", "resize", "--wait"]);
    let fields = || lost.server.run(&["HKEYS", "taskflow:listings"]);
    wait_until("it is posted", || !fields().trim().is_empty());
    consume(fields().trim());
    waiting.ended().exits(0, "the outcome is unknown");
}

#[test]
fn end_of_an_earlier_run_proves_nothing_for_a_later_one() {
    for forgets_numbers in [false, true] {
        need!(lost = Lost::open());
        let post = ["post", "resize", "--unique", "nightly"];
        lost.env.ok(post);
        lost.env.ok("consume @1 --force --yes");
        if forgets_numbers {
            lost.server.run(&["DEL", "taskflow:sequence"]);
        }
        for done in ["posted", "exists"] {
            let waiting = lost.waits(&[&post[..], &["--wait", "--json"]].concat());
            assert!(waiting.prints(1)[0].contains(done));
            if done == "posted" {
                waiting.kill();
                continue;
            }
            // The history stays.
            let board = ["DEL", "taskflow:listings", "taskflow:sequence"];
            lost.server.run(&board);
            let run = waiting.ended();
            assert_eq!(run.code, 9, "{run}");
            assert_unproven(&run);
        }
    }
}

#[test]
fn job_of_a_replaced_file_is_not_complete() {
    let (env, other) = (Env::new(), Env::new());
    let job = env.post("resize");
    other.post("b");
    let mut waiting = env.jobboard(&["wait", &job]).spawn();
    waiting.listens();
    for suffix in ["-wal", "-shm", ""] {
        let [from, to] = [&other, &env].map(|it| format!("{}{suffix}", it.board().display()));
        std::fs::rename(from, to).unwrap();
    }
    let run = waiting.ended();
    // 5, if the file was replaced before the job was looked up.
    assert!([3, 5, 9].contains(&run.code), "{run}");
}

#[test]
fn job_lost_by_zookeeper_is_not_complete() {
    need!(mut server = ZooKeeper::start_own());
    let env = Env::new();
    let board = format!("default = \"b\"\n[board.b]\nurl = {:?}\n", server.board());
    env.configure(&board);
    let waiting = env.jobboard(&["post", "resize", "--wait"]).spawn();
    waiting.prints(1);
    server.process().start_empty();
    waiting.ended().has_code(9);
}

#[test]
fn timeout_includes_each_lookup() {
    need!(stage = Stage::redis());
    stage.env.post("resize");
    let (board, proxy) = stage.through_proxy();
    // The lookup asks for a job; the subscription reads only the jobs on the board.
    let gone = "00000000-0000-4000-8000-000000000001";
    for (job, word) in [(gone, gone), ("resized", "HSCAN")] {
        proxy.set(ProxyMode::PassOn);
        proxy.set_at(word, ProxyMode::Stall);
        let began = Instant::now();
        let run = (stage.env).run(["--board", &board, "wait", job, "--timeout", "1s"]);
        run.fails(124, "the board did not reply within 1s");
        assert!(began.elapsed() < Duration::from_secs(4), "{run}");
    }
}

#[test]
fn waits_and_refusals() {
    play(
        r#"
        # a previously trashed job counts
        0 post resize
        2 wait
        2 wait @1 --empty
        2 wait --any --empty
        0 wait --any == 00000001-0000-0000-0000-000000000000\tresize\tclaimable
        6 owner @1
        124 wait @1 --timeout 1s => error: cannot wait for 00000001-0000-0000-0000-000000000000 on sqlite:ROOT/state/jobboard/board.db: the job did not end within 1s\nhint: `jobboard explain 00000001-0000-0000-0000-000000000000` shows its state and the reason
        4 consume --failed @1 => consume --failed --force --yes @1
        0 trash @1 --force --yes
        9 wait @1 -> trashed

        # an unknown name does not keep the others from being awaited
        0 post resize
        0 claim @1 --who ada
        0 consume @1 --who ada
        0 post grow -- true
        0 trash grow --force --yes
        9 wait nosuch @1 grow -> resize\tcomplete -> grow\ttrashed => has the uuid or name nosuch
        3 wait nosuch @1 -> resize\tcomplete => has the uuid or name nosuch

        # an unknown uuid is complete only on request, and a missing board is mentioned
        3 wait unique:nightly => the job is unknown => no job was ever posted on
        3 wait unique:nightly => cannot wait for unique:nightly (
        0 wait unique:nightly --gone-ok => no record of unique:nightly (
        3 show unique:nightly => cannot show unique:nightly (
        none
        0 post resize
        3 wait 00000000
        3 wait 00000000-0000-4000-8000-000000000001 => cannot wait for 00000000-0000-4000-8000-000000000001 on sqlite:ROOT/state/jobboard/board.db: the job is unknown: it was never posted here, or it ended before this board's history began\nhint: check the reference and the board (`jobboard config`); `jobboard list --history` lists the jobs that have ended, and --gone-ok treats an unknown job as complete
        0 wait 00000000-0000-4000-8000-000000000001 --gone-ok == 00000000-0000-4000-8000-000000000001\t\tcomplete => no record of 00000000-0000-4000-8000-000000000001 on sqlite:ROOT/state/jobboard/board.db; counting the job as complete
        0 wait 00000000-0000-4000-8000-000000000001 --gone-ok --json -> "name":null -> "outcome":null -> "last_failure":null

        # the reason of a trashed job is printed, without its secrets
        0 post resize -- sh -c 'echo boom; echo password=hunter$((1+1)); exit 3'
        7 conduct --drain --max-attempts 1 -> boom
        9 wait @1 == 00000001-0000-0000-0000-000000000000\tresize\ttrashed => last lines of resize on stdout:\n  boom\n  password=********\nerror: resize ended in the trash; last failure: exit 3: password=********\nhint: `jobboard explain 00000001-0000-0000-0000-000000000000` shows the reason and the fix
        9 wait @1 --json -q -> "outcome":null -> "exit_code":3 => last failure: exit 3: password=********"
        0 show @1 -o table !> hunter2
        0 show @1 -o table --reveal -> hunter2

        # the reason of trashing is printed to waiters
        0 post resize
        0 trash @1 --force --yes --reason 'bad data'
        9 wait @1 -> trashed => error: resize ended in the trash, by user@host: bad data\n
        "#,
    );
}
