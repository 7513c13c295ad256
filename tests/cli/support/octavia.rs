//! A real Octavia as a peer: it posts flows, and runs them.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
};

use serde_json::{Value, json};

use super::{env::SOON, needs::is_there};

/// Octavia's own code, which performs requests in sequence and reports events.
pub(crate) struct Octavia {
    process: Child,
    stdin: ChildStdin,
    lines: Receiver<Value>,
    /// Events received while waiting for an answer.
    heard: Vec<Value>,
}

impl Octavia {
    /// Starts Octavia with these settings: the place of its configuration, and its contents.
    pub(crate) fn with(settings: &Value) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = root.join("target/octavia-venv/bin/python");
        if !is_there("Octavia", python.exists()) {
            return None;
        }
        let mut process = Command::new(python)
            .args(["-I", "-B"])
            .arg(root.join("tests/cli/support/octavia"))
            .arg(settings.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let report = serde_json::from_str(&line)
                    .unwrap_or(json!({"event": "printed", "text": line}));
                if sender.send(report).is_err() {
                    break;
                }
            }
        });
        Some(Self {
            stdin: process.stdin.take().unwrap(),
            lines,
            heard: Vec::new(),
            process,
        })
    }

    /// Sends a request that must succeed.
    pub(crate) fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.stdin, "{request}").unwrap();
        loop {
            let line = self.line(request);
            if let Some(answer) = line.get("answer") {
                return answer.clone();
            }
            assert!(line.get("error").is_none(), "{request}: {line}");
            self.heard.push(line);
        }
    }

    /// Waits for an event.
    pub(crate) fn wait_for(&mut self, what: &str, is_meant: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Some(at) = self.heard.iter().position(&is_meant) {
                return self.heard.remove(at);
            }
            let line = self.line(&json!(what));
            self.heard.push(line);
        }
    }

    fn line(&self, what: &Value) -> Value {
        let line = self.lines.recv_timeout(SOON);
        line.unwrap_or_else(|error| panic!("{what}: {error}, after {:?}", self.heard))
    }
}

impl Drop for Octavia {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
