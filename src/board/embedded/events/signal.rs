//! The file beside a board whose changes wake those who watch the board.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use crate::board::embedded::store::disk::with_suffix;

#[derive(Debug)]
pub(crate) struct ChangeSignal {
    board: PathBuf,
    file: Option<fs::File>,
}

impl ChangeSignal {
    pub(crate) fn of(board: &Path) -> Self {
        Self {
            board: board.to_owned(),
            file: None,
        }
    }

    pub(crate) fn ring(&mut self) {
        if self.file.is_none() {
            self.file = open_signal(&self.board).ok();
        }
        // They look by themselves now and then, so a wake-up that fails is late and not lost.
        if let Some(file) = &self.file {
            let _ = file.write_at(b"!", 0);
        }
    }
}

/// Returns the file beside the board whose changes wake watchers.
pub(crate) fn signal_path(board: &Path) -> PathBuf {
    with_suffix(board, "-signal")
}

/// Opens the signal file, creating it as accessible as the board is.
fn open_signal(board: &Path) -> std::io::Result<fs::File> {
    let mode = fs::metadata(board)?.permissions().mode() & 0o777;
    let path = signal_path(board);
    let is_new = !path.exists();
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        // Whoever may write to the folder must not lead us to another file, or make us wait.
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .mode(mode)
        .open(&path)?;
    if is_new {
        // The mask of the process must not make it less accessible than the board.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    Ok(file)
}
