//! Reading a board: pages of a shelf, and single jobs.

pub(super) mod look;
pub(super) mod record;
