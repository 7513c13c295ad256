//! Where a dump goes: a file that is there whole or not at all, or standard output.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{
    commands::parts::{dump_format::Hash, target::Target},
    context::Context,
    output::json_line,
};

/// Takes the lines of a dump, and knows the hash of those that it has.
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
        // Whoever sees it on a terminal must not be acted on by it.
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

    /// Puts the file into its place, and returns where that is; none for standard output.
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
