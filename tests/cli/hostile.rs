//! Boards with huge values of a peer: each command reads the other jobs in little memory, and prints little of the
//! values.
//!
//! `JOBBOARD_FAULTS=full` makes them as large as a server permits.

use std::time::Duration;

use serde_json::json;

use crate::{
    faults::size,
    support::{Env, Host, Outcome, Peer, Server, ZooKeeper, is_full, members, needs, wait_until},
};

/// The memory limit of a command.
const MEMORY: &str = "ulimit -d 150000; exec \"$@\"";

/// The longest printed text of a value, with its surroundings.
const PRINTED: usize = 1200;

const COMMANDS: [&[&str]; 23] = [
    &["list"],
    &["list", "--json"],
    &["list", "--sort", "owner"],
    &["list", "--trash", "--json"],
    &["list", "--history", "--json"],
    &["show", "@1", "--json"],
    &["show", "@1"],
    &["owner", "@1"],
    &["status", "--json"],
    &["explain"],
    &["explain", "@1", "--json"],
    &["doctor"],
    &["check"],
    &["metrics"],
    &["report", "--json"],
    &["watch", "--timeout", "50ms"],
    &["ping"],
    &["conductors"],
    &["wait", "@1", "--timeout", "50ms"],
    &["dash", "--once"],
    &["list", "--count"],
    &["claim", "--next", "--who", "ada", "--json"],
    &["conduct", "--drain", "--allow-any", "--output", "discard"],
];

/// Runs each command on a sound board, and returns the times. The usual run needs none.
fn times(env: &Env) -> Vec<Duration> {
    if !is_full() {
        return Vec::new();
    }
    let run = |words: &&[&str]| env.jobboard(words).in_shell(MEMORY).run_measured().2;
    COMMANDS.iter().map(run).collect()
}

/// Requires that each command works in little memory, and prints no long text. Prints its memory and its time beside
/// the time on a sound board.
///
/// In the usual run, only one half of the commands runs with a kind of value, and the other half with the next kind. A conductor always runs, after the claim that leaves it no job.
fn holds(env: &Env, (at, kind): (usize, &str), sound: &[Duration]) {
    for (number, words) in COMMANDS.iter().enumerate() {
        let is_in_turn = number % 2 == at % 2;
        if !is_full() && !is_in_turn && !["claim", "conduct"].contains(&words[0]) {
            continue;
        }
        let sound = sound.get(number).copied().unwrap_or_default();
        let (run, used, took) = env.jobboard(words).in_shell(MEMORY).run_measured();
        let what = format!("{kind}: {words:?}");
        eprintln!("faults: {what} took {took:.1?} ({sound:.1?} without), {used} MiB");
        // The call is valid, the board is reachable, and memory suffices.
        let is_sound = (0..100).contains(&run.code) && ![2, 5].contains(&run.code);
        let is_check = words[0] == "check";
        assert!(is_sound || is_check || run.code == 124, "{what}: {run}");
        is_short(&run, &what);
    }
}

fn is_short(run: &Outcome, what: &str) {
    for text in [&run.stdout, &run.stderr] {
        let words = text.split(|it: char| it == '"' || it.is_whitespace());
        let longest = words.max_by_key(|word| word.len()).unwrap_or_default();
        assert!(
            longest.len() <= PRINTED,
            "{what} prints {} bytes",
            longest.len()
        );
    }
}

/// Posts two sound jobs, and trashes one.
fn post(env: &Env) {
    for name in ["sound", "other", "thrown"] {
        env.ok(format!("post {name} -- true"));
    }
    env.ok("trash --force --yes --name thrown");
}

/// Huge values, as scripts for the server, where `big` is a text and `job` the field of a sound job.
const LARGE: &str = "posting: redis.call('HSET', 'taskflow:listings', 'x', big)
    posting in the trash: redis.call('HSET', 'taskflow:trash', 'x', big)
    field: redis.call('HSET', 'taskflow:listings', big, 'x')
    owner: redis.call('SET', 'taskflow:' .. job .. '.owned', big)
    record: redis.call('SET', 'taskflow:' .. job .. '.jobboard', big)
    time: redis.call('SET', 'taskflow:' .. job .. '.last_modified', big)
    past: redis.call('XADD', 'taskflow:past', '*', 'job', big, 'side', big)
    conductor: redis.call('SET', 'taskflow:conductor.x', big) redis.call('SET', 'taskflow:told.x', big)
    pause: redis.call('HSET', 'taskflow:paused', 'x', big)";

