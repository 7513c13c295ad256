//! The lines of a bulk post, and the drafts that they make.

use anyhow::Context as _;
use chrono::DateTime;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    batches::{NextRecord, RecordSource},
    dump::{DUMP, DumpLine},
    json,
    limits::{check_command, check_length, check_size, checked_name, identity, uuid},
    lines::{LineReader, MARK, refuse_array, weight},
    record::{NO_DETAILS, TOO_LARGE},
};
use crate::{
    exit::CommandError,
    job::{Book, Draft, Entry, Job, JobKey, Location, Priority, shortened},
    output::JobView,
    secret, trace,
};

/// The largest ratio of a value's size to its text: `9e15` is the worst case.
const SWELLING: u64 = 8;

const MEMBERS: [(&str, &str); 6] = [
    ("name", "a string"),
    ("details", "an object"),
    ("priority", "a string such as \"HIGH\""),
    ("book", "an object with the strings `name` and `uuid`"),
    ("uuid", "a string"),
    ("unique", "a string"),
];

/// Returns the members of a dumped or listed job. A new job ignores most of them.
fn listed_members() -> Map<String, Value> {
    let job = Job {
        raw: vec![0],
        ..Job::new(JobKey::new(""), String::new(), String::new())
    };
    let entry = Entry::Job(Box::new(job));
    let line = DumpLine::new(Location::Board, JobView::of(&entry, DateTime::default()));
    match serde_json::to_value(line) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

#[derive(Debug, Default)]
struct DraftLine {
    name: Option<String>,
    details: Map<String, Value>,
    priority: Priority,
    book: Option<Book>,
    uuid: Option<Uuid>,
    unique: Option<String>,
}

impl DraftLine {
    /// A null member counts as missing.
    fn of(members: Map<String, Value>, listed: &Map<String, Value>) -> Result<Self, String> {
        let state = members.get("state").and_then(Value::as_str);
        if state == Some("MALFORMED") {
            let key = members.get("key").and_then(Value::as_str);
            return Err(format!(
                "the record key:{} is malformed and holds no readable job",
                key.unwrap_or_default()
            ));
        }
        if members.contains_key(DUMP) {
            return Err("this is a dump: use `jobboard load`".to_owned());
        }
        if state == Some("COMPLETE") {
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
                ("uuid", Value::String(uuid)) => line.uuid = Some(self::uuid(&uuid)?),
                ("unique", Value::String(key)) => line.unique = Some(key),
                (name, value) => match MEMBERS.into_iter().find(|(known, _)| *known == name) {
                    Some((name, format)) => {
                        let kind = json::kind(&value);
                        return Err(format!("`{name}` must be {format}, not {kind}"));
                    }
                    None if listed.contains_key(name) => {}
                    None => {
                        let known = MEMBERS.map(|(name, _)| name).join(", ");
                        return Err(format!(
                            "unknown member `{name}`; known members are {known}"
                        ));
                    }
                },
            }
        }
        Ok(line)
    }
}

fn book(members: &Map<String, Value>) -> Result<Book, String> {
    let text = |name| match members.get(name) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(format!("`book` needs the string `{name}`")),
    };
    check_length("book", text("name")?)?;
    Ok(Book {
        name: text("name")?.clone(),
        uuid: self::uuid(text("uuid")?)
            .map_err(|error| format!("`book`: {error}"))?
            .to_string(),
    })
}

pub(crate) struct NumberedDraft {
    pub(crate) number: u64,
    pub(crate) draft: Draft,
    pub(crate) is_unique: bool,
}

pub(crate) struct DraftLines {
    reader: LineReader,
    max_details: u64,
    trace: Vec<(String, Value)>,
    listed: Map<String, Value>,
}

impl DraftLines {
    pub(crate) fn new(reader: LineReader, max_details: u64, trace: Vec<(String, Value)>) -> Self {
        Self {
            reader,
            max_details,
            trace,
            listed: listed_members(),
        }
    }

    /// Parses a line, and measures it: its length, or more for a line with many values.
    fn numbered(&self, line: &[u8]) -> anyhow::Result<(NumberedDraft, usize)> {
        // Measuring details would serialise them again.
        let size = line.len();
        let may_be_too_large = (size as u64).saturating_mul(SWELLING) > self.max_details;
        let may_be_covered = std::str::from_utf8(line).is_ok_and(secret::is_covered);
        let room = size.max(weight(line) / 16);
        let line = json::object(line).and_then(|it| DraftLine::of(it, &self.listed));
        let line = line.map_err(|words| CommandError::usage(shortened(&words)))?;
        let (uuid, chosen) = identity(line.uuid, line.unique.as_deref())?;
        let name = checked_name(&line.name.unwrap_or_default())?;
        let mut draft = Draft {
            chosen,
            priority: line.priority,
            book: line.book,
            ..Draft::new(uuid, name, Value::Object(line.details))
        };
        check_command(&draft.details)?;
        trace::add(&self.trace, &mut draft.details);
        if may_be_too_large || may_be_covered {
            check_size(&draft.details.value(), self.max_details)?;
        }
        let numbered = NumberedDraft {
            number: self.reader.number(),
            draft,
            is_unique: line.unique.is_some(),
        };
        Ok((numbered, room))
    }
}

impl RecordSource for DraftLines {
    type Record = NumberedDraft;

    async fn next(&mut self) -> anyhow::Result<Option<NextRecord<NumberedDraft>>> {
        let Some(line) = self.reader.next().await? else {
            return Ok(None);
        };
        if let (1, Ok(first)) = (self.reader.number(), &line) {
            refuse_array(first)?;
        }
        let read = line.and_then(|line| {
            let mark = Some(MARK).filter(|_| self.reader.number() == 1);
            let line = mark.and_then(|it| line.strip_prefix(it)).unwrap_or(&line);
            match line.trim_ascii().is_empty() {
                true => Ok(None),
                false => self.numbered(line).map(Some),
            }
        });
        let read = read.with_context(|| self.reader.place());
        Ok(Some(read.map_err(Into::into)))
    }

    fn would_block(&self) -> bool {
        self.reader.would_block()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        board::{testing::misread, url::BoardKind},
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
            let reader = LineReader::open(None, 1 << 20);
            let reader = reader.map_err(|error| error.to_string())?;
            let lines = DraftLines::new(reader, 1 << 20, Vec::new());
            let draft = match lines.numbered(input) {
                Ok((numbered, _)) => numbered.draft,
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
