//! The link, against real servers and impostors.

mod access;
mod loss;
mod reach;
mod sentinel;
mod tls;

use std::time::Duration;

use redis::cmd;

use super::*;
use crate::board::{redis::testing::redis_url, testing};

const OP_TIMEOUT: Duration = Duration::from_secs(5);

fn client(url: &str) -> RedisClient {
    RedisClient::new(&redis_url(url), None, OP_TIMEOUT)
}

fn link_with(url: &RedisUrl, password: &str) -> RedisClient {
    RedisClient::new(url, Some(Secret::new(password)), OP_TIMEOUT)
}

async fn failure(client: &RedisClient) -> String {
    summary(client.ask::<()>(READ, &cmd("PING")).await.unwrap_err())
}

async fn ping(client: &RedisClient) {
    let answer: String = client.ask(READ, &cmd("PING")).await.unwrap();
    assert_eq!(answer, "PONG");
}

fn summary(error: BoardError) -> String {
    testing::summary(error).replace("misdirected: ", "unreachable: ")
}

fn is_send<T: Send>(_: &T) {}

#[test]
fn requests_are_send() {
    let client = client("redis://localhost");
    is_send(&client.ask::<()>(READ, &cmd("PING")));
    is_send(&client.exchange(READ, &redis::pipe()));
    is_send(&client.listen(READ));
}
