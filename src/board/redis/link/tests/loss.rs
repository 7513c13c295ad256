//! Broken connections and missing replies.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::Instant,
};

use futures_util::TryStreamExt;

use super::*;
use crate::board::redis::testing::{Proxy, ProxyMode, Server};

fn increment() -> Pipeline {
    let mut commands = redis::pipe();
    commands.cmd("INCR").arg("counter");
    commands
}

#[tokio::test]
async fn client_reconnects_to_a_restarted_server() {
    need!(mut server = Server::start(&[]));
    let client = RedisClient::new(&server.url(""), None, OP_TIMEOUT);
    for _ in 0..3 {
        ping(&client).await;
        server.kill();
        server.start_again();
    }
    ping(&client).await;
    server.kill();
    let refused = client.exchange(WRITE, &increment()).await;
    assert_matches!(refused, Err(RequestFailure::NotSent(_)));
    server.start_again();
    ping(&client).await;
}

#[tokio::test]
async fn swallowed_reply_is_lost_and_not_sent_again() {
    need!(server = Server::start(&[]));
    let proxy = Proxy::start(server.port());
    let url = redis_url(&format!("redis://127.0.0.1:{}", proxy.port));
    let client = RedisClient::new(&url, None, Duration::from_millis(500));
    let peer = format!("127.0.0.1:{}", proxy.port);
    let cases = [
        (ProxyMode::Silent, "did not reply within 500ms"),
        (ProxyMode::HangUp, "closed the connection before it replied"),
    ];
    for (mode, expected) in cases {
        ping(&client).await;
        server.run::<()>(&["SET", "counter", "0"]);
        proxy.set(mode);
        let Err(RequestFailure::Lost(error)) = client.exchange(WRITE, &increment()).await else {
            panic!("{mode:?}: it is not lost");
        };
        assert_eq!(summary(error), format!("unreachable: {peer} {expected}"));
        proxy.set(ProxyMode::PassOn);
        ping(&client).await;
        assert_eq!(server.run::<u32>(&["GET", "counter"]), 1);
    }
}

#[tokio::test]
async fn late_reply_is_not_taken_for_another() {
    need!(server = Server::start(&[]));
    let client = RedisClient::new(&server.url(""), None, Duration::from_millis(300));
    ping(&client).await;
    server.freeze();
    let lost = client.exchange(WRITE, &increment()).await;
    assert_matches!(lost, Err(RequestFailure::Lost(_)));
    server.thaw();
    ping(&client).await;
}

/// Returns the time until the failure is reported.
async fn time_of_a_hangup() -> Duration {
    // Like a restarting server: it hangs up on the first connection and serves the second.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = thread::spawn(move || {
        drop(listener.accept().unwrap());
        let (mut second, _) = listener.accept().unwrap();
        // Until our timeout.
        let _ = second.read_to_end(&mut Vec::new());
    });
    let start = Instant::now();
    let message = failure(&client(&format!("redis://127.0.0.1:{port}"))).await;
    assert_eq!(
        message,
        format!("unreachable: 127.0.0.1:{port} closed the connection without a reply")
    );
    let elapsed = start.elapsed();
    serving.join().unwrap();
    elapsed
}

#[tokio::test]
async fn tls_probe_of_a_server_that_hung_up_is_short() {
    // Load may delay a probe, but not each of ten.
    for _ in 0..10 {
        if time_of_a_hangup().await < CONNECT_TIMEOUT / 2 {
            return;
        }
    }
    panic!("each probe is slow");
}

#[tokio::test]
async fn client_leaves_a_server_that_stops_accepting_writes() {
    need!(server = Server::start(&[]));
    let client = RedisClient::new(&server.url(""), None, OP_TIMEOUT);
    let id = async || {
        client
            .ask::<u64>(READ, cmd("CLIENT").arg("ID"))
            .await
            .unwrap()
    };
    let first = id().await;
    server.run::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    let answers = client.exchange(WRITE, &increment()).await.unwrap();
    assert_eq!(answers[0].as_ref().unwrap_err().code(), "READONLY");
    assert_ne!(id().await, first);
}

