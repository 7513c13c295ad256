//! Errors of unreachable and failing servers.

use std::{net::TcpListener, path::Path};

use super::Errors;
use crate::support::{Authority, Env, Host, Peer, Proxy, ProxyMode, Server, ZooKeeper};

/// Each part returns `None` without its server.
pub(super) const PARTS: [fn(&mut Errors) -> Option<()>; 6] =
    [reach, passwords, states, tls, lost, zookeeper];

/// Unreachable boards.
fn reach(errors: &mut Errors) -> Option<()> {
    let env = Env::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = silent.local_addr().unwrap().to_string();
    let boards = [
        "redis://127.0.0.1:1/0".to_owned(),
        "zk://127.0.0.1:1/jobs".to_owned(),
        format!("redis://{host}/0"),
        format!("zk://{host}/jobs"),
        "redis-sentinel://127.0.0.1:1/mymaster/0".to_owned(),
        "redis+unix:///nowhere/redis.sock".to_owned(),
    ];
    for board in boards {
        let mut error = errors.of(&env, Some(&board));
        error.expect("unreachable", &format!("--board {board} list"));
    }
    let mut error = errors.of(&env, Some("redis://127.0.0.1:1/0"));
    // `watch` and `wait` retry forever.
    for command in ["ping", "claim --next", "conductors", "selftest"] {
        let command = format!("{command} --board redis://127.0.0.1:1/0");
        error.expect("unreachable", &command);
    }
    // Settings of the configuration need not be typed.
    env.configure("default = \"a\"\n[board.a]\nurl = \"redis://127.0.0.1:1/0\"\n");
    let mut error = errors.of(&env, Some("redis://127.0.0.1:1/0"));
    error.expect("unreachable", "list");
    error.expect("unreachable", "list --board a");
    let run = env.jobboard("list --json --board redis://u:hunter2@127.0.0.1:1/0");
    let mut error = errors.of(&env, Some("redis://u@127.0.0.1:1/0"));
    let printed = error.expect_run(
        "unreachable",
        "list --board redis://u:…@127.0.0.1:1/0",
        &run.run(),
    );
    assert!(!printed.hint.unwrap().contains("hunter2"));
    Some(())
}

fn passwords(errors: &mut Errors) -> Option<()> {
    let server = Server::start()?;
    server.run(&[
        "ACL", "SETUSER", "eve", "on", ">secret", "allkeys", "+@read",
    ]);
    server.run(&["ACL", "SETUSER", "default", "resetpass", ">secret"]);
    let env = Env::new();
    std::fs::write(env.file("wrong"), "wrong").unwrap();
    std::fs::write(env.file("secret"), "secret").unwrap();
    for (board, command) in [
        (server.url("/0"), "list"),
        (server.url("/0"), "list --password-file wrong"),
        (
            format!("redis://eve@{}/0", server.host()),
            "list --password-file wrong",
        ),
        (
            format!("redis://eve@{}/0", server.host()),
            "post a --password-file secret",
        ),
    ] {
        let mut error = errors.of(&env, Some(&board));
        error.expect("denied", &format!("--board {board} {command}"));
    }
    Some(())
}

/// Server states that refuse requests.
fn states(errors: &mut Errors) -> Option<()> {
    let server = Server::start()?;
    let env = Env::new();
    let board = server.url("/0");
    let on = |board: &str, command: &str| format!("--board {board} {command}");
    env.ok(format!("post a --board {board}"));
    server.run_with(&["HSET", "taskflow:listings", "bad"], b"\xc1");
    let mut error = errors.of(&env, Some(&board));
    error.expect("malformed", &on(&board, "claim key:bad"));
    error.expect("malformed", &on(&board, "trash key:bad"));
    server.run(&["CONFIG", "SET", "maxmemory", "1"]);
    error.expect("failed", &on(&board, "post a"));
    server.run(&["CONFIG", "SET", "maxmemory", "0"]);
    server.run(&["REPLICAOF", "127.0.0.1", "1"]);
    error.expect("failed", &on(&board, "post a"));
    server.run(&["REPLICAOF", "NO", "ONE"]);
    server.run(&["DEL", "taskflow:listings"]);
    server.run(&["SET", "taskflow:listings", "text"]);
    error.expect("failed", &on(&board, "list"));
    error.expect("failed", &on(&board, "post a"));
    let absent = server.url("/99");
    let mut error = errors.of(&env, Some(&absent));
    error.expect("failed", &on(&absent, "list"));
    // A server of another protocol.
    let other = format!("zk://{}/jobs", server.host());
    let mut error = errors.of(&env, Some(&other));
    error.expect("unreachable", &on(&other, "list"));
    Some(())
}

