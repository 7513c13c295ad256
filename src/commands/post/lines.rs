//! The lines of a bulk post, read one by one and made into drafts.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use uuid::Uuid;

use crate::{
    commands::parts::{draft, json},
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

/// What a line may have, and what each of that is.
const MEMBERS: [(&str, &str); 6] = [
    ("name", "a text"),
    ("details", "an object"),
    ("priority", "a text such as \"HIGH\""),
    ("book", "an object with the texts `name` and `uuid`"),
    ("uuid", "a text"),
    ("unique", "a text"),
];

/// What `list -o jsonl` says of a job beside that, which a new job has no use for.
const OF_LISTINGS: [&str; 27] = [
    "key",
    "state",
    "sequence",
    "created_on",
    "last_modified",
    "owner",
    "lease",
    "expires_in",
    "claimed_on",
    "fence",
    "trashed_on",
    "ended_on",
    "outcome",
    "by",
    "action",
    "action_on",
    "reason",
    "waited",
    "took",
    "exit_code",
    "signal",
    "failures",
    "attempts",
    "postponed",
    "not_before",
    "last_failure",
    "problem",
];

/// A line of a bulk post.
#[derive(Debug, Default)]
struct Line {
    name: Option<String>,
    details: Map<String, Value>,
    priority: Priority,
    book: Option<Book>,
    uuid: Option<Uuid>,
    unique: Option<String>,
}

impl Line {
    /// Reads what an object says; what is null is not there.
    fn of(members: Map<String, Value>) -> Result<Self, String> {
        if members
            .get("state")
            .is_some_and(|state| state == "MALFORMED")
        {
            let key = members.get("key").and_then(Value::as_str);
            return Err(format!(
                "the record key:{} is malformed, and there is no job in it",
                key.unwrap_or_default()
            ));
        }
        let mut line = Self::default();
        for (member, value) in members {
            match (member.as_str(), value) {
                ("details" | "priority" | "book" | "uuid" | "unique", Value::Null) => {}
                ("name", Value::String(name)) => line.name = Some(name),
                ("details", Value::Object(details)) => line.details = details,
                ("priority", Value::String(name)) => {
                    line.priority = name.parse().map_err(|error| format!("{error}"))?;
                }
                ("book", Value::Object(book)) => line.book = Some(self::book(&book)?),
                ("uuid", Value::String(uuid)) => line.uuid = Some(draft::uuid(&uuid)?),
                ("unique", Value::String(key)) => line.unique = Some(key),
                (member, _) if OF_LISTINGS.contains(&member) => {}
                (_, value) => return Err(misfit(&member, &value)),
            }
        }
        Ok(line)
    }
}

/// Says why a line cannot have this.
fn misfit(member: &str, value: &Value) -> String {
    let known = MEMBERS.into_iter().find(|(name, _)| *name == member);
    match known {
        Some((name, wanted)) => {
            format!("`{name}` is {wanted}, and this is {}", json::kind(value))
        }
        None => format!(
            "unknown member `{member}`: a line has {}",
            MEMBERS.map(|(name, _)| name).join(", ")
        ),
    }
}

fn book(members: &Map<String, Value>) -> Result<Book, String> {
    let text = |name| match members.get(name) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(format!("`book` lacks the text `{name}`")),
    };
    Ok(Book {
        name: text("name")?.clone(),
        uuid: draft::uuid(text("uuid")?)
            .map_err(|error| format!("`book`: {error}"))?
            .to_string(),
    })
}

/// A line that can be posted, and its number.
pub(crate) struct Numbered {
    pub(crate) number: u64,
    /// Its length.
    pub(crate) size: usize,
    pub(crate) draft: Draft,
    pub(crate) is_unique: bool,
}

/// Reads lines, each of bounded length, and makes drafts of them.
pub(crate) struct Lines {
    reader: BufReader<Box<dyn AsyncRead + Unpin>>,
    source: String,
    /// Whether nobody is still writing it.
    is_file: bool,
    number: u64,
    max_details: u64,
}

impl Lines {
    /// Opens a file, or standard input.
    pub(crate) fn open(path: Option<&Path>, max_details: u64) -> anyhow::Result<Self> {
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
    pub(crate) fn would_block(&self) -> bool {
        !self.is_file && !self.reader.buffer().contains(&b'\n')
    }

    /// Returns the next line; an `Err` inside is about that line alone, and an empty one is no job.
    pub(crate) async fn next(
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
                false => self.numbered(&line).map(Some),
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

    fn numbered(&mut self, line: &[u8]) -> anyhow::Result<Numbered> {
        // Measuring details means writing them out once more.
        let size = line.len();
        let may_be_too_large = (size as u64).saturating_mul(SWELLING) > self.max_details;
        let line = read(line).map_err(CommandError::usage)?;
        let (uuid, chosen) = draft::identity(line.uuid, line.unique.as_deref())?;
        let draft = Draft {
            uuid,
            chosen,
            name: draft::checked_name(&line.name.unwrap_or_default())?,
            priority: line.priority,
            book: line.book,
            details: Value::Object(line.details),
        };
        if may_be_too_large {
            draft::check_size(&draft.details, self.max_details)?;
        }
        Ok(Numbered {
            number: self.number,
            size,
            draft,
            is_unique: line.unique.is_some(),
        })
    }
}

/// Reads what a line says, or says what is wrong with it and what would be right.
fn read(line: &[u8]) -> Result<Line, String> {
    let text = std::str::from_utf8(line)
        .map_err(|error| format!("not UTF-8, from byte {} on", error.valid_up_to() + 1))?;
    // The number of the line is told by whoever knows it.
    let value = json::parse(text).map_err(|error| error.replace("line 1 column", "column"))?;
    match value {
        Value::Object(members) => Line::of(members),
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
