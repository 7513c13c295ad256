//! Scratch boards for `selftest`: keys beside those of the board, and a connection that breaks.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use redis::{Cmd, cmd};

use super::{Redis, link::WRITE, read::scan::Scan};
use crate::{
    board::{
        BoardError, Result,
        scratch::{Loss, Testable, made_on, require_scratch},
    },
    job::Location,
};

const REMOVING: &str = "remove the remains of";

/// Time limit for a scan of all keys of a server.
const WALK: Duration = Duration::from_secs(3);

impl Redis {
    async fn mark(&self, command: &str, value: &[&str]) -> Result<()> {
        let (name, base) = self.keys.base();
        require_scratch(name)?;
        let mut mark = cmd(command);
        mark.arg(base.scratches()).arg(name).arg(value);
        self.client.ask::<u64>(WRITE, &mark).await.map(drop)
    }

    async fn delete(&self, names: Vec<Vec<u8>>) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let delete = Cmd::del(names);
        self.client.ask::<u64>(REMOVING, &delete).await.map(drop)
    }

    async fn delete_companions(&self, location: Location) -> Result<()> {
        let mut scan = Scan::of(self.keys.hash(location));
        while let Some(page) = scan.next(&self.client).await? {
            let companions = page.iter().flat_map(|(field, _)| {
                let companions = self.keys.sidecar_names(field);
                [companions.owner, companions.last_modified, companions.side]
            });
            self.delete(companions.collect()).await?;
        }
        Ok(())
    }

    async fn delete_strays(&self) -> Result<()> {
        let end = Instant::now() + WALK;
        let mut pages = pin!(self.client.key_names(self.keys.all()));
        while Instant::now() <= end
            && let Some(names) = pages.try_next().await?
        {
            self.delete(names).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Testable for Redis {
    async fn make_scratch(&self) -> Result<()> {
        self.mark("HSET", &[&Utc::now().to_rfc3339()]).await
    }

    async fn scratches(&self) -> Result<Vec<String>> {
        let names = Cmd::hkeys(self.keys.scratches());
        let mut found: Vec<String> = self.client.read(&names).await?;
        found.retain(|it| made_on(it).is_some());
        found.sort_unstable();
        Ok(found)
    }

    async fn erase(&self) -> Result<()> {
        require_scratch(self.keys.base().0)?;
        for location in Location::LIVE {
            self.delete_companions(location).await?;
        }
        let keys = &self.keys;
        let named = [
            keys.listings(),
            keys.trash(),
            keys.sequence(),
            keys.fence(),
            keys.history(),
            keys.paused(),
        ];
        self.delete(named.map(String::into_bytes).to_vec()).await?;
        self.mark("HDEL", &[]).await?;
        match self.delete_strays().await {
            Err(BoardError::Denied { .. }) => Ok(()),
            done => done,
        }
    }

    async fn cut(&self) -> Result<()> {
        self.client.cut().await;
        Ok(())
    }

    async fn loss(&self) -> Result<Option<Loss>> {
        let mut settings = Vec::new();
        for name in ["appendonly", "appendfsync"] {
            let get = cmd("CONFIG").arg("GET").arg(name).take();
            let pair: Vec<String> = self.client.read(&get).await?;
            settings.extend(pair.into_iter().nth(1));
        }
        let settings: Vec<_> = settings.iter().map(String::as_str).collect();
        let (what, remedy) = match settings[..] {
            ["no", _] => (
                "a failure of the server loses all changes since the last snapshot",
                "set `appendonly yes`, now and in the configuration of the server",
            ),
            ["yes", "everysec"] => (
                "a failure of the server machine loses the changes of the last two seconds",
                "set `appendfsync always` to prevent this",
            ),
            ["yes", "no"] => (
                "a failure of the server machine loses the changes of about the last 30 seconds",
                "set `appendfsync everysec` or `always`",
            ),
            _ => return Ok(None),
        };
        Ok(Some(Loss { what, remedy }))
    }

    async fn clock(&self) -> Result<Option<DateTime<Utc>>> {
        let (seconds, micros): (i64, u32) = self.client.read(&cmd("TIME")).await?;
        let nanos = micros.saturating_mul(1000);
        Ok(DateTime::from_timestamp(seconds, nanos))
    }
}
