//! Shows stored values, including those that only Python's JSON allows.

use serde_json::{Map, Value, json};

use super::token::{JsonItem, JsonReader, JsonText, JsonToken};
use crate::board::wire::{posting::RecordProblem, shown_float};

pub(super) fn show(item: JsonItem<'_>) -> Result<Value, RecordProblem> {
    next(&mut JsonReader::new(item.text))
}

pub(super) fn shown(text: &[u8], names: Option<&[&str]>) -> Option<Value> {
    value_of(text, names, |text| next(&mut JsonReader::new(text)).ok())
}

pub(crate) fn value_of(
    text: &[u8],
    names: Option<&[&str]>,
    read: impl Fn(&str) -> Option<Value>,
) -> Option<Value> {
    let text = std::str::from_utf8(text).ok()?;
    let Some(names) = names else {
        return read(text);
    };
    let (mut reader, mut found) = (JsonReader::new(text), Map::new());
    let JsonToken::Map = reader.token().ok()? else {
        return None;
    };
    let find = |reader: &mut JsonReader<'_>, it: JsonText<'_>| {
        let (name, value) = (it.read(), reader.item()?.text);
        if names.contains(&&*name) {
            found.extend(read(value).map(|value| (name.into_owned(), value)));
        }
        Ok(())
    };
    reader.members(find).ok()?;
    Some(found.into())
}

fn next(reader: &mut JsonReader<'_>) -> Result<Value, RecordProblem> {
    Ok(match reader.token()? {
        JsonToken::Null => Value::Null,
        JsonToken::Bool(truth) => truth.into(),
        JsonToken::Integer(literal) => integer(literal),
        JsonToken::Float(literal) => float(literal),
        JsonToken::Text(text) => text.read().into(),
        JsonToken::List => {
            let mut list = Vec::new();
            reader.values(|reader| {
                list.push(next(reader)?);
                Ok(())
            })?;
            list.into()
        }
        JsonToken::Map => {
            let mut map = Map::new();
            reader.members(|reader, name| {
                map.insert(name.read().into_owned(), next(reader)?);
                Ok(())
            })?;
            map.into()
        }
    })
}

/// Returns the first integer in a JSON text that 64 bits do not hold.
pub(crate) fn oversized_integer(text: &str) -> Option<&str> {
    fn seek<'a>(
        reader: &mut JsonReader<'a>,
        found: &mut Option<&'a str>,
    ) -> Result<(), RecordProblem> {
        match reader.token()? {
            JsonToken::Integer(literal) if integer(literal).is_object() => {
                found.get_or_insert(literal);
                Ok(())
            }
            JsonToken::List => reader.values(|reader| seek(reader, found)),
            JsonToken::Map => reader.members(|reader, _| seek(reader, found)),
            _ => Ok(()),
        }
    }
    let mut found = None;
    seek(&mut JsonReader::new(text), &mut found).ok()?;
    found
}

fn integer(literal: &str) -> Value {
    let unsigned = literal.parse::<u64>().map(Value::from);
    unsigned
        .or_else(|_| literal.parse::<i64>().map(Value::from))
        .unwrap_or_else(|_| json!({ "$int": literal }))
}

fn float(literal: &str) -> Value {
    // The grammar admits only numbers; an oversized one is infinite.
    shown_float(literal.parse().unwrap_or(f64::NAN))
}
