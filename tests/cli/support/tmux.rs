//! A shell on a real terminal, driven by a test.

use std::{
    cell::Cell,
    path::Path,
    process::{Command, Stdio},
};

use regex::Regex;

use super::env::{Env, Outcome, SOON, comes_true};
use super::needs::has;

/// A shell with job control, in a separate tmux server that ends with the test.
pub(crate) struct Pane<'a> {
    env: &'a Env,
    socket: String,
    codes: Cell<u32>,
}

impl<'a> Pane<'a> {
    /// Opens a shell; `None` with a message if a required program is missing.
    pub(crate) fn open(env: &'a Env, programs: &[&str]) -> Option<Self> {
        if ![&["tmux", "bash"], programs].concat().into_iter().all(has) {
            return None;
        }
        let pane = Self {
            env,
            socket: format!("jobboard-{}", uuid::Uuid::new_v4()),
            codes: Cell::new(0),
        };
        let shell = ["bash", "--norc", "--noprofile"];
        let session = ["new-session", "-d", "-x", "100", "-y", "30"];
        pane.tmux(&[&session[..], &shell].concat());
        pane.shows(r"^\$$");
        // No core dumps of killed programs.
        pane.line("ulimit -c 0");
        Some(pane)
    }

    fn tmux(&self, words: &[&str]) -> Outcome {
        let socket = ["-L", &self.socket, "-f", "/dev/null"];
        let program = Path::new(env!("CARGO_BIN_EXE_jobboard"));
        let directories = std::env::var_os("PATH").unwrap_or_default();
        let directories = std::env::split_paths(&directories);
        let directories = program
            .parent()
            .map(Path::to_owned)
            .into_iter()
            .chain(directories);
        let run = self
            .env
            .program(Path::new("tmux"), &[&socket, words].concat());
        let run = run
            .env("TMUX_TMPDIR", self.env.root())
            .env("TMUX", "")
            .env("PS1", "$ ")
            .env("HISTFILE", "")
            .env("PATH", std::env::join_paths(directories).unwrap())
            .run();
        run.succeeded();
        run
    }

    /// Presses a key, such as `C-c`.
    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    pub(crate) fn text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    pub(crate) fn line(&self, text: &str) {
        self.text(text);
        self.press("Enter");
    }

    /// Waits until a line of the screen matches a pattern, and returns the first group.
    pub(crate) fn shows(&self, pattern: &str) -> String {
        let pattern = Regex::new(&format!("(?m){pattern}")).unwrap();
        let mut screen = String::new();
        let is_shown = comes_true(SOON, || {
            screen = self.screen();
            pattern.is_match(&screen)
        });
        assert!(
            is_shown,
            "timed out waiting for {pattern}:\n{}",
            screen.trim_end()
        );
        let found = pattern.captures(&screen).and_then(|found| found.get(1));
        found.map_or("", |group| group.as_str()).to_owned()
    }

    pub(crate) fn has(&self, pattern: &str) -> bool {
        let pattern = Regex::new(&format!("(?m){pattern}")).unwrap();
        pattern.is_match(&self.screen())
    }

    /// Waits until the shell has the terminal back, and returns the last exit code.
    pub(crate) fn code(&self) -> i32 {
        let current = ["display-message", "-p", "#{pane_current_command}"];
        let is_back = comes_true(SOON, || self.tmux(&current).stdout.trim_end() == "bash");
        assert!(is_back, "the shell waits: {}", self.screen());
        let number = self.codes.get() + 1;
        self.codes.set(number);
        self.line(&format!("echo code-{number}=$?"));
        self.shows(&format!(r"^code-{number}=(\d+)$"))
            .parse()
            .unwrap()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"]).stdout
    }
}

impl Drop for Pane<'_> {
    fn drop(&mut self) {
        let mut tmux = Command::new("tmux");
        tmux.args(["-L", &self.socket, "kill-server"])
            .env("TMUX_TMPDIR", self.env.root())
            .stderr(Stdio::null());
        // The server may not exist.
        let _ = tmux.status();
    }
}
