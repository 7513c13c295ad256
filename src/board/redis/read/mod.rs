//! Reading a board: shelves, jobs, and what is beside them.

pub(super) mod field;
pub(super) mod look;
pub(super) mod past;
pub(super) mod ranking;
pub(super) mod record;
pub(super) mod scan;
pub(super) mod sidecar;
