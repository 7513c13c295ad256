//! JSON that is safe to print: unsafe characters are escaped, and parse to the same text.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Serializer, ser::Formatter};

use crate::printable::is_unsafe;

/// On one line. A parser restores every text, escaped or not.
pub(super) fn write(to: impl Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(to, UnicodeEscaper))
}

pub(crate) fn line(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(256);
    write(&mut line, value)?;
    line.push(b'\n');
    Ok(line)
}

/// Escapes unsafe characters in addition to JSON's own.
struct UnicodeEscaper;

impl Formatter for UnicodeEscaper {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // Almost all text is plain; without an early exit the compiler checks many bytes per step.
        let odd = |any: bool, byte: u8| any | !matches!(byte, b' '..=b'~');
        if !fragment.bytes().fold(false, odd) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut rest = fragment;
        while let Some((at, character)) = rest.char_indices().find(|(_, it)| is_unsafe(*it)) {
            writer.write_all(&rest.as_bytes()[..at])?;
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = &rest[at + character.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn control_characters_are_escaped_without_changing_the_text() {
        let nasty = "a\u{9b}31m\u{202e}b\u{2028}\u{7f}\u{e0041}\u{1b}\"\\ é☃😀";
        let value = json!({ nasty: [nasty, "plain"] });
        let line = String::from_utf8(line(&value).unwrap()).unwrap();
        let text = r#"a\u009b31m\u202eb\u2028\u007f\udb40\udc41\u001b\"\\ é☃😀"#;
        assert_eq!(line, format!("{{\"{text}\":[\"{text}\",\"plain\"]}}\n"));
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
    }
}
