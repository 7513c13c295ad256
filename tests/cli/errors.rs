//! Collects every error: the attempt, the reason and the next command.
//!
//! Read the snapshot as a whole, as a newcomer would; JOBBOARD_UPDATE=1 rewrites it.

mod servers;
mod usage;

use std::{collections::BTreeSet, fs, path::Path, thread};

use regex::Regex;
use serde_json::Value;

use crate::support::{Env, Outcome, wait_until, words};

/// The documented kinds of errors.
const KINDS: &str = "already-claimed ambiguous changed denied exists failed malformed not-claimed \
                     not-delayed not-found not-owner refused timeout unknown \
                     unreachable unsupported usage";

/// Errors that need no hint: each job was reported separately, or the system names the problem of a file.
const PLAIN: [&str; 2] = ["failed for ", ": no such file or directory"];

#[test]
fn every_error_names_the_attempt_the_reason_and_the_next_command() {
    let mut parts = vec![usage::provoke as fn(&mut Errors) -> Option<()>];
    parts.extend(servers::PARTS);
    let parts: Option<Vec<Errors>> = thread::scope(|scope| {
        let run = |part: fn(&mut Errors) -> Option<()>| {
            scope.spawn(move || {
                let mut errors = Errors::default();
                part(&mut errors).map(|()| errors)
            })
        };
        let running: Vec<_> = parts.into_iter().map(run).collect();
        running.into_iter().map(|it| it.join().unwrap()).collect()
    });
    need!(parts = parts);
    let kinds: BTreeSet<_> = parts.iter().flat_map(|it| &it.kinds).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), words(KINDS));
    let text: String = parts.into_iter().map(|it| it.text).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/errors/collection.txt");
    if std::env::var_os("JOBBOARD_UPDATE").is_some() {
        fs::write(&file, &text).unwrap();
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    similar_asserts(&stored, &text);
}

/// Requires equal texts, and shows the first different line.
fn similar_asserts(stored: &str, seen: &str) {
    for (stored, seen) in stored.lines().zip(seen.lines()) {
        assert_eq!(stored, seen, "JOBBOARD_UPDATE=1 rewrites it");
    }
    assert_eq!(stored.lines().count(), seen.lines().count());
}

#[derive(Default)]
struct Errors {
    kinds: BTreeSet<String>,
    /// The commands of hints that were typed, with their environments.
    typed: BTreeSet<String>,
    text: String,
}

struct Of<'a> {
    errors: &'a mut Errors,
    env: &'a Env,
    /// The name of the board, which each error contains once; `None` without a board.
    board: Option<String>,
}

impl Errors {
    fn of<'a>(&'a mut self, env: &'a Env, board: Option<&str>) -> Of<'a> {
        Of {
            errors: self,
            env,
            board: board.map(str::to_owned),
        }
    }
}

