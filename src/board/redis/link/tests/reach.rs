//! Reachable and unreachable servers.

use std::time::Instant;

use tokio::net::TcpListener;

use super::*;
use crate::board::redis::testing::{Server, impostor};

#[tokio::test]
async fn a_server_answers_by_name_and_by_both_kinds_of_address() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let port = server.port();
    ping(&client(&format!("redis://127.0.0.1:{port}"))).await;
    ping(&client(&format!("redis://localhost:{port}"))).await;
    // Some test machines lack IPv6.
    if TcpListener::bind("[::1]:0").await.is_ok() {
        server.run::<()>(&["CONFIG", "SET", "bind", "::1"]);
        ping(&client(&format!("redis://[::1]:{port}"))).await;
        let told = failure(&client(&format!("redis://127.0.0.1:{port}"))).await;
        assert!(told.ends_with("refused the connection"), "{told}");
    }
}

#[tokio::test]
async fn a_server_answers_on_its_socket() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let client = client(&format!("redis+unix://{}?db=3", server.socket().display()));
    client
        .ask::<()>("write to", cmd("SET").arg("a").arg("b"))
        .await
        .unwrap();
    let keys: String = server.run(&["INFO", "keyspace"]);
    assert!(keys.contains("db3:keys=1"), "{keys}");
}

#[tokio::test]
async fn the_connection_is_named_and_kept() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let client = Client::new(&server.url(""), None, OP_TIMEOUT);
    let first: u64 = client.ask("read", cmd("CLIENT").arg("ID")).await.unwrap();
    let again: u64 = client.ask("read", cmd("CLIENT").arg("ID")).await.unwrap();
    assert_eq!(first, again);
    let name: String = client
        .ask("read", cmd("CLIENT").arg("GETNAME"))
        .await
        .unwrap();
    assert_eq!(name, "jobboard");
    assert!(client.software("read").await.unwrap().starts_with("Redis "));
    assert_eq!(
        client.name(),
        format!("redis://127.0.0.1:{}/0", server.port())
    );
    client.close().await;
    ping(&client).await;
}

#[tokio::test]
async fn a_database_that_is_not_there_is_said() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let url = server.url("/99");
    let port = server.port();
    assert_eq!(
        failure(&Client::new(&url, None, OP_TIMEOUT)).await,
        format!("failed: 127.0.0.1:{port} has no database 99")
    );
}

#[tokio::test]
async fn where_nobody_listens_the_connection_is_refused() {
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
async fn a_name_that_does_not_resolve_is_said() {
    let told = failure(&client("redis://nowhere.invalid")).await;
    let expected = "unreachable: the name nowhere.invalid does not resolve: ";
    assert!(told.starts_with(expected), "{told}");
}

#[tokio::test]
async fn a_silent_server_is_given_up_in_time_by_all_who_wait() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let client = client(&format!("redis://127.0.0.1:{port}"));
    let start = Instant::now();
    let told = tokio::join!(failure(&client), failure(&client), failure(&client));
    let expected = format!("unreachable: 127.0.0.1:{port} did not reply within 3s");
    assert_eq!(told, (expected.clone(), expected.clone(), expected));
    assert!(start.elapsed() < 3 * PATIENCE);
}

#[tokio::test]
async fn what_is_no_redis_server_is_recognised() {
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
async fn a_server_that_does_not_know_hello_is_asked_otherwise() {
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
        assert_eq!(client.software("read").await.unwrap(), expected);
        ping(&client).await;
        impostor.abort();
    }
}

#[tokio::test]
async fn a_cluster_is_refused() {
    let Some(server) = Server::start(&["--cluster-enabled", "yes"]) else {
        return;
    };
    for tail in ["", "/1"] {
        assert_eq!(
            failure(&Client::new(&server.url(tail), None, OP_TIMEOUT)).await,
            "unsupported: Redis Cluster cannot store a board: TaskFlow's scripts use keys of \
             several slots"
        );
    }
}

#[tokio::test]
async fn a_replica_can_be_read_and_says_why_it_takes_no_writes() {
    let Some(server) = Server::start(&["--replicaof", "127.0.0.1", "1"]) else {
        return;
    };
    let client = Client::new(&server.url(""), None, OP_TIMEOUT);
    ping(&client).await;
    let refused = client
        .ask::<()>("write to", cmd("SET").arg("a").arg("b"))
        .await;
    let port = server.port();
    assert_eq!(
        told(refused.unwrap_err()),
        format!("failed: 127.0.0.1:{port} is a read-only replica")
    );
}

#[tokio::test]
async fn a_replica_without_its_master_says_so_if_it_may_not_answer() {
    let arguments = ["--replicaof", "127.0.0.1", "1"];
    let stale = ["--replica-serve-stale-data", "no"];
    let Some(server) = Server::start(&[arguments.as_slice(), &stale].concat()) else {
        return;
    };
    assert_eq!(
        failure(&Client::new(&server.url(""), None, OP_TIMEOUT)).await,
        format!(
            "unreachable: {} is a replica that has lost its master",
            server.host()
        )
    );
}
