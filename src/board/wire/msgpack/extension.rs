//! MessagePack extension types, and encoding values to bytes.

use serde::{Serialize, Serializer};

const USUAL: usize = 512;

/// The members of a time in TaskFlow's order.
#[derive(Serialize)]
pub(super) struct Moment<'a> {
    pub(super) day: u32,
    pub(super) month: u32,
    pub(super) year: i32,
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
    pub(super) microsecond: u32,
    /// The zone, unless it is implicitly UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tz: Option<&'a str>,
}

/// An extension value: rmp-serde recognizes this name.
#[derive(Serialize)]
#[serde(rename = "_ExtStruct")]
pub(super) struct Extension(pub(super) (i8, Bytes));

pub(super) struct Bytes(pub(super) Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

/// Encodes a value, its members by their names.
pub(super) fn bytes(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(USUAL);
    rmp_serde::encode::write_named(&mut bytes, value)
        .expect("what is posted came from JSON, which is never too deep");
    bytes
}
