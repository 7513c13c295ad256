//! A board and the session that sends its requests.

use std::{ops::Deref, sync::Arc};

use futures_util::future::join_all;
use zookeeper_client::{CreateMode, Error};

use super::{
    JOBS_PER_BATCH,
    link::{
        ZooKeeperClient,
        nodes::{Node, READING, ReadLimit},
        session::Session,
        transaction::{RefusedStep, Transaction, WRITING},
    },
    paths::{NodeKind, Paths},
};
use crate::board::{BoardError, Result, net::failure::RequestFailure, wire::posting::Limit};

#[derive(Clone)]
pub(super) struct Root {
    pub(super) client: Arc<ZooKeeperClient>,
    pub(super) paths: Paths,
    pub(super) history: u32,
    /// For reads that users see; events and changes keep the usual limit.
    pub(super) limit: Limit,
}

impl Root {
    pub(super) async fn reading(&self) -> Result<BoardSession<'_>> {
        Ok(self.with(self.client.session(READING).await?))
    }

    pub(super) async fn writing(&self) -> Result<BoardSession<'_>> {
        Ok(self.with(self.client.session(WRITING).await?))
    }

    pub(super) fn with(&self, session: Session) -> BoardSession<'_> {
        BoardSession {
            root: self,
            session,
        }
    }
}

#[derive(Clone)]
pub(super) struct BoardSession<'a> {
    pub(super) root: &'a Root,
    pub(super) session: Session,
}

impl Deref for BoardSession<'_> {
    type Target = Root;

    fn deref(&self) -> &Root {
        self.root
    }
}

impl BoardSession<'_> {
    pub(super) fn transaction(&self) -> Transaction<'_> {
        Transaction::new(&self.session, self.client.acls(), &self.paths)
    }

    /// Commits a transaction. The inner error names the step that the server refused.
    pub(super) async fn commit(
        &self,
        transaction: Transaction<'_>,
    ) -> Result<std::result::Result<(), RefusedStep>> {
        let done = transaction.commit().await;
        let done = done.map_err(|failure| failure.into_unknown(self.client.name()))?;
        Ok(done.map(drop))
    }

    pub(super) async fn make_board(&self) -> Result<()> {
        self.session.ensure_chroot(WRITING).await?;
        self.make_directory(NodeKind::Job).await?;
        self.make_directory(NodeKind::TrashedJob).await
    }

    /// Creates the parent of the nodes of a kind.
    pub(super) async fn make_directory(&self, kind: NodeKind) -> Result<()> {
        let path = self.paths.directory(kind);
        let options = CreateMode::Persistent.with_acls(self.client.acls());
        let made = self.session.client.mkdir(&path, &options);
        match self.session.ask(WRITING, made).await? {
            Ok(()) | Err(Error::NodeExists) => Ok(()),
            Err(error) => Err(self.session.refusal(WRITING, &error)),
        }
    }

    pub(super) async fn children(&self, kind: NodeKind) -> Result<Vec<String>> {
        self.session.children(&self.paths.directory(kind)).await
    }

    /// Reads up to this many nodes of a kind, and returns their names and contents, and the number of all.
    pub(super) async fn read_below<T>(
        &self,
        kind: NodeKind,
        most: usize,
        mut of: impl FnMut(&str, Node) -> Option<T>,
    ) -> Result<(Vec<T>, usize)> {
        let directory = self.paths.directory(kind);
        let children = self.session.children(&directory).await?;
        let first = children.iter().take(most);
        let paths: Vec<_> = first.map(|child| format!("{directory}/{child}")).collect();
        let read = |path: &str, node: Option<Node>| of(path.rsplit('/').next()?, node?);
        let found = self
            .session
            .read_as(&paths, &mut ReadLimit::default(), read)
            .await?;
        Ok((found.into_iter().flatten().collect(), children.len()))
    }

    pub(super) async fn put(&self, kind: NodeKind, name: &str, text: &str) -> Result<()> {
        self.make_directory(kind).await?;
        let (path, data) = (&self.paths.node(kind, name), text.as_bytes());
        let options = CreateMode::Persistent.with_acls(self.client.acls());
        let created = self.session.client.create(path, data, &options);
        match self.session.ask(WRITING, created).await? {
            Ok(_) => Ok(()),
            Err(Error::NodeExists) => {
                let set = self.session.client.set_data(path, data, None);
                Ok(self.session.get(WRITING, set).await.map(drop)?)
            }
            Err(error) => Err(self.session.refusal(WRITING, &error)),
        }
    }

    pub(super) async fn delete(&self, path: &str) -> Result<bool> {
        let deleted = self.session.client.delete(path, None);
        match self.session.ask(WRITING, deleted).await? {
            Ok(()) => Ok(true),
            Err(Error::NoNode) => Ok(false),
            Err(error) => Err(self.session.refusal(WRITING, &error)),
        }
    }

    /// Deletes nodes that nobody needs. A node in use again has another version and stays.
    pub(super) async fn delete_unused(&self, nodes: &[(String, Option<i32>)]) -> Result<()> {
        for nodes in nodes.chunks(JOBS_PER_BATCH) {
            let gone = nodes.iter().map(|(path, version)| {
                let delete = self.session.client.delete(path, *version);
                self.session.ask(WRITING, delete)
            });
            // One refusal must not stop the others: another client may be deleting the node too.
            let gone: Result<Vec<_>, RequestFailure> = join_all(gone).await.into_iter().collect();
            gone?;
        }
        Ok(())
    }

    pub(super) fn catch_up(&self) -> impl Future<Output = Result<()>> {
        self.session.catch_up(&self.paths.board)
    }

    pub(super) fn refusal(&self, refused: &RefusedStep) -> BoardError {
        self.session.refusal(WRITING, &refused.error)
    }
}
