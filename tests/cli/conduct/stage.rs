//! A board to conduct, and jobs that log their actions.

use std::fs;

use serde_json::{Value, json};

use crate::support::{
    Env, Host, Invocation, Proxy, Running, Server, ZooKeeper, is_full,
    servers::zookeeper::Ensemble, wait_until,
};

/// A job that runs until the file `go` exists.
pub(crate) const WAITS: &str = "echo began >> log; until [ -e go ]; do sleep 0.02; done";

/// A board of some kind, with its own environment.
pub(crate) struct Stage {
    pub(crate) env: Env,
    server: Option<Kind>,
    is_network: bool,
}

pub(crate) enum Kind {
    Redis(Server),
    ZooKeeper(ZooKeeper),
    Ensemble(Ensemble),
}

impl Kind {
    pub(crate) fn board(&self) -> String {
        match self {
            Self::Redis(server) => server.board(),
            Self::ZooKeeper(server) => server.board(),
            Self::Ensemble(servers) => format!("zk://{}/test/jobs", servers.hosts()),
        }
    }

    /// Returns TaskFlow's configuration for the board.
    pub(crate) fn conf(&self) -> Option<Value> {
        match self {
            Self::Redis(server) => Some(Host::conf(server)),
            Self::ZooKeeper(server) => Some(server.conf()),
            Self::Ensemble(_) => None,
        }
    }

    /// Starts a proxy before the server, and returns the board's URL through it.
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

    pub(crate) fn stop(&mut self) {
        match self {
            Self::Redis(server) => server.kill(),
            Self::ZooKeeper(server) => server.process().stop(),
            Self::Ensemble(_) => unreachable!("stop the members one by one"),
        }
    }

    /// Restarts the server with its data on disk.
    pub(crate) fn start_again(&mut self) {
        match self {
            Self::Redis(server) => server.start_again(),
            Self::ZooKeeper(server) => server.process().start_again(),
            Self::Ensemble(_) => unreachable!("stop the members one by one"),
        }
    }
}

impl Stage {
    /// A board that belongs to its conductor.
    pub(crate) fn embedded() -> Option<Self> {
        let stage = Self {
            env: Env::new(),
            server: None,
            is_network: false,
        };
        // A directory that other users cannot write, whatever the umask.
        let directory = stage.env.root().join("state/jobboard");
        fs::create_dir(&directory).unwrap();
        set_mode(&directory, 0o700);
        Some(stage)
    }

    pub(crate) fn redis() -> Option<Self> {
        Some(Self::on(Kind::Redis(Server::start()?)))
    }

    /// A board on a server that writes every change to disk before it replies.
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

    /// Runs a promise on the kind of board that its name selects, on all kinds in a full run, or on a given Redis.
    pub(crate) fn in_turn(name: &str, promise: fn(&Self)) {
        let kinds: [fn() -> Option<Self>; 3] = [Self::embedded, Self::redis, Self::zookeeper];
        let turn = match std::env::var_os("JOBBOARD_REDIS_SERVER") {
            Some(_) => 1,
            None => name.len() % kinds.len(),
        };
        for (number, kind) in kinds.into_iter().enumerate() {
            if is_full() || number == turn {
                kind().iter().for_each(promise);
            }
        }
    }

    /// A board on an ensemble of three servers.
    pub(crate) fn ensemble() -> Option<Self> {
        Some(Self::on(Kind::Ensemble(Ensemble::start()?)))
    }

    /// A board on servers that the test starts and stops itself.
    pub(crate) fn behind(url: &str) -> Self {
        let env = Env::new();
        env.uses(url);
        Self {
            env,
            server: None,
            is_network: true,
        }
    }

    fn on(server: Kind) -> Self {
        let stage = Self::behind(&server.board());
        Self {
            server: Some(server),
            ..stage
        }
    }

    /// Returns the URL of the board as a JSON text.
    pub(crate) fn url(&self) -> Value {
        let settings = self.env.json("config --json");
        let mut settings = settings.as_array().unwrap().iter();
        let url = settings.find(|it| it["key"] == "url").unwrap();
        url["value"].clone()
    }

