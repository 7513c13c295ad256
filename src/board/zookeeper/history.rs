//! The history of a ZooKeeper board: nodes numbered in the order in which jobs ended.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::{task::JoinSet, time};
use zookeeper_client::{CreateMode, Error};

use super::{
    board_session::{BoardSession, Root},
    link::{
        nodes::{MAX_NODES_PER_EXCHANGE, Node, ReadLimit},
        transaction::{RefusedStep, Transaction},
    },
    paths::{JOB, NodeKind},
    read::record::JobNodes,
};
use crate::{
    backoff::random_fraction,
    board::{
        Result,
        wire::history::{HistoryNode, HistoryRecord},
    },
    job::{Entry, shortened},
};

/// One in this many ends triggers the removal of old entries.
const RARELY: f64 = 512.0;

const TRIM_TIMEOUT: Duration = Duration::from_secs(1);

impl BoardSession<'_> {
    pub(super) fn add_to_history(
        &self,
        transaction: &mut Transaction<'_>,
        record: &JobNodes,
        ended: Option<HistoryRecord>,
    ) {
        let Some(job) = ended.filter(|_| self.history > 0) else {
            return;
        };
        let mut side = record.side().unwrap_or_default();
        // On this kind of board only the lock names the owner, and the lock goes.
        side.owner = record.owner().map(|owner| shortened(&owner.text()));
        let stored = HistoryNode {
            key: record.key.to_string(),
            job,
            side,
        };
        let (data, mode) = (stored.write(), CreateMode::PersistentSequential);
        transaction.create_as(NodeKind::History, "", data.as_bytes(), mode);
    }

    /// Prepares another attempt after the history write was refused, which must not fail the operation. Returns why
    /// the next attempt must skip the history, if so.
    pub(super) async fn prepare_history_retry(
        &self,
        refused: &RefusedStep,
    ) -> Result<Option<String>> {
        let refusal = match refused.error {
            Error::NoNode => match self.make_directory(NodeKind::History).await {
                Ok(()) => return Ok(None),
                Err(error) if error.is_retryable() => return Err(error),
                Err(error) => error,
            },
            _ => self.refusal(refused),
        };
        let why = std::error::Error::source(&refusal).map(ToString::to_string);
        Ok(why.or_else(|| Some(refusal.to_string())))
    }

    pub(super) async fn latest_ends(&self) -> Result<Vec<String>> {
        let paths = self.history_nodes().await?.into_iter().rev();
        Ok(paths.take(self.history as usize).collect())
    }

    pub(super) async fn history_page(&self, paths: &mut Vec<String>) -> Result<Vec<Entry>> {
        let read = |path: &str, node: Option<Node>| {
            let name = path.rsplit('/').next().unwrap_or_default();
            Some(HistoryNode::read(name, &node?.data))
        };
        let first = &paths[..paths.len().min(MAX_NODES_PER_EXCHANGE)];
        let entries = self
            .session
            .read_as(first, &mut ReadLimit::PAGE.clone(), read)
            .await?;
        paths.drain(..entries.len());
        Ok(entries.into_iter().flatten().collect())
    }

    pub(super) async fn check_history(&self) -> Result<()> {
        self.history_nodes().await?;
        let mut transaction = self.transaction();
        let mode = CreateMode::PersistentSequential;
        transaction.create_as(NodeKind::History, "", b"", mode);
        // The version check never matches, so the attempt changes nothing.
        transaction.check(NodeKind::Job, JOB, i32::MAX);
        match transaction.commit().await? {
            Err(refused) if refused.kind == NodeKind::History && refused.error != Error::NoNode => {
                Err(self.refusal(&refused))
            }
            // Before the first entry its parent does not exist.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    pub(super) async fn trim_history(&self) -> Result<()> {
        // A client that keeps no history must not trim that of other clients.
        if self.history == 0 {
            return Ok(());
        }
        let mut paths = self.history_nodes().await?;
        let surplus = paths.len().saturating_sub(self.history as usize);
        paths.truncate(surplus);
        let paths = paths.into_iter().map(|path| (path, None));
        self.delete_unused(&paths.collect::<Vec<_>>()).await
    }

    async fn history_nodes(&self) -> Result<Vec<String>> {
        let directory = self.paths.directory(NodeKind::History);
        let mut names = self.session.children(&directory).await?;
        names.sort_unstable();
        let paths = names.iter().map(|name| format!("{directory}/{name}"));
        Ok(paths.collect())
    }
}

#[derive(Default)]
pub(super) struct HistoryTrimmer(Mutex<JoinSet<()>>);

impl HistoryTrimmer {
    pub(super) fn trim_sometimes(&self, root: &Root, ends: usize) {
        if ends as f64 <= RARELY * random_fraction() {
            return;
        }
        let mut task = self.0.lock();
        while task.try_join_next().is_some() {}
        if !task.is_empty() {
            return;
        }
        let root = root.clone();
        task.spawn(async move {
            // A later removal deletes the rest.
            if let Ok(board) = root.writing().await {
                let _ = board.trim_history().await;
            }
        });
    }

    pub(super) async fn finish(&self) {
        let task = std::mem::take(&mut *self.0.lock());
        // A short command ends soon, but its removal may be due.
        let _ = time::timeout(TRIM_TIMEOUT, task.join_all()).await;
    }
}
