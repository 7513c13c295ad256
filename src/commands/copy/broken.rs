//! What a move has left behind that was broken off.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    board::{self, Board, JobRef},
    commands::parts::liveness::is_of_broken_move,
    job::{Claimed, Entry, Owner, Shelf},
};

/// Returns a job that is still claimed by a move that was broken off, and in whose name.
pub(super) fn left_behind(entry: &Entry) -> Option<(Owner, Claimed)> {
    let job = entry.job()?;
    let owner = job.owner().filter(|it| is_of_broken_move(it))?.clone();
    let fence = job.holding.as_ref()?.fence.clone()?;
    let job = job.clone();
    Some((owner, Claimed { job, fence }))
}

/// Returns those of these jobs that were on the other board since they were claimed, and ended there.
pub(super) async fn done_there(
    to: &dyn Board,
    left: &[(Uuid, Option<DateTime<Utc>>)],
) -> board::Result<HashSet<Uuid>> {
    if left.is_empty() {
        return Ok(HashSet::new());
    }
    let wanted = left.iter().map(|(uuid, _)| JobRef::Uuid(uuid.to_string()));
    let found = match to.find(Shelf::Past, &wanted.collect::<Vec<_>>()).await {
        Err(error) if error.is_retryable() => return Err(error),
        // Where the past may not be read, nothing is known of it.
        found => found.unwrap_or_default(),
    };
    let has_ended = |entry: &Entry, since: Option<DateTime<Utc>>| {
        let job = entry.job().filter(|job| !job.is_moved());
        job.and_then(|job| job.ended.as_ref())
            .is_some_and(|ended| since.is_none_or(|since| ended.on >= since))
    };
    let pairs = left.iter().zip(found);
    let done = pairs.filter(|((_, since), found)| found.iter().any(|it| has_ended(it, *since)));
    Ok(done.map(|((uuid, _), _)| *uuid).collect())
}
