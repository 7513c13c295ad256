//! The records of network boards, byte for byte as TaskFlow stores them.
//!
//! Pure functions between bytes and the model; reading and writing a server is up to the backends.

pub(crate) mod json;
pub(crate) mod msgpack;
pub(crate) mod posting;
mod shown;
pub(crate) mod sidecar;
