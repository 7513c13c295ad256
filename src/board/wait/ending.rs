//! How jobs that are waited for ended: gone from the board, or in the trash.

use crate::{
    board::{Board, JobRef, Result},
    job::{Entry, Job, JobKey, Shelf},
};

/// A job that is waited for; another one may come by the same key, or by the same uuid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Awaited {
    pub(crate) key: JobKey,
    pub(crate) uuid: Option<String>,
    pub(crate) sequence: Option<i64>,
}

impl Awaited {
    /// Returns the job that this record is of.
    pub(crate) fn of(entry: &Entry) -> Self {
        Self {
            key: entry.key().clone(),
            uuid: entry.job().map(|job| job.uuid.clone()),
            sequence: entry.job().and_then(|job| job.sequence),
        }
    }

    /// Whether a record is that of the job, and not of a namesake.
    pub(crate) fn is_of(&self, job: &Job) -> bool {
        self.is_same(&job.uuid, job.sequence)
    }

    /// Whether a job of the same key is it, as far as that is known.
    pub(super) fn is_same(&self, uuid: &str, sequence: Option<i64>) -> bool {
        let is_other = |own: &String| !uuid.is_empty() && own != uuid;
        !self.uuid.as_ref().is_some_and(is_other)
            && (self.sequence.is_none() || sequence == self.sequence)
    }
}

/// Returns of those that had not ended which have by now, and on which shelf to look for them: in the
/// trash, or wherever what is gone is remembered.
pub(super) async fn look_for_endings(
    board: &dyn Board,
    awaited: &[Awaited],
    endings: &[Option<Shelf>],
) -> Result<Vec<(usize, Shelf)>> {
    let open: Vec<usize> = (0..awaited.len())
        .filter(|at| endings[*at].is_none())
        .collect();
    let gone = absent(board, Shelf::Board, awaited, open).await?;
    let nowhere = absent(board, Shelf::Trash, awaited, gone.clone()).await?;
    // Between the two looks it may have been restored.
    let ended = absent(board, Shelf::Board, awaited, gone).await?;
    let ending = |at: usize| match nowhere.contains(&at) {
        true => Shelf::Past,
        false => Shelf::Trash,
    };
    Ok(ended.into_iter().map(|at| (at, ending(at))).collect())
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
    let is_it = |at: usize, entry: &Entry| entry.job().is_none_or(|job| awaited[at].is_of(job));
    let is_there = |at: usize, found: &[Entry]| found.iter().any(|entry| is_it(at, entry));
    Ok(some
        .into_iter()
        .zip(found)
        .filter(|(at, found)| !is_there(*at, found))
        .map(|(at, _)| at)
        .collect())
}
