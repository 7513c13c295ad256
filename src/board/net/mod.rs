//! Network code shared by server-based boards.

pub(super) mod connect;
pub(super) mod expiry;
pub(crate) mod failure;
pub(crate) mod problem;
pub(crate) mod tls;
