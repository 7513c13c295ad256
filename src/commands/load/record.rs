//! A line of a dump, or of a listing, made into a job that can be posted again.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    board::{contradiction, url::BoardKind},
    commands::{
        parts::{dump_format::TRASH, json},
        post::lines::{NO_DETAILS, TOO_LARGE},
    },
    job::{
        Book, Draft, Entry, Failure, Former, History, Job, JobKey, Malformed, Origin, Priority,
        Remark, Shelf,
    },
};

/// What is read of a line; whatever else is in it means nothing here.
#[derive(Debug, Deserialize)]
struct Line {
    kind: Option<String>,
    state: Option<String>,
    key: Option<String>,
    uuid: Option<String>,
    name: Option<String>,
    #[serde(default)]
    priority: Option<Priority>,
    sequence: Option<i64>,
    created_on: Option<DateTime<Utc>>,
    trashed_on: Option<DateTime<Utc>>,
    owner: Option<Value>,
    book: Option<Book>,
    #[serde(default = "no_details")]
    details: Value,
    attempts: Option<u32>,
    postponed: Option<u32>,
    not_before: Option<DateTime<Utc>>,
    failures: Option<Vec<Failure>>,
    by: Option<String>,
    action: Option<String>,
    action_on: Option<DateTime<Utc>>,
    reason: Option<String>,
    waited: Option<f64>,
    problem: Option<String>,
    raw: Option<String>,
}

fn no_details() -> Value {
    Map::new().into()
}

/// A record that is to be put on a board, as it was on another or on the same.
#[derive(Debug)]
pub(crate) struct Loadable {
    /// As it was listed.
    pub(crate) entry: Entry,
    pub(crate) draft: Draft,
    /// Whether somebody had it.
    pub(crate) was_claimed: bool,
    /// The line that it came from.
    pub(crate) line: Option<u64>,
}

/// Reads a line; `kinds` are the kind of board that it is from, if it has its stored bytes, and the
/// one to which it goes.
pub(crate) fn read(line: &[u8], kinds: (Option<BoardKind>, BoardKind)) -> Result<Loadable, String> {
    let members = json::object(line)?;
    let line: Line = serde_json::from_value(members.into()).map_err(|error| error.to_string())?;
    let shelf = match (line.kind.as_deref(), line.state.as_deref()) {
        (_, Some("COMPLETE")) => return Err(NO_DETAILS.to_owned()),
        (Some(TRASH), _) | (None, Some("TRASHED")) => Shelf::Trash,
        _ => Shelf::Board,
    };
    // What a listing shows may be no more than the beginning.
    let raw = match (&line.raw, kinds.0) {
        (Some(raw), Some(_)) => BASE64
            .decode(raw)
            .map_err(|error| format!("`raw`: {error}"))?,
        _ => Vec::new(),
    };
    let was_claimed = line.owner.as_ref().is_some_and(|owner| !owner.is_null());
    let (entry, draft) = match line.state.as_deref() {
        Some("MALFORMED") => malformed(line, shelf, raw),
        _ => {
            let job = job(line, shelf)?;
            let draft = draft(&job, raw, kinds)?;
            (Entry::Job(Box::new(job)), draft)
        }
    };
    Ok(Loadable {
        entry,
        draft,
        was_claimed,
        line: None,
    })
}

/// Makes of a job, and of its stored bytes, what puts it on a board; as [`read`] does of a line.
pub(crate) fn draft(
    job: &Job,
    raw: Vec<u8>,
    (from, to): (Option<BoardKind>, BoardKind),
) -> Result<Draft, String> {
    let uuid = Uuid::try_parse(&job.uuid).map_err(|_| {
        format!(
            "its uuid `{}` is none, and so nothing tells it from others",
            job.uuid
        )
    })?;
    let is_stored = from == Some(to) && !raw.is_empty();
    let details = match (&job.details, is_stored) {
        (Some(details), _) => details.clone(),
        (None, true) => Value::Null,
        (None, false) => return Err(TOO_LARGE.to_owned()),
    };
    let raw = if is_stored { raw } else { Vec::new() };
    let draft = Draft {
        uuid,
        chosen: true,
        name: job.name.clone(),
        priority: job.priority,
        book: job.book.clone(),
        details,
        former: Some(Box::new(Former::of(job, raw.clone()))),
    };
    match is_stored.then(|| contradiction(to, &raw, &draft)).flatten() {
        Some(contradiction) => Err(contradiction),
        None => Ok(draft),
    }
}

fn job(line: Line, shelf: Shelf) -> Result<Job, String> {
    let uuid = line
        .uuid
        .ok_or("it has no uuid, and so nothing tells it from others")?;
    let name = line.name.ok_or("it has no name")?;
    let waited = line.waited.and_then(|waited| {
        let micros = (waited * 1e6).round();
        line.created_on?
            .checked_add_signed(TimeDelta::microseconds(micros as i64))
    });
    let remark = line.by.map(|by| Remark {
        by,
        action: line.action,
        on: line.action_on,
        reason: line.reason,
    });
    Ok(Job {
        key: JobKey::new(line.key.unwrap_or_else(|| uuid.clone())),
        uuid,
        name,
        priority: line.priority.unwrap_or_default(),
        sequence: line.sequence,
        created_on: line.created_on,
        last_modified: None,
        holding: None,
        is_blocked: false,
        is_unfit: false,
        is_denied: false,
        raw: Vec::new(),
        trashed_on: line.trashed_on,
        ended: None,
        shelf,
        origin: Origin::Here,
        book: line.book,
        details: Some(line.details).filter(|details| !details.is_null()),
        history: History {
            attempts: line.attempts.unwrap_or_default(),
            postponed: line.postponed.unwrap_or_default(),
            not_before: line.not_before,
            failures: line.failures.unwrap_or_default(),
            first_claimed_on: waited,
            remark,
        },
        size: 0,
        problem: line.problem,
    })
}

/// Makes a record that cannot be read; nothing is known of it but its bytes.
fn malformed(line: Line, shelf: Shelf, raw: Vec<u8>) -> (Entry, Draft) {
    let key = JobKey::new(line.key.unwrap_or_default());
    let entry = Malformed {
        is_denied: false,
        key: key.clone(),
        problem: line.problem.unwrap_or_default(),
        size: raw.len() as u64,
        raw: raw.clone(),
        holding: None,
        origin: Origin::Here,
    };
    (Entry::Malformed(entry.clone()), stray(&entry, shelf))
}

/// Makes of a record that cannot be read what puts it on a board of the same kind.
pub(crate) fn stray(record: &Malformed, shelf: Shelf) -> Draft {
    Draft {
        uuid: Uuid::nil(),
        chosen: false,
        name: String::new(),
        priority: Priority::default(),
        book: None,
        details: Value::Null,
        former: Some(Box::new(Former {
            shelf,
            raw: record.raw.clone(),
            malformed: Some(record.key.clone()),
            sequence: None,
            created_on: None,
            trashed_on: None,
            history: History::default(),
        })),
    }
}
