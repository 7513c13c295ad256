//! Checks who could post to an embedded board, or replace it.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use crate::trust::{
    CheckedPath, OtherWriters, Trust, Untrusted, check, is_absent, kind, unreadable,
};

/// A new board will be ours alone; its directory must be so already.
pub(crate) fn check_board(path: &Path) -> Result<(), Untrusted> {
    let board = match CheckedPath::to(path, OtherWriters::OurGroup) {
        Ok(board) => board.path,
        Err(Untrusted::Unseen { path: gone, source }) if is_absent(&source) => {
            let path = std::path::absolute(path).map_err(|source| unreadable(path, source))?;
            if !path.parent().is_some_and(Path::exists) {
                // We create its directory, and no other user may create it first.
                let there = gone.parent().unwrap_or(&gone);
                return CheckedPath::to(there, OtherWriters::OurGroup)?
                    .check_place(OtherWriters::OurGroup);
            }
            gone
        }
        Err(error) => return Err(error),
    };
    let directory = board.parent().ok_or_else(|| kind(&board, "a file"))?;
    CheckedPath::to(directory, OtherWriters::OurGroup)?.check(Trust::Us)?;
    let name = board.file_name().unwrap_or_default().as_encoded_bytes();
    // Files beside the board belong to it: the journal, the shared memory, the signal.
    for entry in fs::read_dir(directory).map_err(|source| unreadable(directory, source))? {
        let entry = entry.map_err(|source| unreadable(directory, source))?;
        if entry.file_name().as_encoded_bytes().starts_with(name) {
            let file = entry.path();
            match fs::symlink_metadata(&file) {
                Ok(found) => check(&file, found.uid(), found.mode(), Trust::Us)?,
                // The journal comes and goes with the board's users.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(unreadable(&file, source)),
            }
        }
    }
    Ok(())
}
