//! JSON texts, which unlike Rust's may contain lone surrogates.

use std::{borrow::Cow, str::Chars};

use super::write::escape;

/// A validated text as it stands between its quotes.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonText<'a> {
    literal: &'a str,
    has_escapes: bool,
}

impl<'a> JsonText<'a> {
    pub(super) fn new(literal: &'a str, has_escapes: bool) -> Self {
        Self {
            literal,
            has_escapes,
        }
    }

    pub(super) fn length(self) -> usize {
        self.literal.len()
    }

    /// Returns the decoded text; `None` if it has a lone surrogate.
    pub(super) fn read(self) -> Option<Cow<'a, str>> {
        if !self.has_escapes {
            return Some(self.literal.into());
        }
        char::decode_utf16(self.units())
            .collect::<Result<String, _>>()
            .ok()
            .map(Cow::from)
    }

    /// Returns TaskFlow's escaped form, which is unique to the text.
    pub(super) fn escaped(self) -> String {
        let mut escaped = String::new();
        escape(self.units(), &mut escaped);
        escaped
    }

    /// Returns UTF-8 in which a lone surrogate is encoded like a character.
    ///
    /// Such bytes are no valid text, but unique to it.
    pub(super) fn bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for read in char::decode_utf16(self.units()) {
            match read {
                Ok(letter) => bytes.extend(letter.encode_utf8(&mut [0; 4]).as_bytes()),
                Err(half) => bytes.extend(three_bytes(half.unpaired_surrogate())),
            }
        }
        bytes
    }

    fn units(self) -> Units<'a> {
        Units {
            rest: self.literal.chars(),
            second: None,
        }
    }
}

/// Encodes a UTF-16 unit in three bytes of UTF-8.
fn three_bytes(unit: u16) -> [u8; 3] {
    let low = |bits: u16| 0x80 | (bits & 0x3f) as u8;
    [0xe0 | (unit >> 12) as u8, low(unit >> 6), low(unit)]
}

struct Units<'a> {
    rest: Chars<'a>,
    second: Option<u16>,
}

impl Units<'_> {
    fn escape(&mut self) -> Option<u16> {
        Some(match self.rest.next()? {
            'b' => 0x08,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'u' => {
                let (digits, rest) = self.rest.as_str().split_at_checked(4)?;
                self.rest = rest.chars();
                u16::from_str_radix(digits, 16).ok()?
            }
            itself => u16::try_from(u32::from(itself)).ok()?,
        })
    }
}

impl Iterator for Units<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        if let Some(second) = self.second.take() {
            return Some(second);
        }
        let letter = self.rest.next()?;
        if letter == '\\' {
            return self.escape();
        }
        let mut units = [0; 2];
        let count = letter.encode_utf16(&mut units).len();
        self.second = units.get(1..count)?.first().copied();
        Some(units[0])
    }
}
