//! Files and directories without permissions.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    conduct::set_mode,
    support::{Env, Outcome, assert_contains, copy_program},
};

/// A board that only its owner may use in some way, for runs as another user.
struct Guarded {
    env: Env,
    program: PathBuf,
    board: PathBuf,
}

impl Guarded {
    /// Creates a board with one claimed job, and sets the modes of its directory and files.
    fn new(directory: u32, files: u32) -> Self {
        let env = Env::new();
        let board = env.root().join("shared/board.db");
        let url = format!("sqlite:{}", board.display());
        env.ok(format!("post resize --create --board {url}"));
        // Other users may have no access to the build directory.
        let program = env.root().join("jobboard");
        copy_program(&program);
        set_mode(env.root(), 0o755);
        for file in fs::read_dir(env.root().join("shared")).unwrap() {
            set_mode(&file.unwrap().path(), files);
        }
        set_mode(&env.root().join("shared"), directory);
        Self {
            env,
            program,
            board,
        }
    }

    fn run(&self, call: &[&str]) -> Outcome {
        let url = format!("sqlite:{}", self.board.display());
        let words = [call, &["--board", &url, "--json", "-q"]].concat();
        let run = self.env.program(&self.program, &words);
        run.cwd(Path::new("/")).unprivileged().run()
    }

    fn is_denied(&self, call: &[&str]) {
        let run = self.run(call);
        run.failed(5);
        assert_eq!(run.error()["kind"], "denied", "{run}");
    }

    /// Requires that the board is unchanged, as far as it is readable.
    fn is_unchanged(&self) {
        set_mode(&self.env.root().join("shared"), 0o755);
        for file in fs::read_dir(self.env.root().join("shared")).unwrap() {
            set_mode(&file.unwrap().path(), 0o644);
        }
        let url = format!("sqlite:{}", self.board.display());
        let listed = self.env.run(format!("list --json --board {url}"));
        assert_eq!(listed.each("name"), ["resize"]);
        assert_eq!(listed.json()[0]["state"], "UNCLAIMED");
    }
}

const CHANGES: [&[&str]; 3] = [
    &["post", "grow"],
    &["claim", "--next"],
    &["consume", "@1", "--force", "--yes"],
];

#[test]
fn read_only_file_can_be_listed_but_not_changed() {
    let guarded = Guarded::new(0o555, 0o444);
    for change in CHANGES {
        guarded.is_denied(change);
    }
    assert_eq!(guarded.run(&["list"]).each("name"), ["resize"]);
    let report = guarded.run(&["ping"]).json()["history_problem"].to_string();
    assert_contains(&report, "the board file is not writable");
    guarded.is_unchanged();
}

#[test]
fn unreadable_file_is_denied_and_no_empty_list() {
    let guarded = Guarded::new(0o755, 0o000);
    for call in ["list", "status", "report", "dump", "ping"] {
        guarded.is_denied(&[call]);
    }
    for change in CHANGES {
        guarded.is_denied(change);
    }
    let hint = guarded.run(&["list"]).error()["hint"].to_string();
    assert_contains(&hint, format!("`ls -l {}`", guarded.board.display()));
    guarded.is_unchanged();
}

#[test]
fn inaccessible_directory_is_no_empty_board() {
    let guarded = Guarded::new(0o000, 0o600);
    for call in [
        &["list"][..],
        &["ping"],
        &["show", "@1"],
        &["claim", "--next"],
        &["wait", "--empty"],
    ] {
        guarded.is_denied(call);
    }
    guarded.is_unchanged();
}

#[test]
fn board_is_not_created_in_an_unwritable_directory() {
    let mut guarded = Guarded::new(0o555, 0o644);
    let shared = guarded.board.clone();
    guarded.board = guarded.env.root().join("shared/other.db");
    guarded.is_denied(&["post", "grow"]);
    let hint = guarded.run(&["post", "grow"]).error()["hint"].to_string();
    assert_contains(&hint, "choose a writable file: `--board sqlite:PATH`");
    guarded.board = guarded.env.root().join("shared/deep/other.db");
    guarded.is_denied(&["post", "grow", "--create"]);
    guarded.board = shared;
    guarded.is_unchanged();
}
