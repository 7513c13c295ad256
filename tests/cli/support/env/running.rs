//! A running program, and its result.

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

use super::{column, normal::normalised, wait_until};
use crate::support::schema;

/// A process that is killed at the end of the test.
pub(crate) struct Running {
    child: Child,
    stdout: Collector,
    stderr: Collector,
    root: PathBuf,
    what: String,
    /// The arguments, if it is the program itself.
    arguments: Option<Vec<String>>,
}

impl Running {
    pub(super) fn start(command: &mut Command, root: PathBuf) -> Self {
        let mut child = command.spawn().unwrap();
        // The command would keep a copy of the test's pipe open.
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

    /// Writes all input, then closes it.
    pub(super) fn feed(mut self, bytes: Vec<u8>) -> Self {
        let mut stdin = self.stdin();
        // It may exit before reading everything.
        thread::spawn(move || stdin.write_all(&bytes).is_ok());
        self
    }

    /// Takes its standard input, which closes on drop.
    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    pub(crate) fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Waits until it has printed this many lines, and returns them.
    pub(crate) fn prints(&self, count: usize) -> Vec<String> {
        wait_until(&format!("it prints {count} lines"), || {
            self.stdout().matches('\n').count() >= count
        });
        let text = self.stdout();
        let end = text.rfind('\n').map_or(0, |end| end + 1);
        text[..end].lines().map(str::to_owned).collect()
    }

    /// Waits for a text on standard error.
    pub(crate) fn says(&self, text: &str) {
        wait_until(&format!("it says {text:?}"), || {
            self.stderr.text().contains(text)
        });
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.text()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until it subscribes to an embedded board.
    pub(crate) fn listens(&mut self) {
        self.opens("inotify");
    }

    /// Waits until it has a file of that kind open.
    pub(crate) fn opens(&mut self, kind: &str) {
        let directory = format!("/proc/{}/fd", self.child.id());
        wait_until(&format!("it has {kind} open"), || {
            let files = fs::read_dir(&directory).into_iter().flatten().flatten();
            let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
            targets.any(|target| target.to_string_lossy().contains(kind))
        });
        assert!(!self.has_ended(), "it ended instead: {}", self.what);
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(mut self) -> Outcome {
        // It may have ended already.
        let _ = self.child.kill();
        self.ended()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Ends it with SIGTERM, and requires success.
    #[track_caller]
    pub(crate) fn stops(self) {
        self.signal(rustix::process::Signal::TERM);
        self.ended().succeeded();
    }

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
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a stream while the process runs.
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

#[derive(Debug)]
pub(crate) struct Outcome {
    /// The exit code, or 128 plus the signal number.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    root: PathBuf,
}

impl Outcome {
    /// Requires success, and returns standard output.
    #[track_caller]
    pub(crate) fn succeeded(&self) -> &str {
        assert_eq!(self.code, 0, "{self:?}");
        &self.stdout
    }

    /// Requires an exit code and empty standard output, and returns standard error.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        &self.stderr
    }

    /// Requires an exit code, no standard output, and a text on standard error.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, text: impl AsRef<str>) {
        assert!(self.failed(code).contains(text.as_ref()), "{self}");
    }

    /// Requires success and a text on standard output.
    #[track_caller]
    pub(crate) fn prints(&self, text: impl AsRef<str>) {
        assert!(self.succeeded().contains(text.as_ref()), "{self}");
    }

    #[track_caller]
    pub(crate) fn has_code(&self, code: i32) {
        assert_eq!(self.code, code, "{self}");
    }

    /// Requires an exit code and a text on standard error, with any standard output.
    #[track_caller]
    pub(crate) fn exits(&self, code: i32, text: impl AsRef<str>) {
        self.has_code(code);
        self.warns(text);
    }

    /// Requires a text on standard output, with any exit code.
    #[track_caller]
    pub(crate) fn shows(&self, text: impl AsRef<str>) {
        assert!(self.stdout.contains(text.as_ref()), "{self}");
    }

    /// Requires a text on standard error, with any exit code.
    #[track_caller]
    pub(crate) fn warns(&self, text: impl AsRef<str>) {
        assert!(self.stderr.contains(text.as_ref()), "{self}");
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        self.succeeded();
        self.value()
    }

    /// Returns the single printed JSON value, with any exit code.
    #[track_caller]
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the printed JSON values, with any exit code.
    #[track_caller]
    pub(crate) fn values(&self) -> Vec<Value> {
        let values = serde_json::Deserializer::from_str(&self.stdout).into_iter();
        values
            .collect::<Result<_, _>>()
            .unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Requires success, and returns a member of each printed JSON object as text.
    #[track_caller]
    pub(crate) fn each(&self, member: &str) -> Vec<String> {
        self.succeeded();
        let values = self.values().into_iter().flat_map(|value| match value {
            Value::Array(values) => values,
            value => vec![value],
        });
        column(&values.collect::<Vec<_>>(), member)
    }

    /// Returns the single JSON error.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        let report: Value =
            serde_json::from_str(&self.stderr).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert_eq!(report["error"]["code"], self.code, "{self:?}");
        report["error"].clone()
    }

    /// Returns the uuid of the posted job.
    #[track_caller]
    pub(crate) fn posted(&self) -> String {
        let uuid = self.succeeded().trim_end();
        assert!(uuid::Uuid::try_parse(uuid).is_ok(), "{self:?}");
        uuid.to_owned()
    }

    pub(crate) fn normalised(&self) -> String {
        normalised(self, &self.root)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.normalised())
    }
}
