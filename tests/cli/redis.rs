//! Behaviour that is special to Redis.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Env, Outcome, Proxy, ProxyMode, Server, wait_until};

const LISTINGS: &str = "taskflow:listings";

/// Returns a record that TaskFlow wrote or read.
fn record(file: &str, case: &str) -> Vec<u8> {
    let file: Value = serde_json::from_str(file).unwrap();
    let mut cases = file["vectors"].as_array().unwrap().iter();
    let found = cases.find(|found| found["case"] == case).unwrap();
    let hex = found["value_hex"].as_str().unwrap().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    hex.chunks(2).map(byte).collect()
}

fn oddity(case: &str) -> Vec<u8> {
    let file = include_str!("../../src/board/wire/fixtures/redis_reader_tolerance.json");
    record(file, case)
}

fn posting(case: &str) -> Vec<u8> {
    let file = include_str!("../../src/board/wire/fixtures/redis_postings.json");
    record(file, case)
}

#[test]
fn unreadable_records_stay_and_affect_no_other() {
    need!((env, server) = Server::with_env(&[]));
    let posted: BTreeSet<_> = env.post_many(100).into_iter().collect();
    let cases = [
        "missing name",
        "priority unknown",
        "truncated",
        "reserved byte c1",
        "list root",
    ];
    for (number, case) in cases.into_iter().enumerate() {
        let field = format!("bad-{number}");
        server.run_with(&["HSET", LISTINGS, &field], &oddity(case));
    }
    let before = server.everything();
    for format in ["tsv", "jsonl"] {
        let listed = env.run(format!("list -o {format}"));
        assert_eq!(listed.succeeded().lines().count(), 105, "{listed}");
        assert_eq!(listed.stdout.matches("MALFORMED").count(), 5, "{listed}");
    }
    let shown = env.run("show key:bad-3 --json");
    assert_eq!(shown.json()["state"], "MALFORMED");
    env.fails(4, "owner key:bad-3");
    env.ok("ping");
    assert_eq!(server.everything(), before);
    let claimed: BTreeSet<_> = (0..3)
        .map(|_| {
            let next = env.run("claim --next -o uuid");
            next.posted()
        })
        .collect();
    assert!(claimed.is_subset(&posted));
    assert_eq!(server.run(&["HLEN", LISTINGS]), "105");
}

#[test]
fn longest_expiry_is_ten_years() {
    need!((env, server) = Server::with_env(&[]));
    let owned = ["a", "b"].map(|name| format!("taskflow:{}.owned", env.post(name)));
    let connections = || -> u64 {
        let stats = server.run(&["INFO", "stats"]);
        let mut lines = stats.lines();
        let found = lines.find_map(|line| line.strip_prefix("total_connections_received:"));
        found.unwrap().trim().parse().unwrap()
    };
    let before = connections();
    for expiry in ["99999d", "3650d1ms", "0s", "0ms"] {
        env.fails(2, format!("claim @1 --expiry {expiry}"));
    }
    // The inspecting connection is one more.
    assert_eq!(connections(), before + 1);
    assert_eq!(server.run(&["EXISTS", &owned[0]]), "0");
    env.ok("claim @2 --expiry 3650d");
    let left: i64 = server.run(&["PTTL", &owned[1]]).parse().unwrap();
    let most = 3650 * 24 * 60 * 60 * 1000;
    assert!(left > most - 60_000 && left <= most, "{left}");
}

#[test]
fn extending_a_claim_of_another_user_changes_nothing() {
    need!((env, server) = Server::with_env(&[]));
    for expiry in [&[][..], &["--expiry", "10m"]] {
        let job = env.post("resize");
        let claim = [&["claim", &job, "--who", "ada"], expiry].concat();
        env.ok(claim);
        let beside = ["owned", "jobboard"].map(|name| format!("taskflow:{job}.{name}"));
        let look = || {
            let ends = beside.clone().map(|key| server.run(&["PEXPIRETIME", &key]));
            (server.everything(), ends)
        };
        let before = look();
        let refused = env.run(format!("extend {job} --who bob --expiry 1h"));
        refused.fails(4, "is claimed by ada, not by");
        assert_eq!(look(), before);
    }
}

