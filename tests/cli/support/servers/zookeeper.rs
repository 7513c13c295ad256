//! Boards on ZooKeeper: on the shared server, or on a separate one.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

#[allow(dead_code, reason = "some of it is for the tests of the board")]
#[path = "../../../../src/board/zookeeper/testing/process.rs"]
mod process;

pub(crate) use self::process::{Ensemble, Process};
use super::{Host, Location, Peer};
use crate::support::needs;

pub(crate) struct ZooKeeper {
    port: u16,
    /// The parent node of this test.
    top: String,
    /// The prefix of paths for clients without a chroot: empty, or that node.
    chroot: String,
    /// The path of the board for its clients.
    path: String,
    process: Option<Process>,
}

impl ZooKeeper {
    /// Starts a separate server, which the test may stop.
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

    /// Returns a board with this path in a separate chroot.
    pub(crate) fn in_chroot(self, path: &str) -> Self {
        Self {
            chroot: self.top.clone(),
            path: path.to_owned(),
            ..self
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the separate server.
    pub(crate) fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("a server of its own")
    }

    /// Runs ZooKeeper's own command line with the words of a hint, as read by a shell.
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

    /// Whether a client watches the whole board.
    pub(crate) fn is_watched(&self) -> bool {
        let process = self.process.as_ref().or_else(|| Process::shared());
        let watched = process.unwrap().asked("wchp");
        // The last watch of a subscription.
        let entities = format!("{}/.entities/conductor", self.top);
        watched.lines().any(|line| line == entities)
    }

    /// Returns the URL of another board, which shares the trash.
    pub(crate) fn beside(&self) -> String {
        format!("zk://127.0.0.1:{}{}/others", self.port, self.top)
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the parent node of this test, as seen by the board's clients.
    pub(crate) fn top(&self) -> &str {
        if self.chroot.is_empty() {
            &self.top
        } else {
            "/"
        }
    }

    pub(crate) fn nodes(&self, peer: &mut Peer) -> Value {
        peer.request(&json!({"do": "nodes", "path": self.top()}))
    }

    /// Sets the rights to the node of the board, or to one below it.
    pub(crate) fn set_rights(&self, below: &str, rights: &str) {
        let node = format!("{}{below}", self.path());
        Self::cli(&format!(
            "-server 127.0.0.1:{} setAcl {node} {rights}",
            self.port()
        ));
    }

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
        // TaskFlow rewrites it, perhaps with other spaces.
        let value = |posting: &str| -> Value { serde_json::from_str(posting).unwrap() };
        value(before) == value(trashed)
    }

    fn posting(&self, peer: &mut Peer, location: Location, job: &str) -> String {
        let directory = match location {
            Location::Board => format!("{}/job", self.path),
            Location::Trash => format!("{}/.trash/", self.top),
        };
        let nodes = self.nodes(peer);
        let mut nodes = nodes.as_object().unwrap().iter();
        let (_, found) = nodes
            .find(|(path, node)| {
                path.starts_with(&directory) && node["data"].as_str().unwrap().contains(job)
            })
            .unwrap_or_else(|| panic!("{job} is not in {directory}"));
        found["data"].as_str().unwrap().to_owned()
    }
}
