//! The records of network boards, byte for byte as TaskFlow stores them.
//!
//! Converts between bytes and jobs. Contacts no server, and reads only time zone files.

pub(crate) mod json;
pub(crate) mod msgpack;
pub(crate) mod past;
pub(crate) mod posting;
mod shown;
pub(crate) mod sidecar;

pub(crate) fn as_json(record: &impl serde::Serialize) -> String {
    // Texts, numbers and times always have a JSON form.
    serde_json::to_string(record).unwrap_or_default()
}
