//! Events of an embedded board: woken by the signal file, read from the journal.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use futures_util::{StreamExt, stream, stream::BoxStream};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::time;

use super::journal::{self, Position, subject};
use crate::{
    board::{
        Event, EventKind, Result,
        embedded::{
            read::record::RowJob,
            store::{
                OpenError, clock::BoardClock, file::BoardFile, signal::signal_path,
                transaction::BoardView,
            },
        },
    },
    watched_fd::WatchedFd,
};

/// How often to look without a signal: other programs may write to the file as well.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);

/// How often to look for the file of a board that does not exist yet.
const LOOK_FOR_FILE: Duration = Duration::from_millis(100);

pub(crate) async fn events(file: &BoardFile) -> Result<BoxStream<'_, Result<Event>>> {
    let replacements = file.replacements();
    // Listen for signals before reading the position, so that no event falls in between.
    let wakeup = watch(file);
    let start = file
        .read(|view| {
            let mut announced = HashSet::new();
            // Earlier readers already know about earlier expiries.
            expired_claims(view, &mut announced)?;
            Ok((Position::end(view)?, announced))
        })
        .await?;
    let (position, announced) = start.unwrap_or((Position::START, HashSet::new()));
    let reader = JournalReader {
        file,
        wakeup,
        position,
        next_deadline: None,
        announced,
        replacements,
        pending: VecDeque::new(),
    };
    Ok(stream::try_unfold(reader, |mut reader| async {
        Ok(Some((reader.next().await?, reader)))
    })
    .boxed())
}

struct JournalReader<'a> {
    file: &'a BoardFile,
    wakeup: Option<WatchedFd>,
    position: Position,
    next_deadline: Option<i64>,
    /// Expired claims that were reported and are not released yet, by job and fencing token.
    announced: HashSet<(i64, Option<i64>)>,
    /// How often the file had been replaced when this subscription began.
    replacements: u64,
    pending: VecDeque<Event>,
}

impl JournalReader<'_> {
    async fn next(&mut self) -> Result<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            self.look().await?;
            if self.pending.is_empty() {
                self.sleep().await;
            }
        }
    }

    async fn look(&mut self) -> Result<()> {
        let (mut position, mut announced) = (self.position, HashSet::new());
        let news = self
            .file
            .read(|view| {
                // A blocked attempt starts over.
                position = self.position;
                announced.clone_from(&self.announced);
                let mut events = journal::read(view, &mut position)?;
                events.retain(|event| !is_announced(event, &mut announced));
                // Their posts come first.
                if position == Position::end(view)? {
                    events.extend(expired_claims(view, &mut announced)?);
                }
                Ok((events, next_deadline(view)?))
            })
            .await?;
        // Another task may have noticed it first.
        if self.file.replacements() != self.replacements {
            return Err(self.file.explain("read", OpenError::Replaced));
        }
        if let Some((events, deadline)) = news {
            self.position = position;
            self.announced = announced;
            self.pending.extend(events);
            self.next_deadline = deadline;
        }
        Ok(())
    }

    async fn sleep(&mut self) {
        if self.wakeup.is_none() {
            self.wakeup = watch(self.file);
        }
        let longest = match &self.wakeup {
            Some(_) => LOOK_ANYWAY,
            None => LOOK_FOR_FILE,
        };
        let until_deadline = self.next_deadline.map_or(longest, |deadline| {
            let left = deadline.saturating_sub(BoardClock::now().boot);
            Duration::from_millis(left.max(1).unsigned_abs())
        });
        let nap = time::sleep(longest.min(until_deadline));
        match &self.wakeup {
            Some(wakeup) => tokio::select! {
                // One signal stands for all writes so far.
                () = wakeup.drain() => {}
                () = nap => {}
            },
            None => nap.await,
        }
    }
}

fn is_announced(event: &Event, announced: &mut HashSet<(i64, Option<i64>)>) -> bool {
    let (EventKind::Expired, Some(subject)) = (event.kind, &event.subject) else {
        return false;
    };
    let fence = event.fence.as_ref().and_then(|fence| fence.0.parse().ok());
    subject
        .sequence
        .is_some_and(|sequence| announced.remove(&(sequence, fence)))
}

/// Returns the expired claims that no writer has released yet, each once.
fn expired_claims(
    view: &BoardView<'_>,
    announced: &mut HashSet<(i64, Option<i64>)>,
) -> rusqlite::Result<Vec<Event>> {
    let (columns, expires) = (RowJob::columns(view), view.expires_column());
    let sql = format!("SELECT {columns} FROM job WHERE {expires} <= ?1 ORDER BY {expires}");
    let rows: Vec<_> = view.all(&sql, [view.expired_until()], RowJob::read)?;
    let news = rows.into_iter();
    let news = news.filter(|job| announced.insert((job.sequence, job.fence)));
    Ok(news.map(expired).collect())
}

fn expired(job: RowJob) -> Event {
    Event {
        owner: job.owner(),
        fence: job.fence(),
        subject: Some(subject(
            job.sequence,
            job.uuid,
            job.name,
            job.priority,
            job.not_before,
        )),
        ..Event::now(EventKind::Expired)
    }
}

fn next_deadline(view: &BoardView<'_>) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT min(expires_boot) FROM job WHERE expires_boot > ?1";
    view.one(sql, [view.boot_time()], |row| row.get(0))
}

/// Watches the signal file; `None` without one, and the board itself is then polled.
fn watch(file: &BoardFile) -> Option<WatchedFd> {
    let path = &file.options.path;
    let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
    inotify::add_watch(&watch, signal_path(path), WatchFlags::MODIFY).ok()?;
    WatchedFd::new(watch).ok()
}
