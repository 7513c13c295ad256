//! The environment of a test: a home, a configuration, a board, and runs of the program.
//!
//! `normal` makes runs comparable for snapshots.

mod normal;
mod running;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) use self::running::{Outcome, Running};

/// The time limit for anything immediate.
pub(crate) const SOON: Duration = Duration::from_secs(90);

/// A user's environment for one test.
pub(crate) struct Env {
    root: TempDir,
}

impl Env {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["home", "state", "config", "work"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Copies the default board into a new environment.
    pub(crate) fn copy(&self) -> Self {
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        (self.database())
            .query_row(checkpoint, [], |_| Ok(()))
            .unwrap();
        let (copy, directory) = (Self::new(), self.root().join("state/jobboard"));
        let there = copy.root().join("state/jobboard");
        fs::create_dir(&there).unwrap();
        fs::set_permissions(&there, fs::metadata(directory).unwrap().permissions()).unwrap();
        fs::copy(self.board(), copy.board()).unwrap();
        copy
    }

    /// Returns a file in the working directory of the runs.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.root().join("work").join(name)
    }

    pub(crate) fn board(&self) -> PathBuf {
        self.root().join("state/jobboard/board.db")
    }

    pub(crate) fn configure(&self, toml: &str) -> PathBuf {
        let directory = self.root().join("config/jobboard");
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("config.toml");
        fs::write(&path, toml).unwrap();
        path
    }

    /// Makes this the default board of the runs.
    pub(crate) fn uses(&self, url: &str) {
        self.configure(&format!("default = \"a\"\n[board.a]\nurl = \"{url}\"\n"));
    }

    /// Prepares a run of the program; in one line, single quotes keep spaces.
    pub(crate) fn jobboard(&self, words: &(impl Words + ?Sized)) -> Invocation {
        self.program(Path::new(env!("CARGO_BIN_EXE_jobboard")), &words.words())
    }

    /// Prepares a run of any program in the same environment.
    pub(crate) fn program(&self, program: &Path, arguments: &[&str]) -> Invocation {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("JOBBOARD_") {
                command.env_remove(name);
            }
        }
        command
            .args(arguments)
            .env("HOME", self.root().join("home"))
            .env("XDG_STATE_HOME", self.root().join("state"))
            .env("XDG_CONFIG_HOME", self.root().join("config"))
            .env_remove("NO_COLOR")
            .env_remove("TERM_PROGRAM")
            .env_remove("WT_SESSION")
            .env("TERM", "xterm-256color")
            .env("PAGER", "cat")
            .current_dir(self.root().join("work"));
        Invocation {
            command,
            stdin: Input::Nothing,
            root: self.root().to_owned(),
        }
    }

    pub(crate) fn run(&self, words: impl Words) -> Outcome {
        self.jobboard(&words).run()
    }

    /// Requires success, and returns standard output.
    #[track_caller]
    pub(crate) fn ok(&self, words: impl Words) -> String {
        self.run(words).succeeded().to_owned()
    }

    /// Requires an exit code without output, and returns standard error.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, words: impl Words) -> String {
        self.run(words).failed(code).to_owned()
    }

    /// Requires success, and returns the printed JSON value.
    #[track_caller]
    pub(crate) fn json(&self, words: impl Words) -> Value {
        self.run(words).json()
    }

    pub(crate) fn post(&self, name: &str) -> String {
        self.jobboard(&["post", name]).run().posted()
    }

    /// Stores a job that `post` would reject.
    pub(crate) fn load(&self, name: &str, details: &serde_json::Value) -> String {
        let uuid = uuid::Uuid::new_v4().to_string();
        let line = serde_json::json!({"uuid": uuid, "name": name, "details": details});
        let load = self.jobboard(&["load", "-"]).stdin(line.to_string());
        load.run().succeeded();
        uuid
    }

    /// Posts jobs named by their numbers, and returns their uuids in order.
    pub(crate) fn post_many(&self, count: usize) -> Vec<String> {
        let lines: String = (0..count)
            .map(|number| format!("{{\"name\":\"job-{number}\"}}\n"))
            .collect();
        let posted = self.jobboard(&["post", "--from", "-"]).stdin(lines).run();
        posted.succeeded().lines().map(str::to_owned).collect()
    }

    pub(crate) fn claim(&self, job: &str, who: &str) {
        self.jobboard(&["claim", job, "--who", who])
            .run()
            .succeeded();
    }

    /// Claims a job and lets it fail, so that it is retried after this delay.
    #[track_caller]
    pub(crate) fn fail(&self, job: &str, delay: &str) {
        let delays = format!("--retry-delay {delay} --retry-max {delay}");
        self.fails(1, format!("claim {job} {delays} --max-attempts 9 -- false"));
    }

    pub(crate) fn trash(&self, job: &str) {
        self.jobboard(&["trash", job, "--force", "--yes"])
            .run()
            .succeeded();
    }

    pub(crate) fn show(&self, job: &str) -> Value {
        self.jobboard(&["show", job, "--json"]).run().json()
    }

    pub(crate) fn state(&self, job: &str) -> String {
        self.show(job)["state"].as_str().unwrap().to_owned()
    }

    /// Returns the listings of the board and the trash.
    pub(crate) fn everything(&self) -> [Value; 2] {
        ["list --json", "list --trash --json"].map(|words| self.json(words))
    }

    /// Returns the names on the board, in listing order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.run("list --json").each("name")
    }

    /// Opens the board file directly.
    pub(crate) fn database(&self) -> rusqlite::Connection {
        let is_to_exist = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
        let database = rusqlite::Connection::open_with_flags(self.board(), is_to_exist).unwrap();
        database.busy_timeout(SOON).unwrap();
        database
    }
}

