//! The history of an embedded board.

use std::collections::HashMap;

use rusqlite::{Row, params};

use super::{
    read::record::{StoredColumn, entry, malformed, time_of},
    store::{
        clock::from_micros,
        texts::text_of,
        transaction::{BoardView, Change},
    },
};
use crate::{
    board::{Detail, wire::as_json},
    job::{AuditEntry, End, Entry, Failure, MAX_TEXT_BYTES, Outcome, Owner, shortened},
};

/// How many old entries are dropped together.
const ENTRIES_PER_TRIM: i64 = 64;

pub(super) struct Exit<'a> {
    pub(super) outcome: Outcome,
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
        let texts = [
            "uuid",
            "name",
            "book_name",
            "book_uuid",
            "failures",
            "remark",
        ];
        let [uuid, name, book_name, book_uuid, failures, audit] =
            texts.map(|column| self.bounded(column));
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
                exit.outcome.name(),
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

/// The place of the first column that only ended jobs have.
const ENDED: usize = StoredColumn::ALL.len();

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
    // The whole history is read, so its texts are cut.
    let cut = |it| {
        let text = format!("typeof({it}) = 'text' AND length({it}) > {MAX_TEXT_BYTES}");
        format!("iif({text}, substr({it}, 1, {MAX_TEXT_BYTES}) || '…', {it})").into()
    };
    let columns = StoredColumn::select(|column| {
        use StoredColumn::*;
        match column {
            Shelf => "2".into(),
            Size | Ahead | DetailsLength => "0".into(),
            // A job in the history has no claim.
            ModifiedOn | Owner | Fence | ClaimedOn | Expires | NotBefore | TrashedOn | Details => {
                "NULL".into()
            }
            Uuid | Name | BookName | BookUuid => cut(view.bounded(column.name())),
            _ => view.bounded(column.name()),
        }
    });
    let outcome = view.bounded("outcome");
    view.all(
        &format!(
            "SELECT {columns}, ended_on, {outcome}, succeeded, claimed_on
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
    let stored = text_of(row, ENDED + 1)?;
    let Ok(outcome) = stored.parse() else {
        let problem = format!("the job has the unknown outcome {:?}", shortened(&stored));
        return malformed(row, view, Detail::Brief, &problem);
    };
    let mut entry = entry(row, view, Detail::Brief)?;
    if let Entry::Job(job) = &mut entry {
        job.ended = Some(End {
            on: from_micros(row.get(ENDED)?),
            outcome,
            owner: owners.get(&row.get(StoredColumn::Sequence.at())?).cloned(),
            claimed_on: time_of(row, ENDED + 3)?,
            has_succeeded: row.get(ENDED + 2)?,
        });
    }
    Ok(entry)
}
