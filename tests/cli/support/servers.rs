//! Servers, and Python TaskFlow as their peer: each for one test, stopped with it.
//!
//! Without one of them, a test gets `None` and ends early; in CI it fails.

mod authority;
mod host;
pub(crate) mod zookeeper;

use std::{
    env,
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::LazyLock,
    time::Duration,
};

use rustix::process::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use self::{
    authority::{Authority, Identity},
    host::{Host, Location},
    zookeeper::ZooKeeper,
};
use super::{
    env::{Env, wait_until},
    needs::{has, is_there, may_start_servers},
};

/// A separate Redis server, or a Sentinel.
pub(crate) struct Server {
    directory: TempDir,
    port: u16,
    arguments: Vec<String>,
    process: Child,
}

impl Server {
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(arguments: &[&str]) -> Option<Self> {
        Self::launch(|port, _| {
            let port = port.to_string();
            let own = ["--port", &port, "--save", ""];
            // Before Redis 7, the command is always enabled.
            let debug: &[_] = match is_old_redis() {
                true => &[],
                false => &["--enable-debug-command", "yes"],
            };
            let all = own.iter().chain(debug).chain(arguments);
            all.map(|argument| (*argument).to_owned()).collect()
        })
    }

    /// Starts one that syncs every change to disk before it replies.
    pub(crate) fn start_keeping_data() -> Option<Self> {
        Self::start_with(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    /// Starts one that requires TLS with client certificates of this authority.
    pub(crate) fn start_tls(identity: &Identity, authority: &Authority) -> Option<Self> {
        let ca = authority.ca();
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        Self::launch(|port, _| {
            let port = port.to_string();
            let own = ["--port", "0", "--save", "", "--tls-port", &port];
            let mut arguments = own.map(str::to_owned).to_vec();
            for (name, file) in [
                ("--tls-cert-file", &identity.cert),
                ("--tls-key-file", &identity.key),
                ("--tls-ca-cert-file", &ca),
            ] {
                arguments.extend([name.to_owned(), path(file)]);
            }
            arguments
        })
    }

    /// Starts a Sentinel that watches a server as `mymaster`. A failover needs the agreement of `quorum` Sentinels.
    pub(crate) fn start_sentinel(master: &Self, quorum: usize) -> Option<Self> {
        // A quorum must not depose a server that is only slow.
        let patience = if quorum == 1 { 300 } else { 3000 };
        Self::launch(|port, directory| {
            let file = directory.join("sentinel.conf");
            let text = format!(
                "port {port}\nsentinel monitor mymaster 127.0.0.1 {} {quorum}\n\
                 sentinel down-after-milliseconds mymaster {patience}\n\
                 sentinel failover-timeout mymaster 2000\n",
                master.port
            );
            fs::write(&file, text).unwrap();
            vec![file.to_str().unwrap().to_owned(), "--sentinel".to_owned()]
        })
    }

    fn launch(arguments: impl Fn(u16, &Path) -> Vec<String>) -> Option<Self> {
        if !may_start_servers() || !has("redis-server") || !has("redis-cli") {
            return None;
        }
        // If another test takes the port first, the server exits.
        (0..20).find_map(|_| {
            let directory = tempfile::tempdir().unwrap();
            let port = free_port();
            let arguments = arguments(port, directory.path());
            let mut server = Self {
                process: spawn(directory.path(), &arguments),
                directory,
                port,
                arguments,
            };
            server.listens().then_some(server)
        })
    }

    /// Waits until it listens; `false` if it exits instead.
    fn listens(&mut self) -> bool {
        let mut has_ended = false;
        wait_until("the server listens", || {
            has_ended = self.process.try_wait().unwrap().is_some();
            has_ended || self.answers()
        });
        !has_ended
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Restarts it on the same port with its data on disk.
    pub(crate) fn start_again(&mut self) {
        self.process = spawn(self.directory.path(), &self.arguments);
        assert!(self.listens(), "the port is still free");
    }

    fn answers(&self) -> bool {
        let answer = self.cli(&["PING"]).output().unwrap();
        answer.stdout == b"PONG\n"
    }

    /// Prepares `redis-cli` with all rights.
    fn cli(&self, words: &[&str]) -> Command {
        let mut command = Command::new("redis-cli");
        command
            .arg("-s")
            .arg(self.directory.path().join("redis.sock"))
            .args(words);
        command
    }

    /// Returns its address as errors show it.
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL of a board on this server; `tail` follows the port.
    pub(crate) fn url(&self, tail: &str) -> String {
        format!("redis://{}{tail}", self.host())
    }

    /// Returns TaskFlow's configuration for a namespace.
    fn conf(&self, namespace: &str) -> Value {
        json!({
            "board": "redis", "host": "127.0.0.1", "port": self.port, "namespace": namespace,
        })
    }

    /// Starts a server with these arguments, as the board of a new environment.
    pub(crate) fn with_env(arguments: &[&str]) -> Option<(Env, Self)> {
        let (server, env) = (Self::start_with(arguments)?, Env::new());
        server.serves(&env, "");
        Some((env, server))
    }

    /// Makes this the board of a test's runs; `tail` follows the port in its URL.
    pub(crate) fn serves(&self, env: &Env, tail: &str) {
        env.uses(&self.url(tail));
    }

    /// Runs a command, and returns its reply as printed by `redis-cli`.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let output = self.cli(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        // Stored data may be no text.
        let answer: String = output.stdout.iter().map(|byte| char::from(*byte)).collect();
        answer.trim_end().to_owned()
    }

    /// Starts a command without waiting for its reply.
    pub(crate) fn start_run(&self, words: &[&str]) -> Child {
        self.cli(words).stdout(Stdio::null()).spawn().unwrap()
    }

    /// Runs a command with a password.
    pub(crate) fn run_as(&self, password: &str, words: &[&str]) {
        let mut command = self.cli(words);
        let output = command.env("REDISCLI_AUTH", password).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }

    /// Whether it answers without a delay.
    pub(crate) fn answers_at_once(&self) -> bool {
        let mut stream = UnixStream::connect(self.directory.path().join("redis.sock")).unwrap();
        let patience = Duration::from_millis(200);
        stream.set_read_timeout(Some(patience)).unwrap();
        stream.write_all(b"PING\r\n").unwrap();
        stream.read(&mut [0; 64]).is_ok_and(|length| length > 0)
    }

    /// Runs a command with bytes as its last word.
    pub(crate) fn run_with(&self, words: &[&str], bytes: &[u8]) {
        let mut process = self
            .cli(&[&["-x"], words].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        process.stdin.take().unwrap().write_all(bytes).unwrap();
        assert!(process.wait().unwrap().success(), "{words:?}");
    }

    /// Returns all keys with their bytes, without expiries.
    pub(crate) fn everything(&self) -> Vec<(String, String)> {
        let keys = self.run(&["--scan"]);
        let mut keys: Vec<_> = keys.lines().map(str::to_owned).collect();
        keys.sort();
        // The server may name a key twice while its table grows or shrinks.
        keys.dedup();
        keys.into_iter()
            .map(|key| (key.clone(), self.run(&["DUMP", &key])))
            .collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns `redis-server`, or the program that a variable names instead.
fn redis() -> OsString {
    env::var_os("JOBBOARD_REDIS_SERVER").unwrap_or_else(|| "redis-server".into())
}

/// Whether the server is older than Redis 7.
fn is_old_redis() -> bool {
    static IS_OLD: LazyLock<bool> = LazyLock::new(|| {
        let version = Command::new(redis()).arg("--version").output().unwrap();
        let version = String::from_utf8_lossy(&version.stdout).into_owned();
        ["v=5.", "v=6."].iter().any(|it| version.contains(it))
    });
    *IS_OLD
}

fn spawn(directory: &Path, arguments: &[String]) -> Child {
    Command::new(redis())
        .args(arguments)
        .args(["--bind", "127.0.0.1", "--daemonize", "no"])
        .args(["--unixsocket", "redis.sock", "--dir"])
        .arg(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Python TaskFlow with a board on a server; it performs requests in sequence.
pub(crate) struct Peer {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    pub(crate) fn start(server: &Server, namespace: &str) -> Option<Self> {
        Self::with(&server.conf(namespace))
    }

    pub(crate) fn on(server: &impl Host) -> Option<Self> {
        Self::with(&server.conf())
    }

    /// Starts one for the board of a TaskFlow configuration.
    pub(crate) fn with(conf: &Value) -> Option<Self> {
        // Isolated, because next to the script Python would find it under the name of the library.
        let mut process = python()?
            .arg("-I")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/support/taskflow.py"))
            .arg(conf.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Self {
            stdin: process.stdin.take().unwrap(),
            stdout: BufReader::new(process.stdout.take().unwrap()),
            process,
        })
    }

    /// Sends a request; `Err` is the class and text of an error.
    pub(crate) fn ask(&mut self, request: &Value) -> Result<Value, String> {
        let answer = self.answers(request);
        answer.unwrap_or_else(|| panic!("it died instead: {request}"))
    }

    /// Sends a request to a peer that may die without a reply.
    pub(crate) fn answers(&mut self, request: &Value) -> Option<Result<Value, String>> {
        writeln!(self.stdin, "{request}").ok()?;
        let mut line = String::new();
        self.stdout.read_line(&mut line).ok()?;
        let answer: Value = serde_json::from_str(&line).ok()?;
        Some(match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["answer"].clone()),
        })
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    /// Sends a request that must succeed.
    pub(crate) fn request(&mut self, request: &Value) -> Value {
        self.ask(request)
            .unwrap_or_else(|error| panic!("{request}: {error}"))
    }
}

/// Returns the Python with TaskFlow, if installed.
pub(crate) fn python() -> Option<Command> {
    let python = env::var_os("JOBBOARD_TEST_PYTHON").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/taskflow-venv/bin/python"),
        PathBuf::from,
    );
    is_there("Python TaskFlow", python.exists()).then(|| Command::new(python))
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
