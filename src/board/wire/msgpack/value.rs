//! Shows stored values as JSON, including those without a JSON form.

use std::{borrow::Cow, fmt::Write};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    time::{self, StoredTime},
    token::{PackKey, PackReader, PackToken},
};
use crate::board::wire::{posting::RecordProblem, shown_float};

#[derive(Debug, Clone, Copy)]
pub(super) struct Viewer {
    /// Whether bytes that are UTF-8 are texts, as Python 2 wrote them.
    pub(super) has_byte_texts: bool,
}

impl Viewer {
    /// Expects a value that [`PackReader::item`] has validated.
    pub(super) fn show(self, reader: &mut PackReader<'_>) -> Result<Value, RecordProblem> {
        Ok(match reader.token()? {
            PackToken::Null => Value::Null,
            PackToken::Bool(truth) => truth.into(),
            PackToken::Unsigned(number) => number.into(),
            PackToken::Signed(number) => number.into(),
            PackToken::Float(number) => shown_float(number),
            PackToken::Text(text) => text.into(),
            PackToken::Bytes(bytes) => match self.text(bytes) {
                Some(text) => text.into(),
                None => json!({ "$bytes": STANDARD.encode(bytes) }),
            },
            PackToken::List(count) => {
                // The count was validated.
                let mut list = Vec::with_capacity(count as usize);
                for _ in 0..count {
                    list.push(self.show(reader)?);
                }
                list.into()
            }
            PackToken::Map(count) => (0..count)
                .map(|_| Ok((self.key(reader.key()?).into_owned(), self.show(reader)?)))
                .collect::<Result<Map<_, _>, RecordProblem>>()?
                .into(),
            PackToken::Extension(code, payload) => match shown_extension(code, payload) {
                Some(text) => json!({ "$ext": code, "text": text }),
                None => json!({ "$ext": code, "hex": hex(payload) }),
            },
        })
    }

    fn text(self, bytes: &[u8]) -> Option<&str> {
        std::str::from_utf8(bytes)
            .ok()
            .filter(|_| self.has_byte_texts)
    }

    pub(super) fn key<'a>(self, key: PackKey<'a>) -> Cow<'a, str> {
        match key {
            PackKey::Text(text) => text.into(),
            PackKey::Bytes(bytes) => match self.text(bytes) {
                Some(text) => text.to_owned().into(),
                None => format!("$bytes:{}", STANDARD.encode(bytes)).into(),
            },
        }
    }
}

pub(super) fn shown_extension(code: i8, payload: &[u8]) -> Option<String> {
    match code {
        time::UUID => Some(Uuid::try_parse_ascii(payload).ok()?.to_string()),
        time::DATETIME => Some(StoredTime::read(payload).ok()?.to_string()),
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
