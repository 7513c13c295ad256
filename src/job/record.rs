//! Our own records on a board, which any peer may have changed.

use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use super::{LONGEST, history::cut};

pub(crate) const LONGEST_RECORD: usize = 256 * 1024;

const MOST_MEMBERS: usize = LONGEST / 2;

/// Reads our own record, which any peer may have changed: cuts long texts and lists.
pub(crate) fn from_json<T: DeserializeOwned>(record: &[u8]) -> serde_json::Result<T> {
    if record.len() > LONGEST_RECORD {
        let length = record.len();
        return Err(serde_json::Error::custom(format!(
            "the audit entry has {length} bytes"
        )));
    }
    let read = serde_json::from_slice(record)?;
    // A short record has no long parts.
    if record.len() <= LONGEST {
        return Ok(read);
    }
    let mut value = serde_json::from_slice(record)?;
    shorten(&mut value, LONGEST);
    serde_json::from_value(value)
}

fn shorten(value: &mut Value, longest: usize) {
    match value {
        Value::String(text) if text.len() > longest => *text = cut(text, longest),
        Value::Array(values) => {
            values.truncate(MOST_MEMBERS);
            values.iter_mut().for_each(|value| shorten(value, longest));
        }
        Value::Object(members) => {
            let mut room = MOST_MEMBERS;
            members.retain(|name, value| {
                // Output of commands may be longer.
                let is_output = matches!(name.as_str(), "stdout" | "stderr");
                shorten(value, if is_output { 2 * LONGEST } else { LONGEST });
                room = room.saturating_sub(1);
                room > 0 && name.len() <= LONGEST
            });
        }
        _ => {}
    }
}
