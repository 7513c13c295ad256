//! The results of awaited jobs, and the reasons of the bad ones.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::json;

use crate::{
    board::{
        self, Board, JobRef,
        wait::{Awaited, Ending},
    },
    commands::bulk::report::Done,
    context::Context,
    exit::{CommandError, chain},
    job::{Entry, Failure, Job, Location, Outcome},
    secret::covered_text,
};

#[derive(Default)]
pub(super) struct BadEnds {
    names: BTreeMap<&'static str, Vec<String>>,
    reasons: Vec<String>,
    sent_by: Vec<String>,
    trashed: Vec<String>,
}

impl BadEnds {
    fn add(&mut self, ctx: &Context, how: &'static str, name: &str, job: Option<&Job>) {
        let trashed = job.filter(|it| it.location == Location::Trash);
        self.trashed
            .extend(trashed.map(|it| it.reference().into_owned()));
        let failure = job.and_then(|job| job.attempts.failures.last());
        let audit = job.and_then(Job::sent_by);
        let reason = audit.and_then(|audit| audit.reason.as_ref());
        if let (Some(audit), Some(reason)) = (audit, reason)
            && failure.is_none_or(|failure| failure.reason != *reason)
        {
            self.sent_by.push(format!("{}: {reason}", audit.by));
        }
        if let Some(failure) = failure {
            for (stream, text) in failure.last_lines() {
                ctx.out.note(format!("last lines of {name} on {stream}:"));
                for line in covered_text(text).lines() {
                    ctx.out.note(format!("  {line}"));
                }
            }
            self.reasons.push(failure.headline());
        }
        self.names.entry(how).or_default().push(name.to_owned());
    }

    pub(super) fn end(mut self) -> anyhow::Result<()> {
        if self.names.is_empty() {
            return Ok(());
        }
        let is_one = self.names.values().map(Vec::len).sum::<usize>() == 1;
        let job = self.trashed.pop().filter(|_| is_one);
        let names = self.names.into_iter();
        let ends: Vec<_> = names
            .map(|(how, names)| format!("{} {how}", names.join(", ")))
            .collect();
        let why = match self.reasons.as_slice() {
            [] => String::new(),
            reasons => format!("; last failure: {}", reasons.join("; ")),
        };
        let by = match self.sent_by.as_slice() {
            [] => String::new(),
            sent_by => format!(", by {}", sent_by.join(", by ")),
        };
        let message = format!("{}{by}{why}", ends.join("; "));
        Err(CommandError::JobFailed { message, job }.into())
    }
}

/// An awaited job that left the board, or its location.
pub(super) struct EndedJob<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) job: &'a Awaited,
    pub(super) ending: Ending,
}

pub(super) struct AwaitedEnd {
    pub(super) word: &'static str,
    pub(super) outcome: Option<Outcome>,
    pub(super) failure: Option<Failure>,
}

impl AwaitedEnd {
    pub(super) const UNKNOWN: Self = Self {
        word: "complete",
        outcome: None,
        failure: None,
    };

    pub(super) fn add_to(self, done: Done) -> Done {
        done.with("outcome", json!(self.outcome))
            .with("last_failure", json!(self.failure))
    }
}

/// Looks up the results of jobs, and collects the bad ones.
///
/// An unknown result is no failure, unless the board does not answer a question about it. A job that vanished is a
/// failure.
pub(super) async fn outcomes(
    ctx: &Context,
    board: &dyn Board,
    jobs: &[EndedJob<'_>],
) -> board::Result<(Vec<AwaitedEnd>, BadEnds)> {
    let history = ended_entries(ctx, board, Location::History, jobs).await?;
    let trash = ended_entries(ctx, board, Location::Trash, jobs).await?;
    let (mut ends, mut bad_ends, mut unknown) = (Vec::new(), BadEnds::default(), Vec::new());
    for EndedJob { name, job, ending } in jobs {
        let mut entries = history.iter().chain(&trash).filter_map(Entry::job);
        let found = entries.find(|it| it.key == job.key && job.is_of(it));
        let outcome = found.and_then(|job| Some(job.ended.as_ref()?.outcome));
        let (word, how) = match (ending, outcome) {
            (Ending::Trashed, _) => ("trashed", Some("ended in the trash")),
            (Ending::Vanished, None) => (
                "vanished",
                Some("disappeared without a record of its end; the board may have lost the job"),
            ),
            (_, None) => {
                unknown.push(&**name);
                ("complete", None)
            }
            (_, Some(Outcome::Consumed)) => ("complete", None),
            (_, Some(Outcome::Failed)) => ("failed", Some("was removed and recorded as failed")),
            (_, Some(Outcome::Purged)) => ("purged", Some("was purged")),
            (_, Some(Outcome::Moved)) => ("moved", Some("continues on another board")),
        };
        let failure = found.and_then(|job| job.attempts.failures.last());
        let failure = failure.filter(|_| how.is_some());
        if let Some(how) = how {
            bad_ends.add(ctx, how, name, found);
        }
        ends.push(AwaitedEnd {
            word,
            outcome,
            failure: failure.cloned(),
        });
    }
    if !unknown.is_empty() {
        note_unknown(ctx, board, &unknown);
    }
    Ok((ends, bad_ends))
}

fn note_unknown(ctx: &Context, board: &dyn Board, names: &[&str]) {
    let peers = match board.capabilities().has_peers() {
        true => "a Python service ended it, or ",
        false => "",
    };
    ctx.out.note(format!(
        "{} left the board; the outcome is unknown: {peers}the board keeps no history",
        names.join(", ")
    ));
}

async fn ended_entries(
    ctx: &Context,
    board: &dyn Board,
    location: Location,
    jobs: &[EndedJob<'_>],
) -> board::Result<Vec<Entry>> {
    let is_trash = location == Location::Trash;
    let meant = jobs
        .iter()
        .filter(|it| (it.ending == Ending::Trashed) == is_trash);
    let (names, keys): (Vec<_>, Vec<_>) = meant
        .map(|it| (&*it.name, JobRef::Key(it.job.key.clone())))
        .unzip();
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    match board.find(location, &keys).await {
        Ok(found) => Ok(found.into_iter().flatten().collect()),
        Err(error) if location == Location::History && error.is_retryable() => Err(error),
        Err(error) => {
            let (names, why) = (names.join(", "), chain(&error));
            ctx.out
                .note(format!("cannot read the outcome of {names}: {why}"));
            Ok(Vec::new())
        }
    }
}
