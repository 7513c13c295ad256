//! Limits what a server may send before it is read into memory: peers may store values of half a gigabyte.
//!
//! Every connection reads through this. What is too large is replaced in the stream by a [`stand_in`], which no reader
//! takes for a value, so that one such value spoils nothing beside it.

use std::{
    io,
    ops::Range,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf, join, split};

use super::connect::Stream;

/// Begins neither text nor JSON nor msgpack.
const MARK: u8 = 0xc1;

const MOST_VALUES: usize = 1 << 17;

/// How long a line of the protocol may be, and how much is read at once.
const CHUNK: usize = 64 * 1024;

/// Returns what is read instead of a value of this size, or of a list of so many.
pub(crate) fn stand_in(size: usize) -> Vec<u8> {
    [&[MARK], size.to_string().as_bytes()].concat()
}

/// Returns the size of the value for which this stands, if it is a stand-in.
pub(crate) fn size_unread(value: &[u8]) -> Option<usize> {
    let size = value.strip_prefix(&[MARK])?;
    std::str::from_utf8(size).ok()?.parse().ok()
}

/// Whether a value was left out only because its reply had no room, after so many bytes of values.
///
/// A peer can store the bytes of a stand-in, too, which is not worth another request.
pub(crate) fn lacked_room(value: &[u8], before: usize, most: usize) -> bool {
    const CURSOR: usize = 32;
    size_unread(value).is_some_and(|size| size <= most && before + size + CURSOR > 2 * most)
}

/// Bounds each value that comes through a stream, and each reply to twice as much.
pub(crate) fn bounded(stream: Box<dyn Stream>, most: usize) -> Box<dyn Stream> {
    let (reader, writer) = split(stream);
    let replies = Replies {
        most,
        ..Replies::default()
    };
    let reader = Bounded {
        reader,
        raw: vec![0; CHUNK],
        unread: 0..0,
        ready: Vec::new(),
        replies,
    };
    Box::new(join(reader, writer))
}

struct Bounded<R> {
    reader: R,
    raw: Vec<u8>,
    /// The part of `raw` that is still to be looked at.
    unread: Range<usize>,
    ready: Vec<u8>,
    replies: Replies,
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = out.filled().len();
        loop {
            let count = this.ready.len().min(out.remaining());
            out.put_slice(&this.ready[..count]);
            this.ready.drain(..count);
            let has_some = out.filled().len() > before;
            if out.remaining() == 0 || (this.unread.is_empty() && has_some) {
                return Poll::Ready(Ok(()));
            }
            if this.unread.is_empty() {
                let mut raw = ReadBuf::new(&mut this.raw);
                ready!(Pin::new(&mut this.reader).poll_read(context, &mut raw))?;
                this.unread = 0..raw.filled().len();
                if this.unread.is_empty() {
                    return Poll::Ready(Ok(()));
                }
            }
            let bytes = &this.raw[this.unread.clone()];
            this.unread.start += this.replies.pass(bytes, &mut this.ready, out);
        }
    }
}

#[derive(Default)]
struct Replies {
    most: usize,
    line: Vec<u8>,
    /// How many bytes of a value are still to come, and whether they are left out.
    value: (usize, bool),
    /// How many values are still to come in each list that is open.
    open: Vec<usize>,
    /// How many lists are open around the one that is left out.
    left_out: Option<usize>,
    bytes: usize,
    values: usize,
}

