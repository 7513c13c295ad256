//! Jobs outside of a board: as lines of JSON, in sealed files, and on their way to another board.

pub(crate) mod batches;
pub(crate) mod draft_lines;
pub(crate) mod dump;
pub(crate) mod json;
pub(crate) mod limits;
pub(crate) mod lines;
pub(crate) mod loader;
pub(crate) mod moving;
pub(crate) mod record;
pub(crate) mod sealed;
