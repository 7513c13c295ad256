//! Waiting for something to become true of a board, woken by its events.

use std::{collections::HashSet, time::Duration};

use chrono::Utc;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use tokio::time;

use super::{
    Board, BoardError, BoardExt, Detail, Event, JobRef, Order, Query, Result, Which,
    filter::Filters,
};
use crate::job::{Entry, Job, JobKey, Shelf};

/// How often to look again although nothing was told: the wall clock may have been set, and not
/// everybody who changes a board tells of it.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);

/// How a job that was waited for ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is gone from the board, and not in the trash.
    Complete,
    Trashed,
}

/// A job that is waited for; a later one of the same key is another job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Awaited {
    pub(crate) key: JobKey,
    pub(crate) sequence: Option<i64>,
}

impl Awaited {
    /// Returns the job that this record is of.
    pub(crate) fn of(entry: &Entry) -> Self {
        Self {
            key: entry.key().clone(),
            sequence: entry.job().and_then(|job| job.sequence),
        }
    }
}

/// Waits until these jobs are complete, or one of them is in the trash.
///
/// Returns how each ended that has ended by then.
pub(crate) async fn until_finished(
    board: &dyn Board,
    awaited: &[Awaited],
) -> Result<Vec<Option<Ending>>> {
    let mut events = board.events().await?;
    let mut endings = vec![None; awaited.len()];
    loop {
        look_for_endings(board, awaited, &mut endings).await?;
        let is_over = endings.iter().all(Option::is_some);
        if is_over || endings.contains(&Some(Ending::Trashed)) {
            return Ok(endings);
        }
        something(&mut events, LOOK_ANYWAY).await?;
    }
}

/// Notes how those have ended that have; what has ended stays so.
async fn look_for_endings(
    board: &dyn Board,
    awaited: &[Awaited],
    endings: &mut [Option<Ending>],
) -> Result<()> {
    let open: Vec<usize> = (0..awaited.len())
        .filter(|at| endings[*at].is_none())
        .collect();
    let gone = absent(board, Shelf::Board, awaited, open).await?;
    let nowhere = absent(board, Shelf::Trash, awaited, gone.clone()).await?;
    // Between the two looks it may have been restored.
    let ended = absent(board, Shelf::Board, awaited, gone).await?;
    for at in ended {
        endings[at] = Some(match nowhere.contains(&at) {
            true => Ending::Complete,
            false => Ending::Trashed,
        });
    }
    Ok(())
}

/// Returns which of some jobs are not on a shelf.
async fn absent(
    board: &dyn Board,
    shelf: Shelf,
    awaited: &[Awaited],
    some: Vec<usize>,
) -> Result<Vec<usize>> {
    if some.is_empty() {
        return Ok(some);
    }
    let wanted: Vec<_> = some
        .iter()
        .map(|at| JobRef::Key(awaited[*at].key.clone()))
        .collect();
    let found = board.find(shelf, &wanted).await?;
    let is_there =
        |at: usize, found: &[Entry]| found.iter().any(|entry| is_same(&awaited[at], entry));
    Ok(some
        .into_iter()
        .zip(found)
        .filter(|(at, found)| !is_there(*at, found))
        .map(|(at, _)| at)
        .collect())
}

/// Whether a record is that of the job that is waited for, and not of a namesake.
fn is_same(awaited: &Awaited, entry: &Entry) -> bool {
    entry
        .job()
        .is_none_or(|job| awaited.sequence.is_none() || job.sequence == awaited.sequence)
}

/// Waits until there is no job on the board.
pub(crate) async fn until_empty(board: &dyn Board) -> Result<()> {
    let mut events = board.events().await?;
    while !is_empty(board).await? {
        something(&mut events, LOOK_ANYWAY).await?;
    }
    Ok(())
}

/// Waits until a job can be claimed, and returns the best one.
pub(crate) async fn until_claimable(
    board: &dyn Board,
    filters: &Filters,
    except: &HashSet<JobKey>,
) -> Result<Job> {
    let mut events = board.events().await?;
    loop {
        let mut candidates = board.candidates(filters, 1, except).await?;
        if let Some(job) = candidates.jobs.pop() {
            return Ok(job);
        }
        let ahead = candidates.next_not_before.map_or(LOOK_ANYWAY, |time| {
            (time - Utc::now()).to_std().unwrap_or_default()
        });
        something(&mut events, ahead.min(LOOK_ANYWAY)).await?;
    }
}

async fn is_empty(board: &dyn Board) -> Result<bool> {
    let mut entries = board.entries(Query {
        shelf: Shelf::Board,
        which: Which::All,
        order: Order::Any,
        detail: Detail::Brief,
    });
    Ok(entries.try_next().await?.is_none())
}

/// Waits for the next event, and takes with it all that have come already; but not for ever.
async fn something(events: &mut BoxStream<'_, Result<Event>>, at_most: Duration) -> Result<()> {
    let Ok(next) = time::timeout(at_most, events.next()).await else {
        return Ok(());
    };
    next.unwrap_or_else(|| {
        Err(BoardError::Unreachable {
            board: "that was watched".to_owned(),
            source: "it tells no more of what happens".into(),
        })
    })?;
    while let Some(event) = futures_util::FutureExt::now_or_never(events.next()).flatten() {
        event?;
    }
    Ok(())
}
