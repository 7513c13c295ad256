//! The watches on a board's nodes.

use zookeeper_client::{AddWatchMode, EventType, PersistentWatcher, SessionState};

use super::changes::{Change, Step};
use crate::{
    board::{
        BoardError, Event, EventKind, Result,
        zookeeper::{
            board_session::BoardSession,
            link::nodes::READING,
            paths::{Paths, entered, locked_by, unescape},
        },
    },
    job::Shelf,
};

#[derive(Debug)]
pub(crate) enum Heard {
    Change(Change),
    /// The connection is gone; the library reconnects in its own time.
    Disconnected,
    /// Connected again; changes in between were not reported.
    Reconnected,
    /// The session has ended; the watches must not be polled again.
    Ended,
    Noise,
}

pub(crate) struct Watches {
    board: Watch,
    trash: Watch,
    entities: Watch,
    pauses: Watch,
}

struct Watch {
    place: Place,
    folder: String,
    watcher: PersistentWatcher,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Board,
    Trash,
    Entities,
    Pauses,
}

impl Watches {
    /// Sets the watches, whether the parent nodes exist yet or not.
    pub(crate) async fn set(board: &BoardSession<'_>) -> Result<Self> {
        let set = async |place: Place| {
            let folder = place.folder(&board.paths);
            let mode = AddWatchMode::PersistentRecursive;
            let watcher = board.session.client().watch(&folder, mode);
            let watcher = board.session.get(READING, watcher).await?;
            Ok::<_, BoardError>(Watch {
                place,
                folder,
                watcher,
            })
        };
        Ok(Self {
            board: set(Place::Board).await?,
            trash: set(Place::Trash).await?,
            entities: set(Place::Entities).await?,
            pauses: set(Place::Pauses).await?,
        })
    }

    pub(crate) async fn next(&mut self, paths: &Paths) -> Heard {
        tokio::select! {
            biased;
            heard = self.board.next(paths) => heard,
            heard = self.trash.next(paths) => heard,
            heard = self.entities.next(paths) => heard,
            heard = self.pauses.next(paths) => heard,
        }
    }
}

impl Place {
    fn folder(self, paths: &Paths) -> String {
        match self {
            Self::Board => paths.folder(Shelf::Board),
            Self::Trash => paths.folder(Shelf::Trash),
            Self::Entities => paths.entities(),
            Self::Pauses => paths.pauses(),
        }
    }

    fn change(self, kind: EventType, child: &str, paths: &Paths) -> Option<Change> {
        match self {
            Self::Entities => {
                let kind = pick(kind, EventKind::ConductorJoined, EventKind::ConductorLeft)?;
                let mut event = Event::now(kind);
                event.owner = Some(entered(child));
                Some(Change::Event(Box::new(event)))
            }
            Self::Pauses => {
                // A changed node means a changed pause.
                let kind = pick(kind, EventKind::Paused, EventKind::Resumed);
                let mut event = Event::now(kind.unwrap_or(EventKind::Paused));
                event.names = Some(unescape(child));
                Some(Change::Event(Box::new(event)))
            }
            Self::Trash => {
                let key = paths.key_of(Shelf::Trash, child)?;
                let step = pick(kind, Step::TrashCame, Step::TrashWent)?;
                Some(Change::OfJob(step, key))
            }
            Self::Board => {
                let (key, came, went) = match paths.key_of(Shelf::Board, child) {
                    Some(key) => (key, Step::JobCame, Step::JobWent),
                    None => (locked_by(child)?, Step::LockCame, Step::LockWent),
                };
                let step = match kind {
                    // No client changes a job or a lock in place; after an operator's edit, read it again.
                    EventType::NodeDataChanged => Step::Meddled,
                    kind => pick(kind, came, went)?,
                };
                Some(Change::OfJob(step, key))
            }
        }
    }
}

impl Watch {
    async fn next(&mut self, paths: &Paths) -> Heard {
        let event = self.watcher.changed().await;
        if event.event_type == EventType::Session {
            return match event.session_state {
                // Each watch reports this, and the library does not set persistent watches again.
                SessionState::SyncConnected if self.place == Place::Board => Heard::Reconnected,
                SessionState::Disconnected if self.place == Place::Board => Heard::Disconnected,
                state if state.is_terminated() => Heard::Ended,
                _ => Heard::Noise,
            };
        }
        // A watch also covers the parent node, and all nodes below its children.
        let child = event.path.strip_prefix(&self.folder);
        let child = child.and_then(|child| child.strip_prefix('/'));
        let child = child.filter(|child| !child.contains('/'));
        let change = child.and_then(|child| self.place.change(event.event_type, child, paths));
        change.map_or(Heard::Noise, Heard::Change)
    }
}

fn pick<T>(kind: EventType, came: T, went: T) -> Option<T> {
    match kind {
        EventType::NodeCreated => Some(came),
        EventType::NodeDeleted => Some(went),
        _ => None,
    }
}
