//! Scratch boards for `selftest`: nodes beside the board, and a session that moves.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::{StreamExt as _, TryStreamExt as _, future::ready, stream};
use zookeeper_client::{CreateMode, Error, MultiWriteError};

use super::{
    JOBS_PER_BATCH, TRIES, ZooKeeper,
    board_session::BoardSession,
    link::{nodes::READING, transaction::WRITING},
};
use crate::board::{
    BoardError, Result,
    scratch::{Loss, Testable, made_on, require_scratch},
};

/// The data of nodes created for a test.
const SCRATCH_DATA: &[u8] = b"made by jobboard selftest";

impl ZooKeeper {
    fn scratch(&self) -> Result<&str> {
        let top = self.root.paths.parent();
        let (_, name) = top.rsplit_once('/').unwrap_or_default();
        require_scratch(name.strip_prefix('.').unwrap_or_default())?;
        Ok(top)
    }
}

impl BoardSession<'_> {
    /// Creates a node and its parents in one transaction; false after a conflict.
    async fn make_marked(&self, path: &str) -> Result<bool> {
        let (session, (client, path)) = (&self.session, self.session.on_server(path));
        let refusal = |error: &Error| session.refusal(WRITING, error);
        let options = CreateMode::Persistent.with_acls(self.client.acls());
        let mut writer = client.new_multi_writer();
        for path in above(&path).rev().chain([&*path]) {
            let found = session.get(READING, client.check_stat(path)).await?;
            if found.is_none() {
                let added = writer.add_create(path, SCRATCH_DATA, &options);
                added.map_err(|error| refusal(&error))?;
            }
        }
        match session.ask(WRITING, writer.commit()).await? {
            Ok(_) => Ok(true),
            Err(MultiWriteError::OperationFailed {
                source: Error::NodeExists | Error::NoNode,
                ..
            }) => Ok(false),
            Err(
                MultiWriteError::OperationFailed { source, .. }
                | MultiWriteError::RequestFailed { source },
            ) => Err(refusal(&source)),
        }
    }

    async fn delete_above(&self, path: &str) -> Result<()> {
        let (session, (client, path)) = (&self.session, self.session.on_server(path));
        for path in above(&path) {
            let found = session.ask(READING, client.get_data(path)).await;
            let version = match found.map_err(BoardError::from) {
                Ok(Ok((data, stat))) if data == SCRATCH_DATA => stat.version,
                Ok(_) | Err(BoardError::Denied { .. }) => return Ok(()),
                Err(error) => return Err(error),
            };
            let gone = client.delete(path, Some(version));
            match session.ask(WRITING, gone).await? {
                Ok(()) | Err(Error::NoNode) => {}
                // Another client uses it now.
                Err(Error::NotEmpty | Error::BadVersion) => return Ok(()),
                Err(error) => return Err(session.refusal(WRITING, &error)),
            }
        }
        Ok(())
    }
}

fn above(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    let ends: Vec<_> = path.rmatch_indices('/').map(|(at, _)| at).collect();
    let ends = ends.into_iter().filter(|at| *at > 0);
    ends.map(move |at| &path[..at])
}

#[async_trait]
impl Testable for ZooKeeper {
    async fn make_scratch(&self) -> Result<()> {
        let (top, board) = (self.scratch()?, self.root.writing().await?);
        for _ in 0..TRIES {
            if board.make_marked(top).await? {
                return Ok(());
            }
        }
        Err(board.session.refusal(WRITING, &Error::NodeExists))
    }

    async fn scratches(&self) -> Result<Vec<String>> {
        let session = self.root.reading().await?.session;
        let parent = self.root.paths.parent();
        let siblings = session.children(parent).await?;
        let names = siblings.iter().filter_map(|name| name.strip_prefix('.'));
        let names: Vec<_> = names.filter(|name| made_on(name).is_some()).collect();
        let parent = parent.trim_end_matches('/');
        let paths: Vec<_> = names.iter().map(|it| format!("{parent}/.{it}")).collect();
        let marks = session.read(&paths).await?;
        let marked = names.iter().zip(marks);
        let marked =
            marked.filter(|(_, mark)| mark.as_ref().is_some_and(|it| it.data == SCRATCH_DATA));
        Ok(marked.map(|(name, _)| (*name).to_owned()).collect())
    }

    async fn erase(&self) -> Result<()> {
        let top = self.scratch()?;
        let board = &self.root.writing().await?;
        let mut levels = vec![vec![top.to_owned()]];
        while let Some(level) = levels.last().filter(|it| !it.is_empty()) {
            let below = stream::iter(level.clone()).map(async |path: String| {
                let names = board.session.children(&path).await?;
                let paths = names.iter().map(|name| format!("{path}/{name}"));
                Ok::<Vec<_>, BoardError>(paths.collect())
            });
            let below = below.buffer_unordered(JOBS_PER_BATCH).try_concat().await?;
            levels.push(below);
        }
        for level in levels.into_iter().rev() {
            let gone = stream::iter(level);
            let gone = gone.map(async |path: String| board.delete(&path).await);
            let gone = gone.buffer_unordered(JOBS_PER_BATCH);
            gone.try_for_each(|_| ready(Ok(()))).await?;
        }
        board.delete_above(top).await
    }

    async fn cut(&self) -> Result<()> {
        self.root.client.move_session(WRITING).await
    }

    fn is_cut_slow(&self) -> bool {
        true
    }

    async fn loss(&self) -> Result<Option<Loss>> {
        // ZooKeeper servers do not report whether they wait for their disks.
        Ok(None)
    }

    async fn clock(&self) -> Result<Option<DateTime<Utc>>> {
        let path = format!("{}/clock", self.scratch()?);
        let board = self.root.writing().await?;
        board.delete(&path).await?;
        let options = CreateMode::Ephemeral.with_acls(self.root.client.acls());
        let made = board.session.client.create(&path, b"", &options);
        let (stat, _) = board.session.get(WRITING, made).await?;
        Ok(DateTime::from_timestamp_millis(stat.ctime))
    }
}
