//! Reads server replies with a size limit: peers may store values of half a gigabyte.
//!
//! Every connection reads through this. A [`placeholder`] replaces an oversized value; no reader accepts it as a value,
//! and the other values stay intact.

use std::{io, str::FromStr};

use redis::{PushKind, Value, from_redis_value, parse_redis_value};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadHalf};

/// The first byte of a placeholder: it begins neither text nor JSON nor msgpack.
pub(crate) const PLACEHOLDER: u8 = 0xc1;

const MAX_VALUES: usize = 1 << 17;

const DEEPEST: usize = 100;

/// Maximum length of a protocol line, and the size of one read.
const CHUNK: usize = 64 * 1024;

/// The kind of a list whose values are dropped.
const LEFT_OUT: u8 = 0;

pub(crate) fn placeholder(size: usize) -> Vec<u8> {
    [&[PLACEHOLDER], size.to_string().as_bytes()].concat()
}

pub(crate) fn size_unread(value: &[u8]) -> Option<usize> {
    let size = value.strip_prefix(&[PLACEHOLDER])?;
    std::str::from_utf8(size).ok()?.parse().ok()
}

/// A peer can also store the bytes of a stand-in; those deserve no second request.
pub(crate) fn lacked_room(value: &[u8], before: usize, most: usize) -> bool {
    const CURSOR: usize = 32;
    size_unread(value).is_some_and(|size| size <= most && before + size + CURSOR > 2 * most)
}

pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

#[derive(Debug)]
pub(crate) enum Disconnect {
    Closed(Option<io::Error>),
    /// The first byte of input that is no reply.
    InvalidByte(u8),
}

/// The replies of a server. Each value has a size limit; a whole reply may have twice as much.
pub(crate) struct Replies {
    reader: ReadHalf<Box<dyn ByteStream>>,
    most: usize,
    buffer: Vec<u8>,
    at: usize,
    /// Bytes still to skip of a value that is left out.
    unwanted: usize,
    open: Vec<List>,
    /// Bytes of values, and number of list values, in the reply so far.
    bytes: usize,
    values: usize,
}

struct List {
    /// The byte that announces the list, or [`LEFT_OUT`].
    kind: u8,
    missing: usize,
    values: Vec<Value>,
}

impl Replies {
    pub(crate) fn new(reader: ReadHalf<Box<dyn ByteStream>>, most: usize) -> Self {
        Self {
            reader,
            most,
            buffer: Vec::new(),
            at: 0,
            unwanted: 0,
            open: Vec::new(),
            bytes: 0,
            values: 0,
        }
    }

    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Value, Disconnect> {
        loop {
            if let Some(reply) = self.reply()? {
                return Ok(reply);
            }
            self.buffer.drain(..std::mem::take(&mut self.at));
            if self.buffer.is_empty() {
                // A large value needed more.
                self.buffer.shrink_to(4 * CHUNK);
            }
            self.buffer.reserve(CHUNK);
            match self.reader.read_buf(&mut self.buffer).await {
                Ok(0) => return Err(Disconnect::Closed(None)),
                Ok(_) => {}
                Err(error) => return Err(Disconnect::Closed(Some(error))),
            }
        }
    }

    fn reply(&mut self) -> Result<Option<Value>, Disconnect> {
        loop {
            let count = self.unwanted.min(self.buffer.len() - self.at);
            self.at += count;
            self.unwanted -= count;
            let Some(value) = self.value()? else {
                return Ok(None);
            };
            if let Some(reply) = self.add(value) {
                (self.bytes, self.values) = (0, 0);
                return Ok(Some(reply));
            }
        }
    }

    fn add(&mut self, mut value: Value) -> Option<Value> {
        while let Some(list) = self.open.last_mut() {
            list.missing -= 1;
            if list.kind != LEFT_OUT {
                list.values.push(value);
            }
            if list.missing > 0 {
                return None;
            }
            value = self.open.pop()?.into_value();
        }
        Some(value)
    }

