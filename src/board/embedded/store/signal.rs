//! The signal file beside a board, which wakes subscribers after each change.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use super::disk::with_suffix;

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

    pub(crate) fn notify(&mut self) {
        if self.file.is_none() {
            self.file = open_signal(&self.board).ok();
        }
        // Subscribers also poll, so a failed signal delays events and loses none.
        if let Some(file) = &self.file {
            let _ = file.write_at(b"!", 0);
        }
    }
}

pub(crate) fn signal_path(board: &Path) -> PathBuf {
    with_suffix(board, "-signal")
}

fn open_signal(board: &Path) -> std::io::Result<fs::File> {
    let mode = fs::metadata(board)?.permissions().mode() & 0o777;
    let path = signal_path(board);
    let is_new = !path.exists();
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        // A user with access to the directory must not redirect us to another file, or block us.
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .mode(mode)
        .open(&path)?;
    // Neither by a symbolic nor by a hard link.
    if file.metadata()?.nlink() > 1 {
        return Err(std::io::Error::other("the signal file is a hard link"));
    }
    if is_new {
        // The umask must not make it less accessible than the board.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    Ok(file)
}
