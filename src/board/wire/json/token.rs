//! A tokenizer for JSON as Python reads it, on borrowed text.

use std::borrow::Cow;

use crate::board::wire::{
    members::{MAP, NULL},
    posting::{RecordProblem, Weight},
};

#[derive(Debug, Clone, Copy)]
pub(super) enum JsonToken<'a> {
    Null,
    Bool(bool),
    Integer(&'a str),
    /// A number with a fraction or an exponent, NaN or infinity.
    Float(&'a str),
    Text(JsonText<'a>),
    List,
    Map,
}

impl JsonToken<'_> {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => NULL,
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "a number",
            Self::Float(_) => "a floating-point number",
            Self::Text(_) => "a string",
            Self::List => "a list",
            Self::Map => MAP,
        }
    }
}

/// A validated text with its quotes.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonText<'a> {
    quoted: &'a str,
    has_escapes: bool,
}

impl<'a> JsonText<'a> {
    fn literal(self) -> &'a str {
        &self.quoted[1..self.quoted.len() - 1]
    }

    pub(super) fn read(self) -> Cow<'a, str> {
        match self.has_escapes {
            true => serde_json::from_str::<String>(self.quoted)
                .unwrap_or_default()
                .into(),
            false => self.literal().into(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct JsonItem<'a> {
    pub(super) head: JsonToken<'a>,
    pub(super) text: &'a str,
    /// Approximate memory once decoded.
    pub(super) weight: usize,
}

#[derive(Debug)]
pub(super) struct JsonReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn end(mut self) -> Result<(), RecordProblem> {
        match self.peek() {
            Ok(_) => Err(RecordProblem::Trailing),
            Err(_) => Ok(()),
        }
    }

    pub(super) fn item(&mut self) -> Result<JsonItem<'a>, RecordProblem> {
        self.peek()?;
        let start = self.at;
        let head = self.token()?;
        let mut weight = Weight::default();
        self.skip(head, 1, &mut weight)?;
        let text = &self.text[start..self.at];
        Ok(JsonItem {
            head,
            text,
            weight: weight.0,
        })
    }

    /// Skips the rest of a value, at this level if it has one.
    fn skip(
        &mut self,
        head: JsonToken<'a>,
        level: usize,
        weight: &mut Weight,
    ) -> Result<(), RecordProblem> {
        weight.value();
        match head {
            JsonToken::List | JsonToken::Map => {}
            JsonToken::Text(text) => {
                weight.text(text.literal().len());
                return Ok(());
            }
            // An oversized number is shown as a map.
            JsonToken::Integer(digits) | JsonToken::Float(digits) if digits.len() > 17 => {
                weight.map(1);
                weight.text(digits.len());
                return Ok(());
            }
            _ => return Ok(()),
        }
        if level > RecordProblem::DEEPEST {
            return Err(RecordProblem::TooDeep);
        }
        match head {
            JsonToken::List => self.values(|reader| {
                let head = reader.token()?;
                reader.skip(head, level + 1, weight)
            }),
            _ => {
                let mut pairs = 0;
                let mut keys = 0;
                self.members(|reader, key| {
                    pairs += 1;
                    keys += 16 + key.literal().len();
                    let head = reader.token()?;
                    reader.skip(head, level + 1, weight)
                })?;
                weight.map(pairs);
                weight.text(keys);
                Ok(())
            }
        }
    }

    pub(super) fn values(
        &mut self,
        read: impl FnMut(&mut Self) -> Result<(), RecordProblem>,
    ) -> Result<(), RecordProblem> {
        self.until(b']', read)
    }

    /// Reads the members of an open map, each time the value after this key.
    pub(super) fn members(
        &mut self,
        mut read: impl FnMut(&mut Self, JsonText<'a>) -> Result<(), RecordProblem>,
    ) -> Result<(), RecordProblem> {
        self.until(b'}', |reader| {
            let key = reader.key()?;
            read(reader, key)
        })
    }

    fn until(
        &mut self,
        end: u8,
        mut read: impl FnMut(&mut Self) -> Result<(), RecordProblem>,
    ) -> Result<(), RecordProblem> {
        if self.peek()? == end {
            self.at += 1;
            return Ok(());
        }
        loop {
            read(self)?;
            let next = self.peek()?;
            if next != end && next != b',' {
                return Err(self.wrong("a comma is missing"));
            }
            self.at += 1;
            if next == end {
                return Ok(());
            }
        }
    }

    fn key(&mut self) -> Result<JsonText<'a>, RecordProblem> {
        if self.peek()? != b'"' {
            return Err(self.wrong("a key is missing"));
        }
        let key = self.string()?;
        if self.peek()? != b':' {
            return Err(self.wrong("a colon is missing"));
        }
        self.at += 1;
        Ok(key)
    }

    pub(super) fn token(&mut self) -> Result<JsonToken<'a>, RecordProblem> {
        match self.peek()? {
            b'"' => self.string().map(JsonToken::Text),
            b'[' => Ok(self.open(JsonToken::List)),
            b'{' => Ok(self.open(JsonToken::Map)),
            b'n' => self.word("null", JsonToken::Null),
            b't' => self.word("true", JsonToken::Bool(true)),
            b'f' => self.word("false", JsonToken::Bool(false)),
            b'N' => self.word("NaN", JsonToken::Float("NaN")),
            b'I' => self.word("Infinity", JsonToken::Float("inf")),
            b'-' if self.text[self.at + 1..].starts_with('I') => {
                self.word("-Infinity", JsonToken::Float("-inf"))
            }
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.wrong("a value is missing")),
        }
    }

    fn open(&mut self, token: JsonToken<'a>) -> JsonToken<'a> {
        self.at += 1;
        token
    }

    fn word(&mut self, word: &str, token: JsonToken<'a>) -> Result<JsonToken<'a>, RecordProblem> {
        let rest = &self.text[self.at..];
        if rest.starts_with(word) {
            self.at += word.len();
            Ok(token)
        } else if word.starts_with(rest) {
            Err(RecordProblem::Truncated)
        } else {
            Err(self.wrong("a value is missing"))
        }
    }

    fn number(&mut self) -> Result<JsonToken<'a>, RecordProblem> {
        let start = self.at;
        if self.byte()? == b'-' {
            self.at += 1;
        }
        match self.byte()? {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            _ => return Err(self.wrong("a value is missing")),
        }
        let integer = self.at;
        self.part(b".", b"")?;
        self.part(b"eE", b"+-")?;
        let literal = &self.text[start..self.at];
        Ok(if self.at == integer {
            JsonToken::Integer(literal)
        } else {
            JsonToken::Float(literal)
        })
    }

    /// Skips an optional part: one of these marks, an optional sign, and digits.
    fn part(&mut self, marks: &[u8], signs: &[u8]) -> Result<(), RecordProblem> {
        let bytes = &self.text.as_bytes()[self.at..];
        let is_one_of = |at: usize, set: &[u8]| bytes.get(at).is_some_and(|at| set.contains(at));
        if !is_one_of(0, marks) {
            return Ok(());
        }
        let before = 1 + usize::from(is_one_of(1, signs));
        if bytes
            .get(before)
            .ok_or(RecordProblem::Truncated)?
            .is_ascii_digit()
        {
            self.at += before;
            self.digits();
        }
        Ok(())
    }

    fn digits(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    }

    fn string(&mut self) -> Result<JsonText<'a>, RecordProblem> {
        let start = self.at;
        self.at += 1;
        let mut has_escapes = false;
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..=0x1f);
            self.at += rest.iter().take_while(|byte| plain(byte)).count();
            match self.byte()? {
                b'"' => break,
                b'\\' => {
                    has_escapes = true;
                    self.at += 1;
                    self.byte()?;
                    self.at += 1;
                }
                _ => return Err(self.wrong("a string contains a control character")),
            }
        }
        self.at += 1;
        let quoted = &self.text[start..self.at];
        if has_escapes && serde_json::from_str::<String>(quoted).is_err() {
            self.at = start;
            return Err(self.wrong("a string contains an invalid escape"));
        }
        Ok(JsonText {
            quoted,
            has_escapes,
        })
    }

    fn peek(&mut self) -> Result<u8, RecordProblem> {
        let rest = &self.text.as_bytes()[self.at..];
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += rest.iter().take_while(|byte| is_space(byte)).count();
        self.byte()
    }

    fn byte(&self) -> Result<u8, RecordProblem> {
        match self.text.as_bytes().get(self.at) {
            Some(byte) => Ok(*byte),
            // No `ok_or`: its error, which may own a text, is dropped again for every token.
            None => Err(RecordProblem::Truncated),
        }
    }

    fn wrong(&self, what: &'static str) -> RecordProblem {
        RecordProblem::NotJson(what, self.at)
    }
}
