//! Parses JSON without loss.

use serde_json::{Map, Value};

use crate::board::oversized_integer;

/// Parses JSON; the error names the position.
///
/// An integer beyond 64 bits is an error, since it would be stored as another number.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let value = serde_json::from_str(text)
        .map_err(|error| format!("not valid JSON: {}", worded(text, &error)))?;
    match oversized_integer(text) {
        None => Ok(value),
        Some(integer) => Err(format!(
            "the integer {integer} does not fit into 64 bits; write it as text"
        )),
    }
}

/// Parses a JSON object; the error shows the expected form.
pub(crate) fn object(line: &[u8]) -> Result<Map<String, Value>, String> {
    let text = std::str::from_utf8(line)
        .map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to() + 1))?;
    // The caller reports the line number.
    let value = parse(text).map_err(|error| error.replace("line 1 column", "column"))?;
    match value {
        Value::Object(members) => Ok(members),
        other => Err(format!(
            "a line must be a JSON object such as {{\"name\": \"resize\"}}, not {}",
            kind(&other)
        )),
    }
}

fn worded(text: &str, error: &serde_json::Error) -> String {
    if text.trim().is_empty() {
        return "empty input".to_owned();
    }
    let message = error.to_string();
    let place = format!("line {} column {}", error.line(), error.column());
    let what = message
        .strip_suffix(&format!(" at {place}"))
        .unwrap_or(&message);
    let what = match what {
        "expected value" | "expected ident" => "expected a value",
        "trailing characters" => "unexpected text after the value",
        "recursion limit exceeded" => "nested too deeply",
        _ if error.is_eof() => "unexpected end",
        what => what,
    };
    format!("{what} at {place}")
}

pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_numbers_are_accepted() {
        for text in [
            "18446744073709551615",
            "-9223372036854775808",
            "[1e30, 1.5, -0.0, 0]",
            r#"{"a\"1": "123456789012345678901234567890", "b\\": 1}"#,
        ] {
            parse(text).unwrap();
        }
    }

    #[test]
    fn inexact_integers_are_refused() {
        for text in [
            "18446744073709551616",
            "-9223372036854775809",
            r#"{"a": [0, {"b\\\"": 123456789012345678901234567890}]}"#,
        ] {
            assert!(parse(text).unwrap_err().contains("64 bits"), "{text}");
        }
    }

    #[test]
    fn error_has_its_position() {
        let error = parse("{\"a\":\n 1,}").unwrap_err();
        assert!(error.contains("line 2 column 4"), "{error}");
    }
}
