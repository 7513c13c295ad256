//! Turns a line of a dump or of a listing into a job that can be posted.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use chrono::{DateTime, Datelike, TimeDelta, Timelike, Utc};
use serde::{Deserialize, Deserializer, de::value::MapDeserializer};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{dump::TRASH, json, limits::check_length};
use crate::{
    board::{contradiction, url::BoardKind},
    job::{
        Attempts, AuditEntry, Book, Details, Draft, Entry, Failure, Former, Job, JobKey, Location,
        Priority, shorten_texts, shortened,
    },
    secret,
};

pub(crate) const NO_DETAILS: &str = "the job is from the history, which keeps no details to post";

pub(crate) const TOO_LARGE: &str =
    "the line lacks the details of the job: they were too large to read";

/// Unknown members are ignored.
#[derive(Debug, Deserialize)]
struct ListedJob {
    kind: Option<String>,
    state: Option<String>,
    key: Option<String>,
    uuid: Option<String>,
    name: Option<String>,
    #[serde(default)]
    priority: Option<Priority>,
    sequence: Option<i64>,
    #[serde(default, deserialize_with = "time")]
    created_on: Option<DateTime<Utc>>,
    #[serde(default, deserialize_with = "time")]
    trashed_on: Option<DateTime<Utc>>,
    owner: Option<Value>,
    book: Option<Book>,
    #[serde(default = "no_details")]
    details: Value,
    attempts: Option<u32>,
    postponed: Option<u32>,
    #[serde(default, deserialize_with = "time")]
    not_before: Option<DateTime<Utc>>,
    failures: Option<Vec<Failure>>,
    by: Option<String>,
    action: Option<String>,
    #[serde(default, deserialize_with = "time")]
    action_on: Option<DateTime<Utc>>,
    reason: Option<String>,
    waited: Option<f64>,
    problem: Option<String>,
    raw: Option<String>,
}

fn time<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let time = Option::<DateTime<Utc>>::deserialize(reader)?;
    // Python has no leap seconds.
    Ok(time.and_then(|it| it.with_nanosecond(it.nanosecond().min(999_999_000))))
}

/// Whether Python can represent the time, and its text sorts like others.
fn is_of_calendar(time: &DateTime<Utc>) -> bool {
    (1..=9999).contains(&time.year())
}

/// Error for a listing with masked secrets, which would post a different job.
const COVERED: &str =
    "the details have masked secrets; `jobboard dump --secrets` writes them in full";

const MAX_KEY_BYTES: usize = 1024;

fn no_details() -> Value {
    Map::new().into()
}

#[derive(Debug)]
pub(crate) struct Loadable {
    pub(crate) entry: Entry,
    pub(crate) draft: Draft,
    pub(crate) was_claimed: bool,
    pub(crate) line: u64,
}

/// Between which kinds of boards jobs are transferred.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conversion {
    /// `None` if the stored bytes are missing, as in a listing, or of an unknown kind.
    pub(crate) from: Option<BoardKind>,
    pub(crate) to: BoardKind,
    /// The boards read larger details only as bytes.
    pub(crate) max_details: u64,
}

impl Conversion {
    pub(crate) fn keeps_bytes(self) -> bool {
        self.from == Some(self.to)
    }
}

/// Returns `None` for an unreadable record: no other board can store it.
pub(crate) fn read(line: &[u8], conversion: Conversion) -> Result<Option<Loadable>, String> {
    // An invalid value may be long.
    loadable(line, conversion).map_err(|words| shortened(&words))
}

fn loadable(line: &[u8], conversion: Conversion) -> Result<Option<Loadable>, String> {
    let mut members = json::object(line)?;
    shorten_history(&mut members);
    let line = ListedJob::deserialize(&members).map_err(|_| wrong_member(&members))?;
    let location = match (line.kind.as_deref(), line.state.as_deref()) {
        (_, Some("COMPLETE")) => return Err(NO_DETAILS.to_owned()),
        (_, Some("MALFORMED")) => return Ok(None),
        (Some(TRASH), _) | (None, Some("TRASHED")) => Location::Trash,
        _ => Location::Board,
    };
    if line
        .key
        .as_ref()
        .is_some_and(|key| key.len() > MAX_KEY_BYTES)
    {
        return Err(format!("the key is longer than {MAX_KEY_BYTES} bytes"));
    }
    // A listing may cut the bytes.
    let raw = match (&line.raw, conversion.from) {
        (Some(raw), Some(_)) => BASE64
            .decode(raw)
            .map_err(|error| format!("`raw`: {error}"))?,
        _ => Vec::new(),
    };
    let was_claimed = line.owner.as_ref().is_some_and(|owner| !owner.is_null());
    let job = job(line, location)?;
    Ok(Some(Loadable {
        draft: draft(&job, raw, conversion)?,
        entry: Entry::Job(Box::new(job)),
        was_claimed,
        line: 0,
    }))
}

