//! Writes postings exactly as TaskFlow does.

use std::{fmt::Write, io};

use serde::Serialize;
use serde_json::{Serializer, Value, ser::Formatter};

use crate::job::{Book, Draft};

#[derive(Serialize)]
struct JsonPosting<'a> {
    uuid: String,
    name: &'a str,
    priority: &'static str,
    details: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    book: Option<&'a Book>,
}

pub(crate) fn encode(draft: &Draft) -> Vec<u8> {
    bytes(&JsonPosting {
        uuid: draft.uuid.to_string(),
        name: &draft.name,
        priority: draft.priority.name(),
        details: &draft.details.value(),
        book: draft.book.as_ref(),
    })
}

/// Encodes a value as Python does: pure ASCII, a space after commas and colons.
pub(super) fn bytes(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Python);
    value
        .serialize(&mut serializer)
        .expect("every key is a string, and memory takes what is written");
    bytes
}

pub(super) fn escape(units: impl Iterator<Item = u16>, out: &mut String) {
    for unit in units {
        let letter = match u8::try_from(unit) {
            Ok(0x08) => 'b',
            Ok(0x0c) => 'f',
            Ok(b'\n') => 'n',
            Ok(b'\r') => 'r',
            Ok(b'\t') => 't',
            Ok(byte @ (b'"' | b'\\')) => byte.into(),
            Ok(byte @ b' '..=b'~') => {
                out.push(byte.into());
                continue;
            }
            _ => {
                // Writing to a text cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
                continue;
            }
        };
        out.extend(['\\', letter]);
    }
}

struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        separate(out, first)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        separate(out, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // `serde_json` writes quotes and control characters by another method.
        if fragment.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return out.write_all(fragment.as_bytes());
        }
        let mut escaped = String::new();
        escape(fragment.encode_utf16(), &mut escaped);
        out.write_all(escaped.as_bytes())
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, out: &mut W, number: f64) -> io::Result<()> {
        out.write_all(float(number).as_bytes())
    }
}

fn separate<W: ?Sized + io::Write>(out: &mut W, first: bool) -> io::Result<()> {
    if first { Ok(()) } else { out.write_all(b", ") }
}

/// Writes a number with the fewest unique digits, as Python does.
fn float(number: f64) -> String {
    let shortest = format!("{number:e}");
    let Some((decimals, exponent)) = measure(&shortest) else {
        return shortest;
    };
    // Of two equally short and near numbers Python takes the even one.
    if (-4..16).contains(&exponent) {
        let decimals = (decimals as i32 - exponent).max(1);
        return format!("{number:.*}", decimals as usize);
    }
    let even = format!("{number:.decimals$e}");
    let text = if even.parse() == Ok(number) {
        even
    } else {
        shortest
    };
    let digits = text.split('e').next().unwrap_or_default();
    format!("{digits}e{exponent:+03}")
}

/// Returns the number of digits after the point, and the exponent.
fn measure(scientific: &str) -> Option<(usize, i32)> {
    let (digits, exponent) = scientific.split_once('e')?;
    let decimals = digits.split_once('.').map_or(0, |(_, behind)| behind.len());
    Some((decimals, exponent.parse().ok()?))
}
