//! Real Redis servers, one per test, stopped with it.
//!
//! Where `redis-server` or `openssl` is missing, a test gets `None` and ends early; in CI it fails.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use redis::{Client, Connection, ConnectionAddr, FromRedisValue, IntoConnectionInfo, RedisResult};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::board::testing::needs::{has, may_start_servers};
pub(super) use crate::board::testing::{
    Authority, Identity, Proxy, ProxyMode, impostor, wait_until,
};
use crate::{
    board::{
        redis::Redis,
        url::{BoardUrl, redis::RedisUrl},
        wire::posting::Limit,
    },
    job::HISTORY,
};

pub(super) fn redis_url(text: &str) -> RedisUrl {
    match text.parse() {
        Ok(BoardUrl::Redis(url)) => *url,
        other => panic!("{text}: {other:?}"),
    }
}

pub(super) struct Server {
    directory: TempDir,
    port: u16,
    arguments: Vec<String>,
    process: Child,
    admin: Mutex<Connection>,
    /// The directory of a Sentinel's file, which it keeps writing.
    extra: Option<TempDir>,
}

impl Server {
    pub(super) fn start(arguments: &[&str]) -> Option<Self> {
        Self::launch(|port| {
            let own = ["--port", &port.to_string(), "--save", ""].map(str::to_owned);
            own.into_iter()
                .chain(arguments.iter().map(|argument| (*argument).to_owned()))
                .collect()
        })
    }

    pub(super) fn start_tls(identity: &Identity, arguments: &[&str]) -> Option<Self> {
        let (cert, key) = (identity.cert.to_str()?, identity.key.to_str()?);
        Self::launch(|port| {
            let port = port.to_string();
            let own = ["--port", "0", "--tls-port", &port, "--save", ""];
            let files = ["--tls-cert-file", cert, "--tls-key-file", key];
            own.iter()
                .chain(&files)
                .chain(arguments)
                .map(|argument| (*argument).to_owned())
                .collect()
        })
    }

    /// Starts a Sentinel that watches the master at a port under the name `mymaster`.
    ///
    /// `PORT` in the added lines stands for the Sentinel's own port.
    pub(super) fn start_sentinel(master: u16, lines: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("sentinel.conf");
        let mut server = Self::launch(|port| {
            let text = format!(
                "port PORT\nsentinel monitor mymaster 127.0.0.1 {master} 2\n\
                 sentinel down-after-milliseconds mymaster 500\n\
                 sentinel failover-timeout mymaster 3000\n{lines}\n"
            );
            fs::write(&file, text.replace("PORT", &port.to_string())).unwrap();
            vec![file.to_str().unwrap().to_owned(), "--sentinel".to_owned()]
        })?;
        server.extra = Some(directory);
        Some(server)
    }

    fn launch(arguments: impl Fn(u16) -> Vec<String>) -> Option<Self> {
        if !may_start_servers() || !has("redis-server") {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        // If another test takes the port first, the server exits.
        for _ in 0..20 {
            let port = free_port();
            let arguments = arguments(port);
            let mut process = spawn(directory.path(), &arguments);
            if let Some(admin) = greet(directory.path(), &mut process) {
                return Some(Self {
                    directory,
                    port,
                    arguments,
                    process,
                    admin: Mutex::new(admin),
                    extra: None,
                });
            }
        }
        panic!("redis-server does not start");
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.directory.path().join("redis.sock")
    }

    pub(super) fn url(&self, tail: &str) -> RedisUrl {
        redis_url(&format!("redis://127.0.0.1:{}{tail}", self.port))
    }

    pub(super) fn board(&self, tail: &str) -> Redis {
        let limit = Duration::from_secs(5);
        Redis::new(&self.url(tail), None, limit, Limit::USUAL, HISTORY)
    }

    pub(super) fn run<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        let mut admin = self.admin.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = command.query(&mut *admin);
        // A server that changes its role drops all connections.
        if answer.as_ref().is_err_and(|error| error.is_io_error()) {
            *admin = connect(self.directory.path()).unwrap();
            return command.query(&mut *admin).unwrap();
        }
        answer.unwrap()
    }

    pub(super) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(super) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    pub(super) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(super) fn start_again(&mut self) {
        let _ = fs::remove_file(self.socket());
        self.process = spawn(self.directory.path(), &self.arguments);
        let admin = greet(self.directory.path(), &mut self.process);
        self.admin = Mutex::new(admin.expect("the port is still free"));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn spawn(directory: &Path, arguments: &[String]) -> Child {
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    Command::new("redis-server")
        .args(arguments)
        .args(["--bind", "127.0.0.1", "--daemonize", "no", "--dir"])
        .arg(directory)
        .args(["--unixsocket", &path("redis.sock")])
        .args(["--logfile", &path("log")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn greet(directory: &Path, process: &mut Child) -> Option<Connection> {
    let mut connection = None;
    let mut has_ended = false;
    wait_until("the server listens", || {
        connection = connect(directory).ok();
        has_ended = process.try_wait().unwrap().is_some();
        connection.is_some() || has_ended
    });
    connection.filter(|_| !has_ended)
}

fn connect(directory: &Path) -> RedisResult<Connection> {
    let address = ConnectionAddr::Unix(directory.join("redis.sock"));
    Client::open(address.into_connection_info()?)?.get_connection()
}

/// A master, its replica, and three Sentinels that have found each other.
pub(super) struct Watched {
    pub(super) master: Server,
    pub(super) replica: Server,
    pub(super) sentinels: Vec<Server>,
}

impl Watched {
    pub(super) fn start() -> Option<Self> {
        let master = Server::start(&[])?;
        let port = master.port().to_string();
        let replica = Server::start(&["--replicaof", "127.0.0.1", &port])?;
        let sentinels: Option<Vec<_>> = (0..3)
            .map(|_| Server::start_sentinel(master.port(), ""))
            .collect();
        let sentinels = sentinels?;
        for sentinel in &sentinels {
            wait_until("the Sentinels know all", || {
                let facts: Vec<String> = sentinel.run(&["SENTINEL", "MASTER", "mymaster"]);
                let fact = |name: &str| {
                    let place = facts.iter().position(|fact| fact == name);
                    place.map(|place| facts[place + 1].as_str())
                };
                fact("num-slaves") == Some("1") && fact("num-other-sentinels") == Some("2")
            });
        }
        Some(Self {
            master,
            replica,
            sentinels,
        })
    }

    pub(super) fn hosts(&self) -> String {
        let hosts = self.sentinels.iter().map(Server::host);
        hosts.collect::<Vec<_>>().join(",")
    }
}
