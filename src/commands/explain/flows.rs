//! What the logbook says of the jobs that are explained.

use std::iter::zip;

use chrono::{DateTime, Utc};

use super::Explanation;
use crate::{
    board::{Board, BoardExt, JobRef, Result},
    commands::{flow::position, parts::logbook::LogbookArgs},
    context::Context,
    exit::chain,
    job::{Entry, Job, Shelf},
    logbook::{Logbook, LogbookError},
};

/// Adds to each explanation where the flow of its job is; that it cannot be read costs this alone.
pub(super) async fn add(
    ctx: &Context,
    logbook: &LogbookArgs,
    board: &dyn Board,
    (explanations, now): (&mut [Explanation], DateTime<Utc>),
) -> anyhow::Result<()> {
    if !logbook.is_known(ctx) {
        return Ok(());
    }
    let explained = explanations.iter_mut();
    let with_refs = explained.filter_map(|it| Some((it.job.parse::<JobRef>().ok()?, it)));
    let (wanted, mut explanations): (Vec<_>, Vec<_>) = with_refs.unzip();
    let shelves = [Shelf::Board, Shelf::Trash];
    let found = match board.resolve_on(&shelves, &wanted).await {
        Ok(found) => found,
        Err(error) => {
            unseen(&mut explanations, &chain(&error));
            return Ok(());
        }
    };
    let pairs = zip(explanations, &found);
    let with_book = pairs.filter_map(|(it, entry)| Some((it, with_book(entry)?)));
    let (mut explanations, jobs): (Vec<_>, Vec<_>) = with_book.unzip();
    if jobs.is_empty() {
        return Ok(());
    }
    let logbook = match logbook.open(ctx).await {
        Ok(Some(logbook)) => logbook,
        Ok(None) => return Ok(()),
        Err(error) if logbook.is_at_fault(&error) => return Err(error),
        Err(error) => {
            unseen(&mut explanations, &format!("{error:#}"));
            return Ok(());
        }
    };
    for (explanation, job) in zip(explanations, jobs) {
        match said(&logbook, job, now).await {
            Ok((said, can_go_on)) => {
                if let Some(first) = explanation.findings.first_mut() {
                    first.note("flow", said);
                    first.remedy = first.remedy.take().filter(|_| can_go_on);
                }
            }
            Err(error) => unseen(&mut [explanation], &chain(&error)),
        }
    }
    Ok(())
}

fn unseen(explanations: &mut [&mut Explanation], why: &str) {
    for explanation in explanations {
        explanation.unseen.push(format!("its logbook: {why}"));
    }
}

fn with_book(entry: &Result<Entry>) -> Option<&Job> {
    entry.as_ref().ok()?.job().filter(|job| job.book.is_some())
}

/// Says where the flow of a job is, and whether there is anything to go on with.
async fn said(
    logbook: &Logbook,
    job: &Job,
    now: DateTime<Utc>,
) -> std::result::Result<(String, bool), LogbookError> {
    if let Some(flow) = logbook.flow(job).await? {
        return Ok((position(&flow, now), true));
    }
    let said = match job.shelf {
        Shelf::Trash => "its logbook is gone: restored, it would be trashed again at once",
        _ => "there is no record of its flow: who claims it can only trash it",
    };
    Ok((said.to_owned(), false))
}
