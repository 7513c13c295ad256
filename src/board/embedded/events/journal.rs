//! The journal table of recent events, and its readers.

use std::collections::BTreeMap;

use rusqlite::{Row, params};

use crate::{
    board::{
        Event, EventKind,
        embedded::{
            read::record::{RowJob, audit_of, column_enum, priority_of},
            store::{
                clock::from_micros,
                texts::{bytes_or_none, text_of, text_or_none},
                transaction::{BoardView, Change},
            },
        },
        event::Subject,
        wire::as_json,
    },
    job::{AuditEntry, Fence, JobKey, Outcome, Owner, Rank},
};

/// How many events are kept for watchers that fell behind.
const KEPT: i64 = 10_000;

/// How often, in events, the older ones are dropped.
const DROP_EVERY: i64 = 256;

const PAGE: i64 = 1000;

/// The last number that a job got.
pub(crate) const LAST_NUMBER: &str =
    "(SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'job')";

column_enum! {
    /// The columns of the journal that are read, in their order.
    JournalColumn:
    At "at" Kind "kind" Posted "posted" Sequence "sequence" Uuid "uuid" Name "name" Priority "priority"
    NotBefore "not_before" Owner "owner" Fence "fence" Outcome "outcome" Audit "remark"
}

/// The parts of a new row that only some events have.
#[derive(Default)]
struct JournalEntry<'a> {
    job: Option<&'a RowJob>,
    /// The pattern of a pause; the name of a job comes from the job.
    names: Option<&'a str>,
    owner: Option<&'a [u8]>,
    outcome: Option<Outcome>,
    audit: Option<&'a AuditEntry>,
}

