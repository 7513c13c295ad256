//! Shows stored values as JSON, including those without a JSON form.

use std::{
    fmt::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    time::{self, StoredTime},
    token::{PackKey, PackReader, PackToken},
};
use crate::board::wire::{posting::Problem, shown_float};

#[derive(Debug, Clone, Copy)]
pub(super) struct Viewer {
    /// Whether bytes that are UTF-8 are texts, as Python 2 wrote them.
    has_byte_texts: bool,
    /// How many nested sets are decoded; deeper ones are shown as bytes.
    ///
    /// Each set is JSON text inside JSON text, so its quotes double at each level.
    sets: u8,
}

impl Viewer {
    pub(super) fn new(has_byte_texts: bool) -> Self {
        Self {
            has_byte_texts,
            sets: 3,
        }
    }

    /// Expects a value that [`PackReader::item`] has validated.
    pub(super) fn show(self, reader: &mut PackReader<'_>) -> Result<Value, Problem> {
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
                .map(|_| Ok((self.key(reader.key()?), self.show(reader)?)))
                .collect::<Result<Map<_, _>, Problem>>()?
                .into(),
            PackToken::Extension(code, payload) => match self.extension(code, payload) {
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

    pub(super) fn key(self, key: PackKey<'_>) -> String {
        match key {
            PackKey::Text(text) => text.to_owned(),
            PackKey::Bytes(bytes) => match self.text(bytes) {
                Some(text) => text.to_owned(),
                None => format!("$bytes:{}", STANDARD.encode(bytes)),
            },
        }
    }

    pub(super) fn extension(self, code: i8, payload: &[u8]) -> Option<String> {
        match code {
            0 => Some(Uuid::try_parse_ascii(payload).ok()?.to_string()),
            time::DATETIME | 6 => Some(StoredTime::read(payload).ok()?.to_string()),
            2 => self.list(payload).filter(|list| list.len() == 2).map(text),
            3 => address(payload).map(|address| address.to_string()),
            4 | 5 => self.list(payload).map(text),
            7 => Some(time::read_date(payload).ok()?.to_string()),
            _ => None,
        }
    }

    fn list(self, payload: &[u8]) -> Option<Vec<Value>> {
        let inner = Self {
            sets: self.sets.checked_sub(1)?,
            ..self
        };
        let mut reader = PackReader::new(payload);
        reader.item().ok()?;
        reader.end().ok()?;
        match inner.show(&mut PackReader::new(payload)).ok()? {
            Value::Array(list) => Some(list),
            _ => None,
        }
    }
}

fn text(list: Vec<Value>) -> String {
    Value::Array(list).to_string()
}

fn address(payload: &[u8]) -> Option<IpAddr> {
    let mut reader = PackReader::new(payload);
    let PackToken::Unsigned(number) = reader.token().ok()? else {
        return None;
    };
    reader.end().ok()?;
    Some(match u32::try_from(number) {
        Ok(number) => Ipv4Addr::from_bits(number).into(),
        Err(_) => Ipv6Addr::from_bits(number.into()).into(),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
