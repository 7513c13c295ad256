//! The records of network boards, byte for byte as TaskFlow stores them.
//!
//! Between bytes and the model: no server is spoken to here, and no file read but those of time zones.

pub(crate) mod json;
pub(crate) mod msgpack;
pub(crate) mod past;
pub(crate) mod posting;
mod shown;
pub(crate) mod sidecar;

pub(crate) fn as_json(record: &impl serde::Serialize) -> String {
    // Texts, numbers and times have nothing that JSON has no form for.
    serde_json::to_string(record).unwrap_or_default()
}
