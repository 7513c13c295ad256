//! Saying, once, that the board does not remember what ends.

use std::cell::Cell;

use crate::board::Settled;

/// Whether it was said.
#[derive(Debug, Default)]
pub(crate) struct Forgotten(Cell<bool>);

impl Forgotten {
    /// Returns what is to be said if nothing is remembered of a job, and it was not said before.
    pub(crate) fn warning(&self, settled: &Settled) -> Option<String> {
        let why = settled.forgotten.as_ref()?;
        (!self.0.replace(true)).then(|| warning(why))
    }
}

pub(crate) fn warning(why: &str) -> String {
    format!("warning: the history is not recorded: {why}")
}
