//! Reads the job table: pages of a listing, and single records.

use std::collections::HashSet;

use rusqlite::{Row, params, types::Value};

use super::record::{StoredColumn, columns, entry, location_number, malformed};
use crate::{
    board::{
        Detail, JobRef, Order, Query, Which, embedded::store::transaction::BoardView,
        reference::CANDIDATES,
    },
    job::{Entry, Location},
};

/// The rows of the first page: few, since most readers want only the best.
const FIRST_PAGE: i64 = 64;

const MAX_PAGE: i64 = 2048;

/// A page ends once its records take this many bytes.
const PAGE_BYTES: u64 = 512 * 1024;

#[derive(Debug)]
pub(crate) struct PageCursor {
    query: Query,
    /// The stored priority and sequence of the last record returned.
    last: (i64, i64),
    page: i64,
    pub(crate) is_at_end: bool,
}

impl PageCursor {
    pub(crate) fn new(query: Query) -> Self {
        Self {
            query,
            last: (i64::MIN, i64::MIN),
            page: FIRST_PAGE,
            is_at_end: false,
        }
    }
}

pub(crate) fn page(view: &BoardView<'_>, cursor: &mut PageCursor) -> rusqlite::Result<Vec<Entry>> {
    let query = cursor.query;
    let mut statement = view.prepare(&page_sql(view, query)?)?;
    let sql = "SELECT sequence FROM job WHERE NOT json_valid(details)";
    let unreadable: HashSet<i64> = view.all(sql, [], |row| row.get(0))?;
    let mut rows = statement.query(params![cursor.last.0, cursor.last.1, cursor.page])?;
    let (mut entries, mut bytes, mut last) = (Vec::new(), 0, cursor.last);
    while bytes < PAGE_BYTES
        && let Some(row) = rows.next()?
    {
        let found = match unreadable.contains(&row.get(StoredColumn::Sequence.at())?) {
            false => entry(row, view, query.detail)?,
            true => malformed(row, view, query.detail, "the details are not valid JSON")?,
        };
        last = (
            row.get(StoredColumn::Priority.at())?,
            row.get(StoredColumn::Sequence.at())?,
        );
        bytes += match (&found, query.detail) {
            (Entry::Job(job), Detail::Whole | Detail::Stored) => job.size,
            (Entry::Malformed(record), _) => record.size,
            _ => 0,
        };
        entries.push(found);
    }
    // Only now, so that a page whose reading failed is read again from its start.
    cursor.last = last;
    if bytes < PAGE_BYTES {
        cursor.is_at_end = (entries.len() as i64) < cursor.page;
        cursor.page = (cursor.page * 4).min(MAX_PAGE);
    }
    Ok(entries)
}

fn page_sql(view: &BoardView<'_>, query: Query) -> rusqlite::Result<String> {
    let (columns, source) = (columns(view, query.detail), source(view, query)?);
    let from = format!("SELECT {columns} FROM job {source}");
    Ok(match query.order {
        // With one condition on the pair, SQLite would walk over all earlier records of the priority.
        Order::Rank => format!(
            "{from} AND priority = ?1 AND sequence > ?2 UNION ALL {from} AND priority > ?1 \
             ORDER BY priority, sequence LIMIT ?3"
        ),
        // Uses both so that the statement takes the same values.
        Order::Any | Order::Posted => {
            format!("{from} AND ?1 IS NOT NULL AND sequence > ?2 ORDER BY sequence LIMIT ?3")
        }
    })
}

fn source(view: &BoardView<'_>, query: Query) -> rusqlite::Result<String> {
    let location = location_number(query.location);
    let index = match query.order {
        Order::Rank => "INDEXED BY job_ranked",
        Order::Any | Order::Posted => "NOT INDEXED",
    };
    let whole = format!("{index} WHERE shelf = {location}");
    if query.which == Which::All || query.location == Location::Trash {
        return Ok(whole);
    }
    let (expires, until) = (view.expires_column(), view.expired_until());
    let sql = format!("SELECT EXISTS (SELECT 1 FROM job WHERE {expires} <= ?1)");
    let is_any_expired: bool = view.one(&sql, [until], |row| row.get(0))?;
    Ok(match (is_any_expired, query.order) {
        // The index knows released claims, but not those that expired since.
        (true, _) => format!("{whole} AND (owner IS NULL OR {expires} <= {until})"),
        (false, Order::Rank) => {
            "INDEXED BY job_unclaimed WHERE shelf = 0 AND owner IS NULL".to_owned()
        }
        (false, Order::Any | Order::Posted) => format!("{whole} AND owner IS NULL"),
    })
}