    pub(crate) fn is_network(&self) -> bool {
        self.is_network
    }

    pub(crate) fn redis_server(&self) -> Option<&Server> {
        match &self.server {
            Some(Kind::Redis(server)) => Some(server),
            Some(Kind::ZooKeeper(_) | Kind::Ensemble(_)) | None => None,
        }
    }

    pub(crate) fn zookeeper_server(&mut self) -> Option<&mut ZooKeeper> {
        match &mut self.server {
            Some(Kind::ZooKeeper(server)) => Some(server),
            Some(Kind::Redis(_) | Kind::Ensemble(_)) | None => None,
        }
    }

    pub(crate) fn zookeeper_board(&self) -> Option<&ZooKeeper> {
        match &self.server {
            Some(Kind::ZooKeeper(server)) => Some(server),
            Some(Kind::Redis(_) | Kind::Ensemble(_)) | None => None,
        }
    }

    pub(crate) fn zookeeper_ensemble(&mut self) -> Option<&mut Ensemble> {
        match &mut self.server {
            Some(Kind::Ensemble(servers)) => Some(servers),
            Some(Kind::Redis(_) | Kind::ZooKeeper(_)) | None => None,
        }
    }

    /// Starts a proxy before the server, and returns the board's URL through it.
    pub(crate) fn through_proxy(&self) -> (String, Proxy) {
        self.server.as_ref().expect("a server").through_proxy()
    }

    pub(crate) fn stop_server(&mut self) {
        self.server.as_mut().expect("a server").stop();
    }

    /// Restarts the server with its data on disk.
    pub(crate) fn start_server(&mut self) {
        self.server.as_mut().expect("a server").start_again();
    }

    /// Separates the environment from the server, so that the server can be stopped meanwhile.
    pub(crate) fn apart(self) -> (Env, Option<Kind>) {
        (self.env, self.server)
    }

    /// Prepares a conductor that may run any posted command.
    pub(crate) fn conduct(&self, words: &[&str]) -> Invocation {
        let allow = if self.is_network() {
            &["--allow-any"][..]
        } else {
            &[]
        };
        self.env.jobboard(&[&["conduct"], allow, words].concat())
    }

    /// Starts a conductor, and waits until it works.
    pub(crate) fn start(&self, words: &[&str]) -> Running {
        let running = self.conduct(words).spawn();
        self.says(&running, "conducting");
        running
    }

    /// Waits until a conductor has logged an event.
    pub(crate) fn says(&self, running: &Running, event: &str) {
        wait_until(event, || running.stderr().contains(event));
    }

    /// Posts a job that runs a shell script in the current directory.
    pub(crate) fn post(&self, name: &str, script: &str) -> String {
        self.post_with(name, script, &[])
    }

    pub(crate) fn post_with(&self, name: &str, script: &str, words: &[&str]) -> String {
        let command = ["--", "sh", "-c", script];
        let post = [&["post", name], words, &command].concat();
        self.env.run(post).posted()
    }

    pub(crate) fn post_many(&self, count: usize, script: &str) -> Vec<String> {
        let line = json!({"name": "many", "details": {"command": ["sh", "-c", script]}});
        let lines = format!("{line}\n").repeat(count);
        let posted = self.env.jobboard("post --from -").stdin(lines).run();
        posted.succeeded().lines().map(str::to_owned).collect()
    }

    /// Returns the lines of the file `log`, which jobs write.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.env.file("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until the file `log` has this many lines.
    pub(crate) fn logged(&self, lines: usize) {
        wait_until("the jobs have run", || self.log().len() >= lines);
    }
}

pub(crate) fn set_mode(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Creates a test of every promise on every kind of board.
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

/// Creates a test of every promise that does not depend on the board: on one kind in turn, and on all kinds in a full run.
macro_rules! on_one_board {
    ($($promise:ident),* $(,)?) => {
        mod in_turn {
            $(
                #[test]
                fn $promise() {
                    crate::conduct::Stage::in_turn(stringify!($promise), super::$promise);
                }
            )*
        }
    };
}
pub(crate) use on_one_board;
