//! Reading a board: its jobs, the trash and the sidecars.

pub(super) mod history;
pub(super) mod look;
pub(super) mod ranking;
pub(super) mod record;
pub(super) mod scan;
pub(super) mod sidecar;