pub(crate) fn find(
    view: &BoardView<'_>,
    location: Location,
    wanted: &JobRef,
) -> rusqlite::Result<Vec<Entry>> {
    let (condition, value) = match wanted {
        JobRef::Sequence(number) => ("sequence = ?1 AND shelf = ?2", Value::from(*number)),
        JobRef::Key(key) => ("uuid = ?1 AND shelf = ?2", key.to_string().into()),
        // `g` sorts after every uuid character. The plus keeps SQLite from walking the whole location by the index
        // that begins with it.
        JobRef::Uuid(prefix) => (
            "uuid >= ?1 AND uuid < ?1 || 'g' AND +shelf = ?2 ORDER BY uuid",
            prefix.clone().into(),
        ),
    };
    let (columns, location) = (columns(view, Detail::Whole), location_number(location));
    let sql = format!("SELECT {columns} FROM job WHERE {condition} LIMIT {CANDIDATES}");
    let read = |row: &Row<'_>| entry(row, view, Detail::Whole);
    view.all(&sql, params![value, location], read)
}

/// Counts the jobs on the board and in the trash, and returns whether there ever were any.
pub(crate) fn counts(view: &BoardView<'_>) -> rusqlite::Result<(u64, u64, bool)> {
    view.one(
        "SELECT (SELECT count(*) FROM job WHERE shelf = 0), (SELECT count(*) FROM job WHERE shelf = 1),
                EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'job')",
        [],
        |row| {
            let count = |at| row.get::<_, i64>(at).map(i64::unsigned_abs);
            Ok((count(0)?, count(1)?, row.get(2)?))
        },
    )
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::board::embedded::{
        store::{Store, disk::make_file, transaction::Change},
        tests::options,
    };

    /// Returns how many steps SQLite takes to find the next hundred records.
    fn steps(view: &BoardView<'_>, query: Query, place: (i64, i64)) -> rusqlite::Result<i32> {
        let mut statement = view.prepare(&page_sql(view, query)?)?;
        let mut rows = statement.query(params![place.0, place.1, 100])?;
        let mut count = 0;
        while rows.next()?.is_some() {
            count += 1;
        }
        drop(rows);
        assert_eq!(count, 100);
        Ok(statement.reset_status(StatementStatus::VmStep))
    }

    #[test]
    fn page_cost_does_not_depend_on_its_position() {
        let directory = tempfile::tempdir().unwrap();
        let options = options(&directory);
        make_file(&options.path, false).unwrap();
        let mut store = Store::create(&options).unwrap();
        let fill = "WITH RECURSIVE number(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM number \
                    WHERE n < 5000) INSERT INTO job (uuid, name, priority, created_on, details) \
                    SELECT n, 'resize', 2 + n / 3000, 0, '{}' FROM number";
        let mut change = |change: &Change<'_>| change.run(fill, []);
        store.write(|_, _| Ok(()), &mut change).unwrap();
        let queries = [Order::Rank, Order::Any].into_iter().flat_map(|order| {
            [Which::All, Which::Unclaimed].map(|which| Query {
                location: Location::Board,
                which,
                order,
                detail: Detail::Brief,
            })
        });
        for query in queries {
            let mut cost = |place| {
                let mut look = |view: &BoardView<'_>| steps(view, query, place);
                store.read(&mut look).unwrap()
            };
            let first = cost((i64::MIN, i64::MIN));
            for place in [(2, 2500), (2, 2950), (3, 4800)] {
                let later = cost(place);
                assert!(
                    later < first * 2,
                    "{query:?} at {place:?}: {later}, first {first}"
                );
            }
        }
    }
}
