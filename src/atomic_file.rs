//! Writes files atomically.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, BufWriter, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use uuid::Uuid;

use crate::{
    bounded_read::output,
    trust::{Trust, check},
};

pub(crate) fn on_file<T>(path: &Path, verb: &str, result: io::Result<T>) -> anyhow::Result<T> {
    result.with_context(|| format!("cannot {verb} {}", path.display()))
}

/// Refuses a link of another user, who chooses the file behind it.
pub(crate) fn refuse_foreign_link(path: &Path) -> anyhow::Result<()> {
    match fs::symlink_metadata(path) {
        // The mode of a link has no meaning.
        Ok(found) if found.is_symlink() => check(path, found.uid(), 0, Trust::UsAndRoot)
            .with_context(|| format!("cannot write through the link {}", path.display())),
        _ => Ok(()),
    }
}

/// A file under construction, private to its owner by default.
pub(crate) struct AtomicFile {
    writer: BufWriter<File>,
    given: PathBuf,
    path: PathBuf,
    /// The temporary path; `None` if the target is not a regular file, for example a pipe.
    partial: Option<PathBuf>,
}

impl AtomicFile {
    pub(crate) fn open(given: &Path) -> anyhow::Result<Self> {
        refuse_foreign_link(given)?;
        // Follows links: the target of the link is written.
        let path = fs::canonicalize(given).unwrap_or_else(|_| given.to_owned());
        let is_other = fs::metadata(&path).is_ok_and(|facts| !facts.is_file());
        let mut file = Self::at(path, is_other)?;
        file.given = given.to_owned();
        Ok(file)
    }

    fn at(path: PathBuf, is_other: bool) -> anyhow::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let partial = format!(".{name}.{}.partial", Uuid::new_v4().simple());
        let partial = (!is_other).then(|| path.with_file_name(partial));
        let mut options = OpenOptions::new();
        options.write(true).create_new(!is_other).mode(0o600);
        let file = output(&mut options, partial.as_ref().unwrap_or(&path));
        Ok(Self {
            writer: BufWriter::with_capacity(256 * 1024, on_file(&path, "write", file)?),
            given: path.clone(),
            path,
            partial,
        })
    }

    /// Writes a file that all may read. Replaces a link, but otherwise only a regular file; returns the metadata.
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
        // Reads the open file: another one may have its path by now.
        on_file(path, "read", target.writer.get_ref().metadata())
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        on_file(&self.path, "write", self.writer.write_all(bytes))
    }

    /// Returns the path as the user gave it.
    pub(crate) fn finish(mut self) -> anyhow::Result<PathBuf> {
        let placed = self.place();
        on_file(&self.path, "write", placed)?;
        Ok(self.given.clone())
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

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // A leftover does no harm.
            let _ = fs::remove_file(partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{lchown, symlink};

    use super::*;

    #[test]
    fn only_links_of_this_user_are_followed() {
        let directory = tempfile::tempdir().unwrap();
        let [target, link] = ["target", "link"].map(|name| directory.path().join(name));
        symlink(&target, &link).unwrap();
        AtomicFile::open(&link).unwrap();
        // Only root can give a link away.
        if lchown(&link, Some(1), None).is_ok() {
            let refused = format!("{:#}", AtomicFile::open(&link).err().unwrap());
            assert!(refused.contains("belongs to user 1, not to"), "{refused}");
        }
    }
}
