//! What a test of a board on ZooKeeper takes: its own nodes beside the board, and a session that moves.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;
use zookeeper_client::{CreateMode, Error};

use super::{
    AT_ONCE, ZooKeeper,
    link::{
        nodes::{self, READING},
        session::Session,
        transaction::WRITING,
    },
};
use crate::board::{
    Result,
    ground::{Ground, Loss, made_on, require_throwaway},
};

impl ZooKeeper {
    async fn delete(&self, session: &Session, path: &str) -> Result<()> {
        match session
            .ask(WRITING, session.client().delete(path, None))
            .await?
        {
            Ok(()) | Err(Error::NoNode) => Ok(()),
            Err(error) => Err(session.refusal(WRITING, &error)),
        }
    }

    /// Returns the node that all of a board to be thrown away is in; an error, if it is another one.
    fn throwaway(&self) -> Result<&str> {
        let top = self.root.paths.parent();
        let (_, name) = top.rsplit_once('/').unwrap_or_default();
        require_throwaway(name.strip_prefix('.').unwrap_or_default())?;
        Ok(top)
    }
}

#[async_trait]
impl Ground for ZooKeeper {
    async fn throwaways(&self) -> Result<Vec<String>> {
        let session = self.root.client.session(READING).await?;
        let beside = nodes::children(&session, self.root.paths.parent()).await?;
        let names = beside.iter().filter_map(|name| name.strip_prefix('.'));
        let names = names.filter(|name| made_on(name).is_some());
        Ok(names.map(str::to_owned).collect())
    }

    async fn erase(&self) -> Result<()> {
        let top = self.throwaway()?;
        let session = self.root.client.session(WRITING).await?;
        // Those above come first, and go last.
        let mut all = vec![top.to_owned()];
        let mut at = 0;
        while at < all.len() {
            let end = all.len().min(at + AT_ONCE);
            let below = all[at..end].iter().map(async |path| {
                let names = nodes::children(&session, path).await?;
                Ok::<_, crate::board::BoardError>((path.clone(), names))
            });
            for (path, names) in try_join_all(below).await? {
                all.extend(names.iter().map(|name| format!("{path}/{name}")));
            }
            at = end;
        }
        all.sort_by_key(|path| std::cmp::Reverse(path.matches('/').count()));
        let same_depth =
            |one: &String, other: &String| one.matches('/').count() == other.matches('/').count();
        for depth in all.chunk_by(same_depth) {
            for some in depth.chunks(AT_ONCE) {
                try_join_all(some.iter().map(|path| self.delete(&session, path))).await?;
            }
        }
        Ok(())
    }

    async fn cut(&self) -> Result<()> {
        self.root.client.move_session(WRITING).await
    }

    async fn loss(&self) -> Result<Option<Loss>> {
        // Whether its servers wait for their disks they tell nobody.
        Ok(None)
    }

    async fn clock(&self) -> Result<Option<DateTime<Utc>>> {
        let path = format!("{}/clock", self.throwaway()?);
        let session = self.root.client.session(WRITING).await?;
        self.delete(&session, &path).await?;
        let options = CreateMode::Ephemeral.with_acls(self.root.client.acls());
        let made = session.client().create(&path, b"", &options);
        let (stat, _) = session
            .ask(WRITING, made)
            .await?
            .map_err(|error| session.refusal(WRITING, &error))?;
        Ok(DateTime::from_timestamp_millis(stat.ctime))
    }
}
