//! Board events from ZooKeeper watches.
//!
//! Watches name only the changed node, not who changed it or how. They arrive in the order of the changes, and before
//! any reply with a later state in the same session. A subscriber therefore has its own session and reads in it.

pub(super) mod changes;
pub(super) mod observation;
pub(super) mod queue;
pub(super) mod watches;

use std::{collections::VecDeque, time::Duration};

use futures_util::{FutureExt, StreamExt, stream, stream::BoxStream};
use tokio::time::{self, Instant};

use self::{
    changes::NodePicture,
    observation::Observations,
    watches::{WatchReport, Watches},
};
use super::{ZooKeeper, board_session::BoardSession, link::nodes::READING, read::look::PageReader};
use crate::{
    board::{BoardError, Detail, Event, Query, Result, cached_job::ReadTime},
    job::Location,
};

const MAX_UNREAD_CHANGES: usize = 10_000;

/// How often to read a job again that changes during the read.
const TRIES: usize = 4;

/// How long a connection may be gone before it is reported.
const GRACE: Duration = Duration::from_secs(1);

pub(super) async fn events(board: &ZooKeeper) -> Result<BoxStream<'_, Result<Event>>> {
    let session = board.root.client.another(READING).await?;
    let board = board.root.with(session);
    let watches = Watches::set(&board).await?;
    let mut watcher = NodeWatcher {
        board,
        watches,
        picture: NodePicture::default(),
        is_reconnected: false,
        lost_since: None,
        pending: VecDeque::new(),
    };
    // Read after setting the watches: a change during the read also fires a watch.
    watcher.read_board().await?;
    Ok(stream::try_unfold(watcher, |mut watcher| async {
        Ok(Some((watcher.next().await?, watcher)))
    })
    .boxed())
}

struct NodeWatcher<'a> {
    board: BoardSession<'a>,
    watches: Watches,
    picture: NodePicture,
    is_reconnected: bool,
    lost_since: Option<Instant>,
    pending: VecDeque<Event>,
}

impl NodeWatcher<'_> {
    async fn read_board(&mut self) -> Result<()> {
        // Free the old picture first; memory may not fit both.
        self.picture = NodePicture::default();
        for location in Location::LIVE {
            let mut reader = PageReader::new(Query::all(location, Detail::Brief));
            let mut asked = Instant::now();
            while let Some(page) = reader.next(&self.board).await? {
                let answered = Instant::now();
                for entry in page {
                    let looked = ReadTime { asked, answered };
                    self.picture.add(location, &entry, looked);
                }
                asked = answered;
            }
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            if self.picture.changes.is_empty() && !self.is_reconnected {
                self.listen().await?;
                continue;
            }
            match self.read_changes().await? {
                Some((end, observations)) => {
                    self.pending
                        .extend(self.picture.events_before(end, &observations));
                }
                None => self.start_over().await?,
            }
        }
    }

    async fn listen(&mut self) -> Result<()> {
        let report = self.watches.next(&self.board.paths);
        let report = match self.lost_since {
            None => report.await,
            Some(since) => time::timeout_at(since + GRACE, report)
                .await
                .map_err(|_| unreachable(&self.board, "the connection was lost"))?,
        };
        self.receive(report)
    }

    /// Reads the changed nodes, and returns before which number changes are explained. `None` means that everything
    /// must be read again.
    async fn read_changes(&mut self) -> Result<Option<(u64, Observations)>> {
        let mut tries = TRIES;
        loop {
            if self.receive_all()? {
                return Ok(None);
            }
            let end = self.picture.changes.end;
            let mut observations = Observations::read(&self.board, &self.picture.changes).await?;
            // All watches of those changes have arrived by now and may explain them.
            if self.receive_all()? {
                return Ok(None);
            }
            tries -= 1;
            // After a further change the owner of the observed lock is uncertain.
            if !observations.forget_locks(self.picture.changes.since(end)) || tries == 0 {
                return Ok(Some((end, observations)));
            }
        }
    }

    /// Returns whether the board must be read again.
    fn receive_all(&mut self) -> Result<bool> {
        while let Some(report) = self.watches.next(&self.board.paths).now_or_never() {
            self.receive(report)?;
        }
        Ok(self.is_reconnected || self.picture.changes.len() > MAX_UNREAD_CHANGES)
    }

    fn receive(&mut self, report: WatchReport) -> Result<()> {
        match report {
            WatchReport::Change(change) => self.picture.changes.push(change),
            WatchReport::Disconnected => self.lost_since = Some(Instant::now()),
            WatchReport::Reconnected => (self.is_reconnected, self.lost_since) = (true, None),
            WatchReport::Ended => return Err(unreachable(&self.board, "the session has ended")),
            WatchReport::Noise => {}
        }
        Ok(())
    }

    async fn start_over(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_reconnected) {
            // Drop the old watches after setting new ones: the server ends a watch when the last watcher of a node
            // leaves.
            self.watches = Watches::set(&self.board).await?;
        }
        self.read_board().await?;
        let resync = Event::resync();
        if !resync.repeats(self.pending.back()) {
            self.pending.push_back(resync);
        }
        Ok(())
    }
}

fn unreachable(board: &BoardSession<'_>, why: &'static str) -> BoardError {
    BoardError::unreachable(board.client.name(), why)
}
