//! Connections: unusable ones are named in one line, and moved servers are followed.

use std::{net::TcpListener, path::Path, time::Instant};

use crate::{
    redis::denied,
    support::{Authority, Env, Identity, SOON, Server, wait_until},
};

/// Returns the URL of a board over TLS.
fn secured(server: &Server, ca: &Path, identity: Option<&Identity>) -> String {
    let identity = identity.map_or_else(String::new, |identity| {
        let (cert, key) = (identity.cert.display(), identity.key.display());
        format!("&cert={cert}&key={key}")
    });
    format!("rediss://{}?ca={}{identity}", server.host(), ca.display())
}

#[test]
fn tls_board_opens_with_a_certificate() {
    need!(authority = Authority::new());
    let theirs = authority.issue("IP:127.0.0.1", 2);
    need!(server = Server::start_tls(&theirs, &authority));
    let env = Env::new();
    let ca = authority.ca();
    let ours = authority.issue("DNS:us", 2);
    let url = secured(&server, &ca, Some(&ours));
    env.uses(&url);
    let job = env.post("resize");
    env.claim(&job, "ada");
    assert_eq!(env.names(), ["resize"]);
    assert_eq!(env.show(&job)["owner"], "ada");
    let host = server.host();
    let list = |url: &str| {
        let list = env.jobboard(&["list"]).env("JOBBOARD_URL", url);
        list.env("JOBBOARD_PASSWORD", "hunter2").run()
    };
    let without = list(&secured(&server, &ca, None));
    denied(
        &without,
        &format!("{host} requires a client certificate; add cert=FILE&key=FILE to the URL"),
    );
    let stranger = Authority::new().unwrap();
    let distrusted = list(&secured(&server, &stranger.ca(), Some(&ours)));
    denied(&distrusted, "from an untrusted authority");
    // On a busy machine the TLS probe may time out.
    let mut plain = list(&server.url(""));
    wait_until("it shows that", || {
        plain
            .stderr
            .contains("requires TLS; use rediss:// or zks://")
            || {
                plain = list(&server.url(""));
                false
            }
    });
    denied(
        &plain,
        &format!("{host} requires TLS; use rediss:// or zks://"),
    );
}

#[test]
fn certificate_for_another_name_is_refused() {
    need!(authority = Authority::new());
    let theirs = authority.issue("DNS:elsewhere.example", 2);
    need!(server = Server::start_tls(&theirs, &authority));
    let env = Env::new();
    let ours = authority.issue("DNS:us", 2);
    let url = secured(&server, &authority.ca(), Some(&ours));
    for words in [&["list"][..], &["post", "resize"]] {
        let run = env.jobboard(words).env("JOBBOARD_URL", &url);
        let run = run.env("JOBBOARD_PASSWORD", "hunter2").run();
        denied(&run, "elsewhere.example");
        let expected = format!("{} has a certificate for other host names", server.host());
        run.warns(&expected);
    }
}

#[test]
fn silent_server_times_out() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = silent.local_addr().unwrap().to_string();
    let env = Env::new();
    let list = env.jobboard(&["list"]);
    let list = list.env("JOBBOARD_URL", format!("redis://{host}"));
    let run = list.env("JOBBOARD_PASSWORD", "hunter2").run();
    denied(&run, &format!("{host} did not reply within 3s"));
    // A shorter time limit is respected.
    for scheme in ["redis", "zk"] {
        let list = env.jobboard(&["list", "--op-timeout", "600ms"]);
        let list = list.env("JOBBOARD_URL", format!("{scheme}://{host}"));
        list.run().fails(5, "did not reply within 600ms");
    }
}

#[test]
fn unresolvable_host_is_named() {
    let env = Env::new();
    let list = env.jobboard(&["list"]);
    let list = list.env("JOBBOARD_URL", "redis://nobody.invalid");
    let run = list.env("JOBBOARD_PASSWORD", "hunter2").run();
    // Some resolvers do not answer.
    let message = run.failed(5);
    let is_named = message.contains("nobody.invalid does not resolve");
    assert!(
        is_named || message.contains("nobody.invalid did not reply"),
        "{run}"
    );
    assert!(!message.contains("hunter2"), "{run}");
}

#[test]
fn client_follows_a_failover() {
    need!(mut master = Server::start());
    let port = master.port().to_string();
    let replica = Server::start_with(&["--replicaof", "127.0.0.1", &port]).unwrap();
    wait_until("the replica follows", || {
        master
            .run(&["INFO", "replication"])
            .contains("state=online")
    });
    let sentinel = Server::start_sentinel(&master, 1).unwrap();
    wait_until("the Sentinel knows the replica", || {
        let facts = sentinel.run(&["SENTINEL", "REPLICAS", "mymaster"]);
        facts.contains(&replica.port().to_string()) && facts.contains("master-link-status\nok")
    });
    let env = Env::new();
    let url = format!("redis-sentinel://{}/mymaster", sentinel.host());
    env.uses(&url);
    let before = env.post("before");
    env.claim(&before, "ada");
    // WAIT covers only writes of its own connection.
    let claim = format!("taskflow:{before}.owned");
    wait_until("the replica received it", || {
        replica.run(&["GET", &claim]) == "ada"
    });
    master.kill();
    let start = Instant::now();
    let after = loop {
        let run = env.run("post after");
        if run.code == 0 {
            break run.posted();
        }
        run.fails(5, "is unreachable");
        assert!(start.elapsed() < SOON, "{run}");
    };
    assert_eq!(env.names(), ["before", "after"]);
    assert_eq!(env.show(&before)["owner"], "ada");
    assert_eq!(replica.run(&["HEXISTS", "taskflow:listings", &after]), "1");
}
