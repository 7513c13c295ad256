//! A board to be conducted, and jobs for it that write down what they do.

use std::fs;

use serde_json::{Value, json};

use crate::support::{
    env::{Env, Invocation, Running, wait_until},
    proxy::Proxy,
    servers::{Host, Server, ZooKeeper, zookeeper::Ensemble},
};

/// A board of some kind, with surroundings of its own.
pub(crate) struct Stage {
    pub(crate) env: Env,
    server: Option<Kind>,
}

/// A server with a board.
pub(crate) enum Kind {
    Redis(Server),
    ZooKeeper(ZooKeeper),
    Ensemble(Ensemble),
}

impl Kind {
    /// Returns the URL of its board.
    pub(crate) fn board(&self) -> String {
        match self {
            Self::Redis(server) => server.board(),
            Self::ZooKeeper(server) => server.board(),
            Self::Ensemble(servers) => format!("zk://{}/test/jobs", servers.hosts()),
        }
    }

    /// Returns how TaskFlow is told of its board.
    pub(crate) fn conf(&self) -> Option<Value> {
        match self {
            Self::Redis(server) => Some(Host::conf(server)),
            Self::ZooKeeper(server) => Some(server.conf()),
            Self::Ensemble(_) => None,
        }
    }

    /// Starts a proxy before the server, and returns the URL by which the board is reached through it.
    pub(crate) fn through_proxy(&self) -> (String, Proxy) {
        let port = match self {
            Self::Redis(server) => server.port(),
            Self::ZooKeeper(server) => server.port(),
            Self::Ensemble(_) => unreachable!("none is reached through one proxy"),
        };
        let proxy = Proxy::start(port);
        let (server, there) = (format!(":{port}"), format!(":{}", proxy.port));
        (self.board().replace(&server, &there), proxy)
    }

    /// Ends the server at once.
    pub(crate) fn stop(&mut self) {
        match self {
            Self::Redis(server) => server.kill(),
            Self::ZooKeeper(server) => server.process().stop(),
            Self::Ensemble(_) => unreachable!("one of them is stopped by itself"),
        }
    }

    /// Starts it again, with what it has on disk.
    pub(crate) fn start_again(&mut self) {
        match self {
            Self::Redis(server) => server.start_again(),
            Self::ZooKeeper(server) => server.process().start_again(),
            Self::Ensemble(_) => unreachable!("one of them is stopped by itself"),
        }
    }
}

impl Stage {
    /// A board that belongs to whoever conducts it.
    pub(crate) fn embedded() -> Option<Self> {
        let stage = Self {
            env: Env::new(),
            server: None,
        };
        // A folder that others cannot write, whatever the mask of whoever tests.
        let folder = stage.env.root().join("state/jobboard");
        fs::create_dir(&folder).unwrap();
        set_mode(&folder, 0o700);
        Some(stage)
    }

    /// A board on a server.
    pub(crate) fn redis() -> Option<Self> {
        Some(Self::on(Kind::Redis(Server::start()?)))
    }

    /// A board on a server that has on its disk whatever it has acknowledged.
    pub(crate) fn redis_keeping_data() -> Option<Self> {
        Some(Self::on(Kind::Redis(Server::start_keeping_data()?)))
    }

    /// A board on the server that all tests share.
    pub(crate) fn zookeeper() -> Option<Self> {
        let server: ZooKeeper = Host::start()?;
        Some(Self::on(Kind::ZooKeeper(server)))
    }

    /// A board on a server that the test may stop.
    pub(crate) fn own_zookeeper() -> Option<Self> {
        Some(Self::on(Kind::ZooKeeper(ZooKeeper::start_own()?)))
    }

    /// A board on three servers that elect a leader among them.
    pub(crate) fn ensemble() -> Option<Self> {
        Some(Self::on(Kind::Ensemble(Ensemble::start()?)))
    }

    fn on(server: Kind) -> Self {
        let env = Env::new();
        let url = server.board();
        env.configure(&format!("default = \"a\"\n[board.a]\nurl = \"{url}\"\n"));
        Self {
            env,
            server: Some(server),
        }
    }

    pub(crate) fn is_network(&self) -> bool {
        self.server.is_some()
    }

    /// Returns the server of a board on Redis.
    pub(crate) fn redis_server(&self) -> Option<&Server> {
        match &self.server {
            Some(Kind::Redis(server)) => Some(server),
            Some(Kind::ZooKeeper(_) | Kind::Ensemble(_)) | None => None,
        }
    }

