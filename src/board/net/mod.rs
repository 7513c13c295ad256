//! Network code shared by server-based boards.

pub(crate) mod cause;
pub(super) mod connect;
pub(super) mod expiry;
pub(crate) mod failure;
pub(crate) mod tls;
