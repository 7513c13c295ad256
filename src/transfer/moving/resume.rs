//! Finishes interrupted moves: the source board decides about each copy.

use std::collections::HashSet;

use chrono::Utc;
use futures_util::TryStreamExt;

use super::{
    TransferResult,
    route::{Route, end_claim, settle, unless_ended},
};
use crate::{
    board::{self, BoardError, BoardExt, Detail, JobRef, Query},
    diagnosis::{has_mover_ended, is_copy_of_move, is_move_over, is_of_broken_move},
    exit::CommandError,
    job::{Entry, Job, Location, MoveRecord, Outcome, Owner, Stage},
    suggest::Hint,
};

const BATCH: usize = 200;

/// Releases each copy that the source board has handed over, and removes each copy whose job the source still has or
/// has run.
///
/// It skips a copy while its move is alive on this machine or holds the claim on the source board. It also skips a copy
/// without a record or a job on the source board, since the copy came from another board.
pub(crate) async fn resume(route: &Route) -> board::Result<Vec<TransferResult>> {
    let mut records = route.records().await?;
    records.retain(|record| has_mover_ended(&record.owner) != Some(false));
    let owners: HashSet<_> = records.iter().map(|record| record.owner.clone()).collect();
    let (mut copies, mut resumed) = (Vec::new(), Vec::new());
    if owners.is_empty() {
        return Ok(resumed);
    }
    let mut entries = route.to.entries(Query::all(Location::Board, Detail::Brief));
    while let Some(entry) = entries.try_next().await? {
        let claim = entry.holding().filter(|it| is_copy_of_move(it));
        let owner = claim.and_then(|it| it.owner.clone());
        let Some(owner) = owner.filter(|it| owners.contains(it)) else {
            continue;
        };
        match entry {
            Entry::Job(job) if job.moved_from().as_deref() == Some(&*route.source) => {
                copies.push((*job, owner));
            }
            entry => resumed.push((entry, Err(of_another(route)))),
        }
    }
    drop(entries);
    while !copies.is_empty() {
        let batch = copies.drain(..copies.len().min(BATCH)).collect();
        resumed.extend(resolve(route, batch).await?);
    }
    let is_busy = |owner: &Owner| {
        let mut failed = resumed.iter().filter(|(_, done)| done.is_err());
        failed.any(|(entry, _)| entry.is_owned_by(owner))
    };
    let is_over = |record: &&MoveRecord| match &record.stage {
        Stage::Begun { to, on } if *to == route.target => {
            is_move_over(&record.owner, Some(*on), Utc::now()) && !is_busy(&record.owner)
        }
        Stage::Begun { .. } | Stage::Committed { .. } => false,
    };
    let over = records.iter().filter(is_over);
    let over: HashSet<_> = over.map(|record| record.owner.clone()).collect();
    records.retain(|record| over.contains(&record.owner));
    route.from.end_moves(&records).await?;
    Ok(resumed)
}