/// Cuts the history to the length that boards keep: they could not read a larger sidecar.
fn shorten_history(members: &mut Map<String, Value>) {
    if let Some(Value::Array(failures)) = members.get_mut("failures") {
        let surplus = failures.len().saturating_sub(Attempts::MAX_FAILURES);
        failures.drain(..surplus);
    }
    for name in ["failures", "by", "action", "reason"] {
        members.get_mut(name).into_iter().for_each(shorten_texts);
    }
}

/// Describes the first member with a wrong type or value.
fn wrong_member(members: &Map<String, Value>) -> String {
    let is_wrong = |(name, value): &(&String, &Value)| {
        let alone = [(name.as_str(), *value)].into_iter();
        let alone: MapDeserializer<_, serde_json::Error> = MapDeserializer::new(alone);
        ListedJob::deserialize(alone).is_err()
    };
    let wrong = members.iter().find(is_wrong);
    let name = wrong.map_or("", |(name, _)| name);
    let format: &str = match name {
        "sequence" => &format!("a whole number below {}", 1_u64 << 63),
        "attempts" | "postponed" => &format!("a whole number from 0 to {}", u32::MAX),
        "waited" => "a number",
        "priority" => &priorities(),
        "book" => "an object with the strings `name` and `uuid`",
        "failures" => "an array of failures, as written by `jobboard dump`",
        "created_on" | "trashed_on" | "not_before" | "action_on" => {
            "a time such as \"2026-01-31T12:00:00Z\""
        }
        _ => "a string",
    };
    format!("`{name}` must be {format}")
}

fn priorities() -> String {
    let names: Vec<_> = Priority::ALL.iter().map(|it| it.name()).collect();
    format!("one of {}", names.join(", "))
}

/// Returns the draft of a job with its stored bytes, as [`read`] does for a line.
pub(crate) fn draft(job: &Job, raw: Vec<u8>, conversion: Conversion) -> Result<Draft, String> {
    let uuid = Uuid::try_parse(&job.uuid).map_err(|_| format!("`{}` is not a uuid", job.uuid))?;
    let is_stored = conversion.keeps_bytes() && !raw.is_empty();
    let details = match (&job.details, is_stored) {
        (Some(details), _) => details.clone(),
        (None, true) => Value::Null.into(),
        (None, false) => return Err(TOO_LARGE.to_owned()),
    };
    let raw = if is_stored { raw } else { Vec::new() };
    if !is_stored && secret::has_cover(&details.value()) {
        return Err(COVERED.to_owned());
    }
    if !is_stored {
        check_length("job", &job.name)?;
        for text in job.book.iter().flat_map(|book| [&book.name, &book.uuid]) {
            check_length("book", text)?;
        }
    }
    let draft = Draft {
        uuid,
        chosen: true,
        name: job.name.clone(),
        priority: job.priority,
        book: job.book.clone(),
        details,
        former: Some(Box::new(Former::of(job, raw.clone()))),
    };
    let misread =
        is_stored.then(|| contradiction(conversion.to, &raw, &draft, conversion.max_details));
    match misread.flatten() {
        Some(contradiction) => Err(contradiction),
        None => Ok(draft),
    }
}

