//! TaskFlow's logbooks, and Octavia's own tables: reads the flow of a job from its engine's database.
//!
//! Nothing but `BalancerTransaction` writes or locks, and only the shown part of a large value is read. This module knows jobs,
//! but no boards.

mod database;
mod flow;
#[cfg(feature = "mysql")]
mod mysql;
mod octavia;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;
mod tables;
mod url;

#[cfg(test)]
mod tests;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use thiserror::Error;
use tokio::time;

use self::database::LogbookDatabase;
pub(crate) use self::{
    flow::{Atom, AtomFailure, AtomKind, Flow, flow_state, position},
    octavia::{BalancerTransaction, LoadBalancer, StuckAmphora},
    tables::{FlowSubject, StaleBook},
    url::LogbookUrl,
};
use crate::duration;

type LogbookResult<T> = std::result::Result<T, LogbookError>;

type TextRow = Vec<Option<String>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

#[derive(Debug, Error)]
pub(crate) enum LogbookError {
    #[error("the database did not reply within {}", duration::exact(*.0))]
    Slow(Duration),
    #[error(
        "this build of jobboard lacks the feature `{0}`; install a package, or build with `cargo \
         install --path . --features {0}`"
    )]
    #[cfg_attr(all(feature = "mysql", feature = "postgres"), expect(dead_code))]
    LeftOut(&'static str),
    #[error("the database is unreachable: {0}")]
    Unreachable(String),
    #[error("the database denies access: {0}")]
    Denied(String),
    #[error("the database has no TaskFlow logbooks of a supported version: {0}")]
    Schema(String),
    #[error("the database rejects the query: {0}")]
    Refused(String),
    #[error("the database returned invalid data for {0}")]
    Nonsense(&'static str),
}

pub(crate) struct Logbook {
    database: LogbookDatabase,
    op_timeout: Duration,
    /// Whether a query was abandoned: the next query would receive its answer.
    is_lost: AtomicBool,
}

impl Logbook {
    pub(crate) async fn open(url: &LogbookUrl, op_timeout: Duration) -> LogbookResult<Self> {
        Self::open_for(url, op_timeout, Access::Read).await
    }

    async fn open_for(
        url: &LogbookUrl,
        op_timeout: Duration,
        access: Access,
    ) -> LogbookResult<Self> {
        let opened =
            time::timeout(op_timeout, LogbookDatabase::open(url, op_timeout, access)).await;
        Ok(Self {
            database: opened.unwrap_or(Err(LogbookError::Slow(op_timeout)))?,
            op_timeout,
            is_lost: AtomicBool::new(false),
        })
    }

    async fn rows(&self, question: &str, values: &[&str]) -> LogbookResult<Vec<TextRow>> {
        if !self.is_lost.load(Ordering::Relaxed) {
            let asked = self.database.rows(question, values);
            if let Ok(answer) = time::timeout(self.op_timeout, asked).await {
                return answer;
            }
            self.is_lost.store(true, Ordering::Relaxed);
        }
        Err(LogbookError::Slow(self.op_timeout))
    }
}