    fn value(&mut self) -> Result<Option<Value>, Disconnect> {
        loop {
            let rest = &self.buffer[self.at..];
            let Some(kind) = rest.first().copied() else {
                return Ok(None);
            };
            let wrong = || Disconnect::InvalidByte(kind);
            if !b"+-:_#,($=!*~>%".contains(&kind) {
                return Err(wrong());
            }
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                self.buffer.truncate(self.at + CHUNK);
                return Ok(None);
            };
            let line = rest[1..end].strip_suffix(b"\r").unwrap_or(&rest[1..end]);
            let is_left_out = self.open.last().is_some_and(|list| list.kind == LEFT_OUT);
            match kind {
                b'$' | b'*' if line == b"-1" => {
                    self.at += end + 1;
                    return Ok(Some(Value::Nil));
                }
                b'$' | b'=' | b'!' => {
                    let size = number(line).ok_or_else(wrong)?;
                    return self.sized(end + 1, size, is_left_out);
                }
                b'*' | b'~' | b'>' | b'%' => {
                    let count = number(line).ok_or_else(wrong)?;
                    self.at += end + 1;
                    let list = self.list(kind, count, is_left_out);
                    if list.missing == 0 {
                        return Ok(Some(list.into_value()));
                    }
                    if self.open.len() == DEEPEST {
                        return Err(wrong());
                    }
                    self.open.push(list);
                }
                _ => {
                    let length = line.len();
                    let value = match kind {
                        _ if is_left_out => Value::Nil,
                        b'+' | b'-' if self.bytes > 2 * self.most => {
                            Value::BulkString(placeholder(length))
                        }
                        b':' => Value::Int(number(line).ok_or_else(wrong)?),
                        _ => parse_redis_value(&[&[kind], line, b"\r\n"].concat())
                            .map_err(|_| wrong())?,
                    };
                    self.at += end + 1;
                    self.bytes += length;
                    return Ok(Some(value));
                }
            }
        }
    }

    /// Takes a value of this size, at this distance from the line that announces it.
    fn sized(
        &mut self,
        start: usize,
        size: usize,
        is_left_out: bool,
    ) -> Result<Option<Value>, Disconnect> {
        let is_too_large = size > self.most || self.bytes + size > 2 * self.most;
        if is_left_out || is_too_large {
            self.at += start;
            self.unwanted = size.saturating_add(2);
            return Ok(Some(Value::BulkString(placeholder(size))));
        }
        let rest = &self.buffer[self.at..];
        let Some(whole) = rest.get(..start + size + 2) else {
            return Ok(None);
        };
        let value = match whole {
            [b'$', .., b'\r', b'\n'] => Value::BulkString(whole[start..start + size].to_vec()),
            _ => parse_redis_value(whole).map_err(|_| Disconnect::InvalidByte(whole[0]))?,
        };
        self.bytes += size;
        self.at += whole.len();
        Ok(Some(value))
    }

    fn list(&mut self, kind: u8, count: usize, is_left_out: bool) -> List {
        let missing = count.saturating_mul(if kind == b'%' { 2 } else { 1 });
        self.values = self.values.saturating_add(missing);
        let (kind, values) = match self.values > MAX_VALUES {
            _ if is_left_out => (LEFT_OUT, Vec::new()),
            true => (LEFT_OUT, vec![Value::BulkString(placeholder(count))]),
            false => (kind, Vec::with_capacity(missing)),
        };
        List {
            kind,
            missing,
            values,
        }
    }
}

impl List {
    fn into_value(mut self) -> Value {
        match self.kind {
            b'*' | b'~' => Value::Array(self.values),
            b'%' => {
                let mut values = self.values.into_iter();
                let pairs = std::iter::from_fn(|| Some((values.next()?, values.next()?)));
                Value::Map(pairs.collect())
            }
            b'>' => {
                let mut data = self.values.into_iter();
                let name: Option<String> = data.next().and_then(|it| from_redis_value(it).ok());
                let kind = match name.as_deref() {
                    Some("invalidate") => PushKind::Invalidate,
                    Some("message") => PushKind::Message,
                    Some("subscribe") => PushKind::Subscribe,
                    _ => PushKind::Other(name.unwrap_or_default()),
                };
                let data = data.collect();
                Value::Push { kind, data }
            }
            _ => self.values.pop().unwrap_or(Value::Nil),
        }
    }
}