impl Of<'_> {
    /// Runs a command with words separated by spaces, and requires a well-formed error of a kind.
    fn expect(&mut self, kind: &str, command: &str) {
        let words: Vec<_> = command.split(' ').collect();
        self.expect_words(kind, &words);
    }

    fn expect_words(&mut self, kind: &str, words: &[&str]) {
        self.expect_saying("", kind, words);
    }

    /// Repeats the command until its error has these words.
    fn expect_saying(&mut self, text: &str, kind: &str, words: &[&str]) {
        let env = self.env;
        let says_it = |words: &[&str]| {
            let mut run = env.run(words);
            wait_until(text, || {
                run.stderr.contains(text) || {
                    run = env.run(words);
                    false
                }
            });
            run
        };
        let run = says_it(&[&["--json"], words].concat());
        let printed = self.expect_run(kind, &words.join(" "), &run);
        let run = says_it(words);
        let hint = printed.hint.map(|hint| format!("hint: {hint}\n"));
        let end = format!(": {}\n{}", printed.message, hint.unwrap_or_default());
        assert!(run.stderr.ends_with(&end), "{end:?} {run}");
    }

    /// Requires a well-formed error of a run with JSON output.
    fn expect_run(&mut self, kind: &str, command: &str, run: &Outcome) -> PrintedError {
        let printed = PrintedError::of(run);
        assert_eq!(printed.kind, kind, "{run}");
        self.errors.kinds.insert(printed.kind.clone());
        assert!(!printed.message.contains('\n'), "{run}");
        if let Some(board) = &self.board {
            let times = printed.message.matches(board.as_str()).count();
            assert_eq!(
                times, 1,
                "{command}: the board is named {times} times: {run}"
            );
        }
        match &printed.hint {
            None => {
                // A usage error names the correction itself.
                let is_plain = PLAIN.iter().any(|plain| printed.message.contains(plain));
                assert!(is_plain || kind == "usage", "no hint: {run}");
            }
            Some(hint) => self.judge(hint),
        }
        self.keep(command, &printed);
        printed
    }

    /// Requires that the commands of a hint are valid as printed.
    fn judge(&mut self, hint: &str) {
        assert!(!hint.contains('\n'), "{hint}");
        assert!(!hint.replace("JOBBOARD_", "").contains("JOB"), "{hint}");
        let commands = hint.split('`').skip(1).step_by(2);
        for typed in commands.filter(|typed| typed.starts_with("jobboard ")) {
            let place = self.env.root().display();
            if !self.errors.typed.insert(format!("{place} {typed}")) {
                continue;
            }
            let run = self.typed(typed);
            assert!(![2, 127].contains(&run.code), "{hint}: {run}");
        }
    }

    /// Types a command into a shell, with all changes forbidden.
    fn typed(&self, command: &str) -> Outcome {
        let program = Path::new(env!("CARGO_BIN_EXE_jobboard"));
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", program.parent().unwrap().display());
        let shell = self.env.program(Path::new("sh"), &["-c", command]);
        let shell = shell.env("PATH", path).env("JOBBOARD_READ_ONLY", "1");
        shell.run()
    }

    /// Adds an error to the collection, without its variable parts.
    fn keep(&mut self, command: &str, printed: &PrintedError) {
        let hint = printed.hint.as_ref().map(|hint| format!("hint: {hint}\n"));
        let (kind, message) = (&printed.kind, &printed.message);
        let hint = hint.unwrap_or_default();
        let text = format!("$ jobboard {command}\nerror ({kind}): {message}\n{hint}\n");
        let text = text.replace(self.env.root().to_str().unwrap(), "ROOT");
        let hex = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
        let host = rustix::system::uname();
        let host = host.nodename().to_string_lossy();
        let mut text = text;
        for (pattern, instead) in [
            (hex, "UUID"),
            (r"(named free has the uuid|claim) [0-9a-f]{8}\b", "$1 SHORT"),
            (r"127\.0\.0\.1:\d+", "HOST"),
            (r"/test-\d+", "/test"),
            (&format!(r"[\w.-]+@{}", regex::escape(&host)), "user@host"),
            (r"\d{4}-\d\d-\d\dT\S+Z", "TIME"),
        ] {
            let pattern = Regex::new(pattern).unwrap();
            text = pattern.replace_all(&text, instead).into_owned();
        }
        eprint!("{text}");
        self.errors.text += &text;
    }
}

struct PrintedError {
    kind: String,
    message: String,
    hint: Option<String>,
}

impl PrintedError {
    /// Finds the last error of a run; notes may precede it.
    fn of(run: &Outcome) -> Self {
        assert_ne!(run.code, 0, "{run}");
        let line = run.stderr.lines().last().unwrap_or_default();
        let error: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {run}"));
        let text = |name: &str| error["error"][name].as_str().map(str::to_owned);
        Self {
            kind: text("kind").unwrap(),
            message: text("message").unwrap(),
            hint: text("hint"),
        }
    }
}
