//! Network code shared by server-based boards.

pub(crate) mod cause;
pub(super) mod certificate;
pub(super) mod connect;
pub(crate) mod failure;
pub(crate) mod tls;
