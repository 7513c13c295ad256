//! Stored records and messages, byte for byte as TaskFlow and jobboard write them.
//!
//! Contacts no server, and reads only time zone files.

pub(crate) mod conductor;
pub(crate) mod history;
pub(crate) mod json;
pub(crate) mod marker;
mod members;
pub(crate) mod message;
mod moves;
pub(crate) mod msgpack;
mod pause;
pub(crate) mod posting;
pub(crate) mod sidecar;
#[cfg(test)]
mod testing;
pub(crate) mod verify_stored;

use serde_json::{Number, Value, json};

pub(crate) fn as_json(record: &impl serde::Serialize) -> String {
    // Texts, numbers and times always have a JSON form.
    serde_json::to_string(record).unwrap_or_default()
}

fn shown_float(number: f64) -> Value {
    match Number::from_f64(number) {
        Some(finite) => finite.into(),
        None if number.is_nan() => json!({ "$float": "nan" }),
        None if number > 0.0 => json!({ "$float": "inf" }),
        None => json!({ "$float": "-inf" }),
    }
}