#[test]
fn faults_oversized_values_are_not_read_redis() {
    need!((env, server) = Server::with_env(&[]));
    let length = size(110_000_000, 20_000_000);
    post(&env);
    let sound = times(&env);
    for (at, line) in LARGE.lines().enumerate() {
        let (kind, script) = line.trim().split_once(": ").unwrap();
        server.run(&["FLUSHALL"]);
        post(&env);
        let job = "local job = redis.call('HKEYS', 'taskflow:listings')[1]";
        let big = format!("local big = string.rep('x', {length})");
        server.run(&["EVAL", &format!("{job} {big} {script}"), "0"]);
        holds(&env, (at, kind), &sound);
        let listed = env.run("list --json");
        assert!(
            listed.succeeded().contains("\"name\":\"sound\""),
            "{kind}: {listed}"
        );
    }
    server.run(&["FLUSHALL"]);
    post(&env);
    let big = format!("redis.call('HSET', 'taskflow:listings', 'x', string.rep('x', {length}))");
    server.run(&["EVAL", &big, "0"]);
    let shown = env.json("show key:x --json");
    assert_eq!(members(&shown, "size raw"), format!("{length} "));
    env.ok("trash --force --yes key:x");
}

/// Huge values in the file of a board, as statements where `:big` is a text and job 1 is sound.
const LARGE_EMBEDDED: [(&str, &str); 11] = [
    ("details", "UPDATE job SET details = '\"' || :big || '\"' WHERE sequence = 2"),
    ("name", "UPDATE job SET name = :big WHERE sequence = 2"),
    ("name in the trash", "UPDATE job SET name = :big WHERE shelf = 1"),
    ("uuid", "UPDATE job SET uuid = :big WHERE sequence = 2"),
    ("owner", "UPDATE job SET owner = CAST(:big AS BLOB), fence = 1 WHERE sequence = 2"),
    (
        "owner of an expired claim",
        "UPDATE job SET owner = CAST(:big AS BLOB), fence = 1, expires_boot = 1, expires_wall = 1
         WHERE sequence = 2",
    ),
    ("book", "UPDATE job SET book_name = :big, book_uuid = :big WHERE sequence = 2"),
    ("failures", "UPDATE job SET failures = :big, remark = :big WHERE sequence = 2"),
    (
        "past",
        "INSERT INTO past (ended_on, outcome, succeeded, sequence, uuid, name, priority, created_on,
                           attempts, postponed)
         VALUES (1, :big, 0, 9, :big, :big, 2, 1, 0, 0)",
    ),
    (
        "conductor",
        "INSERT INTO conductor VALUES (:big, :big, 1, 1, CAST(:big AS BLOB), :big, 1, :big),
                                      ('x', 'h', 1, 1, x'78', 't', 1 << 60, :big)",
    ),
    (
        "pause and events",
        "INSERT INTO pause VALUES (:big, :big);
         INSERT INTO event (at, kind, posted, sequence, uuid, name, owner, remark)
         VALUES (1, :big, 1, 1, :big, :big, CAST(:big AS BLOB), :big)",
    ),
];

#[test]
fn faults_oversized_values_are_not_read_embedded() {
    let length = size(110_000_000, 20_000_000);
    let env = Env::new();
    post(&env);
    let sound = times(&env);
    for (at, (kind, statements)) in LARGE_EMBEDDED.into_iter().enumerate() {
        let env = Env::new();
        post(&env);
        let file = env.database();
        let big = format!("hex(zeroblob({}))", length / 2);
        file.execute_batch(&statements.replace(":big", &big))
            .unwrap();
        holds(&env, (at, kind), &sound);
        if kind == "name in the trash" {
            env.ok("purge --yes @3");
        }
        assert_eq!(
            env.ok("list --count --filter name=sound").trim(),
            "1",
            "{kind}"
        );
    }
}

/// Creates many pauses and registrations on Redis.
const MANY: &str = "for i = 1, tonumber(ARGV[1]) do
    redis.call('HSET', 'taskflow:paused', i, '{\"names\":\"*x' .. i .. '*\",\"until\":null,\"by\":\"eve\"}') end
    for i = 1, tonumber(ARGV[2]) do redis.call('SET', 'taskflow:conductor.c' .. i, '{\"name\":\"c' .. i ..
    '\",\"host\":\"h\",\"pid\":1,\"since\":\"2026-01-01T00:00:00Z\",\"owner\":\"c\",\"token\":\"\"}') end";

#[test]
fn faults_excess_pauses_and_conductors_are_cut_redis() {
    need!((env, server) = Server::with_env(&[]));
    post(&env);
    let sound = times(&env);
    post(&env);
    let (pauses, conductors) = (size(150_000, 5000), size(60_000, 1000));
    let counts = [pauses.to_string(), conductors.to_string()];
    server.run(&["EVAL", MANY, "0", &counts[0], &counts[1]]);
    holds(&env, (0, "pauses and conductors"), &sound);
    are_counted(&env, pauses, conductors);
}

