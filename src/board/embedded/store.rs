//! The file of an embedded board: opening, creating, locking and signalling changes.

pub(super) mod clock;
pub(super) mod disk;
mod error;
pub(super) mod file;
mod name;
pub(super) mod signal;
pub(super) mod texts;
pub(super) mod transaction;

use std::{fs, path::PathBuf, time::Duration};

use rusqlite::{
    Connection, Error, ErrorCode, TransactionBehavior, config::DbConfig, ffi, limits::Limit, params,
};

pub(super) use self::error::{OpenError, is_busy};
use self::{
    clock::boot_id,
    disk::{
        FileIdentity, OpenMode, is_mounted_read_only, open_file, refuse_foreign_log,
        refuse_left_log, refuse_network_file_system, with_suffix,
    },
    error::SCHEMA_VERSION,
    signal::ChangeSignal,
    texts::text_of,
    transaction::{BoardView, Change},
};
use crate::board::wire::posting;

/// Marks our files, so that another program's database is not taken for a board.
pub(super) const APPLICATION_ID: i32 = 0x6a6f_6262;

/// Files keep these statements word for word, comments included.
const SCHEMA: &str = include_str!("store/schema.sql");

/// Conductors whose registration ended without notice, kept while their claims may last. The first one creates the
/// table: boards without one keep the layout of 0.2.0. Files keep its indentation, too.
pub(super) const DEPARTED: &str = include_str!("store/departed.sql").trim_ascii_end();

/// The first move creates the table: boards without one keep the layout of 0.2.0.
pub(super) const MOVES: &str =
    "CREATE TABLE IF NOT EXISTS moves (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT";

