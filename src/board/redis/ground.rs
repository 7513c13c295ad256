//! What a test of a board on Redis takes: its own keys beside those of the board, and a connection that breaks.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use redis::{Cmd, Pipeline, from_redis_value};

use super::Redis;
use crate::board::{
    BoardError, Result,
    ground::{Ground, Loss, made_on, require_throwaway},
};

/// What it was doing that failed.
const REMOVING: &str = "remove what is left of";

impl Redis {
    /// Returns where to go on behind a page of the keys that a pattern matches, 0 at the end, and that page.
    async fn page(&self, pattern: &str, cursor: u64) -> Result<(u64, Vec<Vec<u8>>)> {
        let mut scan = Cmd::new();
        scan.arg("SCAN").arg(cursor);
        scan.arg("MATCH").arg(pattern).arg("COUNT").arg(1000);
        Ok(self.client.read(&scan).await?.0)
    }
}

#[async_trait]
impl Ground for Redis {
    async fn throwaways(&self) -> Result<Vec<String>> {
        let (mut found, mut cursor) = (Vec::new(), 0);
        loop {
            let (next, names) = self.page(&self.keys.throwaways(), cursor).await?;
            let named = names.iter().filter_map(|name| {
                let name = name.strip_prefix(self.keys.prefix().as_bytes())?;
                let name = std::str::from_utf8(name).ok()?.split(':').next()?;
                made_on(name).map(|_| name.to_owned())
            });
            found.extend(named);
            found.sort_unstable();
            found.dedup();
            cursor = next;
            if cursor == 0 {
                return Ok(found);
            }
        }
    }

    async fn erase(&self) -> Result<()> {
        let namespace = self.keys.prefix().trim_end_matches(':');
        require_throwaway(namespace.rsplit(':').next().unwrap_or_default())?;
        let mut cursor = 0;
        loop {
            let (next, names) = self.page(&self.keys.all(), cursor).await?;
            if !names.is_empty() {
                let mut delete = Cmd::new();
                delete.arg("DEL").arg(names);
                self.client.ask::<u64>(REMOVING, &delete).await?;
            }
            cursor = next;
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    async fn cut(&self) -> Result<()> {
        self.client.cut().await;
        Ok(())
    }

    async fn loss(&self) -> Result<Option<Loss>> {
        let mut commands = Pipeline::new();
        for name in ["appendonly", "appendfsync"] {
            commands.cmd("CONFIG").arg("GET").arg(name);
        }
        let answers = self.client.read_all(&commands).await?;
        let mut told = Vec::new();
        for answer in answers {
            let answer = answer.map_err(|error| self.client.refusal("read", &error))?;
            let pair = from_redis_value::<Vec<String>>(answer).unwrap_or_default();
            told.push(pair.into_iter().nth(1).unwrap_or_default());
        }
        Ok(match (told[0].as_str(), told[1].as_str()) {
            ("no", _) => Some(Loss {
                what: "what came since the last snapshot is lost if the server fails",
                remedy: "CONFIG SET appendonly yes, and in its configuration",
            }),
            ("yes", "everysec") => Some(Loss {
                what: "what came in the last second or two is lost if the machine of the server fails",
                remedy: "CONFIG SET appendfsync always, where that is too much to lose",
            }),
            ("yes", "no") => Some(Loss {
                what: "what came in the last half minute or so is lost if the machine of the server fails",
                remedy: "CONFIG SET appendfsync everysec, or always",
            }),
            _ => None,
        })
    }

    async fn clock(&self) -> Result<Option<DateTime<Utc>>> {
        let mut time = Cmd::new();
        time.arg("TIME");
        let (seconds, micros) = self.client.read::<(i64, i64)>(&time).await?.0;
        let micros = seconds.saturating_mul(1_000_000).saturating_add(micros);
        match DateTime::from_timestamp_micros(micros) {
            Some(time) => Ok(Some(time)),
            None => Err(BoardError::Failed {
                doing: "read the clock of",
                board: self.client.name().to_owned(),
                source: "it tells no time that a calendar has".into(),
            }),
        }
    }
}
