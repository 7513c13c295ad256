//! What happens on a board, as its nodes come and go.
//!
//! Watches name the node that changed and nothing else, and say nothing of who changed it or how.
//! They are told in the order of the changes, and before any answer that shows a later state.

use std::collections::VecDeque;

use futures_util::{FutureExt, StreamExt, stream, stream::BoxStream};
use zookeeper_client::{AddWatchMode, EventType, PersistentWatcher, SessionState, WatchedEvent};

use super::{
    ZooKeeper,
    changes::{Change, Picture, resync},
    look::Reader,
    nodes::{self, READING},
    paths::{Paths, locked_by},
    record::Record,
    session::Session,
};
use crate::{
    board::{Board, BoardError, Detail, Event, Order, Query, Result, Which},
    job::{Owner, Shelf},
};

/// More changes at once than this are not told one by one.
const MOST: usize = 10_000;

/// Starts to listen, on a session of its own.
pub(super) async fn events(board: &ZooKeeper) -> Result<BoxStream<'_, Result<Event>>> {
    let session = board.link.another(READING).await?;
    let watches = Watches::set(board, &session).await?;
    let mut watcher = Watcher {
        board,
        session,
        watches,
        picture: Picture::default(),
        changes: VecDeque::new(),
        pending: VecDeque::new(),
    };
    // Behind the watches: what changes while it is looked at is told as well, and known already.
    watcher.look().await?;
    Ok(stream::unfold(Some(watcher), |watcher| async {
        let mut watcher = watcher?;
        match watcher.next().await {
            Ok(event) => Some((Ok(event), Some(watcher))),
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed())
}

/// The watches on all that belongs to a board.
struct Watches {
    board: PersistentWatcher,
    trash: PersistentWatcher,
    entities: PersistentWatcher,
}

impl Watches {
    async fn set(board: &ZooKeeper, session: &Session) -> Result<Self> {
        let set = async |path: String| {
            let watch = session
                .client()
                .watch(&path, AddWatchMode::PersistentRecursive);
            let watch = session.ask(READING, watch).await?;
            watch.map_err(|error| session.refusal(READING, &error))
        };
        Ok(Self {
            board: set(Place::Board.folder(&board.paths)).await?,
            trash: set(Place::Trash.folder(&board.paths)).await?,
            entities: set(Place::Entities.folder(&board.paths)).await?,
        })
    }

    async fn next(&mut self) -> (Place, WatchedEvent) {
        tokio::select! {
            biased;
            event = self.board.changed() => (Place::Board, event),
            event = self.trash.changed() => (Place::Trash, event),
            event = self.entities.changed() => (Place::Entities, event),
        }
    }
}

/// What a watch is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Board,
    Trash,
    Entities,
}

impl Place {
    fn folder(self, paths: &Paths) -> String {
        match self {
            Self::Board => paths.folder(Shelf::Board),
            Self::Trash => paths.folder(Shelf::Trash),
            Self::Entities => paths.entities(),
        }
    }
}

struct Watcher<'a> {
    board: &'a ZooKeeper,
    session: Session,
    watches: Watches,
    picture: Picture,
    /// What has changed and is not told yet, in order.
    changes: VecDeque<Change>,
    pending: VecDeque<Event>,
}

