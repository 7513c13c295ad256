//! What boards on servers share.

pub(super) mod connect;
pub(super) mod expiry;
pub(crate) mod failure;
pub(crate) mod problem;
pub(crate) mod tls;