    /// Returns the server of a board on ZooKeeper.
    pub(crate) fn zookeeper_server(&mut self) -> Option<&mut ZooKeeper> {
        match &mut self.server {
            Some(Kind::ZooKeeper(server)) => Some(server),
            Some(Kind::Redis(_) | Kind::Ensemble(_)) | None => None,
        }
    }

    /// Returns the server of a board on ZooKeeper, to look at it.
    pub(crate) fn zookeeper_board(&self) -> Option<&ZooKeeper> {
        match &self.server {
            Some(Kind::ZooKeeper(server)) => Some(server),
            Some(Kind::Redis(_) | Kind::Ensemble(_)) | None => None,
        }
    }

    /// Returns the servers of a board that is on several.
    pub(crate) fn zookeeper_ensemble(&mut self) -> Option<&mut Ensemble> {
        match &mut self.server {
            Some(Kind::Ensemble(servers)) => Some(servers),
            Some(Kind::Redis(_) | Kind::ZooKeeper(_)) | None => None,
        }
    }

    /// Starts a proxy before the server, and returns the URL by which the board is reached through it.
    pub(crate) fn through_proxy(&self) -> (String, Proxy) {
        self.server.as_ref().expect("a server").through_proxy()
    }

    /// Ends the server at once.
    pub(crate) fn stop_server(&mut self) {
        self.server.as_mut().expect("a server").stop();
    }

    /// Starts the server again, with what it has on disk.
    pub(crate) fn start_server(&mut self) {
        self.server.as_mut().expect("a server").start_again();
    }

    /// Separates the surroundings from the server, so that it can be stopped while they are used.
    pub(crate) fn apart(self) -> (Env, Option<Kind>) {
        (self.env, self.server)
    }

    /// Prepares a conductor that may run whatever is posted.
    pub(crate) fn conduct(&self, words: &[&str]) -> Invocation {
        let allow = if self.is_network() {
            &["--allow-any"][..]
        } else {
            &[]
        };
        self.env.jobboard(&[&["conduct"], allow, words].concat())
    }

    /// Starts a conductor, and waits until it is at work.
    pub(crate) fn start(&self, words: &[&str]) -> Running {
        let running = self.conduct(words).spawn();
        self.says(&running, "conducting");
        running
    }

    /// Waits until a conductor has told of some event.
    pub(crate) fn says(&self, running: &Running, event: &str) {
        wait_until(event, || running.stderr().contains(event));
    }

    /// Posts a job that has a shell run this in the current folder of the runs.
    pub(crate) fn post(&self, name: &str, script: &str) -> String {
        self.post_with(name, script, &[])
    }

    pub(crate) fn post_with(&self, name: &str, script: &str, words: &[&str]) -> String {
        let command = ["--", "sh", "-c", script];
        let post = [&["post", name], words, &command].concat();
        self.env.jobboard(&post).run().posted()
    }

    /// Posts many such jobs at once.
    pub(crate) fn post_many(&self, count: usize, script: &str) -> Vec<String> {
        let line = json!({"name": "many", "details": {"command": ["sh", "-c", script]}});
        let lines = format!("{line}\n").repeat(count);
        let posted = self
            .env
            .jobboard(&["post", "--from", "-"])
            .stdin(lines)
            .run();
        posted.succeeded().lines().map(str::to_owned).collect()
    }

    /// Returns the lines that jobs have written to the file `log`.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.env.file("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until jobs have written so many lines.
    pub(crate) fn logged(&self, lines: usize) {
        wait_until("the jobs have run", || self.log().len() >= lines);
    }
}

pub(crate) fn set_mode(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Makes a test of every promise on every kind of board.
macro_rules! on_every_board {
    (@on $kind:ident $($promise:ident)*) => {
        mod $kind {
            $(
                #[test]
                fn $promise() {
                    if let Some(stage) = crate::conduct::Stage::$kind() {
                        super::$promise(&stage);
                    }
                }
            )*
        }
    };
    ($($promise:ident),* $(,)?) => {
        on_every_board!(@on embedded $($promise)*);
        on_every_board!(@on redis $($promise)*);
        on_every_board!(@on zookeeper $($promise)*);
    };
}
pub(crate) use on_every_board;
