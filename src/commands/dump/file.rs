//! Where a dump goes: a file that is there whole or not at all, or standard output.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::Serialize;
use uuid::Uuid;

use crate::{
    commands::parts::dump_format::Hash,
    context::{Context, on_file},
    output::json_line,
};

/// Takes the lines of a dump, and knows the hash of those that it has.
pub(super) struct Sink {
    hash: Hash,
    file: Option<Target>,
}

/// A file that is being written.
struct Target {
    writer: BufWriter<File>,
    /// Where it is to be in the end.
    path: PathBuf,
    /// Where it is until then; none, if what is at its place is no file, such as a pipe.
    partial: Option<PathBuf>,
}

impl Sink {
    /// Prepares a file, or standard output.
    pub(super) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let file = path.map(Target::open).transpose()?;
        Ok(Self {
            hash: Hash::default(),
            file,
        })
    }

    pub(super) fn line(&mut self, ctx: &mut Context, line: &impl Serialize) -> anyhow::Result<()> {
        // Whoever sees it on a terminal must not be acted on by it.
        let bytes = json_line(line)?;
        self.hash.update(&bytes);
        match &mut self.file {
            Some(file) => on_file(&file.path, "write", file.writer.write_all(&bytes)),
            None => ctx.out.pass(&bytes),
        }
    }

    /// Returns the hash of all lines so far.
    pub(super) fn sha256(&self) -> String {
        self.hash.hex()
    }

    /// Puts the file into its place, and returns where that is; none for standard output.
    pub(super) fn finish(mut self, ctx: &mut Context) -> anyhow::Result<Option<PathBuf>> {
        let Some(file) = &mut self.file else {
            ctx.out.flush()?;
            return Ok(None);
        };
        let finished = file.finish();
        on_file(&file.path, "write", finished)?;
        Ok(Some(file.path.clone()))
    }
}

impl Target {
    fn open(path: &Path) -> anyhow::Result<Self> {
        // What a link leads to is meant, and what is no file cannot be put in its place.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_other = fs::metadata(&path).is_ok_and(|facts| !facts.is_file());
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

    fn finish(&mut self) -> std::io::Result<()> {
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