/// Runs first in each change and releases expired claims. `boot` identifies the current boot.
pub(super) type Begin = fn(&Change<'_>, boot: &str) -> rusqlite::Result<()>;

/// Maximum log size on exit; the next process has to read it.
const MAX_LOG_LEFT: u64 = 256 * 1024;

const STATEMENTS: usize = 64;

#[derive(Debug, Clone)]
pub(crate) struct FileOptions {
    pub(crate) path: PathBuf,
    pub(crate) makes_directory: bool,
    /// Whether each change waits for the disk and survives a power loss; all survive the end of any process.
    pub(crate) sync_full: bool,
    pub(crate) op_timeout: Duration,
    pub(crate) limit: posting::Limit,
    pub(crate) history: u32,
}

#[derive(Debug)]
pub(super) struct Store {
    connection: Connection,
    options: FileOptions,
    boot: String,
    signal: ChangeSignal,
    pub(super) identity: FileIdentity,
    log: Option<name::OpenLog>,
}

impl Store {
    /// Returns `None` if the file has no board.
    pub(super) fn open(options: &FileOptions) -> Result<Option<Self>, OpenError> {
        let path = &options.path;
        if !path.try_exists().map_err(OpenError::at(path))? {
            refuse_left_log(path)?;
            return Ok(None);
        }
        let open = |mode| {
            refuse_foreign_log(path)?;
            name::adopt(path)?;
            let mut store = Self::connect(options, mode)?;
            Ok(store.has_schema()?.then_some(store))
        };
        match open(OpenMode::Shared) {
            // Sharing a board needs files beside it, which cannot be created here.
            Err(OpenError::Sqlite(error)) if is_denied(&error) && is_mounted_read_only(path) => {
                open(OpenMode::Alone)
            }
            opened => opened,
        }
    }

    pub(super) fn is_current(&self) -> bool {
        match FileIdentity::of(&self.options.path) {
            Ok(now) => {
                // Without the log, we and others would no longer see each other's changes.
                let has_log = self.log.as_ref().is_none_or(name::OpenLog::is_there);
                now.is_same_file(&self.identity) && has_log
            }
            // An inaccessible path may still exist.
            Err(OpenError::Inaccessible { source, .. }) => {
                source.kind() != std::io::ErrorKind::NotFound
            }
            Err(_) => false,
        }
    }

    /// Opens an existing file and makes it a board if necessary.
    pub(super) fn create(options: &FileOptions) -> Result<Self, OpenError> {
        if let Some(store) = Self::open(options)? {
            return Ok(store);
        }
        let path = &options.path;
        let mut store = Self::connect(options, OpenMode::Shared)?;
        if !store.has_schema()? {
            let connection = &mut store.connection;
            connection.pragma_update(None, "journal_mode", "wal")?;
            // From the first read on, the file is locked under all its names.
            version(connection)?;
            name::confirm(path, connection)?;
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Another process may have been first.
            if version(&change)? == 0 {
                change.execute_batch(SCHEMA)?;
                change.execute("UPDATE board SET boot = ?1", params![store.boot])?;
                change.pragma_update(None, "application_id", APPLICATION_ID)?;
                change.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            }
            change.commit()?;
            // The log exists only now.
            name::confirm(path, connection)?;
            store.log = name::OpenLog::of(path);
        }
        Ok(store)
    }

    fn connect(options: &FileOptions, mode: OpenMode) -> Result<Self, OpenError> {
        let path = &options.path;
        let identity = FileIdentity::of(path)?;
        refuse_network_file_system(path)?;
        let connection = open_file(path, mode)?;
        if !FileIdentity::of(path)?.is_same_file(&identity) {
            // Another file has just taken its place.
            return Err(OpenError::Replaced);
        }
        refuse_foreign_log(path)?;
        // Callers wait instead, so that the rest of the program continues.
        connection.busy_timeout(Duration::ZERO)?;
        // Otherwise the last process to exit waits for the disk, and nearly every process is the last. `finish` keeps
        // the log short.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Boards have none of these. An added one could make changes that the caller did not ask for.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        // Reading a longer text fails, and the transaction is repeated without such texts.
        let longest = i32::try_from(options.limit.stored()).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, longest)?;
        // Keeps savepoint journals out of files; bulk changes write one for each job.
        connection.pragma_update(None, "temp_store", "memory")?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        let synchronous = if options.sync_full { "full" } else { "normal" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        Ok(Self {
            connection,
            options: options.clone(),
            boot: boot_id(),
            signal: ChangeSignal::of(path),
            identity,
            log: None,
        })
    }

    /// Whether the tables exist; refuses files of other programs.
    fn has_schema(&mut self) -> Result<bool, OpenError> {
        // Use one snapshot: another process may be creating the tables.
        let snapshot = self.connection.transaction()?;
        let found = version(&snapshot)?;
        let mark: i32 = snapshot.pragma_query_value(None, "application_id", |row| row.get(0))?;
        if mark == APPLICATION_ID && found > 0 {
            return match found {
                SCHEMA_VERSION => {
                    if let Some(name) = unknown_object(&snapshot)? {
                        return Err(OpenError::Altered { name });
                    }
                    drop(snapshot);
                    name::confirm(&self.options.path, &self.connection)?;
                    self.log = name::OpenLog::of(&self.options.path);
                    Ok(true)
                }
                _ if found > SCHEMA_VERSION => Err(OpenError::Newer { found }),
                _ => Err(OpenError::Older { found }),
            };
        }
        // A test marks its board before the tables exist.
        let tables = "SELECT count(*) FROM sqlite_schema WHERE ?1 = 0 OR name = 'job'";
        let tables: i64 = snapshot.query_row(tables, [mark], |row| row.get(0))?;
        match (mark, tables) {
            (0 | APPLICATION_ID, 0) => Ok(false),
            _ => Err(OpenError::Foreign),
        }
    }

    pub(super) fn read<T>(
        &mut self,
        look: &mut impl FnMut(&BoardView<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let done = self.read_with(look, false);
        match is_too_big(&done) {
            true => self.read_with(look, true),
            false => done,
        }
    }

    fn read_with<T>(
        &mut self,
        look: &mut impl FnMut(&BoardView<'_>) -> rusqlite::Result<T>,
        is_bounded: bool,
    ) -> rusqlite::Result<T> {
        let snapshot = self.connection.transaction()?;
        let boot: String = snapshot
            .prepare_cached("SELECT boot FROM board")?
            .query_row([], |row| row.get(0))?;
        look(&BoardView {
            is_same_boot: boot == self.boot,
            ..BoardView::new(&snapshot, &self.options, is_bounded)
        })
    }

    pub(super) fn write<T>(
        &mut self,
        begin: Begin,
        change: &mut impl FnMut(&Change<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let done = self.write_with(begin, change, false);
        if !is_too_big(&done) {
            return done;
        }
        // SQLite has to load a whole row to change or delete it.
        let limit = self
            .connection
            .set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::MAX)?;
        let done = self.write_with(begin, change, true);
        self.connection
            .set_limit(Limit::SQLITE_LIMIT_LENGTH, limit)?;
        done
    }

    fn write_with<T>(
        &mut self,
        begin: Begin,
        change: &mut impl FnMut(&Change<'_>) -> rusqlite::Result<T>,
        is_bounded: bool,
    ) -> rusqlite::Result<T> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Read the clock after taking the lock, so that waiting does not shorten the lease.
        let begun = Change(BoardView::new(&transaction, &self.options, is_bounded));
        begin(&begun, &self.boot)?;
        let answer = change(&begun)?;
        transaction.commit()?;
        self.signal.notify();
        Ok(answer)
    }

    pub(super) fn finish(&mut self) {
        let log = with_suffix(&self.options.path, "-wal");
        // If another file has replaced ours, the log belongs to that one.
        if self.is_current() && fs::metadata(log).is_ok_and(|log| log.len() > MAX_LOG_LEFT) {
            // Other processes may still read the log; the last of them truncates it.
            let _ = self
                .connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }
}

/// Finds a table or index of the board that `jobboard` did not create: SQLite would evaluate its expressions.
fn unknown_object(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let known: Vec<_> = statements(SCHEMA).chain([DEPARTED, MOVES]).collect();
    let mut statement =
        connection.prepare("SELECT sql, type, tbl_name, name FROM sqlite_schema")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        // SQLite keeps each statement as it was, but without IF NOT EXISTS.
        let sql = row.get_ref(0)?.as_bytes_or_null()?.unwrap_or_default();
        let rest = sql.strip_prefix(b"CREATE TABLE ").unwrap_or(sql);
        // An automatic index has no statement.
        if known.iter().any(|known| known.as_bytes().ends_with(rest)) {
            continue;
        }
        // Other programs may keep tables of their own in the file.
        let (kind, table) = (text_of(row, 1)?, text_of(row, 2)?);
        let mut tables = known.iter().filter_map(|known| table_of(known));
        if kind != "trigger" && tables.any(|name| name.eq_ignore_ascii_case(&table)) {
            return text_of(row, 3).map(Some);
        }
    }
    Ok(None)
}

/// Splits a script. A search for a character is much faster than one for a text.
fn statements(script: &str) -> impl Iterator<Item = &str> {
    let ends = script.match_indices(';').map(|(at, _)| at);
    let ends = ends.filter(|at| script[at + 1..].starts_with('\n'));
    ends.scan(0, |start, end| {
        Some(&script[std::mem::replace(start, end)..end])
    })
}

fn table_of(statement: &str) -> Option<&str> {
    let (_, rest) = statement.split_once("CREATE TABLE ")?;
    rest.trim_start_matches("IF NOT EXISTS ").split(' ').next()
}

fn version(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn is_too_big<T>(done: &rusqlite::Result<T>) -> bool {
    let code = done.as_ref().err().and_then(Error::sqlite_error_code);
    code == Some(ErrorCode::TooBig)
}

pub(super) fn is_denied(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::PermissionDenied
                | ErrorCode::ReadOnly
                | ErrorCode::AuthorizationForStatementDenied
        )
    ) || error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == ffi::SQLITE_CANTOPEN)
}
