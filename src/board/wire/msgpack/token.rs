//! A MessagePack tokenizer on borrowed bytes.

use crate::board::wire::{
    members::{MAP, NULL},
    posting::{RecordProblem, Weight},
};

/// A scalar, or the head of a list or a map.
#[derive(Debug, Clone, Copy)]
// Laid out in whole words, tokens copy faster, and a listing copies many.
#[repr(u64)]
pub(super) enum PackToken<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    List(u32),
    Map(u32),
    Extension(i8, &'a [u8]),
}

impl<'a> PackToken<'a> {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => NULL,
            Self::Bool(_) => "a boolean",
            Self::Unsigned(_) | Self::Signed(_) => "a number",
            Self::Float(_) => "a floating-point number",
            Self::Text(_) => "a string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "a list",
            Self::Map(_) => MAP,
            Self::Extension(..) => "a value of a special type",
        }
    }

    /// Returns the text, also if Python 2 wrote it as bytes.
    pub(super) fn text(&self) -> Option<&'a str> {
        match *self {
            Self::Text(text) => Some(text),
            Self::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum PackKey<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> PackKey<'a> {
    pub(super) fn as_bytes(self) -> &'a [u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PackItem<'a> {
    pub(super) head: PackToken<'a>,
    pub(super) bytes: &'a [u8],
    pub(super) weight: usize,
}

#[derive(Debug)]
pub(super) struct PackReader<'a> {
    rest: &'a [u8],
}

