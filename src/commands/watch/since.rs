//! What the records of a board, and of its past, prove of a time that is over.

use std::collections::HashMap;

use anyhow::Context as _;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::TryStreamExt;

use super::choice::Choice;
use crate::{
    board::{Board, BoardError, Event, EventKind, Order, Query, Result, Which, event::Subject},
    context::Context,
    job::{Departure, Entry, Job, JobKey, Owner, Shelf},
};

/// How far the times may be apart by which the board and we know one event.
const SLACK: TimeDelta = TimeDelta::seconds(5);

/// What was told of before anything was heard.
#[derive(Debug, Default)]
pub(super) struct Told(Vec<Event>);

impl Told {
    /// Whether this is what was told already: it happened as the board was read.
    pub(super) fn take(&mut self, event: &Event) -> bool {
        let is_it = |told: &Event| {
            let key = |event: &Event| event.subject.as_ref().map(|subject| subject.key.clone());
            told.kind == event.kind
                && key(told) == key(event)
                && (told.fence == event.fence || told.fence.is_none() || event.fence.is_none())
                && (event.time - told.time).abs() <= SLACK
        };
        let found = self.0.iter().position(is_it);
        found.inspect(|&at| drop(self.0.swap_remove(at))).is_some()
    }
}

/// Returns what happened since then, in order; and what of that may yet be heard.
///
/// The board has to be listened to by now.
pub(super) async fn happened(
    ctx: &Context,
    board: &dyn Board,
    choice: &mut Choice,
    since: DateTime<Utc>,
) -> anyhow::Result<(Vec<Event>, Told)> {
    let began = Utc::now() - SLACK;
    let mut jobs = HashMap::new();
    // In the order in which jobs go, so that none is missed; the last look counts.
    for shelf in [Shelf::Board, Shelf::Trash, Shelf::Past] {
        match read(board, shelf, choice, since, &mut jobs).await {
            Err(error @ BoardError::Denied { .. }) if shelf == Shelf::Past => {
                ctx.out.note(format!("the past cannot be read: {error}"));
            }
            read => read.with_context(|| ctx.trying("watch", "the jobs"))?,
        }
    }
    let mut events: Vec<_> = jobs.into_values().flatten().collect();
    events.sort_by_key(|event| event.time);
    let late = events.iter().filter(|event| event.time >= began);
    let told = Told(late.cloned().collect());
    Ok((events, told))
}

/// Adds what each record of a shelf that is meant proves.
async fn read(
    board: &dyn Board,
    shelf: Shelf,
    choice: &mut Choice,
    since: DateTime<Utc>,
    jobs: &mut HashMap<(JobKey, Option<i64>), Vec<Event>>,
) -> Result<()> {
    let mut entries = board.entries(Query {
        shelf,
        which: Which::All,
        order: Order::Any,
        detail: choice.detail(),
    });
    while let Some(entry) = entries.try_next().await? {
        if !choice.follows(&entry) {
            continue;
        }
        if let Entry::Job(job) = entry {
            let events = proved(&job).into_iter();
            let events: Vec<_> = events
                .filter(|event| event.time >= since && choice.asks_for(event.kind))
                .collect();
            if !events.is_empty() {
                jobs.insert((job.key, job.sequence), events);
            }
        }
    }
    Ok(())
}

/// Returns what must have happened to a job, in order; not all that did.
fn proved(job: &Job) -> Vec<Event> {
    let mut events = Vec::new();
    let happened = |kind: EventKind, time: Option<DateTime<Utc>>| {
        time.map(|time| Event {
            time,
            subject: Some(Subject::of(job)),
            ..Event::now(kind)
        })
    };
    let history = &job.history;
    events.extend(happened(EventKind::Posted, job.created_on));
    let last_claim = match (&job.ended, &job.holding) {
        (Some(end), _) => end.claimed_on,
        (None, holding) => holding.as_ref().and_then(|holding| holding.claimed_on),
    };
    // Both may be the same one, timed by two clocks.
    let is_last = |first: DateTime<Utc>| last_claim.is_some_and(|last| last - first <= SLACK);
    let first_claim = history.first_claimed_on.filter(|time| !is_last(*time));
    events.extend(happened(EventKind::Claimed, first_claim));
    // By the last one the job may have come to where it is.
    let is_back = job.shelf == Shelf::Board;
    let failures = history.failures.iter();
    let survived = failures.len() - usize::from(!is_back && failures.len() > 0);
    for failure in failures.take(survived) {
        let abandoned = happened(EventKind::Abandoned, Some(failure.time));
        events.extend(abandoned.map(|event| Event {
            owner: Some(Owner::from_stored(failure.conductor.as_str())),
            ..event
        }));
    }
    let claimed = happened(EventKind::Claimed, last_claim);
    events.extend(claimed.map(|event| {
        Event {
            owner: job.owner().cloned(),
            fence: job
                .holding
                .as_ref()
                .and_then(|holding| holding.fence.clone()),
            ..event
        }
    }));
    let trashed = happened(EventKind::Trashed, job.trashed_on);
    events.extend(trashed.map(|event| Event {
        remark: history.remark.clone(),
        ..event
    }));
    if let Some(end) = &job.ended {
        let kind = match end.departure {
            Departure::Consumed | Departure::Failed => EventKind::Consumed,
            Departure::Purged => EventKind::Purged,
        };
        events.extend(happened(kind, Some(end.on)).map(|event| Event {
            departure: Some(end.departure),
            remark: history.remark.clone(),
            ..event
        }));
    }
    events.sort_by_key(|event| event.time);
    events
}