#[test]
fn faults_excess_pauses_and_conductors_are_cut_zookeeper() {
    need!(server = ZooKeeper::start());
    let (env, Some(mut peer)) = (Env::new(), Peer::on(&server)) else {
        return;
    };
    env.uses(&server.board());
    post(&env);
    let sound = times(&env);
    post(&env);
    let (pauses, conductors) = (size(20_000, 1100), size(20_000, 600));
    let (top, long) = (server.top(), "x".repeat(900_000));
    let mut create = |path: String, data: String| {
        peer.request(&json!({"do": "create", "path": format!("{top}/{path}"), "data": data}));
    };
    for number in 0..pauses {
        let pause = json!({"names": format!("*x{number}*"), "until": null, "by": "eve"});
        create(format!(".jobboard/jobs/paused/{number}"), pause.to_string());
    }
    for number in 0..conductors {
        let name = format!("c{number}@h:1");
        let host = json!({"hostname": "h", "pid": 1});
        let entity = json!({"kind": "conductor", "name": name, "metadata": host});
        create(format!(".entities/conductor/{name}"), entity.to_string());
    }
    for directory in [
        "jobs/job0000000",
        ".trash/job0000000",
        ".jobboard/jobs/past/1000000",
    ] {
        for number in 100..100 + size(20, 6) {
            create(format!("{directory}{number}"), long.clone());
        }
    }
    holds(&env, (1, "nodes"), &sound);
    are_counted(&env, pauses, conductors);
}

/// Requires that all jobs are paused, and that the conductors are counted.
fn are_counted(env: &Env, pauses: usize, conductors: usize) {
    let next = env.run("claim --next --who ada");
    assert_ne!(next.code, 0, "{next}");
    let outcome = env.run("conductors");
    assert_eq!(outcome.succeeded().lines().count(), 500);
    let more = format!("{} more conductors are registered", conductors - 500);
    outcome.warns(more);
    let many = format!("the board has {pauses} pauses");
    outcome.warns(many);
    let status = env.run("status");
    let many = format!("{conductors} conductors are registered");
    status.warns(many);
}

#[test]
fn postings_larger_than_one_reply_are_all_claimed() {
    need!((env, _server) = Server::with_env(&[]));
    let long = "x".repeat(900_000);
    let line = json!({"name": "long", "details": {"command": ["true"], "long": long}});
    let lines = format!("{line}\n").repeat(40);
    env.jobboard("post --from -").stdin(lines).run().succeeded();
    let run = env.run("conduct -j 40 --drain --allow-any");
    run.succeeded();
    assert!(!run.stderr.contains("is unreadable"), "{run}");
    assert_eq!(
        env.ok("list --history --count --filter outcome=consumed"),
        "40\n"
    );
}

#[test]
fn dump_reports_and_omits_oversized_jobs() {
    need!((env, server) = Server::with_env(&[]));
    post(&env);
    let big = "redis.call('HSET', 'taskflow:listings', 'x', string.rep('x', 20000000))";
    server.run(&["EVAL", big, "0"]);
    env.run("dump it").exits(7, "too large to read: 1");
    server.run(&["FLUSHALL"]);
    env.ok("load it");
    assert_eq!(env.ok("list --count"), "2\n");
}

