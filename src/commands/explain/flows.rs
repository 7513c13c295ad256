//! What the logbook says of the jobs that are explained.

use std::iter::zip;

use chrono::{DateTime, Utc};

use super::{Code, Explanation, Finding, Severity};
use crate::{
    board::{Board, BoardExt, JobRef, Result},
    commands::{flow::position, parts::logbook::LogbookArgs},
    config::Expiry,
    context::Context,
    exit::chain,
    job::{Entry, Job, Shelf},
    logbook::Flow,
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
        match logbook.flow(job).await {
            Ok(flow) => tell(ctx, explanation, job, (flow.as_ref(), now)),
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

/// Adds where the flow of a job is, and whether there is anything to go on with.
fn tell(
    ctx: &Context,
    explanation: &mut Explanation,
    job: &Job,
    (flow, now): (Option<&Flow>, DateTime<Utc>),
) {
    let said = match (flow, job.shelf) {
        (Some(flow), _) => position(flow, now),
        (None, Shelf::Trash) => {
            "its logbook is gone: restored, it would be trashed again at once".to_owned()
        }
        (None, _) => "there is no record of its flow: who claims it can only trash it".to_owned(),
    };
    if let Some(first) = explanation.findings.first_mut() {
        first.note("flow", said);
        first.remedy = first.remedy.take().filter(|_| flow.is_some());
    }
    let unclaimed = flow.and_then(|flow| runs_unclaimed(ctx, job, flow, now));
    explanation.findings.extend(unclaimed);
}

/// Finds that a flow goes on though nobody has claimed its job.
///
/// Whatever an engine writes it writes under a claim, which lasts for an expiry from then on.
fn runs_unclaimed(ctx: &Context, job: &Job, flow: &Flow, now: DateTime<Utc>) -> Option<Finding> {
    let octavia = ctx.config.board.value.octavia.as_ref();
    let expiry = octavia.map_or_else(Expiry::default, |octavia| octavia.expiry);
    let changed = flow.changed()?;
    // Of what is written in the meantime, or by a clock that is ahead, it is so as well.
    let is_of_late = (now - changed)
        .to_std()
        .map_or(true, |it| it < expiry.whole());
    let is_free = job.shelf == Shelf::Board && job.holding.is_none();
    if !is_free || !is_of_late || !flow.is_under_way() {
        return None;
    }
    let summary = "its flow went on of late, and nobody has claimed the job: who performs it has lost the claim, \
                   or just ended, and whoever claims it now may do the same a second time";
    let finding = Finding::new(Code::RunsUnclaimed, Severity::Warning, summary);
    let command = [
        ctx.config.program(),
        vec!["flow".to_owned(), job.uuid.clone()],
    ]
    .concat();
    let text = "see whether it goes on; if so, stop who performs it";
    Some(
        finding
            .at("went on", Some(changed), now)
            .mend(text, command),
    )
}
