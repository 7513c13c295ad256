//! What a test of an embedded board takes: files of its own beside the board, and a process that keeps it locked.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rusqlite::TransactionBehavior;

use super::{
    Durability, Embedded,
    events::signal::signal_path,
    store::disk::{Manner, open_file, with_suffix},
};
use crate::board::{
    BoardError, Result,
    ground::{Ground, Loss, MARK, made_on, require_throwaway},
};

/// The hidden first argument that makes this program keep a board locked.
pub(crate) const WORD: &str = "__holder";

/// What such a process says once it has the lock.
pub(crate) const HELD: &str = "held";

/// Keeps a board locked in the middle of removing all its jobs, until its input ends or it is killed.
///
/// It never gets further than that.
pub(crate) fn hold(path: &Path) -> io::Result<()> {
    let held = || {
        let mut file = open_file(path, Manner::Shared)?;
        file.busy_timeout(std::time::Duration::from_secs(1))?;
        let change = file.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute("DELETE FROM job", [])?;
        let mut out = io::stdout();
        let told = writeln!(out, "{HELD}").and_then(|()| out.flush());
        let waited = told.and_then(|()| io::stdin().read_to_end(&mut Vec::new()));
        Ok::<_, rusqlite::Error>(waited.map(drop))
    };
    held().map_err(io::Error::other)?
}

impl Embedded {
    /// Returns the folder of the board, and what its file is called there.
    fn place(&self) -> (PathBuf, String) {
        let path = self.file.path();
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        (
            folder.unwrap_or(Path::new(".")).to_owned(),
            name.into_owned(),
        )
    }

    fn failed(&self, doing: &'static str, error: io::Error) -> BoardError {
        let (board, source) = (self.file.name().to_owned(), error.into());
        BoardError::Failed {
            doing,
            board,
            source,
        }
    }
}

#[async_trait]
impl Ground for Embedded {
    async fn throwaways(&self) -> Result<Vec<String>> {
        let (folder, name) = self.place();
        let files = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            files => files.map_err(|error| self.failed("look beside", error))?,
        };
        let prefix = format!("{name}.");
        let named = |file: fs::DirEntry| {
            let file = file.file_name();
            let name = file.to_str()?.strip_prefix(&prefix)?;
            let (name, rest) = name.split_at_checked(MARK.len() + 25)?;
            let is_ours = ["", "-wal", "-shm", "-journal", "-signal"].contains(&rest);
            made_on(name).filter(|_| is_ours).map(|_| name.to_owned())
        };
        let mut found: Vec<_> = files.flatten().filter_map(named).collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    async fn erase(&self) -> Result<()> {
        let (folder, name) = self.place();
        require_throwaway(name.rsplit('.').next().unwrap_or_default())?;
        self.file.close();
        let path = self.file.path();
        let beside = ["-wal", "-shm", "-journal"].map(|suffix| with_suffix(path, suffix));
        // The file itself goes last: it is what the others are found by.
        for file in beside
            .iter()
            .map(PathBuf::as_path)
            .chain([&*signal_path(path), path])
        {
            match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.failed("remove what is left of", error));
                }
                _ => {}
            }
        }
        if self.file.makes_folder() {
            // It was made for this, if nothing else is in it.
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }

    async fn cut(&self) -> Result<()> {
        self.file.close();
        Ok(())
    }

    async fn loss(&self) -> Result<Option<Loss>> {
        Ok(
            (self.file.durability() == Durability::Process).then_some(Loss {
                what: "what came last may be lost if the power fails, and by nothing less",
                remedy: "`?sync=full` behind the path of the board, where that is too much to lose",
            }),
        )
    }

    async fn clock(&self) -> Result<Option<DateTime<Utc>>> {
        Ok(None)
    }
}
