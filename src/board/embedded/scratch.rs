//! Scratch boards for `selftest`: files beside the board.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{
    Embedded,
    store::{
        APPLICATION_ID,
        disk::{OpenMode, directory_of, make_file, open_file, with_suffix},
        signal::signal_path,
    },
};
use crate::board::{
    BoardError, Result,
    scratch::{Loss, SCRATCH_PREFIX, Testable, made_on, require_scratch},
};

impl Embedded {
    fn place(&self) -> (PathBuf, String) {
        let path = &self.file.options.path;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        (directory_of(path).to_owned(), name.into_owned())
    }

    fn failed(&self, doing: &'static str, error: io::Error) -> BoardError {
        BoardError::failed(doing, &self.file.name, error)
    }
}

fn mark(path: &Path, directories: u32) -> rusqlite::Result<()> {
    open_file(path, OpenMode::Shared)?.execute_batch(&format!(
        "BEGIN; PRAGMA application_id = {APPLICATION_ID};
         CREATE TABLE scratch (folders INTEGER NOT NULL) STRICT;
         INSERT INTO scratch VALUES ({directories}); COMMIT"
    ))
}

/// Returns how many directories a scratch board created; `None` if the file is not marked as scratch.
fn directories_of(path: &Path) -> Option<u32> {
    // Open without changes: it may be a user's file.
    let file = open_file(path, OpenMode::Alone).ok()?;
    let directories = file.query_row("SELECT folders FROM scratch", [], |row| row.get(0));
    directories.ok()
}

/// Creates a directory and its parents; returns how many were missing.
fn make_directories(directory: &Path) -> io::Result<u32> {
    let missing = directory
        .ancestors()
        .take_while(|it| !it.exists() && *it != Path::new(""));
    let missing: Vec<_> = missing.collect();
    let mut made = 0;
    for directory in missing.iter().rev() {
        match fs::DirBuilder::new().mode(0o700).create(directory) {
            Ok(()) => made += 1,
            // Directories above this one are not ours.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => made = 0,
            Err(error) => return Err(error),
        }
    }
    Ok(made)
}

/// Removes this many nested directories, as long as they are otherwise empty.
fn remove_directories(directory: &Path, count: u32) {
    for directory in directory.ancestors().take(count as usize) {
        let _ = fs::remove_dir(directory);
    }
}

#[async_trait]
impl Testable for Embedded {
    async fn make_scratch(&self) -> Result<()> {
        let (directory, name) = self.place();
        require_scratch(name.rsplit('.').next().unwrap_or_default())?;
        let path = &self.file.options.path;
        let directories = match self.file.options.makes_directory {
            true => make_directories(&directory)
                .map_err(|error| self.failed("create the directory of", error))?,
            false => 0,
        };
        let made = make_file(path, false).and_then(|()| Ok(mark(path, directories)?));
        if made.is_err() {
            // Without the mark, no later run would delete the file.
            let _ = fs::remove_file(path);
            remove_directories(&directory, directories);
        }
        made.map_err(|error| self.file.explain("write to", error))?;
        self.file.write_new(|_| Ok(())).await
    }

    async fn scratches(&self) -> Result<Vec<String>> {
        let (directory, name) = self.place();
        let files = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            files => files.map_err(|error| self.failed("list the directory of", error))?,
        };
        let prefix = format!("{name}.{SCRATCH_PREFIX}");
        let marked = |file: fs::DirEntry| {
            let file = file.file_name().into_string().ok()?;
            let name = file
                .strip_prefix(&prefix)
                .map(|it| format!("{SCRATCH_PREFIX}{it}"))?;
            made_on(&name).filter(|_| directories_of(&directory.join(&file)).is_some())?;
            Some(name)
        };
        let mut found: Vec<_> = files.flatten().filter_map(marked).collect();
        found.sort_unstable();
        Ok(found)
    }

    async fn erase(&self) -> Result<()> {
        let (directory, name) = self.place();
        require_scratch(name.rsplit('.').next().unwrap_or_default())?;
        self.file.close();
        let path = &self.file.options.path;
        let directories = directories_of(path).unwrap_or_default();
        let companions = ["-wal", "-shm", "-journal"].map(|suffix| with_suffix(path, suffix));
        // Delete the file itself last: it leads to the others.
        for file in companions.iter().chain([&signal_path(path), path]) {
            match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.failed("remove the remains of", error));
                }
                _ => {}
            }
        }
        remove_directories(&directory, directories);
        Ok(())
    }

    async fn cut(&self) -> Result<()> {
        self.file.close();
        Ok(())
    }

    async fn loss(&self) -> Result<Option<Loss>> {
        Ok((!self.file.options.sync_full).then_some(Loss {
            what: "only a power failure can lose the last writes",
            remedy: "add `?sync=full` to the board URL to prevent this",
        }))
    }

    async fn clock(&self) -> Result<Option<DateTime<Utc>>> {
        Ok(None)
    }
}
