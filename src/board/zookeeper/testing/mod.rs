//! Real servers for the tests of this board.
//!
//! Where ZooKeeper is missing, a test gets `None` and ends early; in CI it fails.

mod process;

use std::{
    thread,
    time::{Duration, Instant},
};

pub(in crate::board::zookeeper) use self::process::{Process as Server, free_port};
use crate::board::url::{BoardUrl, zookeeper::ZooKeeperUrl};

/// How long anything may take that a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the part of a URL that a [`Link`](super::link::Link) takes.
pub(super) fn zookeeper_url(text: &str) -> ZooKeeperUrl {
    match text.parse() {
        Ok(BoardUrl::ZooKeeper(url)) => *url,
        other => panic!("{text}: {other:?}"),
    }
}

/// Waits until something is so.
pub(super) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

impl Server {
    /// Returns how errors call the server.
    pub(super) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// Returns the URL of a board on this server, with something behind its port.
    pub(super) fn url(&self, tail: &str) -> ZooKeeperUrl {
        zookeeper_url(&format!("zk://{}{tail}", self.host()))
    }
}
