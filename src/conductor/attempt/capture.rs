//! Captures the output of commands: reads it by line, prints or stores it, and bounds it.

mod sink;

use std::{collections::VecDeque, convert::Infallible, future, io, sync::Arc};

use tokio::net::unix::pipe::Receiver;

pub(crate) use self::sink::Destination;
use self::sink::OutputSink;
use crate::{
    conductor::log::{LogItem, OutputStream, Reporter, Tag, not_kept},
    job::CapturedOutput,
    optional::or_never,
    process::spawn::Pipes,
};

/// How much of the end of a command's output is kept, in case it fails.
const TAIL: usize = 2048;

/// A longer line is shown in pieces.
const MAX_LINE: usize = 16 * 1024;

/// How much is still read after the command has ended: a little more than a pipe holds.
const REMAINS: usize = 1 << 18;

#[derive(Debug)]
pub(crate) struct Capture {
    pipes: Vec<Pipe>,
    sink: OutputSink,
    waiting: VecDeque<LogItem>,
}

#[derive(Debug)]
struct Pipe {
    stream: OutputStream,
    from: Option<Receiver>,
    line: Vec<u8>,
    tail: VecDeque<u8>,
}

impl Capture {
    /// Output that cannot be written is dropped and reported, and does not fail the job.
    pub(crate) fn new(
        pipes: Pipes,
        destination: &Destination,
        tag: &Arc<Tag>,
        attempt: u32,
        reporter: &Reporter,
    ) -> io::Result<Self> {
        let sink = OutputSink::of(destination, tag, attempt).unwrap_or_else(|reason| {
            reporter.report(not_kept(Some(tag), reason));
            OutputSink::Nothing
        });
        let streams = [OutputStream::Output, OutputStream::Errors]
            .into_iter()
            .zip(pipes);
        let pipes = streams.filter_map(|(stream, pipe)| Some((stream, pipe?)));
        let pipes = pipes.map(|(stream, pipe)| {
            Ok(Pipe {
                stream,
                from: Some(Receiver::from_owned_fd(pipe)?),
                line: Vec::new(),
                tail: VecDeque::new(),
            })
        });
        Ok(Self {
            pipes: pipes.collect::<io::Result<_>>()?,
            sink,
            waiting: VecDeque::new(),
        })
    }

    /// Forwards the command's output while this is polled.
    pub(crate) async fn pump(&mut self, reporter: &Reporter) -> Infallible {
        loop {
            reporter.send_all(&mut self.waiting).await;
            let Some(at) = self.readable().await else {
                return future::pending().await;
            };
            // A read through the runtime registers that the pipe is empty.
            self.read(at, |pipe, buffer| pipe.try_read(buffer));
        }
    }

    /// Does not wait for processes that keep the pipes open; returns whether any do.
    pub(crate) fn drain(&mut self) -> bool {
        let mut read = 0;
        for at in 0..self.pipes.len() {
            // Past the runtime, which may not have noticed the data yet.
            let read_now = |pipe: &Receiver, buffer: &mut [u8]| Ok(rustix::io::read(pipe, buffer)?);
            while let Some(length) = self.read(at, read_now) {
                read += length;
                if read > REMAINS {
                    break;
                }
            }
        }
        self.pipes.iter().any(|pipe| pipe.from.is_some())
    }

    pub(crate) async fn close(&mut self) {
        let mut read = 0;
        while read < REMAINS
            && let Some(at) = self.readable().await
        {
            let length = self.read(at, |pipe, buffer| pipe.try_read(buffer));
            read += length.unwrap_or_default();
        }
    }

    pub(crate) async fn finish(mut self, reporter: &Reporter) {
        for pipe in &mut self.pipes {
            let line = std::mem::take(&mut pipe.line);
            if !line.is_empty() {
                let stream = pipe.stream;
                self.sink.take_line(&mut self.waiting, stream, line);
            }
        }
        reporter.send_all(&mut self.waiting).await;
    }