fn number<N: FromStr>(line: &[u8]) -> Option<N> {
    std::str::from_utf8(line).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use redis::Parser;
    use tokio::io::{AsyncWriteExt as _, split};

    use super::*;

    async fn through(bytes: &[u8], piece: usize) -> (Vec<Value>, Disconnect) {
        let (mut server, stream) = tokio::io::duplex(piece);
        let stream: Box<dyn ByteStream> = Box::new(stream);
        let mut replies = Replies::new(split(stream).0, 10);
        let bytes = bytes.to_vec();
        // Fails once the reader stops.
        let write = async move { drop(server.write_all(&bytes).await) };
        let read = async move {
            let mut read = Vec::new();
            loop {
                match replies.next().await {
                    Ok(reply) => read.push(reply),
                    Err(end) => return (read, end),
                }
            }
        };
        tokio::join!(write, read).1
    }

    fn parsed(text: &str) -> Vec<Value> {
        let bytes: Vec<_> = text.chars().map(|it| it as u8).collect();
        let (mut parser, mut bytes) = (Parser::new(), &bytes[..]);
        std::iter::from_fn(|| parser.parse_value(&mut bytes).ok()).collect()
    }

    #[tokio::test]
    async fn large_values_are_replaced_in_any_chunking() {
        let cases = [
            (
                "$3\r\nada\r\n:7\r\n$-1\r\n*-1\r\n*0\r\n+OK\r\n-ERR no\r\n",
                None,
            ),
            ("*3\r\n$10\r\n0123456789\r\n$-1\r\n:3\r\n", None),
            (
                "*2\r\n$11\r\n0123456789a\r\n$1\r\nb\r\n+OK\r\n",
                Some("*2\r\n$3\r\n\u{c1}11\r\n$1\r\nb\r\n+OK\r\n"),
            ),
            // A reply has room for two of the largest values, and so does the next.
            (
                "*3\r\n$9\r\n123456789\r\n$9\r\n123456789\r\n$9\r\n123456789\r\n$2\r\nab\r\n",
                Some("*3\r\n$9\r\n123456789\r\n$9\r\n123456789\r\n$2\r\n\u{c1}9\r\n$2\r\nab\r\n"),
            ),
            (
                "%1\r\n+a\r\n*1\r\n:1\r\n>2\r\n+message\r\n_\r\n>2\r\n+a\r\n+b\r\n#t\r\n,1.5\r\n=5\r\ntxt:a\r\n",
                None,
            ),
        ];
        for (sent, expected) in cases {
            for piece in [1, 2, 7, 4096] {
                let (read, end) = through(sent.as_bytes(), piece).await;
                assert_eq!(read, parsed(expected.unwrap_or(sent)), "{sent} by {piece}");
                assert!(matches!(end, Disconnect::Closed(None)), "{end:?}");
            }
        }
    }

    #[tokio::test]
    async fn oversized_list_is_replaced_with_its_contents() {
        let many = MAX_VALUES + 1;
        let values = "*1\r\n$3\r\nabc\r\n".repeat(many);
        let lists = format!("*2\r\n*2\r\n*{many}\r\n{values}+a\r\n:2\r\n");
        let (read, _) = through(lists.as_bytes(), 4096).await;
        let inner = vec![
            Value::BulkString(placeholder(many)),
            Value::SimpleString("a".to_owned()),
        ];
        assert_eq!(
            read,
            [Value::Array(vec![Value::Array(inner), Value::Int(2)])]
        );
        assert_eq!(size_unread(&placeholder(many)), Some(many));
    }

    #[tokio::test]
    async fn invalid_protocol_is_detected_at_its_first_byte() {
        let deep = "*1\r\n".repeat(DEEPEST + 1);
        for sent in [
            ":1\r\n\x15\x03\x01 no protocol",
            ":1\r\n$2\r\nabc\r\n",
            &format!(":1\r\n{deep}"),
        ] {
            let (read, end) = through(sent.as_bytes(), 4096).await;
            assert_eq!(read, [Value::Int(1)]);
            assert_matches!(end, Disconnect::InvalidByte(byte) if *byte == sent.as_bytes()[4]);
        }
    }

    #[tokio::test]
    async fn endless_line_is_truncated() {
        let line = format!("+{}\r\n:1\r\n", "x".repeat(3 * CHUNK));
        let (read, _) = through(line.as_bytes(), 4096).await;
        let [Value::SimpleString(text), Value::Int(1)] = &read[..] else {
            panic!("{read:?}");
        };
        assert!(text.len() < CHUNK + 4096);
    }
}
