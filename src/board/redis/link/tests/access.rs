//! Authentication and access rights.

use super::*;
use crate::board::redis::testing::Server;

fn set_user(server: &Server, rules: &str) {
    let words = ["ACL", "SETUSER"].into_iter().chain(rules.split(' '));
    server.run::<()>(&words.collect::<Vec<_>>());
}

#[tokio::test]
async fn only_the_right_password_is_accepted() {
    need!(server = Server::start(&["--requirepass", "hunter2"]));
    let peer = server.host();
    let url = server.url("");
    ping(&link_with(&url, "hunter2")).await;
    ping(&link_with(&server.url("/2"), "hunter2")).await;
    ping(&client(&format!("redis://:hunter2@{peer}"))).await;
    ping(&client(&format!("redis://default:hunter2@{peer}"))).await;
    assert_eq!(
        failure(&link_with(&url, "hunter3")).await,
        format!("denied: {peer} rejects the password")
    );
    for tail in ["", "/2"] {
        assert_eq!(
            failure(&RedisClient::new(&server.url(tail), None, OP_TIMEOUT)).await,
            format!("denied: {peer} requires a password; give --password-file FILE")
        );
    }
}

#[tokio::test]
async fn unneeded_password_is_reported() {
    need!(server = Server::start(&[]));
    assert_eq!(
        failure(&link_with(&server.url(""), "hunter2")).await,
        format!(
            "denied: 127.0.0.1:{} needs no password, but one was given",
            server.port()
        )
    );
}

#[tokio::test]
async fn users_have_separate_passwords() {
    need!(server = Server::start(&[]));
    for rules in ["alice on >hunter2 ~* +@all", "bob on nopass ~* +@all"] {
        set_user(&server, rules);
    }
    let peer = server.host();
    let of = |user: &str| redis_url(&format!("redis://{user}@{peer}"));
    ping(&link_with(&of("alice"), "hunter2")).await;
    ping(&RedisClient::new(&of("bob"), None, OP_TIMEOUT)).await;
    for (user, password) in [("alice", "hunter3"), ("carol", "hunter2")] {
        assert_eq!(
            failure(&link_with(&of(user), password)).await,
            format!(
                "denied: {peer} rejects the user {user}: unknown user, wrong password or \
                 disabled user"
            )
        );
    }
}

#[tokio::test]
async fn unknown_login_command_repeats_no_password() {
    need!(server = Server::start(&["--rename-command", "AUTH", ""]));
    assert_eq!(
        failure(&link_with(&server.url(""), "hunter2")).await,
        format!("denied: 127.0.0.1:{} denies access (ERR)", server.port())
    );
}

#[tokio::test]
async fn denied_command_is_reported() {
    need!(server = Server::start(&[]));
    let rules = "alice on >hunter2 ~taskflow:* +ping +get +set +eval -get -info -client";
    set_user(&server, rules);
    let peer = server.host();
    let client = link_with(&redis_url(&format!("redis://alice@{peer}")), "hunter2");
    ping(&client).await;
    let mut commands = redis::pipe();
    commands.cmd("GET").arg("taskflow:a");
    commands.cmd("SET").arg("other:a").arg(1);
    commands.cmd("SET").arg("taskflow:a").arg(1);
    commands
        .cmd("EVAL")
        .arg("return redis.call('GET', KEYS[1])");
    commands.arg(1).arg("taskflow:a");
    let answers = client.exchange(READ, &commands).await.unwrap();
    let texts: Vec<_> = answers
        .into_iter()
        .map(|answer| {
            answer.map_or_else(
                |error| summary(client.refusal(READ, &error, None)),
                |_| "ok".into(),
            )
        })
        .collect();
    assert_eq!(
        texts,
        [
            format!("denied: {peer} does not allow the user alice to run `get`"),
            format!("denied: {peer} does not allow the user alice to use the keys of the board"),
            "ok".to_owned(),
            format!(
                "denied: {peer} does not allow the user alice to use the commands of the board"
            ),
        ]
    );
}

#[tokio::test]
async fn refused_command_does_not_affect_the_others() {
    need!(server = Server::start(&[]));
    let client = RedisClient::new(&server.url(""), None, OP_TIMEOUT);
    let mut commands = redis::pipe();
    commands.cmd("SET").arg("text").arg("x");
    commands.cmd("HGET").arg("text").arg("field");
    commands.cmd("EVALSHA").arg("0".repeat(40)).arg(0);
    commands.cmd("GET").arg("text");
    let answers = client.exchange(READ, &commands).await.unwrap();
    assert_eq!(answers[0], Ok(Value::Okay));
    let wrong = answers[1].as_ref().unwrap_err();
    let port = server.port();
    assert_eq!(
        summary(client.refusal(READ, wrong, None)),
        format!(
            "failed: 127.0.0.1:{port} stores a value of the wrong type under a key; rename that key"
        )
    );
    assert_eq!(answers[2].as_ref().unwrap_err().code(), "NOSCRIPT");
    assert_eq!(answers[3], Ok(Value::BulkString(b"x".to_vec())));
    assert!(
        client
            .exchange(READ, &redis::pipe())
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn unwritable_server_reports_the_reason() {
    need!(server = Server::start(&["--save", "3600", "1"]));
    let client = RedisClient::new(&server.url(""), None, OP_TIMEOUT);
    let mut write = cmd("SET");
    write.arg("a").arg("b");
    client.ask::<()>(WRITE, &write).await.unwrap();
    let refused = async || summary(client.ask::<()>(WRITE, &write).await.unwrap_err());
    let peer = server.host();
    server.run::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(
        refused().await,
        format!("failed: {peer} has reached its memory limit; raise `maxmemory` or remove data")
    );
    server.run::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    server.run::<()>(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    assert_eq!(
        refused().await,
        format!("unreachable: {peer} has too few replicas to accept writes")
    );
}

#[tokio::test]
async fn busy_server_is_reported() {
    need!(server = Server::start(&["--busy-reply-threshold", "10"]));
    let (busy, asking) = [(); 2]
        .map(|()| RedisClient::new(&server.url(""), None, OP_TIMEOUT))
        .into();
    let mut script = cmd("EVAL");
    script.arg("while true do end").arg(0);
    let expected = format!(
        "unreachable: 127.0.0.1:{} is busy with a long-running script",
        server.port()
    );
    let busy = async {
        let stopped = busy.ask::<()>(READ, &script).await;
        summary(stopped.unwrap_err())
    };
    let asking = async {
        while asking.ask::<()>(READ, &cmd("PING")).await.is_ok() {
            task::yield_now().await;
        }
        let message = failure(&asking).await;
        server.run::<()>(&["SCRIPT", "KILL"]);
        message
    };
    let (stopped, message) = tokio::join!(busy, asking);
    assert_eq!(message, expected);
    assert!(stopped.starts_with("failed: "), "{stopped}");
}
