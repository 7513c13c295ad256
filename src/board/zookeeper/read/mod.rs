//! Reading a board: its jobs, the trash and the sidecars.

pub(super) mod find;
pub(super) mod look;
pub(super) mod record;
