//! Writes a dump: a file that appears atomically, or standard output.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{
    commands::parts::{dump_format::Hash, target::Target},
    context::Context,
    output::json_line,
};

/// Writes lines and computes their hash.
pub(super) struct Sink {
    hash: Hash,
    file: Option<Target>,
}

impl Sink {
    pub(super) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let file = path.map(Target::open).transpose()?;
        Ok(Self {
            hash: Hash::default(),
            file,
        })
    }

    pub(super) fn line(&mut self, ctx: &mut Context, line: &impl Serialize) -> anyhow::Result<()> {
        // The text must be safe on a terminal.
        let bytes = json_line(line)?;
        self.hash.update(&bytes);
        match &mut self.file {
            Some(file) => file.write(&bytes),
            None => ctx.out.pass(&bytes),
        }
    }

    pub(super) fn sha256(&self) -> String {
        self.hash.hex()
    }

    /// Moves the file to its final path; returns that path, `None` for standard output.
    pub(super) fn finish(self, ctx: &mut Context) -> anyhow::Result<Option<PathBuf>> {
        match self.file {
            Some(file) => file.finish().map(Some),
            None => {
                ctx.out.flush()?;
                Ok(None)
            }
        }
    }
}
