//! Prints whole lines from many sources, without much delay.

use std::io::{self, BufWriter, IsTerminal, Write};

use serde::Serialize;

use super::{Text, Tone, json, style::styled};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Output,
    Errors,
}

/// Both outputs of this process, for work that continues without a reader.
#[derive(Debug)]
pub(crate) struct Console {
    stdout: BufWriter<io::Stdout>,
    stderr: BufWriter<io::Stderr>,
    is_terminal: (bool, bool),
    colours_errors: bool,
}

impl Console {
    pub(crate) fn new(colours_errors: bool) -> Self {
        Self {
            colours_errors,
            stdout: BufWriter::new(io::stdout()),
            stderr: BufWriter::new(io::stderr()),
            is_terminal: (io::stdout().is_terminal(), io::stderr().is_terminal()),
        }
    }

    /// A terminal gets the line sanitized, any other output gets it unchanged.
    pub(crate) fn line(&mut self, side: Side, origin: &Text, line: &[u8]) {
        let is_terminal = match side {
            Side::Output => self.is_terminal.0,
            Side::Errors => self.is_terminal.1,
        };
        let safe = is_terminal.then(|| {
            let text = String::from_utf8_lossy(line);
            let parts: Vec<_> = text
                .trim_end_matches('\r')
                .split('\t')
                .map(Text::from)
                .collect();
            let parts: Vec<_> = parts.iter().map(Text::as_str).collect();
            parts.join("\t").into_bytes()
        });
        let line = safe.as_deref().unwrap_or(line);
        self.write(
            side,
            &[origin.as_str().as_bytes(), b" | ", line, b"\n"].concat(),
        );
    }

    pub(crate) fn note(&mut self, parts: &[(Tone, Text)]) {
        let line = styled(parts, self.colours_errors) + "\n";
        self.write(Side::Errors, line.as_bytes());
    }

    pub(crate) fn room(&self) -> Option<usize> {
        super::width_of(io::stderr()).filter(|_| self.is_terminal.1)
    }

    pub(crate) fn object(&mut self, value: &impl Serialize) {
        if let Ok(line) = json::line(value) {
            self.write(Side::Errors, &line);
        }
    }

    pub(crate) fn flush(&mut self) {
        // Without a reader the work continues.
        let _ = self.stdout.flush();
        let _ = self.stderr.flush();
    }

    fn write(&mut self, side: Side, bytes: &[u8]) {
        // Where both outputs appear together, keep their order.
        if self.is_terminal == (true, true) {
            let _ = match side {
                Side::Output => self.stderr.flush(),
                Side::Errors => self.stdout.flush(),
            };
        }
        let _ = match side {
            Side::Output => whole(&mut self.stdout, bytes),
            Side::Errors => whole(&mut self.stderr, bytes),
        };
    }
}

/// Writes a line in one piece, since other processes write to the same place.
fn whole(to: &mut BufWriter<impl Write>, line: &[u8]) -> io::Result<()> {
    if to.buffer().len() + line.len() > to.capacity() {
        to.flush()?;
    }
    to.write_all(line)
}