fn job(line: ListedJob, location: Location) -> Result<Job, String> {
    let uuid = line.uuid.ok_or("the record has no uuid")?;
    let name = line.name.ok_or("the record has no name")?;
    let times = [
        line.created_on,
        line.trashed_on,
        line.not_before,
        line.action_on,
    ];
    if let Some(time) = times.iter().flatten().find(|it| !is_of_calendar(it)) {
        let year = time.year();
        return Err(format!("boards cannot store a time in the year {year}"));
    }
    let waited = line.waited.and_then(|waited| {
        let micros = (waited * 1e6).round();
        line.created_on?
            .checked_add_signed(TimeDelta::microseconds(micros as i64))
            .filter(is_of_calendar)
    });
    let audit = line.by.map(|by| AuditEntry {
        by,
        action: line.action,
        on: line.action_on,
        reason: line.reason,
    });
    let key = JobKey::new(line.key.unwrap_or_else(|| uuid.clone()));
    Ok(Job {
        priority: line.priority.unwrap_or_default(),
        sequence: line.sequence,
        created_on: line.created_on,
        trashed_on: line.trashed_on,
        location,
        book: line.book,
        details: Some(line.details)
            .filter(|it| !it.is_null())
            .map(Details::from),
        attempts: Attempts {
            count: line.attempts.unwrap_or_default(),
            postponed: line.postponed.unwrap_or_default(),
            not_before: line.not_before,
            failures: line.failures.unwrap_or_default(),
            first_claimed_on: waited,
            audit,
        },
        problem: line.problem,
        ..Job::new(key, uuid, name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        board::testing::misread,
        output::JobView,
        tests::rows,
        transfer::dump::DumpLine,
        untrusted::{Answer, Bounds, Corpus, refused, same},
    };

    const LINES: [&str; 4] = [
        r#"{"kind":"job","uuid":"3f9a12cd-0000-4000-8000-000000000001","key":"k","name":"resize",
            "state":"CLAIMED","priority":"HIGH","sequence":7,"created_on":"2026-01-01T00:00:00.123456Z",
            "owner":"ada","book":{"name":"n","uuid":"u"},"details":{"command":["a","b c"],"n":1.5},
            "attempts":2,"postponed":1,"not_before":"2026-02-01T00:00:00Z","waited":1.25,"failures":[
            {"exit_code":3,"signal":null,"reason":"it failed","stderr":"oh","conductor":"c1",
            "time":"2026-01-01T00:00:09Z"}],"by":"olga","action":"retried","reason":"it failed"}"#,
        r#"{"kind":"trash","uuid":"3f9a12cd-0000-4000-8000-000000000002","name":"\u202e","state":"TRASHED",
            "trashed_on":"2026-01-01T00:00:00+01:00","details":{"d":{"$ext":1,"text":
            "2024-02-29T13:05:09.123456"}}}"#,
        r#"{"uuid":"urn:uuid:3f9a12cd-0000-4000-8000-000000000003","name":"a","details":[1]}"#,
        r#"{"kind":"job","state":"MALFORMED","key":"bad","raw":"AP8=","problem":"it is empty"}"#,
    ];

    const FROM_LISTING: Conversion = Conversion {
        from: None,
        to: BoardKind::Redis,
        max_details: 1 << 20,
    };

    #[test]
    fn unstorable_records_are_refused() {
        let long = format!(r#""name":"{}""#, "é".repeat(10_001));
        let second = r#""created_on":"2016-12-31T23:59:60Z""#;
        for (members, why) in [
            (
                r#""created_on":"+12345-01-01T00:00:00Z""#,
                Some("the year 12345"),
            ),
            (
                r#""not_before":"-0001-01-01T00:00:00Z""#,
                Some("the year -1"),
            ),
            (
                r#""by":"a","action_on":"+12345-01-01T00:00:00Z""#,
                Some("the year 12345"),
            ),
            (&long, Some("this one has 60006")),
            (&long[..long.len() - 3], None),
            (second, None),
            (r#""by":"a","action_on":"2016-12-31T23:59:60Z""#, None),
        ] {
            let end = if members.ends_with('"') { "" } else { "\"" };
            let uuid = "3f9a12cd-0000-4000-8000-000000000001";
            let line = format!(r#"{{"uuid":"{uuid}","name":"a",{members}{end}}}"#);
            match (read(line.as_bytes(), FROM_LISTING), why) {
                (Ok(Some(loaded)), None) => {
                    let kinds = BoardKind::ALL.iter();
                    let misread = kinds.filter_map(|kind| misread(*kind, &loaded.draft));
                    assert_eq!(misread.collect::<Vec<_>>(), [""; 0]);
                }
                (Err(words), Some(why)) => assert!(words.contains(why), "{words}"),
                (read, _) => panic!("{read:?}"),
            }
        }
    }

    #[test]
    fn member_of_a_wrong_type_is_named_in_plain_words() {
        for [member, words] in rows(
            r#"
            "name":3 => `name` must be a string
            "raw":[1] => `raw` must be a string
            "priority":"URGENT" => `priority` must be one of VERY_HIGH, HIGH, NORMAL, LOW, VERY_LOW
            "sequence":9223372036854775808 => `sequence` must be a whole number below 9223372036854775808
            "attempts":-1 => `attempts` must be a whole number from 0 to 4294967295
            "waited":"long" => `waited` must be a number
            "created_on":"today" => `created_on` must be a time such as "2026-01-31T12:00:00Z"
            "book":{"name":"n"} => `book` must be an object with the strings `name` and `uuid`
            "failures":[{"reason":3}] => `failures` must be an array of failures, as written by `jobboard dump`
            "#,
        ) {
            let line = format!(r#"{{"state":"UNCLAIMED",{member}}}"#);
            assert_eq!(read(line.as_bytes(), FROM_LISTING).unwrap_err(), words);
        }
    }

    fn dumped(loaded: &Loadable) -> Vec<u8> {
        let view = JobView::of(&loaded.entry, DateTime::default());
        serde_json::to_vec(&DumpLine::new(loaded.draft.location(), view)).unwrap()
    }

    #[test]
    fn untrusted_lines_are_loaded_as_they_would_be_dumped() {
        let bounds = Bounds {
            longest: 100_000,
            inputs: 1000,
            ..Bounds::STORED
        };
        let lines = LINES.map(|line| line.replace('\n', " "));
        Corpus::of(bounds, lines).hold(|input| {
            let loaded = match read(input, FROM_LISTING) {
                Ok(Some(loaded)) => loaded,
                Ok(None) => return Ok(Answer::Read),
                Err(words) => return refused(&words),
            };
            let line = dumped(&loaded);
            let again = read(&line, FROM_LISTING)?.ok_or("unreadable")?;
            let lines = [line, dumped(&again)].map(|it| String::from_utf8(it).unwrap());
            same("dumped again", &lines[0], &lines[1])?;
            for kind in BoardKind::ALL {
                let misread = misread(*kind, &again.draft);
                same(&format!("a {kind} board reads it"), &misread, &None)?;
            }
            Ok(Answer::Read)
        });
    }
}
