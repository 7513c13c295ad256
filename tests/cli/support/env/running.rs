//! A run of the program: while it lasts, and how it ended.

use std::{
    fs,
    io::{Read, Write},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, ChildStdin, Command},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use serde_json::Value;

use super::{normal::normalised, wait_until};
use crate::support::schema;

/// A process that is killed when the test is done with it.
pub(crate) struct Running {
    child: Child,
    stdout: Collector,
    stderr: Collector,
    root: PathBuf,
    what: String,
    /// Of the program itself, if it is that.
    arguments: Option<Vec<String>>,
}

impl Running {
    pub(super) fn start(command: &mut Command, root: PathBuf) -> Self {
        let mut child = command.spawn().unwrap();
        // Else our copy of a pipe that a test gave it would stay open.
        let what = format!("{command:?}");
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::null());
        let arguments = command
            .get_args()
            .map(|it| it.to_string_lossy().into_owned());
        let is_ours = command.get_program() == env!("CARGO_BIN_EXE_jobboard");
        Self {
            arguments: is_ours.then(|| arguments.collect()),
            stdout: Collector::new(child.stdout.take()),
            stderr: Collector::new(child.stderr.take()),
            child,
            root,
            what,
        }
    }

    /// Writes to it, as fast as it reads, and closes its input.
    pub(super) fn feed(mut self, bytes: Vec<u8>) -> Self {
        let mut stdin = self.stdin();
        // Whether it reads to the end is its own affair.
        thread::spawn(move || stdin.write_all(&bytes).is_ok());
        self
    }

    /// Takes its input, which ends when this is dropped.
    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Returns what it has printed so far.
    pub(crate) fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Waits until it has printed so many lines, and returns them.
    pub(crate) fn prints(&self, count: usize) -> Vec<String> {
        wait_until(&format!("it prints {count} lines"), || {
            self.stdout().matches('\n').count() >= count
        });
        let text = self.stdout();
        let end = text.rfind('\n').map_or(0, |end| end + 1);
        text[..end].lines().map(str::to_owned).collect()
    }

    /// Waits until it has said something on its standard error.
    pub(crate) fn says(&self, text: &str) {
        wait_until(&format!("it says {text:?}"), || {
            self.stderr.text().contains(text)
        });
    }

    /// Returns the number of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns what it has said so far beside its data.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.text()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until it watches a board for changes.
    pub(crate) fn listens(&mut self) {
        self.opens("inotify");
    }

    /// Waits until it has a file of that kind open.
    pub(crate) fn opens(&mut self, kind: &str) {
        let folder = format!("/proc/{}/fd", self.child.id());
        wait_until(&format!("it has {kind} open"), || {
            let files = fs::read_dir(&folder).into_iter().flatten().flatten();
            let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
            targets.any(|target| target.to_string_lossy().contains(kind))
        });
        assert!(!self.has_ended(), "it ended instead: {}", self.what);
    }

    /// Kills it, without any chance to tidy up.
    pub(crate) fn kill(mut self) -> Outcome {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.ended()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) -> Outcome {
        let what = self.what.clone();
        wait_until(&format!("the end of {what}"), || self.has_ended());
        let status = self.child.wait().unwrap();
        let (stdout, stderr) = (self.stdout.finish(), self.stderr.finish());
        if let Some(arguments) = &self.arguments {
            schema::judge(arguments, &stdout, &stderr);
        }
        Outcome {
            code: status
                .code()
                .unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
            stdout,
            stderr,
            root: self.root.clone(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a stream into memory while the process runs.
struct Collector {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Collector {
    fn new(stream: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::default();
        let reader = stream.map(|stream| thread::spawn(collect(stream, Arc::clone(&bytes))));
        Self { bytes, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    fn finish(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.text()
    }
}

fn collect(mut stream: impl Read, bytes: Arc<Mutex<Vec<u8>>>) -> impl FnOnce() {
    move || {
        let mut buffer = [0; 65536];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            bytes.lock().unwrap().extend_from_slice(&buffer[..length]);
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The exit code; of one that was killed, 128 and the number of the signal.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    root: PathBuf,
}

impl Outcome {
    /// Requires that it succeeded, and returns what it printed.
    pub(crate) fn succeeded(&self) -> &str {
        assert_eq!(self.code, 0, "{self:?}");
        &self.stdout
    }

    /// Requires that it ended with a code and printed no data, and returns what it complained of.
    pub(crate) fn failed(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        &self.stderr
    }

    /// Returns the JSON that it printed.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.succeeded()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the JSON values that it printed, however it ended.
    pub(crate) fn values(&self) -> Vec<Value> {
        let values = serde_json::Deserializer::from_str(&self.stdout).into_iter();
        values
            .collect::<Result<_, _>>()
            .unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the one error that it told as JSON.
    pub(crate) fn error(&self) -> Value {
        let told: Value =
            serde_json::from_str(&self.stderr).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert_eq!(told["error"]["code"], self.code, "{self:?}");
        told["error"].clone()
    }

    /// Returns the uuid of the job that it posted.
    pub(crate) fn posted(&self) -> String {
        let uuid = self.succeeded().trim_end();
        assert!(uuid::Uuid::try_parse(uuid).is_ok(), "{self:?}");
        uuid.to_owned()
    }

    /// Returns all of it, without what differs from run to run.
    pub(crate) fn normalised(&self) -> String {
        normalised(self, &self.root)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.normalised())
    }
}
