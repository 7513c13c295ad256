//! Problems of an embedded board: its file, its directory and its disk.

use std::{
    borrow::Cow,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use rusqlite::{Error, ErrorCode};
use rustix::process::geteuid;

use super::{
    Embedded, history,
    store::{
        disk::{directory_of, with_suffix},
        transaction::BoardView,
    },
};
use crate::{
    board::{
        BoardError, Result,
        examine::{Access, Examined, Part},
    },
    problem::{Code, Fix, Problem},
    suggest::Suggestion,
};

/// Free space that a board needs for a while.
const MIN_FREE_BYTES: u64 = 64 * 1024 * 1024;

/// Time limit of the file check, which large indexes use up.
const MAX_CHECK: Duration = Duration::from_secs(10);

/// The size of a log whose write-back another process prevents.
const LARGE_LOG: u64 = 64 * 1024 * 1024;

impl Embedded {
    pub(super) async fn examine_part(&self, part: Part) -> Result<Examined> {
        let mut seen = Examined::default();
        match part {
            _ if !self.file.options.path.exists() => {}
            Part::Connection(access) => self.rights(access, &mut seen)?,
            Part::Server => {
                let directory = directory_of(&self.file.options.path);
                self.others(directory, &mut seen);
                self.room(directory, &mut seen);
                self.damage(&mut seen).await?;
            }
            // The tables have no stray rows.
            Part::Keys { .. } | Part::Strays => {}
            Part::History => {
                self.file.read(|view| history::entries(view, 1)).await?;
                self.file.is_writable()?;
            }
        }
        Ok(seen)
    }

    fn path(&self) -> Cow<'_, str> {
        self.file.options.path.to_string_lossy()
    }

    fn rights(&self, access: Access, seen: &mut Examined) -> Result<()> {
        match self.file.is_writable() {
            Err(BoardError::Denied { .. }) if access == Access::Read => Ok(()),
            Err(BoardError::Denied { .. }) => {
                let summary = "the board file is not writable";
                let remedy = Fix::elsewhere(Suggestion::of("ls -l").with([self.path()]));
                let problem = Problem::new(Code::MissingRights, summary).fixed_by(remedy);
                seen.add(problem.seen("denied", "posting, claiming and settling jobs"));
                Ok(())
            }
            other => other,
        }
    }

    fn others(&self, directory: &Path, seen: &mut Examined) {
        const OTHERS: u32 = 0o022;
        let path = &self.file.options.path;
        let companions = ["-wal", "-shm", "-journal"].map(|suffix| with_suffix(path, suffix));
        let companions = companions.iter().map(PathBuf::as_path);
        for place in [directory, path].into_iter().chain(companions) {
            let Ok(found) = fs::metadata(place) else {
                continue;
            };
            let (owner, mode) = (found.uid(), found.mode() & 0o7777);
            let is_ours = owner == geteuid().as_raw() || owner == 0;
            // In a sticky directory such as /tmp, only the owner can replace a file.
            let is_open = mode & OTHERS != 0 && mode & 0o1000 == 0;
            if is_open || !is_ours {
                let name = place.display();
                let summary =
                    format!("{name} is writable by other users (mode {mode:o}, user {owner})");
                let command = Suggestion::of("chmod go-w").with([place.to_string_lossy()]);
                let remedy = Fix::elsewhere(command);
                seen.add(Problem::new(Code::WritableByOthers, summary).fixed_by(remedy));
                // The logs usually have the mode of the board.
                if place != directory {
                    return;
                }
            }
        }
    }

    fn room(&self, directory: &Path, seen: &mut Examined) {
        let log =
            fs::metadata(with_suffix(&self.file.options.path, "-wal")).map_or(0, |log| log.len());
        if log > LARGE_LOG {
            let summary = "the write-ahead log of the board is large, because a long read blocks \
                           its truncation";
            let command = Suggestion::of("sqlite3").with([self.path()]);
            let command = command.with(["PRAGMA wal_checkpoint(TRUNCATE)"]);
            let problem = Problem::new(Code::LargeLog, summary).fixed_by(Fix::elsewhere(command));
            seen.add(problem.seen("bytes", log));
        }
        if let Ok(system) = rustix::fs::statvfs(directory) {
            let free = system.f_bavail.saturating_mul(system.f_frsize);
            if free < MIN_FREE_BYTES {
                let command = Suggestion::of("df -h").with([directory.to_string_lossy()]);
                let summary = format!("the disk of the board has only {} MiB free", free >> 20);
                seen.add(Problem::new(Code::DiskFull, summary).fixed_by(Fix::elsewhere(command)));
            }
        }
    }

    async fn damage(&self, seen: &mut Examined) -> Result<()> {
        let found = self.file.read(check);
        let problems = match found.await {
            Ok(Some(None)) => {
                seen.unseen(
                    "damage of the board file: the check takes longer than 10s",
                    None,
                );
                return Ok(());
            }
            Ok(problems) => problems.flatten().unwrap_or_default(),
            // The file may be too damaged to read. One that is not opened is something else, and not damaged.
            Err(error) if error.is_not_opened() => return Err(error),
            Err(BoardError::Failed { source, .. }) => vec![source.to_string()],
            Err(error) => return Err(error),
        };
        // A disallowed value is a malformed record, and no damage.
        let is_damage = |problem: &String| problem != "ok" && !problem.starts_with("CHECK ");
        if let Some(damage) = problems.into_iter().find(is_damage) {
            let command = match damage.contains(" index ") {
                true => Suggestion::of("sqlite3").with([self.path(), "REINDEX".into()]),
                false => {
                    let mended = with_suffix(&self.file.options.path, ".mended");
                    let recover = r#"sqlite3 "$0" .recover >"$1.sql" && sqlite3 "$1" <"$1.sql""#;
                    let command = Suggestion::of("sh -c").with([recover]);
                    command.with([self.path(), mended.to_string_lossy()])
                }
            };
            let summary = "the board file is damaged";
            let problem =
                Problem::new(Code::DamagedFile, summary).fixed_by(Fix::elsewhere(command));
            seen.add(problem.seen("problem", damage));
        }
        Ok(())
    }
}

/// Runs SQLite's check of the file and its indexes; `None` after the time limit.
fn check(view: &BoardView<'_>) -> rusqlite::Result<Option<Vec<String>>> {
    let mut check = view.prepare("PRAGMA integrity_check(1000)")?;
    let interrupt = view.interrupt_handle();
    let (end, ended) = mpsc::channel::<()>();
    let timer = thread::spawn(move || {
        if ended.recv_timeout(MAX_CHECK) == Err(RecvTimeoutError::Timeout) {
            interrupt.interrupt();
        }
    });
    let lines = check.query_map([], |row| row.get(0))?.collect();
    drop(end);
    let _ = timer.join();
    match lines {
        Err(Error::SqliteFailure(error, _)) if error.code == ErrorCode::OperationInterrupted => {
            Ok(None)
        }
        lines => Ok(Some(lines?)),
    }
}