impl Change<'_> {
    pub(crate) fn log_job(&self, kind: EventKind, job: &RowJob) -> rusqlite::Result<()> {
        self.log_exit(kind, job, None, None)
    }

    /// Also logs how the job ended and the audit entry, if there are any.
    pub(crate) fn log_exit(
        &self,
        kind: EventKind,
        job: &RowJob,
        outcome: Option<Outcome>,
        audit: Option<&AuditEntry>,
    ) -> rusqlite::Result<()> {
        let entry = JournalEntry {
            job: Some(job),
            names: None,
            owner: job.owner.as_deref(),
            outcome,
            audit,
        };
        self.log(kind, &entry)
    }

    pub(crate) fn log_conductor(&self, kind: EventKind, name: &str) -> rusqlite::Result<()> {
        let owner = Some(name.as_bytes());
        let entry = JournalEntry {
            owner,
            ..JournalEntry::default()
        };
        self.log(kind, &entry)
    }

    pub(crate) fn log_names(
        &self,
        kind: EventKind,
        names: &str,
        audit: &AuditEntry,
    ) -> rusqlite::Result<()> {
        let entry = JournalEntry {
            names: Some(names),
            audit: Some(audit),
            ..JournalEntry::default()
        };
        self.log(kind, &entry)
    }

    fn log(&self, kind: EventKind, entry: &JournalEntry<'_>) -> rusqlite::Result<()> {
        let job = entry.job;
        self.run(
            &format!(
                "INSERT INTO event (at, kind, posted, sequence, uuid, name, priority, not_before,
                                    owner, fence, outcome, remark)
                 VALUES (?1, ?2, {LAST_NUMBER}, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
            ),
            params![
                self.now.wall,
                kind.name(),
                job.map(|job| job.sequence),
                job.map(|job| &job.uuid),
                job.map(|job| &*job.name).or(entry.names),
                job.map(|job| job.priority),
                job.and_then(|job| job.not_before),
                entry.owner,
                job.and_then(|job| job.fence),
                entry.outcome.map(Outcome::name),
                entry.audit.map(as_json),
            ],
        )?;
        let last = self.last_id();
        if last % DROP_EVERY == 0 {
            self.run("DELETE FROM event WHERE id <= ?1", [last - KEPT])?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    event: i64,
    sequence: i64,
}

impl Position {
    pub(crate) const START: Self = Self {
        event: 0,
        sequence: 0,
    };

    pub(crate) fn end(view: &BoardView<'_>) -> rusqlite::Result<Self> {
        let sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?1";
        let last = |table: &str| view.one(sql, [table], |row| row.get(0));
        Ok(Self {
            event: last("event")?,
            sequence: last("job")?,
        })
    }
}

struct JournalRow {
    event: Event,
    posted: i64,
}

/// Reads the events after a position. Posts have no rows in the journal: they are read from the job table and merged
/// by number.
pub(crate) fn read(view: &BoardView<'_>, position: &mut Position) -> rusqlite::Result<Vec<Event>> {
    let end = Position::end(view)?;
    let first: Option<i64> = view.one("SELECT min(id) FROM event", [], |row| row.get(0))?;
    let is_cut = first.is_some_and(|first| {
        first.saturating_sub(1) > position.event && end.event > position.event
    });
    // A position from before the file was replaced does not apply to the new one.
    if is_cut || end.event < position.event || end.sequence < position.sequence {
        *position = end;
        return Ok(vec![Event::resync()]);
    }
    let mut lines = lines_after(view, position.event)?;
    let (mut is_full, mut until) = (lines.len() as i64 == PAGE, end.sequence);
    if let Some(last) = lines.last().filter(|_| is_full) {
        until = last.posted;
    }
    let mut posts = posts_between(view, position.sequence, until)?;
    // With a full page, later posts and events wait for their turn.
    if let Some((last, _)) = posts.last_key_value()
        && posts.len() as i64 == PAGE
    {
        (is_full, until) = (true, *last);
        lines.truncate(lines.partition_point(|line| line.posted <= until));
    }
    let last_event = match is_full {
        true => position.event.saturating_add(lines.len() as i64),
        false => end.event,
    };
    for line in &lines {
        // The job may be gone again: its event proves that it was posted.
        if let Some(subject) = &line.event.subject
            && let Some(sequence) = subject.sequence.filter(|it| *it > position.sequence)
        {
            let post = || posted(subject.clone(), line.event.time);
            posts.entry(sequence).or_insert_with(post);
        }
    }
    *position = Position {
        event: last_event,
        sequence: until.max(position.sequence),
    };
    Ok(in_order(lines, posts))
}

fn in_order(lines: Vec<JournalRow>, mut posts: BTreeMap<i64, Event>) -> Vec<Event> {
    let mut events = Vec::with_capacity(lines.len() + posts.len());
    for line in lines {
        let later = posts.split_off(&line.posted.saturating_add(1));
        events.extend(std::mem::replace(&mut posts, later).into_values());
        events.push(line.event);
    }
    events.extend(posts.into_values());
    events
}

fn lines_after(view: &BoardView<'_>, event: i64) -> rusqlite::Result<Vec<JournalRow>> {
    let columns = JournalColumn::select(|column| view.bounded(column.name()));
    let sql = format!("SELECT {columns} FROM event WHERE id > ?1 ORDER BY id LIMIT ?2");
    view.all(&sql, [event, PAGE], line)
}

fn line(row: &Row<'_>) -> rusqlite::Result<JournalRow> {
    use JournalColumn as Column;
    let sequence: Option<i64> = row.get(Column::Sequence.at())?;
    let name = text_or_none(row, Column::Name.at())?;
    let (subject, names) = match (sequence, text_or_none(row, Column::Uuid.at())?) {
        (Some(sequence), Some(uuid)) => {
            let priority: Option<i64> = row.get(Column::Priority.at())?;
            let not_before = row.get(Column::NotBefore.at())?;
            let (name, priority) = (name.unwrap_or_default(), priority.unwrap_or_default());
            let subject = subject(sequence, uuid, name, priority, not_before);
            (Some(subject), None)
        }
        _ => (None, name),
    };
    let fence: Option<i64> = row.get(Column::Fence.at())?;
    let outcome = text_or_none(row, Column::Outcome.at())?;
    Ok(JournalRow {
        event: Event {
            // This release cannot report a kind that a later release added.
            kind: text_of(row, Column::Kind.at())?
                .parse()
                .unwrap_or(EventKind::Resync),
            time: from_micros(row.get(Column::At.at())?),
            subject,
            names,
            owner: bytes_or_none(row, Column::Owner.at())?.map(Owner::from_stored),
            fence: fence.map(|number| Fence(number.to_string())),
            outcome: outcome.and_then(|outcome| outcome.parse().ok()),
            audit: audit_of(row, Column::Audit.at())?,
        },
        posted: row.get(Column::Posted.at())?,
    })
}

fn posts_between(
    view: &BoardView<'_>,
    after: i64,
    until: i64,
) -> rusqlite::Result<BTreeMap<i64, Event>> {
    let [uuid, name] = ["uuid", "name"].map(|column| view.bounded(column));
    view.all(
        &format!(
            "SELECT sequence, {uuid}, {name}, priority, not_before, created_on FROM job
             WHERE sequence > ?1 AND sequence <= ?2 ORDER BY sequence LIMIT ?3"
        ),
        [after, until, PAGE],
        |row| {
            let sequence = row.get(0)?;
            let (uuid, name) = (text_of(row, 1)?, text_of(row, 2)?);
            let subject = subject(sequence, uuid, name, row.get(3)?, row.get(4)?);
            Ok((sequence, posted(subject, from_micros(row.get(5)?))))
        },
    )
}

pub(crate) fn subject(
    sequence: i64,
    uuid: String,
    name: String,
    priority: i64,
    not_before: Option<i64>,
) -> Subject {
    Subject {
        key: JobKey::new(uuid.clone()),
        uuid,
        sequence: Some(sequence),
        name,
        rank: Rank::new(priority_of(priority).unwrap_or_default(), Some(sequence)),
        not_before: not_before.map(from_micros),
    }
}

fn posted(subject: Subject, time: chrono::DateTime<chrono::Utc>) -> Event {
    Event {
        time,
        subject: Some(subject),
        ..Event::now(EventKind::Posted)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused};

    fn row(kind: u8, numbers: [i64; 7], text: &str) -> Vec<u8> {
        let numbers = numbers.map(i64::to_be_bytes).concat();
        [&[kind][..], &numbers, text.as_bytes()].concat()
    }

    fn read_row(file: &mut Connection, input: &[u8]) -> rusqlite::Result<Vec<Event>> {
        let mut padded = input.to_vec();
        padded.resize(input.len().max(57), 0);
        let (numbers, _) = padded[1..].as_chunks::<8>();
        let number = |at: usize| i64::from_be_bytes(numbers[at]);
        let kind = EventKind::ALL[usize::from(padded[0]) % EventKind::ALL.len()];
        let text = input.get(57..).unwrap_or_default();
        let transaction = file.transaction()?;
        transaction.execute(
            "INSERT INTO event (id, at, kind, posted, sequence, uuid, name, priority, not_before, owner,
                                fence, outcome, remark)
             VALUES (max(1, ?1), ?2, ?3, ?4, ?5, CAST(?6 AS TEXT), CAST(?6 AS TEXT), ?7, ?8, ?6, ?9,
                     CAST(?6 AS TEXT), CAST(?6 AS TEXT))",
            params![
                number(0), number(1), kind.name(), number(2), number(3), text, number(4), number(5),
                number(6)
            ],
        )?;
        let view = BoardView::of(&transaction);
        let mut position = Position::START;
        let mut events = read(&view, &mut position)?;
        events.extend(read(&view, &mut position)?);
        Ok(events)
    }

    #[test]
    fn many_posts_and_events_are_read_page_by_page_in_order() {
        let mut file = Connection::open_in_memory().unwrap();
        file.execute_batch(include_str!("../store/schema.sql"))
            .unwrap();
        let jobs = 2 * PAGE + 500;
        let between = PAGE + 200;
        file.execute_batch(&format!(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {jobs})
             INSERT INTO job (uuid, shelf, name, priority, created_on, details)
             SELECT n, 0, n, 0, n, '{{}}' FROM numbers;
             INSERT INTO event (at, kind, posted, owner)
             VALUES (1, 'conductor-joined', {between}, x'61'), (2, 'conductor-left', {jobs}, x'61');"
        ))
        .unwrap();
        let transaction = file.transaction().unwrap();
        let view = BoardView::of(&transaction);
        let (mut position, mut sizes, mut all) = (Position::START, Vec::new(), Vec::new());
        while position != Position::end(&view).unwrap() {
            let events = read(&view, &mut position).unwrap();
            sizes.push(events.len());
            all.extend(events);
        }
        assert_eq!(sizes, [1000, 1001, 501]);
        let number = |event: &Event| event.subject.as_ref().and_then(|it| it.sequence);
        let numbers: Vec<_> = all.iter().filter_map(number).collect();
        assert!(numbers.iter().copied().eq(1..=jobs));
        let joined = &all[between as usize];
        assert_eq!(joined.kind, EventKind::ConductorJoined);
        assert_eq!(all.last().unwrap().kind, EventKind::ConductorLeft);
    }

    #[test]
    fn untrusted_rows_of_the_journal_become_events_or_errors() {
        let file = Connection::open_in_memory().unwrap();
        file.execute_batch(include_str!("../store/schema.sql"))
            .unwrap();
        let audit = r#"{"by":"olga","action":"trashed"}"#;
        let rows = [
            row(0, [1, 1_767_225_600_000_000, 7, 7, 2, 0, 3], "a"),
            row(3, [1, 1_767_225_600_000_000, 9, 0, 2, 5, 3], audit),
            row(
                1,
                [
                    1,
                    i64::MAX,
                    i64::MAX,
                    i64::MAX,
                    i64::MAX,
                    i64::MIN,
                    i64::MIN,
                ],
                "consumed",
            ),
            row(2, [i64::MAX, i64::MIN, i64::MIN, i64::MIN, -1, 0, 0], ""),
        ];
        let bounds = Bounds {
            inputs: 400,
            longest: 512,
            ..Bounds::STORED
        };
        let file = std::cell::RefCell::new(file);
        Corpus::of(bounds, rows).hold(|input| match read_row(&mut file.borrow_mut(), input) {
            Ok(events) if events.iter().all(|event| event.subject.is_none()) => {
                refused("no event names a job")
            }
            Ok(_) => Ok(Answer::Read),
            Err(error) => refused(&error),
        });
    }
}
