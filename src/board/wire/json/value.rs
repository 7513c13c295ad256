//! Shows stored values, including those that only Python's JSON allows.

use serde_json::{Map, Value, json};

use super::{
    text::Text,
    token::{Item, Reader, Token},
};
use crate::board::wire::{posting::Problem, shown};

/// Shows a value.
///
/// A text with a lone surrogate appears as `{"$text": "…"}`, and as a key with the prefix `$text:`. Both keep the
/// board's escapes.
pub(super) fn show(item: Item<'_>) -> Result<Value, Problem> {
    next(&mut Reader::new(item.text))
}

/// Shows a validated JSON text, or only these members of a map.
pub(super) fn shown(text: &[u8], names: Option<&[&str]>) -> Option<Value> {
    value_of(text, names, |text| next(&mut Reader::new(text)).ok())
}

/// Decodes a validated JSON text, or only these members of a map.
pub(crate) fn value_of(
    text: &[u8],
    names: Option<&[&str]>,
    read: impl Fn(&str) -> Option<Value>,
) -> Option<Value> {
    let text = std::str::from_utf8(text).ok()?;
    let Some(names) = names else {
        return read(text);
    };
    let (mut reader, mut found) = (Reader::new(text), Map::new());
    let Token::Map = reader.token().ok()? else {
        return None;
    };
    let find = |reader: &mut Reader<'_>, it: Text<'_>| {
        let (name, value) = (key(it), reader.item()?.text);
        if names.contains(&name.as_str()) {
            found.extend(read(value).map(|value| (name, value)));
        }
        Ok(())
    };
    reader.members(find).ok()?;
    Some(found.into())
}

fn next(reader: &mut Reader<'_>) -> Result<Value, Problem> {
    Ok(match reader.token()? {
        Token::Null => Value::Null,
        Token::Bool(truth) => truth.into(),
        Token::Integer(literal) => integer(literal),
        Token::Float(literal) => float(literal),
        Token::Text(text) => match text.read() {
            Some(text) => text.into(),
            None => json!({ "$text": text.escaped() }),
        },
        Token::List => {
            let mut list = Vec::new();
            reader.values(|reader| {
                list.push(next(reader)?);
                Ok(())
            })?;
            list.into()
        }
        Token::Map => {
            let mut map = Map::new();
            reader.members(|reader, name| {
                map.insert(key(name), next(reader)?);
                Ok(())
            })?;
            map.into()
        }
    })
}

/// Returns the first integer in a JSON text that 64 bits do not hold.
pub(crate) fn oversized_integer(text: &str) -> Option<&str> {
    fn seek<'a>(reader: &mut Reader<'a>, found: &mut Option<&'a str>) -> Result<(), Problem> {
        match reader.token()? {
            Token::Integer(literal) if integer(literal).is_object() => {
                found.get_or_insert(literal);
                Ok(())
            }
            Token::List => reader.values(|reader| seek(reader, found)),
            Token::Map => reader.members(|reader, _| seek(reader, found)),
            _ => Ok(()),
        }
    }
    let mut found = None;
    seek(&mut Reader::new(text), &mut found).ok()?;
    found
}

fn key(text: Text<'_>) -> String {
    match text.read() {
        Some(text) => text.into_owned(),
        None => format!("$text:{}", text.escaped()),
    }
}

fn integer(literal: &str) -> Value {
    let unsigned = literal.parse::<u64>().map(Value::from);
    unsigned
        .or_else(|_| literal.parse::<i64>().map(Value::from))
        .unwrap_or_else(|_| json!({ "$int": literal }))
}

fn float(literal: &str) -> Value {
    // The grammar admits only numbers; an oversized one is infinite.
    shown::float(literal.parse().unwrap_or(f64::NAN))
}