fn tls(errors: &mut Errors) -> Option<()> {
    let authority = Authority::new()?;
    let theirs = authority.issue("DNS:elsewhere.example", 2);
    let server = Server::start_tls(&theirs, &authority)?;
    let env = Env::new();
    let link = |name: &str, to: &Path| std::os::unix::fs::symlink(to, env.file(name)).unwrap();
    link("ca.pem", &authority.ca());
    link("cert.pem", &theirs.cert);
    link("key.pem", &theirs.key);
    let host = server.host();
    let with_key = "ca=ca.pem&cert=cert.pem&key=key.pem";
    let board = format!("redis://{host}/0");
    let mut error = errors.of(&env, Some(&board));
    // On a busy machine the TLS probe may time out, which reports a hang-up at first.
    error.expect_saying(
        "requires TLS; use rediss:// or zks://",
        "unreachable",
        &["--board", &board, "list"],
    );
    for (kind, board) in [
        ("denied", format!("rediss://{host}/0?ca=ca.pem")),
        ("denied", format!("rediss://{host}/0?{with_key}")),
        ("failed", format!("rediss://{host}/0?ca=none.pem")),
    ] {
        let mut error = errors.of(&env, Some(&board));
        error.expect(kind, &format!("--board {board} list"));
    }
    let plain = Server::start()?;
    let board = format!("rediss://{}/0?ca=ca.pem", plain.host());
    let mut error = errors.of(&env, Some(&board));
    error.expect("unreachable", &format!("--board {board} list"));
    Some(())
}

/// Lost replies.
fn lost(errors: &mut Errors) -> Option<()> {
    let server = Server::start()?;
    let env = Env::new();
    let proxy = Proxy::start(server.port());
    let board = format!("redis://127.0.0.1:{}/0", proxy.port);
    let run = |words: &[&str]| {
        let always = ["--board", &board, "--json"];
        env.run([words, &always].concat())
    };
    let posted = run(&["post", "a"]).json();
    let job = posted["uuid"].as_str().unwrap();
    // An unknown script is answered before it runs.
    run(&["claim", job]).succeeded();
    run(&["abandon", job]).succeeded();
    let mut error = errors.of(&env, Some(&board));
    for command in [vec!["claim", job], vec!["post", "b"]] {
        proxy.set_at("EVALSHA", ProxyMode::HangUp);
        let ended = run(&command);
        proxy.set(ProxyMode::PassOn);
        let command = command.join(" ");
        error.expect_run("unknown", &format!("--board {board} {command}"), &ended);
    }
    Some(())
}

fn zookeeper(errors: &mut Errors) -> Option<()> {
    let server = ZooKeeper::start()?;
    let mut peer = Peer::on(&server)?;
    let env = Env::new();
    let board = server.board();
    let on = |command: &str| format!("--board {board} {command}");
    env.ok(format!("post a --board {board}"));
    server.create(&mut peer, "job0000000009", "text");
    let mut error = errors.of(&env, Some(&board));
    error.expect("unsupported", &on("claim @0 --expiry 1m"));
    error.expect("malformed", &on("claim key:job0000000009"));
    error.expect("not-found", &on("trash abcd"));
    let other = format!("redis://127.0.0.1:{}/0", server.port());
    let mut error = errors.of(&env, Some(&other));
    error.expect("unreachable", &format!("--board {other} list"));
    Some(())
}
