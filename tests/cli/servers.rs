//! Redis servers, and Python TaskFlow as a peer on them: each for one test, and stopped with it.
//!
//! Where one of them is missing, a test gets `None` and ends early; in CI it fails.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::env::{Env, wait_until};

/// Says whether a test can do with what is there; in CI nothing may be missing.
fn is_there(what: &str, is_there: bool) -> bool {
    let is_set = |name: &str, value: &str| env::var(name).is_ok_and(|text| text == value);
    let is_needed = is_set("CI", "true") || is_set("JOBBOARD_REQUIRE_SERVERS", "1");
    assert!(is_there || !is_needed, "{what} is missing");
    if !is_there {
        eprintln!("skipped: {what} is missing");
    }
    is_there
}

fn has(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).any(|folder| folder.join(program).exists());
    is_there(program, found)
}

/// A Redis server of a test's own.
pub(crate) struct Server {
    folder: TempDir,
    port: u16,
    process: Child,
}

impl Server {
    /// Starts one on a free port of 127.0.0.1.
    pub(crate) fn start() -> Option<Self> {
        if !has("redis-server") || !has("redis-cli") {
            return None;
        }
        // Another test may take the port before the server does, which then ends.
        (0..20).find_map(|_| Self::launch())
    }

    fn launch() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let process = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .args(["--enable-debug-command", "yes", "--daemonize", "no"])
            .args(["--unixsocket", "redis.sock", "--dir"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Self {
            folder,
            port,
            process,
        };
        let mut has_ended = false;
        wait_until("the server listens", || {
            has_ended = server.process.try_wait().unwrap().is_some();
            has_ended || server.answers()
        });
        (!has_ended).then_some(server)
    }

    fn answers(&self) -> bool {
        let answer = self.cli(&["PING"]).output().unwrap();
        answer.stdout == b"PONG\n"
    }

    /// Prepares a call of `redis-cli`, as the user who may do everything.
    fn cli(&self, words: &[&str]) -> Command {
        let mut command = Command::new("redis-cli");
        command
            .arg("-s")
            .arg(self.folder.path().join("redis.sock"))
            .args(words);
        command
    }

    /// Returns the host and the port, as errors call the server.
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the URL of a board on this server, with something behind the port.
    pub(crate) fn url(&self, tail: &str) -> String {
        format!("redis://{}{tail}", self.host())
    }

    /// Gives the runs of a test this board, with something behind the port in its URL.
    pub(crate) fn serves(&self, env: &Env, tail: &str) {
        let url = self.url(tail);
        env.configure(&format!("default = \"a\"\n[board.a]\nurl = \"{url}\"\n"));
    }

    /// Runs a command, and returns its answer as `redis-cli` prints it.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let output = self.cli(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        // What is stored need not be text.
        let answer: String = output.stdout.iter().map(|byte| char::from(*byte)).collect();
        answer.trim_end().to_owned()
    }

    /// Runs a command whose last word is these bytes.
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

    /// Returns all keys and what is under each, byte by byte, however long it is to live.
    pub(crate) fn everything(&self) -> Vec<(String, String)> {
        let keys = self.run(&["--scan"]);
        let mut keys: Vec<_> = keys.lines().map(str::to_owned).collect();
        keys.sort();
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

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Python TaskFlow with a board on a server, which does one request after the other.
pub(crate) struct Peer {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts one for the board of this namespace.
    pub(crate) fn start(server: &Server, namespace: &str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = env::var_os("JOBBOARD_TEST_PYTHON").map_or_else(
            || root.join("target/taskflow-venv/bin/python"),
            PathBuf::from,
        );
        if !is_there("Python TaskFlow", python.exists()) {
            return None;
        }
        // Isolated, because next to the script Python would find it under the name of the library.
        let mut process = Command::new(python)
            .arg("-I")
            .arg(root.join("tests/cli/taskflow.py"))
            .args([&server.port.to_string(), namespace])
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

    /// Has it do something, and returns its answer; `Err` is the class of an error and its words.
    pub(crate) fn ask(&mut self, request: &Value) -> Result<Value, String> {
        writeln!(self.stdin, "{request}").unwrap();
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let answer: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {request}"));
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["answer"].clone()),
        }
    }

    /// Has it do something that it must not refuse.
    pub(crate) fn told(&mut self, request: &Value) -> Value {
        self.ask(request)
            .unwrap_or_else(|error| panic!("{request}: {error}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
