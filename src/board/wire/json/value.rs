//! Shows stored values, also those that Python reads and JSON has no form for.

use serde_json::{Map, Value, json};

use super::{
    text::Text,
    token::{Item, Reader, Token},
};
use crate::board::wire::{posting::Problem, shown};

/// Shows a value.
///
/// A text with half of a surrogate pair appears as `{"$text": "…"}`, and as a key with `$text:`
/// before it, with the escapes that it has on the board.
pub(super) fn show(item: Item<'_>) -> Result<Value, Problem> {
    next(&mut Reader::new(item.text))
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
    // Whatever the grammar lets through is a number; what is too large for one is infinite.
    shown::float(literal.parse().unwrap_or(f64::NAN))
}
