//! Reachable and unreachable servers.

use std::time::Instant;

use tokio::net::TcpListener;

use super::*;
use crate::board::zookeeper::testing::{Ensemble, Server, free_port, impostor, wait_until};

/// The time limit, with an allowance for a loaded machine.
const IN_TIME: Duration = Duration::from_secs(4);

#[tokio::test]
async fn server_is_reached_by_name_and_address() {
    need!(server = Server::shared());
    ping(&ZooKeeperClient::new(&server.url(""), None, OP_TIMEOUT)).await;
    let port = server.port();
    let client = client(&format!("zk://localhost:{port}"));
    ping(&client).await;
    assert_eq!(
        client.name(),
        format!("zk://localhost:{port}/taskflow/jobs")
    );
}

#[tokio::test]
async fn health_check_leaves_no_session() {
    need!(server = Server::start(&[]));
    let client = ZooKeeperClient::new(&server.url(""), None, OP_TIMEOUT);
    for _ in 0..3 {
        let (well, problems) =
            examine(&client.url.servers, None, Deadline::after(OP_TIMEOUT)).await;
        assert_eq!((well.len(), problems.len()), (1, 0));
    }
    let connected = || {
        server
            .asked("cons")
            .lines()
            .filter(|line| line.contains("sid="))
            .count()
    };
    wait_until("nobody is connected", || connected() == 0);
    let sessions = server.asked("dump");
    let sessions = sessions
        .lines()
        .filter(|line| line.starts_with("\t0x"))
        .count();
    assert_eq!(sessions, 0, "{}", server.asked("dump"));
}

#[tokio::test]
async fn server_without_a_quorum_is_recognised() {
    need!(mut ensemble = Ensemble::start());
    let hosts = ensemble.hosts();
    ensemble.leader().unwrap().stop();
    wait_until("a new leader is elected", || ensemble.leader().is_some());
    ensemble.leader().unwrap().stop();
    let client = client(&format!("zk://{hosts}"));
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let message = failure(&client).await;
        if message.contains("it has lost its ensemble") {
            assert!(message.contains("refused the connection"), "{message}");
            break;
        }
        assert!(Instant::now() < end, "{message}");
    }
}

#[tokio::test]
async fn closed_port_is_connection_refused() {
    let (port, other) = (free_port(), free_port());
    assert_eq!(
        failure(&client(&format!("zk://127.0.0.1:{port}"))).await,
        format!("unreachable: 127.0.0.1:{port} refused the connection")
    );
    assert_eq!(
        failure(&client(&format!("zk://127.0.0.1:{port},127.0.0.1:{other}"))).await,
        format!(
            "unreachable: the ensemble is unreachable: 127.0.0.1:{port} refused the connection, \
             127.0.0.1:{other} refused the connection"
        )
    );
}

#[tokio::test]
async fn unresolvable_name_is_reported() {
    let message = failure(&client("zk://nowhere.invalid")).await;
    let expected = "misdirected: the name nowhere.invalid does not resolve: ";
    assert!(message.starts_with(expected), "{message}");
}

#[tokio::test]
async fn silent_server_times_out_for_all_waiters() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = silent.local_addr().unwrap();
    let client = client(&format!("zk://{peer}"));
    let start = Instant::now();
    let message = tokio::join!(failure(&client), failure(&client), failure(&client));
    let expected = format!("unreachable: {peer} did not reply within 3s");
    assert_eq!(message, (expected.clone(), expected.clone(), expected));
    assert!(start.elapsed() < IN_TIME);
}

#[tokio::test]
async fn unusable_hosts_are_skipped() {
    need!(server = Server::shared());
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (silent, dead, host) = (silent.local_addr().unwrap(), free_port(), server.host());
    // The client tries them in any order.
    for _ in 0..4 {
        let start = Instant::now();
        let hosts = format!("127.0.0.1:{dead},nowhere.invalid,{silent},{host}");
        let client = client(&format!("zk://{hosts}"));
        ping(&client).await;
        assert!(start.elapsed() < IN_TIME);
        client.close().await;
    }
}

#[tokio::test]
async fn other_protocol_is_recognised() {
    let cases: [(&'static [&'static str], &str); 5] = [
        (
            &["HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"],
            "misdirected: PEER is not a ZooKeeper server",
        ),
        (
            // Redis replies only after the end of the line.
            &["-ERR unknown command
"],
            "misdirected: PEER is not a ZooKeeper server",
        ),
        (
            &[""],
            "unreachable: PEER closed the connection instead of opening a session: it has lost \
             its ensemble, has too many connections, or is not a ZooKeeper server",
        ),
        (
            &["\0\0\0\u{25}\0\0\0\u{7} but nothing that a session has in its beginning"],
            "misdirected: PEER is not a ZooKeeper server",
        ),
        (&["\0\0\0"], "misdirected: PEER is not a ZooKeeper server"),
    ];
    for (answers, expected) in cases {
        let (port, impostor) = impostor(answers).await;
        let peer = format!("127.0.0.1:{port}");
        assert_eq!(
            failure(&client(&format!("zk://{peer}"))).await,
            expected.replace("PEER", &peer)
        );
        impostor.abort();
    }
}
