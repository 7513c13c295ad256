//! One interface to all databases: a query returns rows of texts, in the dialect of its database.

use std::time::Duration;

#[cfg(feature = "mysql")]
use super::mysql::Mysql;
#[cfg(feature = "postgres")]
use super::postgres::Postgres;
use super::{Access, LogbookResult, TextRow, sqlite::Sqlite, url::LogbookUrl};

/// In bytes. A larger value is not read.
pub(super) const MAX_VALUE_BYTES: usize = 8 << 20;

pub(super) enum LogbookDatabase {
    Sqlite(Sqlite),
    #[cfg(feature = "mysql")]
    Mysql(Mysql),
    #[cfg(feature = "postgres")]
    Postgres(Postgres),
}

impl LogbookDatabase {
    pub(super) async fn open(
        url: &LogbookUrl,
        op_timeout: Duration,
        access: Access,
    ) -> LogbookResult<Self> {
        match url {
            LogbookUrl::Sqlite(path) => Ok(Self::Sqlite(
                Sqlite::open(path.clone(), op_timeout, access).await?,
            )),
            #[cfg(feature = "mysql")]
            LogbookUrl::Mysql(server) => {
                Ok(Self::Mysql(Mysql::open(server, op_timeout, access).await?))
            }
            #[cfg(not(feature = "mysql"))]
            LogbookUrl::Mysql(_) => Err(super::LogbookError::LeftOut("mysql")),
            #[cfg(feature = "postgres")]
            LogbookUrl::Postgres(server) => Ok(Self::Postgres(
                Postgres::open(server, op_timeout, access).await?,
            )),
            #[cfg(not(feature = "postgres"))]
            LogbookUrl::Postgres(_) => Err(super::LogbookError::LeftOut("postgres")),
        }
    }

    pub(super) async fn rows(
        &self,
        question: &str,
        values: &[&str],
    ) -> LogbookResult<Vec<TextRow>> {
        match self {
            Self::Sqlite(sqlite) => sqlite.rows(question, values).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(mysql) => mysql.rows(question, values).await,
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.rows(question, values).await,
        }
    }

    pub(super) fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            #[cfg(feature = "mysql")]
            Self::Mysql(_) => Dialect::Mysql,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Dialect::Postgres,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(all(feature = "mysql", feature = "postgres")), expect(dead_code))]
pub(super) enum Dialect {
    Sqlite,
    Mysql,
    Postgres,
}

impl Dialect {
    /// Returns the end of a query that locks its rows until the transaction ends.
    pub(super) fn row_lock(self) -> &'static str {
        match self {
            // Its transaction has locked the whole file.
            Self::Sqlite => "",
            Self::Mysql | Self::Postgres => " FOR UPDATE",
        }
    }

    /// Begins a transaction. MySQL cannot prepare `BEGIN`: there, each statement continues the transaction.
    pub(super) fn begin(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Mysql => "SET autocommit = 0",
            Self::Postgres => "BEGIN",
        }
    }

    pub(super) fn text(self, column: &str, most: usize) -> String {
        let text = match self {
            Self::Mysql => "CHAR",
            Self::Sqlite | Self::Postgres => "TEXT",
        };
        let column = self.of_size(column);
        format!("substr(CAST({column} AS {text}), 1, {most})")
    }

    /// Writes the expression for the beginning of a value inside a JSON column, as text. Numbers in the path are
    /// array indexes.
    pub(super) fn inside(self, column: &str, way: &[&str], most: usize) -> String {
        let value = match self {
            Self::Sqlite => format!("json_extract({column}, '{}')", json_path(way)),
            Self::Mysql => {
                let path = json_path(way);
                format!("JSON_UNQUOTE(JSON_EXTRACT({column}, '{path}'))")
            }
            Self::Postgres => format!("(CAST({column} AS json) #>> '{{{}}}')", way.join(",")),
        };
        self.if_valid(column, &self.text(&value, most))
    }

    pub(super) fn length(self, column: &str) -> String {
        let length = match self {
            Self::Sqlite => format!("json_array_length({column})"),
            Self::Mysql => format!("JSON_LENGTH({column})"),
            Self::Postgres => format!("json_array_length(CAST({column} AS json))"),
        };
        self.if_valid(column, &self.text(&length, 20))
    }

    /// Skips huge values: SQLite would load all of it into memory.
    fn of_size(self, column: &str) -> String {
        match self {
            Self::Sqlite => {
                format!("CASE WHEN octet_length({column}) <= {MAX_VALUE_BYTES} THEN {column} END")
            }
            Self::Mysql | Self::Postgres => column.to_owned(),
        }
    }

    /// Short columns have cut their JSON, and one invalid value fails the whole query.
    fn if_valid(self, column: &str, value: &str) -> String {
        match self {
            Self::Sqlite | Self::Mysql => {
                let column = self.of_size(column);
                format!("CASE WHEN JSON_VALID({column}) THEN {value} END")
            }
            // The column is not text there.
            Self::Postgres => value.to_owned(),
        }
    }
}

fn json_path(way: &[&str]) -> String {
    let parts = way.iter().map(|part| match part.parse::<usize>() {
        Ok(place) => format!("[{place}]"),
        Err(_) => format!(".{part}"),
    });
    ["$".to_owned()].into_iter().chain(parts).collect()
}