/// The arguments of a command, in one line or as a list.
pub(crate) trait Words {
    fn words(&self) -> Vec<&str>;
}

impl Words for str {
    fn words(&self) -> Vec<&str> {
        words(self)
    }
}

impl Words for String {
    fn words(&self) -> Vec<&str> {
        words(self)
    }
}

impl Words for [&str] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const COUNT: usize> Words for [&str; COUNT] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Words for Vec<&str> {
    fn words(&self) -> Vec<&str> {
        self.clone()
    }
}

impl<T: Words + ?Sized> Words for &T {
    fn words(&self) -> Vec<&str> {
        (**self).words()
    }
}

/// Returns the words of a command line; single quotes keep spaces.
pub(crate) fn words(line: &str) -> Vec<&str> {
    let mut plain_and_quoted = line.split('\'');
    let mut words = Vec::new();
    while let Some(plain) = plain_and_quoted.next() {
        words.extend(plain.split_whitespace());
        words.extend(plain_and_quoted.next());
    }
    words
}

/// Returns members of a JSON object as text, separated by spaces.
pub(crate) fn members(object: &Value, names: &str) -> String {
    let text = |name| match object.get(name) {
        Some(Value::String(text)) => text.clone(),
        other => other
            .unwrap_or_else(|| panic!("{name}: {object}"))
            .to_string(),
    };
    names.split(' ').map(text).collect::<Vec<_>>().join(" ")
}

/// Returns the texts of a JSON array, such as the words of a command.
pub(crate) fn texts(array: &Value) -> Vec<&str> {
    let texts = array.as_array().unwrap().iter();
    texts.map(|text| text.as_str().unwrap()).collect()
}

pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    let values = text.lines().map(|line| serde_json::from_str(line).unwrap());
    values.collect()
}

#[track_caller]
pub(crate) fn assert_contains(text: &str, part: impl AsRef<str>) {
    let part = part.as_ref();
    assert!(text.contains(part), "no {part:?} in {text}");
}

/// Returns a member of each JSON object as text.
pub(crate) fn column(values: &[Value], member: &str) -> Vec<String> {
    values.iter().map(|it| members(it, member)).collect()
}

#[must_use]
pub(crate) struct Invocation {
    command: Command,
    stdin: Input,
    root: PathBuf,
}

enum Input {
    Nothing,
    Bytes(Vec<u8>),
    /// The test writes to it.
    Pipe,
}