/// Copies a job without details many times on Redis, each copy with 300,000 bytes of small numbers.
const HEAVY: &str = "local function with(text, old, new)
        local at = string.find(text, old, 1, true)
        return string.sub(text, 1, at - 1) .. new .. string.sub(text, at + #old)
    end
    local job = redis.call('HKEYS', 'taskflow:listings')[1]
    local plain = redis.call('HGET', 'taskflow:listings', job)
    local numbers = 'details\\129\\161a\\221\\0\\4\\147\\224' .. string.rep('\\1', 300000)
    for i = 1, tonumber(ARGV[1]) do
        local uuid = string.sub(job, 1, -4) .. string.format('%03d', i)
        local posting = with(with(plain, job, uuid), 'details\\128', numbers)
        redis.call('HSET', 'taskflow:listings', uuid, posting)
    end";

#[test]
fn details_of_many_values_use_little_memory() {
    need!((env, server) = Server::with_env(&[]));
    if !needs::has("python3") {
        return;
    }
    env.ok("post plain --uuid 1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b");
    server.run(&["EVAL", HEAVY, "0", "4"]);
    let weighed = |line: &str, most: u64| {
        let run = env.jobboard(line).in_shell("exec \"$@\" > /dev/null");
        let (run, used) = run.run_weighed();
        let (code, errors) = (run.code, &run.stderr);
        eprintln!("hostile: {line}: {used} MiB, code {code}: {errors}");
        assert!([0, 4, 7].contains(&code), "{line}: {run}");
        assert!(used <= most, "{line}: {used} MiB");
    };
    for line in [
        "list --json --filter details.a.0=1",
        "list --sort details.a.0",
        "status",
        "explain",
        "doctor",
        "metrics",
        "report --json",
        "dump it",
        "conduct -j 12 --drain --allow-any",
    ] {
        weighed(line, 94);
    }
    // The copies take long, so they copy fewer jobs.
    let two = "for at, job in ipairs(redis.call('HKEYS', 'taskflow:listings')) do
        if string.match(job, '00[34]$') then redis.call('HDEL', 'taskflow:listings', job) end end";
    server.run(&["EVAL", two, "0"]);
    weighed("copy --yes --to sqlite:copies.db", 110);
    weighed("copy --move --yes --to sqlite:moved.db", 110);
    let moved = || env.ok("list --count --board sqlite:moved.db").trim() == "3";
    // On a busy machine a renewal may be late: the job then stays for the next move.
    wait_until("all are moved", || {
        moved() || {
            let _ = env.run("copy --move --yes --to sqlite:moved.db");
            false
        }
    });
}

const LONG_OWNERS: &str = "for at, job in ipairs(redis.call('HKEYS', 'taskflow:listings')) do
        local owner = at .. string.rep('x', 4000)
        redis.call('SET', 'taskflow:' .. job .. '.owned', owner)
    end";

#[test]
fn many_long_owners_use_little_memory() {
    need!((env, server) = Server::with_env(&[]));
    env.post_many(7500);
    server.run(&["EVAL", LONG_OWNERS, "0"]);
    for words in [
        &["status"][..],
        &["doctor"],
        &["check", "--timeout", "60s"],
        &["dash", "--once"],
        &["list", "--sort", "owner"],
        &["list", "--count", "--by", "owner"],
        &["watch", "--timeout", "50ms"],
    ] {
        let run = env.jobboard(words).in_shell("exec \"$@\" > /dev/null");
        let (run, used) = run.run_weighed();
        eprintln!("hostile: {words:?}: {used} MiB, code {}", run.code);
        assert!([0, 1, 7].contains(&run.code), "{words:?}: {run}");
        assert!(used <= 77, "{words:?}: {used} MiB");
    }
    let counts = env.run("list --count --by owner");
    assert_eq!(counts.succeeded().lines().count(), 7500);
}

/// Copies the job `plain` on Redis 750 times, each copy with a name of 60,000 bytes.
const LONG_NAMES: &str = "local function with(text, old, new)
        local at = string.find(text, old, 1, true)
        return string.sub(text, 1, at - 1) .. new .. string.sub(text, at + #old)
    end
    local job = redis.call('HKEYS', 'taskflow:listings')[1]
    local plain = redis.call('HGET', 'taskflow:listings', job)
    for i = 1, 750 do
        local uuid = string.sub(job, 1, -5) .. string.format('%04d', i)
        local name = string.format('n%04d', i) .. string.rep('x', 59995)
        local posting = with(with(plain, job, uuid), '\\165plain', '\\218\\234\\096' .. name)
        redis.call('HSET', 'taskflow:listings', uuid, posting)
    end";

#[test]
fn many_long_names_use_little_memory() {
    need!((env, server) = Server::with_env(&[]));
    env.ok("post plain");
    server.run(&["EVAL", LONG_NAMES, "0"]);
    let weighed = |words: &[&str], filter: &str, most: u64| {
        let run = env.jobboard(words);
        let run = run.in_shell(&format!("\"$@\" | {filter}"));
        let (run, used) = run.run_weighed();
        eprintln!("hostile: {words:?}: {used} MiB, code {}", run.code);
        assert_eq!(run.code, 0, "{words:?}: {run}");
        assert!(used <= most, "{words:?}: {used} MiB");
        run.stdout.trim().parse::<usize>().unwrap()
    };
    let names = "awk 'length($0) > 60000 { count++ } END { print count }'";
    assert_eq!(
        weighed(&["list", "--sort", "name", "--json"], names, 65),
        750
    );
    let preview = ["trash", "--name", "n*", "--dry-run", "--json"];
    assert_eq!(weighed(&preview, names, 65), 750);
    for words in [
        &["status"][..],
        &["status", "--json"],
        &["doctor"],
        &["dash", "--once"],
        &["watch", "--timeout", "50ms"],
    ] {
        let printed = weighed(words, "wc -c", 65);
        assert!(printed < 1_000_000, "{words:?}: {printed} bytes");
    }
    let trash = ["trash", "--name", "n*", "--force", "--yes", "--json"];
    assert_eq!(weighed(&trash, "grep -c trashed", 85), 750);
    assert_eq!(
        weighed(&["list", "--trash", "--sort", "name", "--json"], names, 65),
        750
    );
    assert_eq!(env.ok("list --count"), "1\n");
}
