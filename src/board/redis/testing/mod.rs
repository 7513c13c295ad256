//! Real servers for the tests of this board: each started for one test, and stopped with it.
//!
//! Where `redis-server` or `openssl` is missing, a test gets `None` and ends early; in CI it fails.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use redis::{Client, Connection, ConnectionAddr, FromRedisValue, IntoConnectionInfo, RedisResult};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::board::testing::needs::{has, may_start_servers};
pub(super) use crate::board::testing::{Authority, Identity, Mood, Proxy, impostor, wait_until};
use crate::board::url::{BoardUrl, redis::RedisUrl};

/// Returns the part of a URL that a [`Client`](super::link::Client) takes.
pub(super) fn redis_url(text: &str) -> RedisUrl {
    match text.parse() {
        Ok(BoardUrl::Redis(url)) => *url,
        other => panic!("{text}: {other:?}"),
    }
}

/// A server of a test's own.
pub(super) struct Server {
    folder: TempDir,
    port: u16,
    arguments: Vec<String>,
    process: Child,
    admin: Mutex<Connection>,
    /// Where a Sentinel has its file, to which it writes for as long as it runs.
    extra: Option<TempDir>,
}

impl Server {
    /// Starts a Redis server with these arguments, on a port and a socket of its own.
    pub(super) fn start(arguments: &[&str]) -> Option<Self> {
        Self::launch(|port| {
            let own = ["--port", &port.to_string(), "--save", ""].map(str::to_owned);
            own.into_iter()
                .chain(arguments.iter().map(|argument| (*argument).to_owned()))
                .collect()
        })
    }

    /// Starts a Redis server that speaks TLS on its port.
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
    /// `PORT` in the lines that are added to its file stands for its own port.
    pub(super) fn start_sentinel(master: u16, lines: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sentinel.conf");
        let mut server = Self::launch(|port| {
            let text = format!(
                "port PORT\nsentinel monitor mymaster 127.0.0.1 {master} 2\n\
                 sentinel down-after-milliseconds mymaster 500\n\
                 sentinel failover-timeout mymaster 3000\n{lines}\n"
            );
            fs::write(&file, text.replace("PORT", &port.to_string())).unwrap();
            vec![file.to_str().unwrap().to_owned(), "--sentinel".to_owned()]
        })?;
        server.extra = Some(folder);
        Some(server)
    }

    fn launch(arguments: impl Fn(u16) -> Vec<String>) -> Option<Self> {
        if !may_start_servers() || !has("redis-server") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        // Another test may take the port before the server does, which then ends.
        for _ in 0..20 {
            let port = free_port();
            let arguments = arguments(port);
            let mut process = spawn(folder.path(), &arguments);
            if let Some(admin) = greet(folder.path(), &mut process) {
                return Some(Self {
                    folder,
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

    /// Returns the port on 127.0.0.1 on which the server listens.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns how errors call the server.
    pub(super) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the socket on which the server listens besides its port, without TLS.
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// Returns the URL of a board on this server, with something behind its port.
    pub(super) fn url(&self, tail: &str) -> RedisUrl {
        redis_url(&format!("redis://127.0.0.1:{}{tail}", self.port))
    }

    /// Runs a command as the user who may do everything.
    pub(super) fn run<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        let mut admin = self.admin.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = command.query(&mut *admin);
        // A server that becomes a master or a replica hangs up on everybody.
        if answer.as_ref().is_err_and(|error| error.is_io_error()) {
            *admin = connect(self.folder.path()).unwrap();
            return command.query(&mut *admin).unwrap();
        }
        answer.unwrap()
    }

    /// Lets the server stand still, as if the machine hung.
    pub(super) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub(super) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Ends the server at once.
    pub(super) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts a server that was ended again, where it was.
    pub(super) fn start_again(&mut self) {
        let _ = fs::remove_file(self.socket());
        self.process = spawn(self.folder.path(), &self.arguments);
        let admin = greet(self.folder.path(), &mut self.process);
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

fn spawn(folder: &Path, arguments: &[String]) -> Child {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    Command::new("redis-server")
        .args(arguments)
        .args(["--bind", "127.0.0.1", "--daemonize", "no", "--dir"])
        .arg(folder)
        .args(["--unixsocket", &path("redis.sock")])
        .args(["--logfile", &path("log")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until a server listens; `None` if it ends instead.
fn greet(folder: &Path, process: &mut Child) -> Option<Connection> {
    let mut connection = None;
    let mut has_ended = false;
    wait_until("the server listens", || {
        connection = connect(folder).ok();
        has_ended = process.try_wait().unwrap().is_some();
        connection.is_some() || has_ended
    });
    connection.filter(|_| !has_ended)
}

fn connect(folder: &Path) -> RedisResult<Connection> {
    let address = ConnectionAddr::Unix(folder.join("redis.sock"));
    Client::open(address.into_connection_info()?)?.get_connection()
}

/// A master, its replica, and three Sentinels that have found each other.
pub(super) struct Watched {
    pub(super) master: Server,
    pub(super) replica: Server,
    pub(super) sentinels: Vec<Server>,
}

impl Watched {
    /// Starts all five, and waits until a failover could begin.
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

    /// Returns the Sentinels as they stand in a URL.
    pub(super) fn hosts(&self) -> String {
        let hosts = self.sentinels.iter().map(Server::host);
        hosts.collect::<Vec<_>>().join(",")
    }
}
