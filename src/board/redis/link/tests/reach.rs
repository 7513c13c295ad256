//! Reachable and unreachable servers.

use std::time::Instant;

use tokio::net::TcpListener;

use super::*;
use crate::board::redis::testing::{Server, impostor};

#[tokio::test]
async fn server_is_reached_by_name_and_both_address_families() {
    need!(server = Server::start(&[]));
    let port = server.port();
    ping(&client(&format!("redis://127.0.0.1:{port}"))).await;
    ping(&client(&format!("redis://localhost:{port}"))).await;
    // Some test machines lack IPv6.
    if TcpListener::bind("[::1]:0").await.is_ok() {
        server.run::<()>(&["CONFIG", "SET", "bind", "::1"]);
        ping(&client(&format!("redis://[::1]:{port}"))).await;
        let message = failure(&client(&format!("redis://127.0.0.1:{port}"))).await;
        assert!(message.ends_with("refused the connection"), "{message}");
    }
}

#[tokio::test]
async fn server_is_reached_by_its_socket() {
    need!(server = Server::start(&[]));
    let client = client(&format!("redis+unix://{}?db=3", server.socket().display()));
    client
        .ask::<()>(WRITE, cmd("SET").arg("a").arg("b"))
        .await
        .unwrap();
    let keys: String = server.run(&["INFO", "keyspace"]);
    assert!(keys.contains("db3:keys=1"), "{keys}");
}

#[tokio::test]
async fn connection_is_named_and_reused() {
    need!(server = Server::start(&[]));
    let client = RedisClient::new(&server.url(""), None, OP_TIMEOUT);
    let first: u64 = client.ask(READ, cmd("CLIENT").arg("ID")).await.unwrap();
    let again: u64 = client.ask(READ, cmd("CLIENT").arg("ID")).await.unwrap();
    assert_eq!(first, again);
    let name: String = client
        .ask(READ, cmd("CLIENT").arg("GETNAME"))
        .await
        .unwrap();
    assert_eq!(name, "jobboard");
    assert!(client.software().await.unwrap().starts_with("Redis "));
    assert_eq!(
        client.name(),
        format!("redis://127.0.0.1:{}/0", server.port())
    );
    client.close().await;
    ping(&client).await;
}

#[tokio::test]
async fn missing_database_is_reported() {
    need!(server = Server::start(&[]));
    let url = server.url("/99");
    let port = server.port();
    assert_eq!(
        failure(&RedisClient::new(&url, None, OP_TIMEOUT)).await,
        format!("failed: 127.0.0.1:{port} has no database 99")
    );
}

#[tokio::test]
async fn closed_port_is_connection_refused() {
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    assert_eq!(
        failure(&client(&format!("redis://127.0.0.1:{port}"))).await,
        format!("unreachable: 127.0.0.1:{port} refused the connection")
    );
    assert_eq!(
        failure(&client("redis+unix:///nowhere/redis.sock")).await,
        "unreachable: /nowhere/redis.sock does not exist"
    );
}

#[tokio::test]
async fn unresolvable_name_is_reported() {
    let message = failure(&client("redis://nowhere.invalid")).await;
    let expected = "unreachable: the name nowhere.invalid does not resolve: ";
    assert!(message.starts_with(expected), "{message}");
}

#[tokio::test]
async fn silent_server_times_out_for_all_waiters() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let client = client(&format!("redis://127.0.0.1:{port}"));
    let start = Instant::now();
    let message = tokio::join!(failure(&client), failure(&client), failure(&client));
    let expected = format!("unreachable: 127.0.0.1:{port} did not reply within 3s");
    assert_eq!(message, (expected.clone(), expected.clone(), expected));
    assert!(start.elapsed() < 3 * CONNECT_TIMEOUT);
}

#[tokio::test]
async fn other_protocol_is_recognised() {
    let cases: [(&'static [&'static str], &str); 6] = [
        (
            &["HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"],
            "unreachable: PEER is not a Redis server",
        ),
        (
            &["220 mail.example ESMTP\r\n"],
            "unreachable: PEER is not a Redis server",
        ),
        (
            &[""],
            "unreachable: PEER closed the connection without a reply",
        ),
        (
            &["-ERR max number of clients reached\r\n"],
            "unreachable: PEER accepts no more connections",
        ),
        (
            &["-DENIED Redis is running in protected mode because. 1) 2)\r\n"],
            "denied: PEER is in protected mode and accepts only local connections",
        ),
        (
            &[
                "-ERR unknown command `HELLO`\r\n+OK\r\n",
                "$21\r\nredis_version:3.2.12\n\r\n",
            ],
            "unsupported: a Redis server older than 5 cannot store a board",
        ),
    ];
    for (answers, expected) in cases {
        let (port, impostor) = impostor(answers).await;
        let peer = format!("127.0.0.1:{port}");
        assert_eq!(
            failure(&client(&format!("redis://{peer}"))).await,
            expected.replace("PEER", &peer)
        );
        impostor.abort();
    }
}

#[tokio::test]
async fn server_without_hello_is_supported() {
    let cases: [(&'static [&'static str], &str); 2] = [
        (
            &[
                "-ERR unknown command `HELLO`, with args beginning with: \r\n+OK\r\n",
                "$45\r\nredis_version:5.0.14\r\nredis_mode:standalone\r\n\r\n",
                "+PONG\r\n",
                "",
            ],
            "Redis 5.0.14",
        ),
        (
            &[
                "-ERR unknown command `HELLO`, with args beginning with: \r\n+OK\r\n",
                "-NOPERM this user has no permissions to run the 'info' command\r\n",
                "+PONG\r\n",
                "",
            ],
            "Redis",
        ),
    ];
    for (answers, expected) in cases {
        let (port, impostor) = impostor(answers).await;
        let client = client(&format!("redis://127.0.0.1:{port}"));
        assert_eq!(client.software().await.unwrap(), expected);
        ping(&client).await;
        impostor.abort();
    }
}

#[tokio::test]
async fn cluster_is_refused() {
    need!(server = Server::start(&["--cluster-enabled", "yes"]));
    for tail in ["", "/1"] {
        assert_eq!(
            failure(&RedisClient::new(&server.url(tail), None, OP_TIMEOUT)).await,
            "unsupported: Redis Cluster cannot store a board: TaskFlow's scripts use keys in \
             several slots"
        );
    }
}

#[tokio::test]
async fn replica_is_readable_and_explains_refused_writes() {
    need!(server = Server::start(&["--replicaof", "127.0.0.1", "1"]));
    let client = RedisClient::new(&server.url(""), None, OP_TIMEOUT);
    ping(&client).await;
    let refused = client.ask::<()>(WRITE, cmd("SET").arg("a").arg("b")).await;
    let port = server.port();
    assert_eq!(
        summary(refused.unwrap_err()),
        format!("failed: 127.0.0.1:{port} is a read-only replica; use its master")
    );
}

#[tokio::test]
async fn stale_replica_without_a_master_is_reported() {
    let arguments = ["--replicaof", "127.0.0.1", "1"];
    let stale = ["--replica-serve-stale-data", "no"];
    need!(server = Server::start(&[arguments.as_slice(), &stale].concat()));
    assert_eq!(
        failure(&RedisClient::new(&server.url(""), None, OP_TIMEOUT)).await,
        format!(
            "unreachable: {} is a replica that has lost its master",
            server.host()
        )
    );
}
