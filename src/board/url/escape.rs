//! URL escapes, such as `%40` for `@`; and plain numbers.

use super::error::InvalidUrl;

pub(super) fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Replaces `%41` and the like; `part` names the place in error messages.
pub(super) fn decode(text: &str, part: &'static str) -> Result<String, InvalidUrl> {
    let wrong = || InvalidUrl::Escape { part };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex(rest.next(), rest.next()).ok_or_else(wrong)?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn hex(high: Option<u8>, low: Option<u8>) -> Option<u8> {
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// Escapes characters that would end a part of a URL, and those in `also`.
pub(super) fn encode(text: &str, also: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for char in text.chars() {
        let is_special = "%@?#&".contains(char) || char.is_ascii_whitespace();
        if is_special || char.is_ascii_control() || also.contains(char) {
            // All of them are ASCII, that is one byte.
            encoded.push_str(&format!("%{:02X}", u32::from(char)));
        } else {
            encoded.push(char);
        }
    }
    encoded
}