impl<'a> PackReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn end(&self) -> Result<(), RecordProblem> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(RecordProblem::Trailing)
        }
    }

    pub(super) fn item(&mut self) -> Result<PackItem<'a>, RecordProblem> {
        let before = self.rest;
        let head = self.token()?;
        let mut weight = Weight::default();
        self.skip(head, 1, &mut weight)?;
        let bytes = &before[..before.len() - self.rest.len()];
        Ok(PackItem {
            head,
            bytes,
            weight: weight.0,
        })
    }

    fn skip(
        &mut self,
        head: PackToken<'a>,
        level: usize,
        weight: &mut Weight,
    ) -> Result<(), RecordProblem> {
        weight.value();
        let (count, has_keys) = match head {
            PackToken::List(count) => (count, false),
            PackToken::Map(count) => (count, true),
            PackToken::Text(text) => {
                weight.text(text.len());
                return Ok(());
            }
            PackToken::Bytes(bytes) | PackToken::Extension(_, bytes) => {
                // Shown as a map; nested texts double their quotes and contents.
                weight.map(2);
                weight.text(16 * bytes.len());
                return Ok(());
            }
            _ => return Ok(()),
        };
        if level > RecordProblem::DEEPEST {
            return Err(RecordProblem::TooDeep);
        }
        if has_keys {
            weight.map(count as usize);
        }
        let mut left = count;
        while left > 0 {
            if has_keys {
                weight.text(self.key()?.as_bytes().len());
            } else if let Some(run) = self.plain(left, level < RecordProblem::DEEPEST) {
                weight.0 += 32 * run as usize;
                left -= run;
                continue;
            }
            let head = self.token()?;
            self.skip(head, level + 1, weight)?;
            left -= 1;
        }
        Ok(())
    }

    /// Skips single-byte values, which all have the same weight; a peer can post a million.
    fn plain(&mut self, most: u32, with_empty: bool) -> Option<u32> {
        let is_plain = |byte: &&u8| match byte {
            0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => true,
            // An empty map or list.
            0x80 | 0x90 => with_empty,
            _ => false,
        };
        let run = self
            .rest
            .iter()
            .take(most as usize)
            .take_while(is_plain)
            .count();
        self.rest = &self.rest[run..];
        u32::try_from(run).ok().filter(|run| *run > 0)
    }

    pub(super) fn key(&mut self) -> Result<PackKey<'a>, RecordProblem> {
        match self.token()? {
            PackToken::Text(text) => Ok(PackKey::Text(text)),
            PackToken::Bytes(bytes) => Ok(PackKey::Bytes(bytes)),
            other => Err(RecordProblem::Key(other.kind())),
        }
    }

    /// Takes a text and the number after it, if they come next.
    pub(super) fn number_of(&mut self, name: &str) -> Option<u64> {
        let short_text = 0xa0 | u8::try_from(name.len()).ok()?;
        let rest = self.rest.strip_prefix(&[short_text])?;
        let rest = rest.strip_prefix(name.as_bytes())?;
        let mut behind = Self { rest };
        let Ok(PackToken::Unsigned(number)) = behind.token() else {
            return None;
        };
        *self = behind;
        Some(number)
    }

    pub(super) fn token(&mut self) -> Result<PackToken<'a>, RecordProblem> {
        let first = u8::from_be_bytes(self.array()?);
        Ok(match first {
            0x00..=0x7f => PackToken::Unsigned(first.into()),
            0x80..=0x8f => PackToken::Map((first & 0x0f).into()),
            0x90..=0x9f => PackToken::List((first & 0x0f).into()),
            0xa0..=0xbf => self.text((first & 0x1f).into())?,
            0xc0 => PackToken::Null,
            0xc1 => return Err(RecordProblem::Reserved),
            0xc2 | 0xc3 => PackToken::Bool(first == 0xc3),
            0xc4..=0xc6 => {
                let length = self.length(first - 0xc4)?;
                PackToken::Bytes(self.take(length)?)
            }
            0xc7..=0xc9 => {
                let length = self.length(first - 0xc7)?;
                self.extension(length)?
            }
            0xca => PackToken::Float(f32::from_be_bytes(self.array()?).into()),
            0xcb => PackToken::Float(f64::from_be_bytes(self.array()?)),
            0xcc => PackToken::Unsigned(u8::from_be_bytes(self.array()?).into()),
            0xcd => PackToken::Unsigned(u16::from_be_bytes(self.array()?).into()),
            0xce => PackToken::Unsigned(u32::from_be_bytes(self.array()?).into()),
            0xcf => PackToken::Unsigned(u64::from_be_bytes(self.array()?)),
            0xd0 => PackToken::Signed(i8::from_be_bytes(self.array()?).into()),
            0xd1 => PackToken::Signed(i16::from_be_bytes(self.array()?).into()),
            0xd2 => PackToken::Signed(i32::from_be_bytes(self.array()?).into()),
            0xd3 => PackToken::Signed(i64::from_be_bytes(self.array()?)),
            0xd4..=0xd8 => self.extension(1 << (first - 0xd4))?,
            0xd9..=0xdb => {
                let length = self.length(first - 0xd9)?;
                self.text(length)?
            }
            0xdc | 0xdd => PackToken::List(self.length(first - 0xdb)?),
            0xde | 0xdf => PackToken::Map(self.length(first - 0xdd)?),
            0xe0..=0xff => PackToken::Signed(i8::from_be_bytes([first]).into()),
        })
    }

    /// Reads a length of one byte, or twice as many for each further step.
    fn length(&mut self, step: u8) -> Result<u32, RecordProblem> {
        Ok(match step {
            0 => u8::from_be_bytes(self.array()?).into(),
            1 => u16::from_be_bytes(self.array()?).into(),
            _ => u32::from_be_bytes(self.array()?),
        })
    }

    fn text(&mut self, length: u32) -> Result<PackToken<'a>, RecordProblem> {
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| RecordProblem::NotUtf8)?;
        Ok(PackToken::Text(text))
    }

    fn extension(&mut self, length: u32) -> Result<PackToken<'a>, RecordProblem> {
        let code = i8::from_be_bytes(self.array()?);
        // -1 is the only negative code that MessagePack defines: a timestamp.
        if code < -1 {
            return Err(RecordProblem::Code(code));
        }
        Ok(PackToken::Extension(code, self.take(length)?))
    }

    fn take(&mut self, length: u32) -> Result<&'a [u8], RecordProblem> {
        let Some((taken, rest)) = self.rest.split_at_checked(length as usize) else {
            return Err(RecordProblem::Truncated);
        };
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordProblem> {
        // No `ok_or`: its error, which may own a text, is dropped again for every token.
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            return Err(RecordProblem::Truncated);
        };
        self.rest = rest;
        Ok(*taken)
    }
}
