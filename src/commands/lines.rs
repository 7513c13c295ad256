//! The lines of a bulk post, read one by one and made into drafts.

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use uuid::Uuid;

use super::{draft, json};
use crate::{
    context::on_file,
    exit::CommandError,
    job::{Book, Draft, Priority},
};

/// How much is read at a time.
const READ: usize = 256 * 1024;

/// Room for what a line has beside the details.
const BESIDE_DETAILS: u64 = 64 * 1024;

/// No value takes more than this many times the bytes that it was written in: `9e15` is the worst.
const SWELLING: u64 = 8;

/// A line of a bulk post.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    #[serde(default)]
    details: Map<String, Value>,
    #[serde(default)]
    priority: Option<String>,
    #[serde(default)]
    book: Option<Book>,
    #[serde(default)]
    uuid: Option<Uuid>,
    #[serde(default)]
    unique: Option<String>,
}

/// A line that can be posted, and its number.
pub(super) struct Numbered {
    pub(super) number: u64,
    pub(super) draft: Draft,
    pub(super) is_unique: bool,
}

/// Reads lines, each of bounded length, and makes drafts of them.
pub(super) struct Lines {
    reader: BufReader<Box<dyn AsyncRead + Unpin>>,
    source: String,
    /// Whether nobody is still writing it.
    is_file: bool,
    number: u64,
    max_details: u64,
}

impl Lines {
    /// Opens a file, or standard input.
    pub(super) fn open(path: Option<&Path>, max_details: u64) -> anyhow::Result<Self> {
        let (source, is_file, input): (_, _, Box<dyn AsyncRead + Unpin>) = match path {
            None => {
                let input = Box::new(tokio::io::stdin());
                ("standard input".to_owned(), false, input)
            }
            Some(path) => {
                let file = on_file(path, "read", std::fs::File::open(path))
                    .map_err(|error| CommandError::usage(format!("{error:#}")))?;
                // A path may also name a pipe.
                let is_file = file.metadata().is_ok_and(|facts| facts.is_file());
                let name = path.display().to_string();
                (name, is_file, Box::new(tokio::fs::File::from_std(file)))
            }
        };
        Ok(Self {
            reader: BufReader::with_capacity(READ, input),
            source,
            is_file,
            number: 0,
            max_details,
        })
    }

    /// Whether the next line has yet to come.
    pub(super) fn would_block(&self) -> bool {
        !self.is_file && !self.reader.buffer().contains(&b'\n')
    }

    /// Returns the next line; an `Err` inside is about that line alone, and an empty one is no job.
    pub(super) async fn next(
        &mut self,
    ) -> anyhow::Result<Option<anyhow::Result<Option<Numbered>>>> {
        let Some(line) = self.read().await? else {
            return Ok(None);
        };
        self.number += 1;
        let read = line
            .map(|line| without_mark(line, self.number))
            .and_then(|line| match line.trim_ascii().is_empty() {
                true => Ok(None),
                false => numbered(&line, self.number, self.max_details).map(Some),
            });
        let place = || format!("{}, line {}", self.source, self.number);
        Ok(Some(read.with_context(place)))
    }

    /// Reads up to the end of the line; of one that is too long only the end is found.
    async fn read(&mut self) -> anyhow::Result<Option<anyhow::Result<Vec<u8>>>> {
        // Escapes may make text up to six times as long as it is.
        let longest = self.max_details.saturating_mul(6) + BESIDE_DETAILS;
        let (mut line, mut length, mut is_any) = (Vec::new(), 0_u64, false);
        loop {
            let chunk = self
                .reader
                .fill_buf()
                .await
                .with_context(|| format!("cannot read {}", self.source))?;
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
        if length > longest {
            let error = CommandError::usage(format!(
                "the line has {length} bytes, and the limit is {longest}"
            ));
            return Ok(Some(Err(error.into())));
        }
        Ok(is_any.then_some(Ok(line)))
    }
}

fn numbered(line: &[u8], number: u64, max_details: u64) -> anyhow::Result<Numbered> {
    // Measuring details means writing them out once more.
    let may_be_too_large = (line.len() as u64).saturating_mul(SWELLING) > max_details;
    let line = read(line).map_err(CommandError::usage)?;
    let priority = match &line.priority {
        Some(text) => text
            .parse()
            .map_err(|error| CommandError::usage(format!("{error}")))?,
        None => Priority::default(),
    };
    let (uuid, chosen) = draft::identity(line.uuid, line.unique.as_deref())?;
    let draft = Draft {
        uuid,
        chosen,
        name: draft::checked_name(&line.name)?,
        priority,
        book: line.book,
        details: Value::Object(line.details),
    };
    if may_be_too_large {
        draft::check_size(&draft.details, max_details)?;
    }
    Ok(Numbered {
        number,
        draft,
        is_unique: line.unique.is_some(),
    })
}

/// Reads what a line says, or says what is wrong with it and what would be right.
fn read(line: &[u8]) -> Result<Line, String> {
    let text = std::str::from_utf8(line).map_err(|error| format!("not UTF-8: {error}"))?;
    // The number of the line is told by whoever knows it.
    let value = json::parse(text).map_err(|error| error.replace("line 1 column", "column"))?;
    match value {
        members @ Value::Object(_) => {
            serde_json::from_value(members).map_err(|error| error.to_string())
        }
        other => Err(format!(
            "a line must be a JSON object such as {{\"name\": \"resize\"}}, and this is {}",
            json::kind(&other)
        )),
    }
}

/// Takes away the mark with which some editors begin a file.
fn without_mark(mut line: Vec<u8>, number: u64) -> Vec<u8> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    if number == 1 && line.starts_with(MARK) {
        line.drain(..MARK.len());
    }
    line
}
