//! A file that is there whole or not at all.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{BufWriter, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use uuid::Uuid;

use crate::context::on_file;

/// A file that is being written, for its owner alone unless said otherwise.
pub(crate) struct Target {
    writer: BufWriter<File>,
    path: PathBuf,
    /// Where it is until then; none, if what is at its place is no file, such as a pipe.
    partial: Option<PathBuf>,
}

impl Target {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        // What a link leads to is meant, and what is no file cannot be put in its place.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_other = fs::metadata(&path).is_ok_and(|facts| !facts.is_file());
        Self::at(path, is_other)
    }

    fn at(path: PathBuf, is_other: bool) -> anyhow::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let partial = format!(".{name}.{}.partial", Uuid::new_v4().simple());
        let partial = (!is_other).then(|| path.with_file_name(partial));
        let mut options = OpenOptions::new();
        options.write(true).create_new(!is_other).mode(0o600);
        let file = options.open(partial.as_ref().unwrap_or(&path));
        Ok(Self {
            writer: BufWriter::with_capacity(256 * 1024, on_file(&path, "write", file)?),
            path,
            partial,
        })
    }

    /// Puts a file into its place that all may read, in the place of a link, and of nothing but a file;
    /// returns which file it is.
    pub(crate) fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<Metadata> {
        let is_other =
            fs::symlink_metadata(path).is_ok_and(|it| !(it.is_file() || it.is_symlink()));
        anyhow::ensure!(
            !is_other,
            "cannot write {}: not a regular file",
            path.display()
        );
        let mut target = Self::at(path.to_owned(), false)?;
        target.write(bytes)?;
        let permissions = fs::Permissions::from_mode(0o644);
        let set = target.writer.get_ref().set_permissions(permissions);
        on_file(path, "write", set)?;
        let placed = target.place();
        on_file(path, "write", placed)?;
        // By what is open: another file may be in its place by now.
        on_file(path, "read", target.writer.get_ref().metadata())
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        on_file(&self.path, "write", self.writer.write_all(bytes))
    }

    pub(crate) fn finish(mut self) -> anyhow::Result<PathBuf> {
        let placed = self.place();
        on_file(&self.path, "write", placed)?;
        Ok(self.path.clone())
    }

    fn place(&mut self) -> std::io::Result<()> {
        self.writer.flush()?;
        let Some(partial) = &self.partial else {
            return Ok(());
        };
        self.writer.get_ref().sync_all()?;
        fs::rename(partial, &self.path)?;
        self.partial = None;
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // It is of no use to anybody, and in nobody's way.
            let _ = fs::remove_file(partial);
        }
    }
}