impl Replies {
    /// Takes some bytes, passes them on as far as they may, and returns how many it took.
    fn pass(&mut self, bytes: &[u8], ready: &mut Vec<u8>, out: &mut ReadBuf<'_>) -> usize {
        let (left, is_left_out) = &mut self.value;
        if *left > 0 {
            let mut count = bytes.len().min(*left);
            if !*is_left_out {
                count = count.min(out.remaining());
                out.put_slice(&bytes[..count]);
            }
            *left -= count;
            return count;
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.map_or(bytes.len(), |end| end + 1)];
        let room = CHUNK.saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..part.len().min(room)]);
        if !b"+-:_#,($=!*~>%".contains(&self.line[0]) {
            // Not the protocol: the parser behind this reports it.
            ready.append(&mut self.line);
            self.value = (usize::MAX, false);
        } else if end.is_some() {
            let mut line = std::mem::take(&mut self.line);
            if !line.ends_with(b"\n") {
                line.extend_from_slice(b"\r\n");
            }
            self.begin(&line, ready);
            // Its room serves the next one: a listing has a line for each value.
            line.clear();
            self.line = line;
        }
        part.len()
    }

    /// Takes a line, which is a value or announces one.
    fn begin(&mut self, line: &[u8], ready: &mut Vec<u8>) {
        let size = std::str::from_utf8(&line[1..]).ok();
        let size = size.and_then(|size| size.trim_end().parse::<usize>().ok());
        let size = size.unwrap_or_default();
        let (mut is_too_large, mut below) = (false, 0);
        match line[0] {
            b'$' | b'=' | b'!' if line[1] != b'-' => {
                is_too_large = size > self.most || self.bytes + size > 2 * self.most;
                let is_left_out = is_too_large || self.left_out.is_some();
                self.bytes += if is_left_out { 0 } else { size };
                self.value = (size.saturating_add(2), is_left_out);
            }
            kind @ (b'*' | b'~' | b'>' | b'%') => {
                below = size.saturating_mul(if kind == b'%' { 2 } else { 1 });
                self.values = self.values.saturating_add(below);
                is_too_large = self.values > MOST_VALUES;
            }
            _ => {}
        }
        match self.left_out {
            Some(_) => {}
            None if is_too_large => {
                let instead = stand_in(size);
                ready.extend_from_slice(format!("${}\r\n", instead.len()).as_bytes());
                ready.extend_from_slice(&[&instead, &b"\r\n"[..]].concat());
                self.left_out = (below > 0).then_some(self.open.len());
            }
            None => ready.extend_from_slice(line),
        }
        if below > 0 {
            self.open.push(below);
            return;
        }
        while let Some(left) = self.open.last_mut() {
            *left -= 1;
            if *left > 0 {
                return;
            }
            self.open.pop();
            self.left_out.take_if(|depth| *depth == self.open.len());
        }
        (self.bytes, self.values) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// Reads all that comes through of some bytes, which arrive in pieces of this size.
    async fn through(bytes: &[u8], piece: usize) -> Vec<u8> {
        let (mut server, stream) = tokio::io::duplex(piece);
        let mut bounded = bounded(Box::new(stream), 10);
        let bytes = bytes.to_vec();
        let write = async move {
            use tokio::io::AsyncWriteExt as _;
            server.write_all(&bytes).await.unwrap();
        };
        let mut read = Vec::new();
        let (_, done) = tokio::join!(write, bounded.read_to_end(&mut read));
        done.unwrap();
        read
    }

    #[tokio::test]
    async fn large_values_are_replaced_however_they_arrive() {
        let many = format!(
            "*{}\r\n{}",
            MOST_VALUES + 1,
            ":1\r\n".repeat(MOST_VALUES + 1)
        );
        let cases = [
            (
                "$3\r\nada\r\n:7\r\n$-1\r\n*-1\r\n*0\r\n+OK\r\n-ERR no\r\n",
                None,
            ),
            ("*3\r\n$10\r\n0123456789\r\n$-1\r\n:3\r\n", None),
            (
                "*2\r\n$11\r\n0123456789a\r\n$1\r\nb\r\n+OK\r\n",
                Some("*2\r\n$3\r\n?11\r\n$1\r\nb\r\n+OK\r\n"),
            ),
            // A reply has room for two of the largest values; the next one has as much.
            (
                "*3\r\n$9\r\n123456789\r\n$9\r\n123456789\r\n$9\r\n123456789\r\n$2\r\nab\r\n",
                Some("*3\r\n$9\r\n123456789\r\n$9\r\n123456789\r\n$2\r\n?9\r\n$2\r\nab\r\n"),
            ),
            ("%1\r\n+a\r\n*1\r\n:1\r\n>2\r\n+a\r\n_\r\n", None),
            ("\x15\x03\x01 no protocol $99\r\n*1\r\n", None),
        ];
        for (sent, expected) in cases {
            let expected = expected.unwrap_or(sent).replace('?', "\u{1}");
            for piece in [1, 2, 7, 4096] {
                let read = through(sent.as_bytes(), piece).await;
                let read: Vec<_> = read
                    .iter()
                    .map(|it| if *it == MARK { 1 } else { *it })
                    .collect();
                assert_eq!(
                    String::from_utf8_lossy(&read),
                    expected,
                    "{sent} by {piece}"
                );
            }
        }
        let lists = format!("*2\r\n*2\r\n{many}+a\r\n:2\r\n");
        let read = through(lists.as_bytes(), 4096).await;
        let instead = stand_in(MOST_VALUES + 1);
        assert_eq!(
            read,
            [b"*2\r\n*2\r\n$7\r\n", &instead[..], b"\r\n+a\r\n:2\r\n"].concat()
        );
        assert_eq!(size_unread(&instead), Some(MOST_VALUES + 1));
    }

    #[tokio::test]
    async fn an_endless_line_is_cut() {
        let line = format!("+{}\r\n:1\r\n", "x".repeat(3 * CHUNK));
        let read = through(line.as_bytes(), 4096).await;
        assert!(read.ends_with(b"x\r\n:1\r\n") && read.len() < CHUNK + 16);
    }
}
