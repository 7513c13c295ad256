//! Restores values without a JSON form from their shown form.

use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{Datelike, NaiveDateTime, Timelike};
use serde::{Serialize, Serializer};
use serde_bytes::ByteBuf;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    time::{DATETIME, TimeMembers, UUID},
    value::shown_extension,
};

const USUAL_BYTES: usize = 512;

/// A value as shown; an invalid special form is an ordinary map.
pub(super) struct ShownValue<'a>(pub(super) &'a Value);

impl Serialize for ShownValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(items) => serializer.collect_seq(items.iter().map(ShownValue)),
            Value::Object(members) => match Special::of(members) {
                Some(Special::Float(number)) => serializer.serialize_f64(number),
                Some(Special::Bytes(bytes)) => serializer.serialize_bytes(&bytes),
                Some(Special::Extension(code, payload)) => {
                    Extension((code, payload.into())).serialize(serializer)
                }
                None => {
                    let members = members.iter();
                    serializer.collect_map(
                        members.map(|(name, value)| (ShownKey(name), ShownValue(value))),
                    )
                }
            },
            plain => plain.serialize(serializer),
        }
    }
}

struct ShownKey<'a>(&'a str);

impl Serialize for ShownKey<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let encoded = self.0.strip_prefix("$bytes:");
        match encoded.and_then(|text| STANDARD.decode(text).ok()) {
            Some(bytes) => serializer.serialize_bytes(&bytes),
            None => serializer.serialize_str(self.0),
        }
    }
}

enum Special {
    Float(f64),
    Bytes(Vec<u8>),
    Extension(i8, Vec<u8>),
}

impl Special {
    fn of(members: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| members.get(name)?.as_str();
        match members.len() {
            1 => {
                let float = text("$float").and_then(|text| match text {
                    "nan" => Some(f64::NAN),
                    "inf" => Some(f64::INFINITY),
                    "-inf" => Some(f64::NEG_INFINITY),
                    _ => None,
                });
                let bytes = || STANDARD.decode(text("$bytes")?).ok();
                float.map(Self::Float).or_else(|| bytes().map(Self::Bytes))
            }
            2 => {
                let code = i8::try_from(members.get("$ext")?.as_i64()?).ok()?;
                // Only one negative code is defined; a text stands for its shown meaning.
                let payload = match text("hex") {
                    Some(hex) => unhex(hex),
                    None => {
                        let text = text("text")?;
                        let means = |payload: &Vec<u8>| {
                            shown_extension(code, payload).as_deref() == Some(text)
                        };
                        payload(code, text).filter(means)
                    }
                };
                payload
                    .filter(|_| code >= -1)
                    .map(|payload| Self::Extension(code, payload))
            }
            _ => None,
        }
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let digit = |it: u8| char::from(it).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(16 * digit(*high)? + digit(*low)?).ok();
    pairs.iter().map(byte).collect()
}

fn payload(code: i8, text: &str) -> Option<Vec<u8>> {
    Some(match code {
        UUID => Uuid::try_parse(text)
            .ok()?
            .simple()
            .to_string()
            .into_bytes(),
        DATETIME => moment(text)?,
        _ => return None,
    })
}

fn moment(text: &str) -> Option<Vec<u8>> {
    const CLOCK_LENGTH: usize = "2024-02-29T13:05:09.123456".len();
    let (clock, zone) = text.split_at_checked(CLOCK_LENGTH)?;
    let clock: NaiveDateTime = clock.parse().ok()?;
    let zone = match zone {
        "" => None,
        "+00:00" => Some("UTC"),
        zone => Some(zone.strip_prefix('[')?.strip_suffix(']')?),
    };
    Some(bytes(&TimeMembers {
        day: clock.day(),
        month: clock.month(),
        year: clock.year(),
        hour: clock.hour(),
        minute: clock.minute(),
        second: clock.second(),
        microsecond: clock.nanosecond() / 1000,
        tz: zone,
    }))
}

/// An extension value: rmp-serde recognises this name.
#[derive(Serialize)]
#[serde(rename = "_ExtStruct")]
pub(super) struct Extension(pub(super) (i8, ByteBuf));

pub(crate) fn bytes(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    rmp_serde::encode::write_named(&mut bytes, value)
        .expect("posted details come from JSON, which is never too deep");
    bytes
}
