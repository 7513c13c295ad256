//! One transaction on the board file: a consistent view, or a change.

use std::{borrow::Cow, ops::Deref};

use rusqlite::{CachedStatement, InterruptHandle, OptionalExtension, Params, Row, Transaction};

use super::{FileOptions, clock::BoardClock};
use crate::{board::wire::posting::Limit, job::MAX_RECORD_BYTES};

#[derive(Clone, Copy)]
pub(crate) struct BoardView<'a> {
    pub(super) transaction: &'a Transaction<'a>,
    pub(crate) now: BoardClock,
    pub(super) is_same_boot: bool,
    /// Whether long texts are left out: a first attempt met one.
    pub(super) is_bounded: bool,
    pub(crate) limit: Limit,
    pub(crate) history: u32,
}

impl<'a> BoardView<'a> {
    pub(super) fn new(
        transaction: &'a Transaction<'a>,
        options: &FileOptions,
        is_bounded: bool,
    ) -> Self {
        Self {
            transaction,
            now: BoardClock::now(),
            is_same_boot: true,
            is_bounded,
            limit: options.limit,
            history: options.history,
        }
    }

    pub(crate) fn prepare(&self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        self.transaction.prepare_cached(sql)
    }

    pub(crate) fn all<T, C: FromIterator<T>>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<C> {
        self.prepare(sql)?.query_map(values, read)?.collect()
    }

    pub(crate) fn one<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.prepare(sql)?.query_row(values, read)
    }

    pub(crate) fn first<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.one(sql, values, read).optional()
    }

    pub(crate) fn count(&self, table: &str) -> rusqlite::Result<usize> {
        let sql = format!("SELECT count(*) FROM {table}");
        let count: i64 = self.one(&sql, [], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    pub(crate) fn has_table(&self, name: &str) -> rusqlite::Result<bool> {
        let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
        Ok(self.first(sql, [name], |_| Ok(()))?.is_some())
    }

    /// Returns the SQL of a text column. In a bounded view, the length replaces a long text.
    pub(crate) fn bounded(&self, column: &'static str) -> Cow<'static, str> {
        match self.is_bounded {
            true => format!(
                "CASE WHEN octet_length({column}) <= {MAX_RECORD_BYTES} THEN {column}
                      ELSE octet_length({column}) END"
            )
            .into(),
            false => column.into(),
        }
    }

    pub(crate) fn interrupt_handle(&self) -> InterruptHandle {
        self.transaction.get_interrupt_handle()
    }

    /// Returns the time on the boot clock, unless the stored times belong to another boot.
    pub(crate) fn boot_time(&self) -> Option<i64> {
        self.is_same_boot.then_some(self.now.boot)
    }

    /// Returns the column to compare with [`expired_until`](Self::expired_until).
    pub(crate) fn expires_column(&self) -> &'static str {
        match self.is_same_boot {
            true => "expires_boot",
            false => "expires_wall",
        }
    }

    /// Returns the current time in milliseconds, on the clock of that column: claims up to it have expired.
    pub(crate) fn expired_until(&self) -> i64 {
        match self.is_same_boot {
            true => self.now.boot,
            false => self.now.wall_millis(),
        }
    }
}

/// A change of the board. Its deadlines are on the clock of this boot, and expired claims are already released.
pub(crate) struct Change<'a>(pub(super) BoardView<'a>);

impl Change<'_> {
    pub(crate) fn run(&self, sql: &str, values: impl Params) -> rusqlite::Result<usize> {
        self.prepare(sql)?.execute(values)
    }

    /// Creates a table that boards have only once they need it.
    pub(crate) fn make_table(&self, sql: &str) -> rusqlite::Result<()> {
        self.transaction.execute_batch(sql)
    }

    pub(crate) fn last_id(&self) -> i64 {
        self.transaction.last_insert_rowid()
    }
}

impl<'a> Deref for Change<'a> {
    type Target = BoardView<'a>;

    fn deref(&self) -> &BoardView<'a> {
        &self.0
    }
}

#[cfg(test)]
mod testing {
    use super::{BoardClock, BoardView, Limit, Transaction};

    impl<'a> BoardView<'a> {
        pub(crate) fn of(transaction: &'a Transaction<'a>) -> Self {
            Self {
                transaction,
                now: BoardClock::now(),
                is_same_boot: true,
                is_bounded: false,
                limit: Limit::USUAL,
                history: 0,
            }
        }
    }
}
