//! The records of network boards, byte for byte as TaskFlow stores them.
//!
//! Pure functions between bytes and the model; reading and writing a server is up to the backends.

#[cfg_attr(
    not(test),
    expect(
        dead_code,
        unused_imports,
        reason = "for boards that keep records in JSON"
    )
)]
pub(crate) mod json;
pub(crate) mod msgpack;
pub(crate) mod posting;
mod shown;
pub(crate) mod side;
