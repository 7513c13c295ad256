//! The watches on a board's nodes.

use zookeeper_client::{AddWatchMode, EventType, PersistentWatcher, SessionState};

use super::queue::{NodeChange, NodeEvent};
use crate::{
    board::{
        BoardError, Event, EventKind, Result,
        zookeeper::{
            board_session::BoardSession,
            link::nodes::READING,
            paths::{NodeKind, Paths, locked_by, owner_of_entity, unescape},
        },
    },
    job::Location,
};

#[derive(Debug)]
pub(crate) enum WatchReport {
    Change(NodeChange),
    Disconnected,
    /// Connected again; changes in between were not reported.
    Reconnected,
    /// The session has ended; the watches must not be polled again.
    Ended,
    Noise,
}

pub(crate) struct Watches {
    board: DirectoryWatch,
    trash: DirectoryWatch,
    entities: DirectoryWatch,
    pauses: DirectoryWatch,
}

struct DirectoryWatch {
    children: NodeKind,
    directory: String,
    watcher: PersistentWatcher,
}

impl Watches {
    pub(crate) async fn set(board: &BoardSession<'_>) -> Result<Self> {
        let set = async |children: NodeKind| {
            let directory = board.paths.directory(children);
            let mode = AddWatchMode::PersistentRecursive;
            let watcher = board.session.client.watch(&directory, mode);
            let watcher = board.session.get(READING, watcher).await?;
            Ok::<_, BoardError>(DirectoryWatch {
                children,
                directory,
                watcher,
            })
        };
        Ok(Self {
            board: set(NodeKind::Job).await?,
            trash: set(NodeKind::TrashedJob).await?,
            entities: set(NodeKind::Entity).await?,
            pauses: set(NodeKind::Pause).await?,
        })
    }

    pub(crate) async fn next(&mut self, paths: &Paths) -> WatchReport {
        tokio::select! {
            biased;
            report = self.board.next(paths) => report,
            report = self.trash.next(paths) => report,
            report = self.entities.next(paths) => report,
            report = self.pauses.next(paths) => report,
        }
    }
}

impl DirectoryWatch {
    async fn next(&mut self, paths: &Paths) -> WatchReport {
        let event = self.watcher.changed().await;
        if event.event_type == EventType::Session {
            // Each watch reports this, and the library does not set persistent watches again.
            let is_first = self.children == NodeKind::Job;
            return match event.session_state {
                SessionState::SyncConnected if is_first => WatchReport::Reconnected,
                SessionState::Disconnected if is_first => WatchReport::Disconnected,
                state if state.is_terminated() => WatchReport::Ended,
                _ => WatchReport::Noise,
            };
        }
        // A watch also covers the parent node, and all nodes below its children.
        let child = event.path.strip_prefix(&self.directory);
        let child = child.and_then(|child| child.strip_prefix('/'));
        let child = child.filter(|child| !child.contains('/'));
        let change = child.and_then(|child| self.change(event.event_type, child, paths));
        change.map_or(WatchReport::Noise, WatchReport::Change)
    }

    fn change(&self, kind: EventType, child: &str, paths: &Paths) -> Option<NodeChange> {
        match self.children {
            NodeKind::Entity => {
                let kind = pick(kind, EventKind::ConductorJoined, EventKind::ConductorLeft)?;
                let mut event = Event::now(kind);
                event.owner = Some(owner_of_entity(child));
                Some(NodeChange::Event(Box::new(event)))
            }
            NodeKind::Pause => {
                // A changed node means a changed pause.
                let kind = pick(kind, EventKind::Paused, EventKind::Resumed);
                let mut event = Event::now(kind.unwrap_or(EventKind::Paused));
                event.names = Some(unescape(child));
                Some(NodeChange::Event(Box::new(event)))
            }
            NodeKind::TrashedJob => {
                let key = paths.key_of(Location::Trash, child)?;
                let step = pick(kind, NodeEvent::TrashCame, NodeEvent::TrashWent)?;
                Some(NodeChange::OfJob(step, key))
            }
            NodeKind::Job => {
                let (key, came, went) = match paths.key_of(Location::Board, child) {
                    Some(key) => (key, NodeEvent::JobCame, NodeEvent::JobWent),
                    None => (locked_by(child)?, NodeEvent::LockCame, NodeEvent::LockWent),
                };
                let step = match kind {
                    // No client changes a job or a lock in place; after an operator's edit, read it again.
                    EventType::NodeDataChanged => NodeEvent::Rewritten,
                    kind => pick(kind, came, went)?,
                };
                Some(NodeChange::OfJob(step, key))
            }
            // The boards watch no other node.
            _ => None,
        }
    }
}

fn pick<T>(kind: EventType, came: T, went: T) -> Option<T> {
    match kind {
        EventType::NodeCreated => Some(came),
        EventType::NodeDeleted => Some(went),
        _ => None,
    }
}
