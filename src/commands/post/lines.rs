//! Reads the lines of a bulk post and makes drafts of them.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    commands::parts::{
        draft, json,
        line_reader::{LineReader, weight},
    },
    exit::CommandError,
    job::{Book, Draft, Priority, shortened},
    trace,
};

/// The largest ratio of a value's size to its text: `9e15` is the worst case.
const SWELLING: u64 = 8;

/// The members of a line and their formats.
const MEMBERS: [(&str, &str); 6] = [
    ("name", "a string"),
    ("details", "an object"),
    ("priority", "a string such as \"HIGH\""),
    ("book", "an object with the strings `name` and `uuid`"),
    ("uuid", "a string"),
    ("unique", "a string"),
];

/// Members that `list -o jsonl` adds, which a new job ignores.
const OF_LISTINGS: [&str; 30] = [
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
    "size",
    "raw",
    "kind",
];

/// The member that marks the first line of a dump.
pub(crate) const DUMP: &str = "jobboard_dump";

pub(crate) const NO_DETAILS: &str = "the job is from the history, which keeps no details to post";

/// Error for a line of a listing that was cut short.
pub(crate) const TOO_LARGE: &str =
    "the line lacks the details of the job: they were too large to read";

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
    /// A null member counts as missing.
    fn of(members: Map<String, Value>) -> Result<Self, String> {
        if members
            .get("state")
            .is_some_and(|state| state == "MALFORMED")
        {
            let key = members.get("key").and_then(Value::as_str);
            return Err(format!(
                "the record key:{} is malformed and holds no readable job",
                key.unwrap_or_default()
            ));
        }
        if members.contains_key(DUMP) {
            return Err("this is a dump: use `jobboard load`".to_owned());
        }
        if members
            .get("state")
            .is_some_and(|state| state == "COMPLETE")
        {
            return Err(NO_DETAILS.to_owned());
        }
        if members.contains_key("raw") && members.get("details").is_some_and(Value::is_null) {
            return Err(TOO_LARGE.to_owned());
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

fn misfit(member: &str, value: &Value) -> String {
    let known = MEMBERS.into_iter().find(|(name, _)| *name == member);
    match known {
        Some((name, wanted)) => {
            format!("`{name}` must be {wanted}, not {}", json::kind(value))
        }
        None => format!(
            "unknown member `{member}`; known members are {}",
            MEMBERS.map(|(name, _)| name).join(", ")
        ),
    }
}

fn book(members: &Map<String, Value>) -> Result<Book, String> {
    let text = |name| match members.get(name) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(format!("`book` needs the string `{name}`")),
    };
    draft::check_length("book", text("name")?)?;
    Ok(Book {
        name: text("name")?.clone(),
        uuid: draft::uuid(text("uuid")?)
            .map_err(|error| format!("`book`: {error}"))?
            .to_string(),
    })
}

pub(crate) struct Numbered {
    pub(crate) number: u64,
    /// The length, or more for a line with many values.
    pub(crate) size: usize,
    pub(crate) draft: Draft,
    pub(crate) is_unique: bool,
}

pub(crate) struct Lines {
    reader: LineReader,
    max_details: u64,
    trace: Vec<(String, Value)>,
}

impl Lines {
    /// Opens a file, or standard input; each draft gets the trace.
    pub(crate) fn open(
        path: Option<&Path>,
        max_details: u64,
        trace: Vec<(String, Value)>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            reader: LineReader::open(path, max_details)?,
            max_details,
            trace,
        })
    }

    pub(crate) fn would_block(&self) -> bool {
        self.reader.would_block()
    }

    /// Returns the next line, or its own error; an empty line is no job.
    pub(crate) async fn next(
        &mut self,
    ) -> anyhow::Result<Option<anyhow::Result<Option<Numbered>>>> {
        let Some(line) = self.reader.next().await? else {
            return Ok(None);
        };
        let read = line
            .map(|line| without_mark(line, self.reader.number()))
            .and_then(|line| match line.trim_ascii().is_empty() {
                true => Ok(None),
                false => self.numbered(&line).map(Some),
            });
        Ok(Some(read.with_context(|| self.reader.place())))
    }

    fn numbered(&mut self, line: &[u8]) -> anyhow::Result<Numbered> {
        // Measuring details would serialise them again.
        let size = line.len();
        let may_be_too_large = (size as u64).saturating_mul(SWELLING) > self.max_details;
        let room = size.max(weight(line) / 16);
        let line = json::object(line).and_then(Line::of);
        let line = line.map_err(|words| CommandError::usage(shortened(&words)))?;
        let (uuid, chosen) = draft::identity(line.uuid, line.unique.as_deref())?;
        let mut draft = Draft {
            uuid,
            chosen,
            name: draft::checked_name(&line.name.unwrap_or_default())?,
            priority: line.priority,
            book: line.book,
            details: Value::Object(line.details).into(),
            former: None,
        };
        trace::add(&self.trace, &mut draft.details);
        if may_be_too_large {
            draft::check_size(&draft.details.value(), self.max_details)?;
        }
        Ok(Numbered {
            number: self.reader.number(),
            size: room,
            draft,
            is_unique: line.unique.is_some(),
        })
    }
}

/// The byte order mark of some editors.
pub(crate) const MARK: &[u8] = "\u{feff}".as_bytes();

fn without_mark(mut line: Vec<u8>, number: u64) -> Vec<u8> {
    if number == 1 && line.starts_with(MARK) {
        line.drain(..MARK.len());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        board::{misread, url::BoardKind},
        untrusted::{Answer, Bounds, Corpus, refused, same},
    };

    const LINES: [&str; 4] = [
        r#"{"name": "resize", "details": {"command": ["a", "b c"], "n": [1, -1.5e300, null, "\u00e9"]}}"#,
        r#"{"name": "a", "priority": "high", "unique": "nightly", "book":
            {"name": "b", "uuid": "3f9a12cd-0000-4000-8000-000000000001"}}"#,
        r#"{"name": "b", "uuid": "3f9a12cd-0000-4000-8000-000000000001", "state": "UNCLAIMED", "details":
            {"s": {"$ext": 4, "text": "[1,\"a\"]"}, "f": {"$float": "inf"}, "b": {"$bytes": "AP8="}}}"#,
        r#"{"name": "c", "details": null, "sequence": 7, "owner": null}"#,
    ];

    #[test]
    fn untrusted_lines_are_posted_as_every_board_reads_them() {
        let bounds = Bounds {
            longest: 100_000,
            inputs: 1000,
            // The read-ahead has a separate limit.
            memory: (1 << 20, 4096),
            ..Bounds::STORED
        };
        let lines = LINES.map(|line| line.replace('\n', " "));
        Corpus::of(bounds, lines).hold(|input| {
            let lines = Lines::open(None, 1 << 20, Vec::new());
            let mut lines = lines.map_err(|error| error.to_string())?;
            let draft = match lines.numbered(input) {
                Ok(numbered) => numbered.draft,
                Err(error) => return refused(&format!("{error:#}")),
            };
            for kind in BoardKind::ALL {
                let misread = misread(*kind, &draft);
                same(&format!("a {kind} board reads it"), &misread, &None)?;
            }
            Ok(Answer::Read)
        });
    }
}
