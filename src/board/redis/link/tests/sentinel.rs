//! Following the master through Sentinels.

use std::time::Instant;

use tokio::{net::TcpListener, time};

use super::*;
use crate::board::redis::testing::{Authority, Server, Watched, wait_until};

/// Writes until it succeeds, and returns the earlier failures.
async fn write(client: &RedisClient) -> Vec<String> {
    let mut failures = Vec::new();
    let mut command = cmd("SET");
    command.arg("a").arg("b");
    let end = Instant::now() + Duration::from_secs(20);
    while let Err(error) = client.ask::<()>(WRITE, &command).await {
        failures.push(summary(error));
        assert!(Instant::now() < end, "{failures:?}");
        time::sleep(Duration::from_millis(20)).await;
    }
    failures
}

fn is_master(server: &Server) -> bool {
    let facts: Vec<redis::Value> = server.run(&["ROLE"]);
    facts[0] == redis::Value::BulkString(b"master".to_vec())
}

#[tokio::test]
async fn master_is_found_despite_dead_and_silent_sentinels() {
    need!(master = Server::start(&[]));
    let sentinel = Server::start_sentinel(master.port(), "").unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = silent.local_addr().unwrap();
    let hosts = format!("127.0.0.1:1,{peer},{}", sentinel.host());
    let client = client(&format!("redis-sentinel://{hosts}/mymaster/1"));
    // A write that waits for the silent Sentinel fails: both have the same deadline.
    assert_eq!(write(&client).await, [""; 0]);
    let keys: String = master.run(&["INFO", "keyspace"]);
    assert!(keys.contains("db1:keys=1"), "{keys}");
}

#[tokio::test]
async fn client_follows_a_failover() {
    need!(watched = Watched::start());
    let client = client(&format!("redis-sentinel://{}/mymaster", watched.hosts()));
    assert_eq!(write(&client).await, [""; 0]);
    watched.sentinels[0].run::<()>(&["SENTINEL", "FAILOVER", "mymaster"]);
    wait_until("they have changed places", || {
        is_master(&watched.replica) && !is_master(&watched.master)
    });
    watched.replica.run::<()>(&["DEL", "a"]);
    write(&client).await;
    assert_eq!(watched.replica.run::<u32>(&["EXISTS", "a"]), 1);
}

#[tokio::test]
async fn client_follows_the_death_of_the_master() {
    need!(mut watched = Watched::start());
    let client = client(&format!("redis-sentinel://{}/mymaster", watched.hosts()));
    assert_eq!(write(&client).await, [""; 0]);
    watched.master.kill();
    let failures = write(&client).await;
    let dead = watched.master.host();
    let expected = format!("unreachable: {dead} refused the connection");
    assert!(failures.contains(&expected), "{failures:?}");
    assert!(is_master(&watched.replica));
}

#[tokio::test]
async fn sentinel_that_names_a_replica_is_ignored() {
    need!(master = Server::start(&[]));
    let port = master.port().to_string();
    let replica = Server::start(&["--replicaof", "127.0.0.1", &port]).unwrap();
    let stale = Server::start_sentinel(replica.port(), "").unwrap();
    let peer = replica.host();
    assert_eq!(
        failure(&client(&format!(
            "redis-sentinel://{}/mymaster",
            stale.host()
        )))
        .await,
        format!("unreachable: {peer} is no longer the master that Sentinel names")
    );
    let fresh = Server::start_sentinel(master.port(), "").unwrap();
    let hosts = format!("{},{}", stale.host(), fresh.host());
    assert_eq!(
        write(&client(&format!("redis-sentinel://{hosts}/mymaster"))).await,
        [""; 0]
    );
}

#[tokio::test]
async fn sentinels_have_their_own_users_and_certificates() {
    let (Some(authority), Some(master)) = (Authority::new(), Server::start(&[])) else {
        return;
    };
    let identity = authority.issue("IP:127.0.0.1", 2);
    let ca = authority.ca().display().to_string();
    let sentinel = Server::start_sentinel(
        master.port(),
        &format!(
            "port 0\ntls-port PORT\ntls-auth-clients no\ntls-ca-cert-file {ca}\n\
             tls-cert-file {}\ntls-key-file {}",
            identity.cert.display(),
            identity.key.display()
        ),
    )
    .unwrap();
    sentinel.run::<()>(&["ACL", "SETUSER", "watcher", "on", ">hunter2", "+@all"]);
    sentinel.run::<()>(&["ACL", "SETUSER", "default", "off"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    let peer = sentinel.host();
    let url = format!("redis-sentinel://{peer}/mymaster?sentinel_tls=true&ca={ca}");
    let with_user = format!(
        "{url}&sentinel_user=watcher&sentinel_password_file={}",
        file.display()
    );
    let message = failure(&client(&with_user)).await;
    let expected = format!("failed: {} cannot be used: no such file", file.display());
    assert!(message.starts_with(&expected), "{message}");
    std::fs::write(&file, "hunter2\n").unwrap();
    ping(&client(&with_user)).await;
    std::fs::write(&file, "hunter3\n").unwrap();
    let refused = format!("denied: {peer} rejects the user watcher: ");
    let message = failure(&client(&with_user)).await;
    assert!(message.starts_with(&refused), "{message}");
    assert_eq!(
        failure(&client(&url)).await,
        format!("denied: {peer} requires a password; give --password-file FILE")
    );
    assert_eq!(
        failure(&client(&format!("redis-sentinel://{peer}/mymaster"))).await,
        format!("unreachable: {peer} requires TLS; use rediss:// or zks://")
    );
}

#[tokio::test]
async fn unknown_master_is_reported() {
    need!(master = Server::start(&[]));
    let watching = Server::start_sentinel(master.port(), "").unwrap();
    let (sentinel, master) = (watching.host(), master.host());
    let cases = [
        (
            format!("redis-sentinel://{sentinel}/other"),
            format!("unreachable: {sentinel} knows no master named other"),
        ),
        (
            format!("redis://{sentinel}"),
            format!(
                "failed: {sentinel} is a Sentinel, not a data server; use \
                 redis-sentinel://{sentinel}/MASTER"
            ),
        ),
        (
            format!("redis-sentinel://{master}/mymaster"),
            format!("failed: {master} is not a Sentinel"),
        ),
    ];
    for (url, expected) in cases {
        assert_eq!(failure(&client(&url)).await, expected);
    }
}

#[tokio::test]
async fn dead_sentinels_time_out() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = silent.local_addr().unwrap();
    let client = client(&format!("redis-sentinel://127.0.0.1:1,{peer}/mymaster"));
    let failed = time::timeout(4 * CONNECT_TIMEOUT, failure(&client)).await;
    assert_eq!(
        failed.expect("one limit for all Sentinels"),
        format!(
            "unreachable: the master mymaster is unreachable: 127.0.0.1:1 refused the \
             connection, {peer} did not reply within 3s"
        )
    );
}