    pub(crate) fn captured(&self) -> CapturedOutput {
        let end_of = |stream| {
            let pipe = self.pipes.iter().find(|pipe| pipe.stream == stream);
            pipe.map_or_else(String::new, Pipe::end)
        };
        CapturedOutput {
            stdout: end_of(OutputStream::Output),
            stderr: end_of(OutputStream::Errors),
        }
    }

    async fn readable(&self) -> Option<usize> {
        let wait = |at: usize| async move {
            let pipe = self.pipes.get(at).and_then(|pipe| pipe.from.as_ref());
            // A read returns the error.
            let _ = or_never(pipe.map(Receiver::readable)).await;
            at
        };
        if self.pipes.iter().all(|pipe| pipe.from.is_none()) {
            return None;
        }
        tokio::select! {
            at = wait(0) => Some(at),
            at = wait(1) => Some(at),
        }
    }

    /// Reads once; `None` if no data is available, now or ever.
    fn read(
        &mut self,
        at: usize,
        read: impl Fn(&Receiver, &mut [u8]) -> io::Result<usize>,
    ) -> Option<usize> {
        let pipe = &mut self.pipes[at];
        let mut buffer = [0; 8192];
        let bytes = match read(pipe.from.as_ref()?, &mut buffer) {
            Ok(length @ 1..) => &buffer[..length],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Ok(0) | Err(_) => {
                pipe.from = None;
                return None;
            }
        };
        pipe.tail.extend(&bytes[bytes.len().saturating_sub(TAIL)..]);
        let surplus = pipe.tail.len().saturating_sub(TAIL);
        pipe.tail.drain(..surplus);
        match &self.sink {
            OutputSink::Nothing => {}
            _ => pipe.split(bytes, &mut self.sink, &mut self.waiting),
        }
        Some(bytes.len())
    }
}

impl Pipe {
    fn end(&self) -> String {
        let bytes: Vec<u8> = self.tail.iter().copied().collect();
        // Skip the rest of a character that was cut in two.
        let start = bytes
            .iter()
            .take(3)
            .take_while(|byte| **byte & 0xc0 == 0x80);
        String::from_utf8_lossy(&bytes[start.count()..]).into_owned()
    }

    fn split(&mut self, bytes: &[u8], sink: &mut OutputSink, waiting: &mut VecDeque<LogItem>) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_whole) = match part.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (part, false),
            };
            self.line.extend_from_slice(text);
            if is_whole || self.line.len() >= MAX_LINE {
                let line = std::mem::take(&mut self.line);
                sink.take_line(waiting, self.stream, line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe() -> Pipe {
        Pipe {
            stream: OutputStream::Output,
            from: None,
            line: Vec::new(),
            tail: VecDeque::new(),
        }
    }

    fn lines(waiting: VecDeque<LogItem>) -> Vec<String> {
        let text = |progress| match progress {
            LogItem::Line { text, .. } => String::from_utf8(text).unwrap(),
            other => panic!("{other:?}"),
        };
        waiting.into_iter().map(text).collect()
    }

    fn tag() -> Arc<Tag> {
        Arc::new(Tag {
            uuid: "0123456789".to_owned(),
            name: "../a b".to_owned(),
        })
    }

    #[test]
    fn lines_are_complete_in_any_chunking() {
        let (mut pipe, mut waiting) = (pipe(), VecDeque::new());
        let mut sink = OutputSink::Lines(tag());
        for part in ["a", "b\nc\n\nd", "e\n"] {
            pipe.split(part.as_bytes(), &mut sink, &mut waiting);
        }
        assert_eq!(lines(waiting), ["ab", "c", "", "de"]);
    }

    #[test]
    fn endless_line_is_split() {
        let (mut pipe, mut waiting) = (pipe(), VecDeque::new());
        let mut sink = OutputSink::Lines(tag());
        for _ in 0..10 {
            pipe.split(&[b'x'; 8192], &mut sink, &mut waiting);
            assert!(pipe.line.len() < MAX_LINE);
        }
        assert_eq!(lines(waiting).concat().len(), 10 * 8192);
    }
}