async fn resolve(route: &Route, copies: Vec<(Job, Owner)>) -> board::Result<Vec<TransferResult>> {
    let uuid = |job: &Job| JobRef::Uuid(job.uuid.clone());
    let wanted: Vec<_> = copies.iter().map(|(job, _)| uuid(job)).collect();
    let found = route.from.find(Location::Board, &wanted).await?;
    let (mut busy, mut dead) = (HashSet::new(), Vec::new());
    for ((copy, owner), found) in copies.iter().zip(found) {
        for claimed in found.iter().filter(|it| it.is_owned_by(owner)) {
            match claimed.job().filter(|_| is_of_broken_move(owner)) {
                Some(job) => dead.push(end_claim(job, owner)),
                None => drop(busy.insert(copy.key.clone())),
            }
        }
    }
    for freed in settle(&*route.from, dead).await {
        unless_ended(freed)?;
    }
    // Read after the claims have ended: a move without its claim adds no record.
    let records = route.records().await?;
    let locations = [Location::Board, Location::Trash, Location::History];
    let mut found = route
        .from
        .resolve_on(&locations, &wanted)
        .await?
        .into_iter();
    let (mut resumed, mut open) = (Vec::new(), Vec::new());
    for (copy, owner) in copies {
        let has_record = records.contains(&MoveRecord::commit(&owner, &copy.uuid));
        let found = found.next().unwrap_or(Err(BoardError::NoSuchJob));
        let has_moved = match has_record || !busy.contains(&copy.key) {
            true => has_moved(route, &copy, &owner, has_record, found),
            false => Err(still_busy(&owner)),
        };
        match has_moved {
            Ok(has_moved) => open.push((copy, owner, has_moved)),
            Err(error) => resumed.push((Entry::Job(Box::new(copy)), Err(error))),
        }
    }
    let copies = open
        .iter()
        .map(|(copy, owner, has_moved)| (copy, owner, *has_moved));
    let answers = route.end_copies(copies).await;
    let mut ended = Vec::new();
    for ((copy, owner, has_moved), answer) in open.into_iter().zip(answers) {
        let done = if has_moved { "moved" } else { "returned" };
        let commit = MoveRecord::commit(&owner, &copy.uuid);
        ended.extend(Some(commit).filter(|_| answer.is_ok()));
        let entry = Entry::Job(Box::new(copy));
        resumed.push((entry, answer.map(|()| done).map_err(Into::into)));
    }
    route.from.end_moves(&ended).await?;
    Ok(resumed)
}

/// Decides about a copy, from its commit record and its job on the source board.
///
/// Peers can write and delete commit records, so a missing one proves nothing.
fn has_moved(
    route: &Route,
    copy: &Job,
    owner: &Owner,
    has_record: bool,
    found: board::Result<Entry>,
) -> anyhow::Result<bool> {
    let is_same = |job: &Job| job.created_on == copy.created_on;
    match found {
        Ok(Entry::Job(job)) if has_record && job.ended.is_none() && is_same(&job) => {
            return Err(contradicted(route));
        }
        Err(BoardError::Ambiguous { .. }) if has_record => return Err(contradicted(route)),
        Ok(_) | Err(BoardError::NoSuchJob) if has_record => return Ok(true),
        Ok(Entry::Job(job)) => match &job.ended {
            None => return Ok(false),
            Some(end) => match end.outcome == Outcome::Moved {
                true if end.owner.as_ref() == Some(owner) => return Ok(true),
                // An older entry may belong to another job with this uuid, or to an earlier move.
                false if is_same(&job) => return Ok(false),
                _ => {}
            },
        },
        Ok(Entry::Malformed(_)) | Err(BoardError::NoSuchJob | BoardError::Ambiguous { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let message = format!(
        "{} has neither the job nor a record of its end; its copy stays claimed on {}",
        route.source, route.target
    );
    let on = ["jobboard", "--board", &route.target];
    let hint = Hint::new(
        "find out whether a worker ran the job on the source: if not, `{} abandon --force JOB` releases \
         the copy; if so, `{} trash --force JOB` removes it",
        [&on, &on],
    );
    Err(CommandError::refused(message).hint(hint).into())
}

fn contradicted(route: &Route) -> anyhow::Error {
    let message = format!(
        "{} has a record that the job was handed over, but still has the job; its copy stays \
         claimed on {}",
        route.source, route.target
    );
    let on = ["jobboard", "--board", &route.target];
    let hint = Hint::new(
        "another client may have written the record; `{} trash --force JOB` removes the copy",
        [&on],
    );
    CommandError::refused(message).hint(hint).into()
}

/// Reports a skipped copy that another board decides about.
fn of_another(route: &Route) -> anyhow::Error {
    let message = format!(
        "no readable record shows that the job came from {}",
        route.source
    );
    let hint = "`jobboard explain JOB` on the target prints the source board";
    CommandError::refused(message).hint(hint).into()
}

fn still_busy(owner: &Owner) -> anyhow::Error {
    let message =
        format!("the move {owner} may still be running: it holds the claim on the source");
    let hint = "run `copy --resume` again after that claim expires";
    CommandError::refused(message).hint(hint).into()
}
