//! A database that may be missing or unreachable.

use std::time::Duration;

use anyhow::Context as _;

use crate::{
    board::examine::Examined,
    config::Sourced,
    exit::chain,
    logbook::{Logbook, LogbookError, LogbookUrl},
    secret::Secret,
};

/// A database connection, and the gap in the diagnosis if it is unreachable.
pub(super) struct Database {
    what: &'static str,
    /// `None`: not configured, or already reported as unreachable.
    opened: anyhow::Result<Option<Logbook>>,
}

impl Database {
    pub(super) async fn open(
        patience: Duration,
        what: &'static str,
        url: Option<&Sourced<Secret>>,
    ) -> Self {
        let opened = match url {
            Some(url) => Self::reach(patience, url).await.map(Some),
            None => Ok(None),
        };
        Self { what, opened }
    }

    async fn reach(patience: Duration, url: &Sourced<Secret>) -> anyhow::Result<Logbook> {
        let read = url.value.expose().parse::<LogbookUrl>();
        let url = read.with_context(|| url.source.to_string())?;
        let opened = Logbook::open(&url, patience).await;
        opened.with_context(|| format!("cannot read {url}"))
    }

    pub(super) async fn ask<T>(
        &mut self,
        seen: &mut Examined,
        ask: impl AsyncFnOnce(&Logbook) -> Result<T, LogbookError>,
    ) -> Option<T> {
        let why = match &self.opened {
            Ok(None) => return None,
            Ok(Some(logbook)) => match ask(logbook).await {
                Ok(answer) => return Some(answer),
                Err(error) => chain(&error),
            },
            Err(error) => format!("{error:#}"),
        };
        if self.opened.is_err() {
            self.opened = Ok(None);
        }
        seen.unseen(format!("{}: {why}", self.what), None);
        None
    }
}
