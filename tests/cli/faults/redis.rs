//! A Redis server that forgets, disconnects, hangs, dies and returns.
//!
//! Each fault happens at a known moment.

mod bulk;
mod listing;
mod lost;
mod nonsense;
mod reach;
mod waiting;

use std::{collections::BTreeMap, process::Child};

use crate::support::{Env, Proxy, Server, wait_until};

/// Arguments for a server that keeps acknowledged data on disk.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// A board behind a proxy, and direct access to the server.
fn open_behind_proxy() -> Option<(Env, Server, Proxy)> {
    let server = Server::start()?;
    let proxy = Proxy::start(server.port());
    let env = Env::new();
    let url = format!("redis://127.0.0.1:{}", proxy.port);
    env.uses(&url);
    Some((env, server, proxy))
}

fn names_on(env: &Env) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for name in env.names() {
        *names.entry(name).or_default() += 1;
    }
    names
}

/// Returns the uuid of an error with an unknown result.
fn uuid_in(message: &str) -> String {
    let mut words = message.split([' ', ':', ',', ';']);
    let uuid = words.find(|word| uuid::Uuid::try_parse(word).is_ok());
    uuid.unwrap_or_else(|| panic!("it cannot be checked: {message}"))
        .to_owned()
}

fn hang_up(server: &Server) {
    let killed = server.run(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    assert_ne!(killed, "0");
}

/// A hanging server, until dropped.
struct Nap(Child);

impl Nap {
    /// Returns once the server hangs.
    fn begin(server: &Server, seconds: &str) -> Self {
        let nap = Self(server.start_run(&["DEBUG", "SLEEP", seconds]));
        wait_until("the server sleeps", || !server.answers_at_once());
        nap
    }
}

impl Drop for Nap {
    fn drop(&mut self) {
        let _ = self.0.wait();
    }
}
