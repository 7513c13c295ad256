//! Waiting for something to become true of a board, woken by its events.

use std::{collections::HashSet, time::Duration};

use chrono::Utc;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use tokio::time;

use super::{
    Board, BoardError, BoardExt, Detail, Event, JobRef, Order, Query, Result, Which,
    filter::Filters,
};
use crate::job::{Job, JobKey, Shelf};

/// How a job that was waited for ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is gone from the board, and not in the trash.
    Complete,
    Trashed,
}

/// Waits until none of these jobs is on the board any more, and returns how each ended.
pub(crate) async fn until_finished(board: &dyn Board, keys: &[JobKey]) -> Result<Vec<Ending>> {
    let mut events = board.events().await?;
    let wanted: Vec<_> = keys.iter().cloned().map(JobRef::Key).collect();
    loop {
        let present = board.find(Shelf::Board, &wanted).await?;
        if present.iter().all(Vec::is_empty) {
            let trashed = board.find(Shelf::Trash, &wanted).await?;
            return Ok(trashed
                .iter()
                .map(|found| match found.is_empty() {
                    true => Ending::Complete,
                    false => Ending::Trashed,
                })
                .collect());
        }
        something(&mut events).await?;
    }
}

/// Waits until there is no job on the board.
pub(crate) async fn until_empty(board: &dyn Board) -> Result<()> {
    let mut events = board.events().await?;
    while !is_empty(board).await? {
        something(&mut events).await?;
    }
    Ok(())
}

/// Waits until a job can be claimed, and returns the best few.
pub(crate) async fn until_claimable(
    board: &dyn Board,
    filters: &Filters,
    most: usize,
    except: &HashSet<JobKey>,
) -> Result<Vec<Job>> {
    let mut events = board.events().await?;
    loop {
        let candidates = board.candidates(filters, most, except).await?;
        if !candidates.jobs.is_empty() {
            return Ok(candidates.jobs);
        }
        match candidates.next_not_before {
            None => something(&mut events).await?,
            Some(time) => {
                let ahead = (time - Utc::now()).to_std().unwrap_or(Duration::ZERO);
                if let Ok(happened) = time::timeout(ahead, something(&mut events)).await {
                    happened?;
                }
            }
        }
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

/// Waits for the next event, and takes with it all that have come already.
async fn something(events: &mut BoxStream<'_, Result<Event>>) -> Result<()> {
    let next = events.next().await.unwrap_or_else(|| {
        Err(BoardError::Unreachable {
            board: "that was watched".to_owned(),
            source: "it tells no more of what happens".into(),
        })
    });
    next?;
    while let Some(event) = futures_util::FutureExt::now_or_never(events.next()).flatten() {
        event?;
    }
    Ok(())
}
