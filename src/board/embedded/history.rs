//! The history of an embedded board.

use std::{borrow::Cow, collections::HashMap};

use rusqlite::{Row, params};

use super::{
    read::record::{entry, malformed, text_of, time_of},
    store::{
        clock::from_micros,
        transaction::{BoardView, Change},
    },
};
use crate::{
    board::{Detail, wire::as_json},
    job::{AuditEntry, Departure, End, Entry, Failure, LONGEST_TEXT, Owner, shortened},
};

/// How many old entries are dropped together.
const ENTRIES_PER_TRIM: i64 = 64;

pub(super) struct Exit<'a> {
    pub(super) departure: Departure,
    pub(super) has_succeeded: bool,
    /// All its failures, if the last one is not stored yet.
    pub(super) failures: Option<&'a Vec<Failure>>,
    pub(super) audit: Option<&'a AuditEntry>,
}

impl Change<'_> {
    pub(super) fn put_ended(&self, sequence: i64, exit: &Exit<'_>) -> rusqlite::Result<()> {
        if self.history == 0 {
            return Ok(());
        }
        let [uuid, name, book_name, book_uuid, failures, audit] = texts(self);
        self.run(
            &format!(
                "INSERT INTO past (ended_on, outcome, succeeded, sequence, uuid, name, priority,
                                   created_on, book_name, book_uuid, claimed_on, attempts,
                                   postponed, failures, first_claimed_on, remark)
                 SELECT ?2, ?3, ?4, sequence, {uuid}, {name}, priority, created_on, {book_name},
                        {book_uuid}, claimed_on, min(attempts + ahead, 4294967295), postponed,
                        coalesce(?5, {failures}), first_claimed_on, coalesce(?6, {audit})
                 FROM job WHERE sequence = ?1"
            ),
            params![
                sequence,
                self.now.wall,
                exit.departure.name(),
                exit.has_succeeded,
                exit.failures.map(as_json),
                exit.audit.map(as_json),
            ],
        )?;
        let last = self.last_id();
        if last % ENTRIES_PER_TRIM == 0 {
            self.run(
                "DELETE FROM past WHERE id <= ?1",
                [last - i64::from(self.history)],
            )?;
        }
        Ok(())
    }
}

fn texts(view: &BoardView<'_>) -> [Cow<'static, str>; 6] {
    let texts = [
        "uuid",
        "name",
        "book_name",
        "book_uuid",
        "failures",
        "remark",
    ];
    texts.map(|column| view.bounded(column))
}

pub(super) fn entries(view: &BoardView<'_>, most: u32) -> rusqlite::Result<Vec<Entry>> {
    // The journal still knows the owners of recently ended jobs.
    let owners: HashMap<i64, Owner> = view.all(
        &format!(
            "SELECT sequence, owner FROM event
             WHERE kind = 'consumed' AND sequence IS NOT NULL AND octet_length(owner) <= {}",
            Owner::MAX_BYTES
        ),
        [],
        |row| Ok((row.get(0)?, Owner::from_stored(row.get::<_, Vec<u8>>(1)?))),
    )?;
    let [uuid, name, book_name, book_uuid, failures, audit] = texts(view);
    // The whole history is read, so its texts are cut.
    let cut = |it| {
        let text = format!("typeof({it}) = 'text' AND length({it}) > {LONGEST_TEXT}");
        format!("iif({text}, substr({it}, 1, {LONGEST_TEXT}) || '…', {it})")
    };
    let [uuid, name, book_name, book_uuid] = [uuid, name, book_name, book_uuid].map(cut);
    let outcome = view.bounded("outcome");
    // First the columns of an unclaimed record.
    view.all(
        &format!(
            "SELECT sequence, {uuid}, 2, {name}, priority, created_on, NULL, {book_name},
                    {book_uuid}, NULL, NULL, NULL, NULL, attempts, postponed, NULL, {failures},
                    NULL, 0, NULL, 0, 0, first_claimed_on, {audit}, ended_on, {outcome},
                    succeeded, claimed_on
             FROM past ORDER BY id DESC LIMIT ?1"
        ),
        [most],
        |row| read(row, view, &owners),
    )
}

fn read(
    row: &Row<'_>,
    view: &BoardView<'_>,
    owners: &HashMap<i64, Owner>,
) -> rusqlite::Result<Entry> {
    let outcome = text_of(row, 25)?;
    let Ok(departure) = outcome.parse() else {
        let problem = format!("the job has the unknown outcome {:?}", shortened(&outcome));
        return malformed(row, view, Detail::Brief, &problem);
    };
    let mut entry = entry(row, view, Detail::Brief)?;
    if let Entry::Job(job) = &mut entry {
        job.ended = Some(End {
            on: from_micros(row.get(24)?),
            departure,
            owner: owners.get(&row.get(0)?).cloned(),
            claimed_on: time_of(row, 27)?,
            has_succeeded: row.get(26)?,
        });
    }
    Ok(entry)
}
