//! Reading a board: listing pages, and single jobs.

pub(super) mod look;
pub(super) mod record;
