//! Boards on ZooKeeper: on the server that all tests share, or on one of a test's own.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

#[allow(dead_code, reason = "some of it is for the tests of the board")]
#[path = "../../../../src/board/zookeeper/testing/process.rs"]
mod process;

pub(crate) use self::process::{Ensemble, Process};
use super::{Host, Peer, Shelf};
use crate::support::needs;

/// A board of a test's own.
pub(crate) struct ZooKeeper {
    port: u16,
    /// The node below which everything of this test is.
    top: String,
    /// What comes before each path for who sees all of the server: nothing, or that node.
    chroot: String,
    /// Where the board is for who uses it.
    path: String,
    process: Option<Process>,
}

impl ZooKeeper {
    /// Starts a server for this test alone, which it may stop.
    pub(crate) fn start_own() -> Option<Self> {
        let process = Process::start(&[])?;
        Some(Self::on(process.port(), Some(process)))
    }

    fn on(port: u16, process: Option<Process>) -> Self {
        static BOARDS: AtomicUsize = AtomicUsize::new(0);
        let top = format!("/test-{}", BOARDS.fetch_add(1, Ordering::Relaxed));
        Self {
            port,
            path: format!("{top}/jobs"),
            top,
            chroot: String::new(),
            process,
        }
    }

    /// Returns a board with this path, beside which nothing else is to be seen.
    pub(crate) fn in_chroot(self, path: &str) -> Self {
        Self {
            chroot: self.top.clone(),
            path: path.to_owned(),
            ..self
        }
    }

    /// Returns the port on which the server listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the server that nobody else uses.
    pub(crate) fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("a server of its own")
    }

    /// Has ZooKeeper's own command line do what a hint says of it: words, as a shell takes them.
    pub(crate) fn cli(words: &str) {
        let script = format!(
            "exec java -cp {} org.apache.zookeeper.ZooKeeperMain {words}",
            process::CLASSES
        );
        let ran = std::process::Command::new("sh")
            .args(["-c", &script])
            .output();
        let ran = ran.expect("java is there");
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }

    /// Whether somebody watches all that belongs to the board.
    pub(crate) fn is_watched(&self) -> bool {
        let process = self.process.as_ref().or_else(|| Process::shared());
        let watched = process.unwrap().asked("wchp");
        // The last watch that is set.
        let entities = format!("{}/.entities/conductor", self.top);
        watched.lines().any(|line| line == entities)
    }

    /// Returns the URL of another board, which shares the trash.
    pub(crate) fn beside(&self) -> String {
        format!("zk://127.0.0.1:{}{}/others", self.port, self.top)
    }

    /// Returns where the board is.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the node below which everything of this test is, to who uses the board.
    pub(crate) fn top(&self) -> &str {
        if self.chroot.is_empty() {
            &self.top
        } else {
            "/"
        }
    }

    /// Returns all nodes of this test.
    pub(crate) fn nodes(&self, peer: &mut Peer) -> Value {
        peer.request(&json!({"do": "nodes", "path": self.top()}))
    }

    /// Makes a node on the board.
    pub(crate) fn create(&self, peer: &mut Peer, name: &str, data: &str) {
        let path = format!("{}/{name}", self.path);
        peer.request(&json!({"do": "create", "path": path, "data": data}));
    }
}

impl Host for ZooKeeper {
    const KIND: &str = "ZooKeeper";

    /// The least urgent first, the oldest first among equals.
    const TASKFLOWS_ORDER: [usize; 10] = [0, 5, 3, 8, 1, 6, 2, 7, 4, 9];

    fn start() -> Option<Self> {
        Some(Self::on(Process::shared()?.port(), None))
    }

    fn board(&self) -> String {
        let Self {
            port, path, chroot, ..
        } = self;
        match chroot.as_str() {
            "" => format!("zk://127.0.0.1:{port}{path}"),
            chroot => format!("zk://127.0.0.1:{port}{path}?chroot={chroot}"),
        }
    }

    fn conf(&self) -> Value {
        let hosts = format!("127.0.0.1:{}{}", self.port, self.chroot);
        json!({"board": "zookeeper", "hosts": hosts, "path": self.path})
    }

    fn everything(&self, peer: &mut Peer) -> Value {
        self.nodes(peer)
    }

    fn is_as_trashed(before: &str, trashed: &str) -> bool {
        // It is written anew, perhaps with other spaces.
        let value = |posting: &str| -> Value { serde_json::from_str(posting).unwrap() };
        value(before) == value(trashed)
    }

    fn posting(&self, peer: &mut Peer, shelf: Shelf, job: &str) -> String {
        let folder = match shelf {
            Shelf::Board => format!("{}/job", self.path),
            Shelf::Trash => format!("{}/.trash/", self.top),
        };
        let nodes = self.nodes(peer);
        let mut nodes = nodes.as_object().unwrap().iter();
        let (_, found) = nodes
            .find(|(path, node)| {
                path.starts_with(&folder) && node["data"].as_str().unwrap().contains(job)
            })
            .unwrap_or_else(|| panic!("{job} is not in {folder}"));
        found["data"].as_str().unwrap().to_owned()
    }
}
