//! Logbooks in an SQLite file.

use std::{path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, params_from_iter, types::ValueRef};
use tokio::task;

use super::{Access, LogbookError, LogbookResult, TextRow};

/// The file is read on a blocking thread.
pub(super) struct Sqlite(Arc<Mutex<Connection>>);

impl Sqlite {
    pub(super) async fn open(
        path: PathBuf,
        op_timeout: Duration,
        access: Access,
    ) -> LogbookResult<Self> {
        let flags = match access {
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        let opened = task::spawn_blocking(move || {
            // A bare name that begins with `file:` would be read as a URI.
            let path = PathBuf::from(".").join(path);
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(op_timeout)?;
            // The cheapest check that the file is a database.
            connection.pragma_query_value(None, "schema_version", |_| Ok(()))?;
            Ok(connection)
        });
        let connection = opened.await.map_err(ended)?.map_err(problem)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    pub(super) async fn rows(
        &self,
        question: &str,
        values: &[&str],
    ) -> LogbookResult<Vec<TextRow>> {
        let connection = Arc::clone(&self.0);
        let interrupt = Interrupt(connection.lock().get_interrupt_handle());
        let question = question.to_owned();
        let values: Vec<_> = values.iter().map(|value| (*value).to_owned()).collect();
        let asked = task::spawn_blocking(move || {
            let connection = connection.lock();
            let mut statement = connection.prepare(&question)?;
            let columns = statement.column_count();
            let rows = statement.query_map(params_from_iter(values), |row| {
                (0..columns).map(|at| row.get_ref(at).map(text)).collect()
            })?;
            rows.collect::<rusqlite::Result<Vec<TextRow>>>()
        });
        let rows = asked.await.map_err(ended)?.map_err(problem);
        drop(interrupt);
        rows
    }
}

/// TaskFlow writes only texts.
fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(_) | ValueRef::Null => None,
    }
}

struct Interrupt(rusqlite::InterruptHandle);

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.0.interrupt();
    }
}

fn ended(error: task::JoinError) -> LogbookError {
    LogbookError::Refused(error.to_string())
}

fn problem(error: Error) -> LogbookError {
    let text = match &error {
        // The full message contains the query.
        Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen) => LogbookError::Unreachable(text),
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => {
            LogbookError::Denied(text)
        }
        Some(ErrorCode::Unknown | ErrorCode::NotADatabase) => LogbookError::Schema(text),
        _ => LogbookError::Refused(text),
    }
}
