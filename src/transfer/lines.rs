//! Reads untrusted input line by line, each line of bounded length.

use std::{
    fs::File,
    io::Seek,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::{
    atomic_file::on_file,
    bounded_read::input,
    config::Config,
    exit::{CommandError, chain},
};

const READ: usize = 256 * 1024;

/// The byte order mark of some editors.
pub(crate) const MARK: &[u8] = "\u{feff}".as_bytes();

/// The limit of a line: a multiple of the details limit plus a constant. Escapes lengthen text, and a dump includes the
/// stored bytes.
const LINE_LIMIT: (u64, u64) = (8, 64 * 1024);

/// The memory limit of the parsed values, as a multiple of the details limit.
const HEAVIEST: u64 = 32;

/// Returns the approximate memory of parsed JSON, whether valid or not.
pub(crate) fn weight(text: &[u8]) -> usize {
    let (mut weight, mut is_text, mut bytes) = (text.len(), false, text.iter());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_text = !is_text,
            b'\\' => _ = bytes.next(),
            b'{' if !is_text => weight += 640,
            b'[' if !is_text => weight += 320,
            b',' | b':' if !is_text => weight += 96,
            _ => {}
        }
    }
    weight
}

/// Whether JSON has more values than valid details can have.
pub(crate) fn is_too_heavy(text: &[u8], max_details: u64) -> bool {
    let most = max_details.saturating_mul(HEAVIEST) + text.len() as u64;
    weight(text) as u64 > most
}

pub(crate) struct LineReader {
    reader: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    source: String,
    file: Option<File>,
    number: u64,
    max_details: u64,
}

impl LineReader {
    pub(crate) fn open(path: Option<&Path>, max_details: u64) -> anyhow::Result<Self> {
        let Some(path) = path else {
            let input = Box::new(tokio::io::stdin());
            return Ok(Self::new(input, "standard input".to_owned(), max_details));
        };
        let file = on_file(path, "read", input(path))
            .map_err(|error| CommandError::usage(chain(error.as_ref())))?;
        Self::of_file(file, path.display().to_string(), max_details)
    }

    fn of_file(file: File, source: String, max_details: u64) -> anyhow::Result<Self> {
        // A path may also name a pipe.
        let is_file = file.metadata().is_ok_and(|facts| facts.is_file());
        let again = is_file.then(|| file.try_clone()).transpose()?;
        let file = Box::new(tokio::fs::File::from_std(file));
        Ok(Self {
            file: again,
            ..Self::new(file, source, max_details)
        })
    }

    fn new(input: Box<dyn AsyncRead + Send + Unpin>, source: String, max_details: u64) -> Self {
        Self {
            reader: BufReader::with_capacity(READ, input),
            source,
            file: None,
            number: 0,
            max_details,
        }
    }

    pub(crate) fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// Reads a file again from its beginning, or the copy of other input.
    pub(crate) fn again(mut self, kept: Option<File>) -> anyhow::Result<Self> {
        match kept.or(self.file.take()) {
            Some(mut file) => {
                file.rewind()?;
                Self::of_file(file, self.source, self.max_details)
            }
            None => Ok(self),
        }
    }

    pub(crate) fn would_block(&self) -> bool {
        self.file.is_none() && !self.reader.buffer().contains(&b'\n')
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn place(&self) -> String {
        format!("{}, line {}", self.source, self.number)
    }

    /// Returns the next line without its end; a line that is too long is skipped with an error.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<anyhow::Result<Vec<u8>>>> {
        let (mut line, mut length, mut is_any) = (Vec::new(), 0_u64, false);
        let longest = self.max_details.saturating_mul(LINE_LIMIT.0) + LINE_LIMIT.1;
        loop {
            let chunk = self.reader.fill_buf().await;
            let chunk = chunk.with_context(|| format!("cannot read {}", self.source))?;
            if chunk.is_empty() {
                break;
            }
            is_any = true;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = end.unwrap_or(chunk.len());
            length += part as u64;
            if length <= longest {
                line.extend_from_slice(&chunk[..part]);
            }
            let used = end.map_or(part, |end| end + 1);
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        self.number += u64::from(is_any);
        if length > longest {
            let error = CommandError::usage(format!(
                "the line has {length} bytes; the limit is {longest}"
            ));
            return Ok(Some(Err(error.into())));
        }
        if is_too_heavy(&line, self.max_details) {
            let error = CommandError::usage("the line has too many values");
            return Ok(Some(Err(error.into())));
        }
        Ok(is_any.then_some(Ok(line)))
    }
}

/// Refuses a JSON array, which a reader of lines would take for many invalid lines.
pub(crate) fn refuse_array(first: &[u8]) -> anyhow::Result<()> {
    let text = first.strip_prefix(MARK).unwrap_or(first).trim_ascii_start();
    match text.starts_with(b"[") {
        true => Err(CommandError::usage("the input is a JSON array; use `-o jsonl`").into()),
        false => Ok(()),
    }
}

/// Returns the file to read, or `None` for standard input.
pub(crate) fn source(config: &Config, text: &str) -> anyhow::Result<Option<PathBuf>> {
    if text == "-" && config.takes_stdin() {
        return Err(CommandError::usage("`-` (standard input) can be given only once").into());
    }
    Ok((text != "-").then(|| PathBuf::from(text)))
}