/// Requires that a run was denied, with one line and without the secret.
pub(crate) fn denied(run: &Outcome, why: &str) {
    let message = run.failed(5);
    let errors: Vec<_> = message
        .lines()
        .filter(|line| !line.starts_with("hint: "))
        .collect();
    assert_eq!(errors.len(), 1, "{run}");
    assert!(errors[0].starts_with("error: "), "{run}");
    assert!(errors[0].ends_with(why), "{run}");
    assert!(!message.contains("hunter2"), "{run}");
}

#[test]
fn unreachable_server_is_named() {
    // Another test might use a formerly free port.
    let host = "127.0.0.1:1";
    let env = Env::new();
    let url = format!("redis://{host}");
    for arguments in [&["list"][..], &["post", "resize"], &["claim", "--next"]] {
        let run = env
            .jobboard(arguments)
            .env("JOBBOARD_URL", &url)
            .env("JOBBOARD_PASSWORD", "hunter2")
            .run();
        denied(&run, &format!("{host} refused the connection"));
    }
}

#[test]
fn required_password_is_reported() {
    need!((env, server) = Server::with_env(&[]));
    let let_in = "on >secret allkeys allchannels +@all";
    let user = [&["ACL", "SETUSER", "ada"], &words(let_in)[..]].concat();
    server.run(&user);
    server.run(&["ACL", "SETUSER", "default", "resetpass", ">secret"]);
    let list = |url: &str| env.jobboard(&["list"]).env("JOBBOARD_URL", url);
    let host = server.host();
    let url = server.url("");
    denied(
        &list(&url).run(),
        &format!("{host} requires a password; give --password-file FILE"),
    );
    let wrong = list(&url).env("JOBBOARD_PASSWORD", "hunter2").run();
    denied(&wrong, &format!("{host} rejects the password"));
    let as_ada = format!("redis://ada@{host}");
    let wrong = list(&as_ada).env("JOBBOARD_PASSWORD", "hunter2").run();
    wrong.warns("rejects the user ada");
    denied(&wrong, "or disabled user");
    let right = list(&as_ada).env("JOBBOARD_PASSWORD", "secret").run();
    right.succeeded();
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

#[test]
fn denied_command_is_named() {
    need!((env, server) = Server::with_env(&[]));
    env.post("resize");
    env.claim("@1", "ada");
    let before = server.everything();
    let url = format!("redis://eve@{}", server.host());
    for (command, arguments) in [
        ("hscan", "list"),
        ("incrby", "post shrink"),
        ("hset", "post shrink"),
        ("set", "abandon @1 --who ada"),
        ("pexpire", "extend @1 --who ada --expiry 1h"),
        ("hdel", "consume @1 --who ada"),
        ("hset", "trash @1 --who ada"),
    ] {
        let rules = format!("reset on >hunter2 allkeys allchannels +@all -{command}");
        let user = [&["ACL", "SETUSER", "eve"], &words(&rules)[..]].concat();
        server.run(&user);
        let run = env
            .jobboard(&words(arguments))
            .env("JOBBOARD_URL", &url)
            .env("JOBBOARD_PASSWORD", "hunter2")
            .run();
        denied(
            &run,
            &format!("does not allow the user eve to run `{command}`"),
        );
        assert_eq!(server.everything(), before, "{arguments}");
    }
}

#[test]
fn job_of_a_silent_peer_ends_the_wait() {
    need!((env, server) = Server::with_env(&[]));
    let waiting = env.jobboard(&["wait", "--any", "--timeout", "20s"]).spawn();
    wait_until("it listens", || {
        !server.run(&["PUBSUB", "CHANNELS"]).is_empty()
    });
    let uuid = "00000000-0000-4000-8000-000000000001";
    server.run_with(&["HSET", LISTINGS, uuid], &posting("minimal"));
    let ended = waiting.ended();
    assert!(ended.succeeded().starts_with(uuid), "{ended}");
}

#[test]
fn namespace_may_contain_colons() {
    need!((env, server) = Server::with_env(&[]));
    let other = env.post("other");
    server.serves(&env, "?namespace=a:b:c");
    assert_eq!(env.names(), [""; 0]);
    let job = env.post("resize");
    env.claim(&job[..8], "ada");
    assert_eq!(env.names(), ["resize"]);
    assert_eq!(env.state(&job), "CLAIMED");
    assert_eq!(server.run(&["HKEYS", "a:b:c:listings"]), job);
    let owned = format!("a:b:c:{job}.owned");
    assert_eq!(server.run(&["GET", &owned]), "ada");
    env.trash(&job);
    assert_eq!(server.run(&["HKEYS", "a:b:c:trash"]), job);
    env.ok(format!("restore {job} --yes"));
    assert_eq!(env.names(), ["resize"]);
    assert_eq!(server.run(&["HKEYS", LISTINGS]), other);
}

#[test]
fn forgotten_scripts_lose_no_job() {
    need!((env, server) = Server::with_env(&[]));
    let names: Vec<_> = (0..3000).map(|number| format!("job-{number}")).collect();
    let lines: String = names
        .iter()
        .map(|name| format!("{{\"name\":\"{name}\"}}\n"))
        .collect();
    let mut post = env.jobboard(&["post", "--from", "-"]).stdin(lines).spawn();
    while !post.has_ended() {
        server.run(&["SCRIPT", "FLUSH"]);
    }
    let ended = post.ended();
    let posted: BTreeSet<_> = ended.succeeded().lines().collect();
    assert_eq!(posted.len(), 3000);
    assert_eq!(env.names(), names);
    let listed = env.run("list -o uuid");
    let listed: BTreeSet<_> = listed.succeeded().lines().map(str::to_owned).collect();
    assert!(listed.iter().map(String::as_str).eq(posted));
}

#[test]
fn evicting_server_ends_claims_and_ping_warns() {
    need!((env, server) = Server::with_env(&[]));
    let job = env.post("resize");
    env.ok(format!("claim {job} --expiry 1h"));
    let ping = || {
        let run = env.run("ping");
        run.succeeded();
        run.stderr
    };
    server.run(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]);
    // Without a limit, no key is evicted.
    assert_eq!(ping(), "");
    server.run(&["CONFIG", "SET", "maxmemory", "1gb"]);
    let message = ping();
    assert!(message.contains("maxmemory-policy noeviction"), "{message}");
    assert_eq!(env.show(&job)["state"], "CLAIMED");
    server.run(&["CONFIG", "SET", "maxmemory", "1"]);
    wait_until("the claim is removed", || {
        // Writes find no room until other keys are evicted.
        server.run(&["SET", "room", "none"]);
        env.show(&job)["state"] == "UNCLAIMED"
    });
    server.run(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let message = ping();
    assert!(message.contains("is full and rejects writes"), "{message}");
    server.run(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(ping(), "");
}

#[test]
fn streamed_listing_prints_objects_before_the_next_page() {
    // The size of the first page, smaller than the later ones.
    const FIRST: usize = 128;
    need!((env, server) = Server::with_env(&[]));
    let mut posted = env.post_many(3000);
    let last = posted.pop().unwrap();
    let proxy = Proxy::start(server.port());
    let url = format!("redis://127.0.0.1:{}", proxy.port);
    // The proxy stalls the requests of the last page.
    proxy.set_at(
        Box::leak(format!("{last}.owned").into_boxed_str()),
        ProxyMode::Stall,
    );
    let list = ["--board", &url, "list", "-o", "jsonl"];
    let list = env.jobboard(&list).spawn();
    let lines = list.prints(FIRST);
    assert!(lines.len() < 3000 && lines[FIRST - 1].contains(&posted[FIRST - 1]));
    proxy.set(ProxyMode::PassOn);
    assert_eq!(list.ended().succeeded().lines().count(), 3000);
}

const VICTIM: &str = "5f3a0000-0000-4000-8000-000000000001";

/// Copies the posting of a job to other fields.
fn copy_posting(server: &Server, fields: &[&str]) {
    let copy = "local posting = redis.call('HGET', KEYS[1], ARGV[1])
        for at = 2, #ARGV do redis.call('HSET', KEYS[1], ARGV[at], posting) end";
    server.run(&[&["EVAL", copy, "1", LISTINGS, VICTIM], fields].concat());
}

#[test]
fn record_with_the_uuid_of_another_job_is_named_by_its_key() {
    need!((env, server) = Server::with_env(&[]));
    env.ok(["post", "resize", "--uuid", VICTIM]);
    let strays = ["job0000000001", "5f3a0000-0000-4000-8000-00000000000f"];
    copy_posting(&server, &strays);
    let keys = strays.map(|key| format!("key:{key}"));
    let listed = |words: &[&str]| -> BTreeSet<String> {
        let listed = env.run([&["list"], words].concat());
        let id = |line: &str| line.split('\t').next().unwrap().to_owned();
        listed.succeeded().lines().map(id).collect()
    };
    for words in [
        &["-o", "uuid"][..],
        &["-o", "uuid", "--sort", "age"],
        &["-o", "tsv"],
    ] {
        // Snapshots contain other uuids.
        let listed = listed(words);
        assert_eq!(listed.len(), 3, "{listed:?}");
        assert!(listed.contains(&keys[0]), "{listed:?}");
        assert_eq!(listed.iter().filter(|it| it.starts_with("key:")).count(), 2);
    }
    env.run(["list", "-o", "table"]).shows(&keys[0]);
    // Each printed key selects its own record.
    let watching = env.jobboard("watch -o uuid --count 2").spawn();
    wait_until("it listens", || {
        let listeners = ["PUBSUB", "NUMSUB", "taskflow:events"];
        server.run(&listeners).trim().ends_with('1')
    });
    for key in &keys {
        let claimed = env.run(["claim", key, "--who", "mallory", "-o", "uuid"]);
        assert!(claimed.succeeded().starts_with("key:"), "{claimed}");
    }
    let watched = watching.ended();
    assert_eq!(watched.succeeded().matches("key:").count(), 2, "{watched}");
    for key in &keys {
        env.ok(["trash", key, "--who", "mallory"]);
    }
    assert_eq!(server.run(&["HKEYS", LISTINGS]).trim(), VICTIM);
    assert_eq!(listed(&["--trash", "-o", "uuid"]).len(), 2);
}

#[test]
fn record_with_an_empty_name_can_be_listed_and_removed() {
    need!((env, server) = Server::with_env(&[]));
    let run = |words: &[&str]| env.run(words);
    run(&["post", "resize", "--uuid", VICTIM]).succeeded();
    for posting in [None, Some("no posting")] {
        match posting {
            None => copy_posting(&server, &[""]),
            Some(text) => drop(server.run(&["HSET", LISTINGS, "", text])),
        }
        let listed = run(&["list", "-o", "uuid"]);
        assert!(
            listed.succeeded().lines().any(|it| it == "key:"),
            "{listed}"
        );
        let shown = run(&["show", "key:", "--json"]).json();
        assert_eq!(shown["key"], "", "{shown}");
        assert_eq!(run(&["explain", "key:"]).code, 4);
        if posting.is_none() {
            run(&["claim", "key:", "--who", "mallory"]).succeeded();
            run(&["abandon", "key:", "--who", "mallory"]).succeeded();
        }
        let trashed = env.jobboard(&["trash", "-", "--force", "--yes"]);
        trashed.stdin("key:\n").run().succeeded();
        assert_eq!(server.run(&["HKEYS", LISTINGS]).trim(), VICTIM);
        run(&["restore", "key:"]);
        run(&["purge", "key:", "--yes"]);
        server.run(&["HDEL", LISTINGS, ""]);
        server.run(&["HDEL", "taskflow:trash", ""]);
    }
}

#[test]
fn uuid_never_selects_a_record_of_another_job() {
    need!((env, server) = Server::with_env(&[]));
    let run = |words: &[&str]| env.run(words);
    run(&["post", "resize", "--uuid", VICTIM]).succeeded();
    let other = env.post("other");
    copy_posting(&server, &[&other, "stray"]);
    let before = server.everything();
    // The field contains the posting of another job.
    run(&["trash", &other, "--force", "--yes"]).failed(3);
    run(&["trash", &VICTIM[..8], "--force", "--yes"]).fails(3, "key:stray");
    assert_eq!(server.everything(), before);
    server.run(&["HDEL", LISTINGS, VICTIM]);
    run(&["trash", VICTIM, "--force", "--yes"]).failed(3);
    let explained = run(&["explain", "key:stray", "--json"]).values().remove(0);
    let findings = explained["findings"].as_array().unwrap();
    let found = findings.iter().find(|it| it["code"] == "uuid-mismatch");
    let command = found.unwrap()["fix"]["command"].as_array().unwrap();
    assert_eq!(command.last().unwrap(), "key:stray", "{explained}");
    let doctor = run(&["doctor", "--only", "uuid-mismatch", "--json"]);
    assert_eq!(doctor.code, 7, "{doctor}");
    doctor.shows("key:stray");
}

#[test]
fn command_of_a_record_with_a_foreign_uuid_gets_its_key() {
    need!((env, server) = Server::with_env(&[]));
    let log = env.file("log");
    let script = format!("echo $JOBBOARD_JOB >> {}", log.display());
    let post = ["post", "resize", "--uuid", VICTIM];
    let post = [&post[..], &["--", "sh", "-c", &script]].concat();
    env.ok(post);
    copy_posting(&server, &["stray"]);
    let conducted = env.run("conduct --drain --allow-any --output discard");
    assert_eq!(conducted.code, 0, "{conducted}");
    let log = std::fs::read_to_string(log).unwrap();
    let jobs: BTreeSet<_> = log.lines().collect();
    assert_eq!(jobs, BTreeSet::from([VICTIM, "key:stray"]));
}

/// Another version of this program may write members of any kind.
#[test]
fn unknown_members_beside_a_job_survive_each_change() {
    need!((env, server) = Server::with_env(&[]));
    let job = env.post("resize");
    let record = format!("taskflow:{job}.jobboard");
    let audit = r#"{"by":"ada","id":12345678901234567}"#;
    let unknown = [
        r#""list":[]"#,
        r#""none":null"#,
        r#""long":12345678901234567"#,
        r#""nested":{"b":["}\"]",{}],"c":{}}"#,
    ];
    let members = unknown.join(" , ");
    let text = format!(r#"{{ "v":1, {members},"remark": {audit}, "attempts":1}}"#);
    server.run(&["SET", &record, &text]);
    for line in [
        "claim @1 --who ada",
        "abandon @1 --who ada",
        "claim @1 --who bob",
        "trash @1 --who bob",
        "restore --name resize --yes",
    ] {
        let had_audit = server.run(&["GET", &record]).contains("12345678901234567}");
        env.ok(line);
        let kept = server.run(&["GET", &record]);
        for member in unknown {
            assert!(kept.contains(member), "{line}: {kept}");
        }
        let keeps_audit = line.starts_with("claim") || line.starts_with("abandon");
        assert!(
            !had_audit || !keeps_audit || kept.contains(audit),
            "{line}: {kept}"
        );
    }
}