impl Watcher<'_> {
    async fn look(&mut self) -> Result<()> {
        self.picture = Picture::default();
        for shelf in [Shelf::Board, Shelf::Trash] {
            let mut reader = Reader::new(Query {
                shelf,
                which: Which::All,
                order: Order::Any,
                detail: Detail::Brief,
            });
            // On the session of the watches: another one may be with a server that lags behind.
            while let Some(page) = reader.next(&self.session, &self.board.paths).await? {
                for entry in &page {
                    match shelf {
                        Shelf::Board => self.picture.add_to_board(entry),
                        Shelf::Trash => self.picture.add_to_trash(entry),
                    }
                }
            }
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            if self.changes.is_empty() {
                let (place, event) = self.watches.next().await;
                self.hear(place, event).await?;
            }
            self.tell().await?;
        }
    }

    /// Tells what has changed so far, once it is known what came with it.
    async fn tell(&mut self) -> Result<()> {
        self.hear_all().await?;
        let count = self.changes.len();
        if count > MOST {
            return self.start_over().await;
        }
        self.read().await?;
        // All that belongs to those changes has arrived by now, and may say what they were.
        self.hear_all().await?;
        for event in self.picture.tell(&mut self.changes, count) {
            let is_repeated = event.subject.is_none()
                && event.kind == resync().kind
                && self
                    .pending
                    .back()
                    .is_some_and(|last| last.kind == event.kind);
            if !is_repeated {
                self.pending.push_back(event);
            }
        }
        Ok(())
    }

    /// Takes in what the watches have told by now.
    async fn hear_all(&mut self) -> Result<()> {
        while let Some((place, event)) = self.watches.next().now_or_never() {
            self.hear(place, event).await?;
        }
        Ok(())
    }

    async fn hear(&mut self, place: Place, event: WatchedEvent) -> Result<()> {
        match (event.event_type, event.session_state) {
            // The library does not set such watches again on a new connection.
            (EventType::Session, SessionState::SyncConnected) if place == Place::Board => {
                self.watches = Watches::set(self.board, &self.session).await?;
                self.start_over().await
            }
            (EventType::Session, state) if state.is_terminated() => Err(BoardError::Unreachable {
                board: self.board.name().to_owned(),
                source: "the session has ended".into(),
            }),
            (EventType::Session, _) => Ok(()),
            (kind, _) => {
                let folder = place.folder(&self.board.paths);
                let child = event.path.strip_prefix(&folder);
                // A watch is also on the folder itself, and on whatever is below its children.
                if let Some(child) = child.and_then(|child| child.strip_prefix('/')) {
                    let change = self.change(place, kind, child);
                    self.changes.extend(change);
                }
                Ok(())
            }
        }
    }

    fn change(&self, place: Place, kind: EventType, child: &str) -> Option<Change> {
        let came = kind == EventType::NodeCreated;
        if place == Place::Entities {
            let name = child
                .rsplit_once('@')?
                .0
                .replace("%2F", "/")
                .replace("%25", "%");
            let name = Owner::from_stored(name);
            return match kind {
                EventType::NodeCreated => Some(Change::ConductorCame(name)),
                EventType::NodeDeleted => Some(Change::ConductorWent(name)),
                _ => None,
            };
        }
        let paths = &self.board.paths;
        let (job, lock) = match place {
            Place::Trash => (paths.key_of(Shelf::Trash, child), None),
            _ => (paths.key_of(Shelf::Board, child), locked_by(child)),
        };
        match kind {
            EventType::NodeCreated | EventType::NodeDeleted => {}
            // Nobody changes a job or a lock in place; who does it by hand wants it looked at.
            EventType::NodeDataChanged if place == Place::Board => {
                return job.or(lock).map(|_| Change::Meddled);
            }
            _ => return None,
        }
        Some(match (job, lock, place) {
            (Some(key), _, Place::Trash) if came => Change::TrashCame(key),
            (Some(key), _, Place::Trash) => Change::TrashWent(key),
            (Some(key), _, _) if came => Change::JobCame(key, None),
            (Some(key), _, _) => Change::JobWent(key),
            (None, Some(key), _) if came => Change::LockCame(key, None),
            (None, Some(key), _) => Change::LockWent(key),
            (None, None, _) => return None,
        })
    }

    /// Reads what came, in one exchange; one that reads nothing still brings what was told before.
    async fn read(&mut self) -> Result<()> {
        let paths = &self.board.paths;
        let mut wanted = vec![paths.board().to_owned()];
        for change in &self.changes {
            match change {
                Change::JobCame(key, _) => wanted.push(paths.job(Shelf::Board, key)),
                Change::LockCame(key, _) => wanted.push(paths.lock(key)),
                _ => {}
            }
        }
        let mut found = nodes::read(&self.session, &wanted)
            .await?
            .into_iter()
            .skip(1);
        for change in &mut self.changes {
            match change {
                Change::JobCame(key, entry) => {
                    let record = found.next().flatten().map(|posting| Record {
                        shelf: Shelf::Board,
                        key: key.clone(),
                        posting,
                        lock: None,
                        side: None,
                    });
                    *entry = record.map(|record| Box::new(record.read(Detail::Brief)));
                }
                Change::LockCame(_, holding) => {
                    let lock = found.next().flatten();
                    *holding = lock.and_then(|lock| super::record::holding(&lock).0);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Looks again, and says that something may have been missed.
    async fn start_over(&mut self) -> Result<()> {
        self.changes.clear();
        self.look().await?;
        self.pending.push_back(resync());
        Ok(())
    }
}
