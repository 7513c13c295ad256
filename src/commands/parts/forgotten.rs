//! Warns once that the board keeps no history.

use std::cell::Cell;

use crate::board::Settled;

#[derive(Debug, Default)]
pub(crate) struct Forgotten(Cell<bool>);

impl Forgotten {
    /// Returns the warning if the board kept no record, the first time only.
    pub(crate) fn warning(&self, settled: &Settled) -> Option<String> {
        let why = settled.forgotten.as_ref()?;
        (!self.0.replace(true)).then(|| warning(why))
    }
}

pub(crate) fn warning(why: &str) -> String {
    format!("warning: the history is not recorded: {why}")
}
