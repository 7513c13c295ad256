//! What boards on servers share.

pub(super) mod connect;
pub(super) mod expiry;
pub(super) mod failure;
pub(super) mod problem;
pub(super) mod tls;
