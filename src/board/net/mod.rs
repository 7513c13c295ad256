//! What boards on servers share.

pub(super) mod failure;
pub(super) mod tls;
