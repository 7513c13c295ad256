//! TaskFlow's logbooks: reads the flow of a job from its engine's database.
//!
//! Nothing here writes or locks, and only the shown part of a large value is read. This module knows jobs, but no
//! boards.

mod error;
mod flow;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod rows;
mod sqlite;
mod tables;
mod url;

#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::time;

use self::rows::Rows;
pub(crate) use self::{
    error::LogbookError,
    flow::{Atom, AtomKind, AtomState, Failure, Flow, Progress},
    tables::{About, Pending, StaleBook},
    url::LogbookUrl,
};
use crate::job::{Job, octavia};

type Result<T> = std::result::Result<T, LogbookError>;

pub(crate) struct Logbook {
    rows: Rows,
    /// The timeout of a query.
    patience: Duration,
    /// Whether a query was abandoned: the next query would receive its answer.
    is_lost: AtomicBool,
}

impl Logbook {
    /// Connects to a database, read-only.
    pub(crate) async fn open(url: &LogbookUrl, patience: Duration) -> Result<Self> {
        let opened = time::timeout(patience, Rows::open(url, patience)).await;
        let rows = opened.unwrap_or(Err(LogbookError::Slow(patience)))?;
        Ok(Self {
            rows,
            patience,
            is_lost: AtomicBool::new(false),
        })
    }

    pub(crate) async fn flow(&self, job: &Job) -> Result<Option<Flow>> {
        self.within(self.find(job)).await
    }

    async fn find(&self, job: &Job) -> Result<Option<Flow>> {
        let stated = job.details.as_ref().and_then(|it| it.get("flow_uuid"));
        let stated = stated.as_deref().and_then(Value::as_str);
        let flow = stated.or_else(|| octavia::flow_uuid(&job.name));
        if let Some(uuid) = flow
            && let Some(flow) = tables::flow(&self.rows, uuid).await?
        {
            return Ok(Some(flow));
        }
        match &job.book {
            Some(book) => tables::flow_of_book(&self.rows, &book.uuid).await,
            None => Ok(None),
        }
    }

    /// Returns the uuids of the flows about a load balancer or an amphora, by the prefix of its id. The arguments of
    /// their factory contain the id.
    pub(crate) async fn flows_about(&self, what: About, id: &str) -> Result<HashSet<String>> {
        self.within(tables::flows_about(&self.rows, what, id)).await
    }

    /// Returns the oldest logbooks from before a time.
    pub(crate) async fn books_before(&self, time: DateTime<Utc>) -> Result<Vec<StaleBook>> {
        self.within(tables::books_before(&self.rows, time)).await
    }

    /// Returns the load balancers in Octavia's own database that have been pending since before a time.
    pub(crate) async fn pending_balancers(&self, time: DateTime<Utc>) -> Result<Vec<Pending>> {
        self.within(tables::pending_balancers(&self.rows, time))
            .await
    }

    /// Returns the columns that later migrations of TaskFlow widen, since large values did not fit.
    pub(crate) async fn short_columns(&self) -> Result<Vec<String>> {
        self.within(tables::short_columns(&self.rows)).await
    }

    async fn within<T>(&self, asked: impl Future<Output = Result<T>>) -> Result<T> {
        if self.is_lost.load(Ordering::Relaxed) {
            return Err(LogbookError::Slow(self.patience));
        }
        match time::timeout(self.patience, asked).await {
            Ok(answer) => answer,
            Err(_) => {
                self.is_lost.store(true, Ordering::Relaxed);
                Err(LogbookError::Slow(self.patience))
            }
        }
    }

    /// Returns the usable logbooks: they exist and have a flow.
    pub(crate) async fn usable_books(&self, uuids: &[&str]) -> Result<HashSet<String>> {
        self.within(tables::books(&self.rows, uuids, true)).await
    }

    /// Returns the load balancers of the logbooks, if their flows have one.
    pub(crate) async fn balancers(
        &self,
        uuids: &[&str],
    ) -> Result<HashMap<String, Option<String>>> {
        self.within(tables::balancers(&self.rows, uuids)).await
    }

    pub(crate) async fn books(&self, uuids: &[&str]) -> Result<HashSet<String>> {
        self.within(tables::books(&self.rows, uuids, false)).await
    }
}
