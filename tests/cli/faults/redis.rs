//! A Redis board whose server forgets, hangs up, falls asleep, dies and comes back meanwhile.
//!
//! Each fault comes at a moment that the test can be sure of, and not at one that it hopes for.

mod bulk;
mod listing;
mod lost;
mod nonsense;
mod reach;
mod waiting;

use std::{collections::BTreeMap, process::Child};

use crate::support::{
    env::{Env, wait_until},
    proxy::Proxy,
    servers::Server,
};

/// A server that keeps on disk what it has acknowledged.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// A board on a server with these arguments.
fn open_with(arguments: &[&str]) -> Option<(Env, Server)> {
    let server = Server::start_with(arguments)?;
    let env = Env::new();
    server.serves(&env, "");
    Some((env, server))
}

/// A board behind a proxy; by itself the server can be asked without it.
fn open_behind_proxy() -> Option<(Env, Server, Proxy)> {
    let server = Server::start()?;
    let proxy = Proxy::start(server.port());
    let env = Env::new();
    let url = format!("redis://127.0.0.1:{}", proxy.port);
    env.configure(&format!("default = \"a\"\n[board.a]\nurl = \"{url}\"\n"));
    Some((env, server, proxy))
}

/// Returns how often each name is on a board.
fn names_on(env: &Env) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for name in env.names() {
        *names.entry(name).or_default() += 1;
    }
    names
}

/// Returns the uuid in an error that leaves it to the reader to look whether the job is there.
fn uuid_in(message: &str) -> String {
    let mut words = message.split([' ', ':', ',', ';']);
    let uuid = words.find(|word| uuid::Uuid::try_parse(word).is_ok());
    uuid.unwrap_or_else(|| panic!("it cannot be checked: {message}"))
        .to_owned()
}

/// Hangs up on everybody.
fn hang_up(server: &Server) {
    let killed = server.run(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    assert_ne!(killed, "0");
}

/// A server that is asleep, until this is dropped at the latest.
struct Nap(Child);

impl Nap {
    /// Returns once the server does not answer any more.
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
