//! Reading a board: shelves, jobs, and what is beside them.

pub(super) mod find;
pub(super) mod look;
pub(super) mod record;