#[tokio::test]
async fn concurrent_requests_share_the_connection() {
    need!(server = Server::start(&[]));
    let client = RedisClient::new(&server.url(""), None, OP_TIMEOUT);
    let asks = (0..100).map(async |number: u32| {
        client
            .ask::<u32>(READ, cmd("ECHO").arg(number))
            .await
            .unwrap()
    });
    let numbers = futures_util::future::join_all(asks).await;
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    let clients: String = server.run(&["CLIENT", "LIST"]);
    assert_eq!(clients.matches("name=jobboard").count(), 1, "{clients}");
}

#[tokio::test]
async fn listener_receives_messages_until_the_server_stops() {
    need!(mut server = Server::start(&[]));
    let client = RedisClient::new(&server.url(""), None, OP_TIMEOUT);
    let mut listener = client.listen("watch").await.unwrap();
    let mut track = cmd("CLIENT");
    track
        .arg("TRACKING")
        .arg("ON")
        .arg("BCAST")
        .arg("PREFIX")
        .arg("a");
    listener.ask::<()>(&track).await.unwrap();
    client
        .ask::<()>(WRITE, cmd("SET").arg("ab").arg(1))
        .await
        .unwrap();
    let pushed = listener.pushed.recv().await.unwrap();
    assert_eq!(pushed.kind, redis::PushKind::Invalidate);
    listener
        .ask::<Value>(cmd("SUBSCRIBE").arg("channel"))
        .await
        .unwrap();
    let subscribed = listener.pushed.recv().await.unwrap();
    assert_eq!(subscribed.kind, redis::PushKind::Subscribe);
    server.run::<()>(&["PUBLISH", "channel", "message"]);
    let message = listener.pushed.recv().await.unwrap();
    assert_eq!(message.kind, redis::PushKind::Message);
    server.kill();
    let last = listener.pushed.recv().await.unwrap();
    assert_eq!(last.kind, redis::PushKind::Disconnection);
    assert!(listener.pushed.recv().await.is_none());
}

#[tokio::test]
async fn refused_listener_is_an_error() {
    need!(server = Server::start(&["--rename-command", "HELLO", ""]));
    let client = RedisClient::new(&server.url(""), None, OP_TIMEOUT);
    ping(&client).await;
    let Err(RequestFailure::NotSent(error)) = client.listen("watch").await else {
        panic!("it listens");
    };
    assert_eq!(
        summary(error),
        "unsupported: this Redis server cannot push messages"
    );
}

#[tokio::test]
async fn reply_during_a_process_pause_is_not_late() {
    need!(server = Server::start(&[]));
    let limit = Duration::from_millis(500);
    let client = RedisClient::new(&server.url(""), None, limit);
    ping(&client).await;
    let stand_still = async {
        yield_to_tasks().await;
        std::thread::sleep(limit * 2);
    };
    tokio::join!(ping(&client), stand_still);
}

/// Answers each request for a page with an empty page that is not the last.
fn serve_endless_scan(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut request) {
        let text = String::from_utf8_lossy(&request[..length]);
        let lines: Vec<_> = text.lines().collect();
        let names = lines.windows(3).filter(|it| it[0].starts_with('*'));
        for name in names.map(|it| it[2]) {
            let answer = match name {
                "HSCAN" | "SCAN" => "*2\r\n$1\r\n7\r\n*0\r\n",
                "HELLO" => "%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n",
                _ => "+OK\r\n",
            };
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

#[tokio::test]
async fn scan_without_end_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || serve_endless_scan(&listener));
    let client = client(&format!("redis://127.0.0.1:{port}"));
    let expected = format!("failed: 127.0.0.1:{port} does not finish listing the board");
    let pages = client.fields("taskflow:paused".to_owned(), 200);
    let refused = pages.try_for_each(async |_| Ok(())).await.unwrap_err();
    assert_eq!(summary(refused), expected);
    let pages = client.key_names("taskflow:*".to_owned());
    let refused = pages.try_for_each(async |_| Ok(())).await.unwrap_err();
    assert_eq!(summary(refused), expected);
}