impl Invocation {
    pub(crate) fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.stdin = Input::Bytes(input.into());
        self
    }

    pub(crate) fn piped_stdin(mut self) -> Self {
        self.stdin = Input::Pipe;
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn cwd(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Runs it on a terminal of this width; both streams become one.
    pub(crate) fn at_terminal(self, columns: u16) -> Self {
        let words = std::iter::once(self.command.get_program()).chain(self.command.get_args());
        let line: String = words
            .map(|word| format!(" '{}'", word.to_str().unwrap().replace('\'', r"'\''")))
            .collect();
        self.wrapped(
            "script",
            &[
                "-qec",
                &format!("stty cols {columns} rows 24 && exec{line}"),
                "/dev/null",
            ],
            false,
        )
    }

    /// Runs it in a shell, as `"$@"`.
    pub(crate) fn in_shell(self, script: &str) -> Self {
        self.wrapped("sh", &["-c", script, "sh"], true)
    }

    /// Runs it without a terminal, like a service.
    pub(crate) fn in_session(self) -> Self {
        self.wrapped("setsid", &[], true)
    }

    /// Runs it with separate mounts, if permitted.
    pub(crate) fn in_namespace(self) -> Self {
        self.wrapped("unshare", &["--mount"], true)
    }

    /// Runs it as an unprivileged user if this one is root.
    pub(crate) fn unprivileged(self) -> Self {
        if !rustix::process::geteuid().is_root() {
            return self;
        }
        let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        self.wrapped("setpriv", &nobody, true)
    }

    /// Runs the command, and returns its peak memory in MiB.
    pub(crate) fn run_weighed(self) -> (Outcome, u64) {
        let (run, used, _) = self.run_measured();
        (run, used)
    }

    /// Runs the command, and returns its peak memory in MiB and its time.
    pub(crate) fn run_measured(self) -> (Outcome, u64, Duration) {
        const MEASURE: &str = "import resource, subprocess, sys, time\n\
            start = time.monotonic()\n\
            code = subprocess.run(sys.argv[1:]).returncode\n\
            took = int((time.monotonic() - start) * 1e6)\n\
            used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n\
            print(f'took {used // 1024} MiB {took} us', file=sys.stderr)\n\
            sys.exit(code)";
        let run = self.wrapped("python3", &["-c", MEASURE], true).run();
        let report = run.stderr.rsplit("took ").next().unwrap().split(' ');
        let mut numbers = report.filter_map(|it| it.parse().ok());
        let (Some(used), Some(took)) = (numbers.next(), numbers.next()) else {
            panic!("{run}");
        };
        (run, used, Duration::from_micros(took))
    }

    fn wrapped(mut self, program: &str, arguments: &[&str], passes_command: bool) -> Self {
        let mut command = Command::new(program);
        command.args(arguments);
        if passes_command {
            command.arg(self.command.get_program());
            command.args(self.command.get_args());
        }
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(self.command.get_current_dir().unwrap());
        self.command = command;
        self
    }

    /// Runs it to its end, within the time limit.
    #[must_use]
    pub(crate) fn run(self) -> Outcome {
        self.spawn().ended()
    }

    #[must_use]
    pub(crate) fn spawn(mut self) -> Running {
        self.command
            .stdin(match self.stdin {
                Input::Nothing => Stdio::null(),
                Input::Bytes(_) | Input::Pipe => Stdio::piped(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let running = Running::start(&mut self.command, self.root);
        match self.stdin {
            Input::Bytes(bytes) => running.feed(bytes),
            Input::Nothing | Input::Pipe => running,
        }
    }

    /// Starts it with this pipe as standard output.
    #[must_use]
    pub(crate) fn spawn_into(mut self, stdout: std::io::PipeWriter) -> Running {
        self.command
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped());
        Running::start(&mut self.command, self.root)
    }

    /// Runs it with a closed pipe as standard output.
    #[must_use]
    pub(crate) fn run_unread(mut self) -> Outcome {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let stdin = match &self.stdin {
            Input::Bytes(_) => Stdio::piped(),
            Input::Nothing | Input::Pipe => Stdio::null(),
        };
        self.command
            .stdin(stdin)
            .stdout(writer)
            .stderr(Stdio::piped());
        let running = Running::start(&mut self.command, self.root);
        match self.stdin {
            Input::Bytes(bytes) => running.feed(bytes).ended(),
            Input::Nothing | Input::Pipe => running.ended(),
        }
    }
}

/// Copies the program.
///
/// By another process: a process started meanwhile would inherit the open file, which cannot be executed while it is
/// open for writing.
pub(crate) fn copy_program(to: &Path) {
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_jobboard"))
        .arg(to)
        .status();
    assert!(copied.unwrap().success());
}

pub(crate) fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    assert!(comes_true(SOON, holds), "timed out waiting until {what}");
}

/// Waits until a condition holds, at most this long; returns whether it does.
pub(crate) fn comes_true(most: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        // Only a check that begins too late counts as late.
        let waited = start.elapsed();
        if holds() {
            return true;
        }
        if waited > most {
            return false;
        }
        // Check soon for quick conditions, and rarely for slow ones.
        thread::sleep((waited / 16).clamp(Duration::from_millis(1), Duration::from_millis(20)));
    }
}

/// Requires that a condition holds for this long.
pub(crate) fn stays(what: &str, long: Duration, mut holds: impl FnMut() -> bool) {
    assert!(!comes_true(long, || !holds()), "no longer: {what}");
}
