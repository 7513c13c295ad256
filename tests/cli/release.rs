//! `scripts/release --check`: all files that name a version or describe the program agree.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::support::needs::has;

const VERSION: &str = env!("CARGO_PKG_VERSION");

type Planted = fn(&Release);

/// A copy of the released files, as a separate repository ready for a release.
struct Release(TempDir);

impl Release {
    fn new() -> Self {
        let release = Self(TempDir::new().unwrap());
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for name in [
            "Cargo.toml",
            "Cargo.lock",
            "scripts/release",
            "scripts/need",
        ] {
            release.copy(root, Path::new(name));
        }
        for directory in ["schemas", "completions"] {
            for file in fs::read_dir(root.join(directory)).unwrap() {
                release.copy(root, &Path::new(directory).join(file.unwrap().file_name()));
            }
        }
        let heading = format!(
            "# Changes\n\n## {}, 2026-11-22\n",
            env!("CARGO_PKG_VERSION")
        );
        fs::write(release.file("CHANGELOG.md"), heading).unwrap();
        release.git(&["init", "--quiet"]);
        release.commit();
        release
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn copy(&self, root: &Path, name: &Path) {
        let target = self.0.path().join(name);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(root.join(name), target).unwrap();
    }

    fn git(&self, words: &[&str]) {
        let identity = [
            "-c",
            "user.name=ada",
            "-c",
            "user.email=ada@jobboard.example",
        ];
        let status = Command::new("git")
            .current_dir(&self.0)
            .args(identity)
            .args(words)
            .status();
        assert!(status.unwrap().success(), "{words:?}");
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "all"]);
    }

    /// Changes a text of a file, and commits it.
    fn alter(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.file(name)).unwrap();
        assert!(text.contains(from), "{name}");
        fs::write(self.file(name), text.replacen(from, to, 1)).unwrap();
        self.commit();
    }

    fn check(&self) -> Output {
        let binary = env!("CARGO_BIN_EXE_jobboard");
        let mut check = Command::new(self.file("scripts/release"));
        check
            .args(["--check", "--without-deny", "--binary", binary])
            .output()
            .unwrap()
    }
}

#[test]
fn release_check_accepts_consistent_parts_and_names_each_mistake() {
    if !has("jq") || !has("git") {
        return;
    }
    let ready = Release::new().check();
    assert!(ready.status.success(), "{ready:?}");
    let together: [(&str, Planted); 6] = [
        ("Cargo.lock says 9.9.9", |it| {
            let ours = |version| format!("name = \"jobboard\"\nversion = \"{version}\"");
            it.alter("Cargo.lock", &ours(VERSION), &ours("9.9.9"));
        }),
        ("begins with `## Unreleased`", |it| {
            it.alter("CHANGELOG.md", "## ", "## Unreleased\n\n## ")
        }),
        ("is on another commit", |it| {
            it.git(&["tag", &format!("v{VERSION}")]);
            it.alter("CHANGELOG.md", "# Changes", "# What changes");
        }),
        ("completions/_jobboard is not", |it| {
            it.alter("completions/_jobboard", "jobboard", "jobbord")
        }),
        ("schemas/event.json is not", |it| {
            it.alter("schemas/event.json", "resync: ", "")
        }),
        ("not committed", |it| fs::write(it.file("new"), "").unwrap()),
    ];
    let others: [(&str, Planted); 3] = [
        ("begins with", |it| {
            it.alter("CHANGELOG.md", "2026-11-22", "2026-13-22")
        }),
        ("start was 0.5 x in v0.0.1, and is 0.8 x", |it| {
            let figures = "| row | what | ours | theirs | ratio | asked | | |\n\
                           | start | a | 1 ms | 2 ms | 0.50 x | 0.6 x or less | met | |\n\
                           | bulk | b | 2 /s | 1 /s | 2.0 x | 1 x or more | met | |\n";
            fs::create_dir_all(it.file("docs")).unwrap();
            fs::write(it.file("docs/benchmarks.md"), figures).unwrap();
            it.commit();
            it.git(&["tag", "v0.0.1"]);
            it.alter("docs/benchmarks.md", "0.50 x | 0.6", "0.80 x | 0.6");
        }),
        ("has others than", |it| {
            fs::remove_file(it.file("schemas/job.json")).unwrap();
            it.commit();
        }),
    ];
    for planted in [&together[..], &others] {
        let release = Release::new();
        for (_, plant) in planted {
            plant(&release);
        }
        let check = release.check();
        let message = String::from_utf8_lossy(&check.stderr);
        assert_eq!(check.status.code(), Some(1), "{message}");
        for (problem, _) in planted {
            assert!(message.contains(problem), "{problem}: {message}");
        }
        assert_eq!(message.lines().count(), planted.len(), "{message}");
    }
}
