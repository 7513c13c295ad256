//! Adds the flow state from the logbook to explanations.

use std::{iter::zip, time::Duration};

use chrono::{DateTime, Utc};

use crate::{
    board::{Board, BoardExt, JobRef},
    commands::parts::logbook::LogbookArgs,
    context::Context,
    diagnosis::{Explanation, SKEW, Snapshot},
    exit::chain,
    job::{Job, Location},
    logbook::{Flow, position},
    problem::{Code, Fix, Problem},
    suggest::Suggestion,
};

/// Adds the flow to each explanation; an unreadable logbook only loses this part.
pub(super) async fn add(
    ctx: &Context,
    logbook: &LogbookArgs,
    board: &dyn Board,
    explanations: &mut [Explanation],
    snapshot: &Snapshot,
) -> anyhow::Result<()> {
    if !logbook.is_known(ctx) {
        return Ok(());
    }
    let explained = explanations.iter_mut();
    let with_refs = explained.filter_map(|it| Some((it.job.parse::<JobRef>().ok()?, it)));
    let (wanted, mut explanations): (Vec<_>, Vec<_>) = with_refs.unzip();
    let locations = Location::LIVE;
    let found = match board.resolve_on(&locations, &wanted).await {
        Ok(found) => found,
        Err(error) => {
            unseen(&mut explanations, &chain(&error));
            return Ok(());
        }
    };
    let pairs = zip(explanations, &found);
    let with_book = pairs.filter_map(|(it, entry)| {
        let job = entry.as_ref().ok()?.job()?;
        job.book.is_some().then_some((it, job))
    });
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
    // On other boards a claim ends with a session.
    let expires = board.capabilities().has_expiring_claims;
    let expiry = ctx.config.board.value.octavia_expiry().filter(|_| expires);
    let mut without_claim = Vec::new();
    for (explanation, job) in zip(explanations, jobs) {
        match logbook.flow(job).await {
            Ok(flow) => {
                add_position(explanation, job, flow.as_ref(), snapshot.now);
                let changed =
                    flow.and_then(|flow| changed_unclaimed(expiry?, job, &flow, Utc::now()));
                without_claim.extend(changed.map(|changed| (explanation, job, changed)));
            }
            Err(error) => unseen(&mut [explanation], &chain(&error)),
        }
    }
    add_unclaimed(snapshot.now, board, without_claim).await;
    Ok(())
}

/// Reports flows that progressed without a claim, except for jobs that were claimed during the read.
async fn add_unclaimed(
    now: DateTime<Utc>,
    board: &dyn Board,
    flows: Vec<(&mut Explanation, &Job, DateTime<Utc>)>,
) {
    let keys = flows.iter().map(|(_, job, _)| JobRef::Key(job.key.clone()));
    let again = match keys.collect::<Vec<_>>().as_slice() {
        [] => return,
        keys => board.resolve_on(&[Location::Board], keys).await,
    };
    for ((explanation, job, changed), again) in zip(flows, again.unwrap_or_default()) {
        if again.is_ok_and(|entry| entry.holding().is_none()) {
            let finding = runs_unclaimed(now, job, changed);
            explanation.findings.push(finding);
        }
    }
}

fn unseen(explanations: &mut [&mut Explanation], why: &str) {
    for explanation in explanations {
        explanation.unseen.push(format!("the logbook: {why}"));
    }
}

fn add_position(explanation: &mut Explanation, job: &Job, flow: Option<&Flow>, now: DateTime<Utc>) {
    let progress = match (flow, job.location) {
        (Some(flow), _) => position(flow, now),
        (None, Location::Trash) => {
            "the logbook is gone; a restored job would return to the trash immediately".to_owned()
        }
        (None, _) => "the flow record is gone; a worker can only trash the job".to_owned(),
    };
    if !explanation.findings.is_empty() {
        let first = explanation.findings.remove(0).seen("flow", progress);
        let fix = first.fix.clone().filter(|_| flow.is_some());
        explanation.findings.insert(0, first.fixed_by(fix));
    }
}

/// Returns the last progress of a flow whose job should have been claimed then, but is not.
///
/// Each record of the engine renews the claim for one expiry.
fn changed_unclaimed(
    expiry: Duration,
    job: &Job,
    flow: &Flow,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let changed = flow.changed()?;
    let is_recent = match (now - changed).to_std() {
        Ok(ago) => ago < expiry,
        Err(_) => changed - now < SKEW,
    };
    let is_free = job.location == Location::Board && job.holding.is_none();
    (is_free && is_recent && flow.is_under_way()).then_some(changed)
}

fn runs_unclaimed(now: DateTime<Utc>, job: &Job, changed: DateTime<Utc>) -> Problem {
    let summary = "the flow advanced recently, but the job is unclaimed. Either the worker just \
        released the job, or it lost the claim and still runs; the next worker would then repeat \
        its work";
    let text = "check whether the flow still advances; if so, stop its worker";
    let look = Fix::look(Suggestion::of("flow").with([job.reference()])).because(text);
    let problem = Problem::new(Code::FlowWithoutClaim, summary);
    problem.at("advanced", Some(changed), now).fixed_by(look)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::job::{ClaimEnd, Holding};

    #[test]
    fn flow_is_unclaimed_if_its_last_record_would_have_renewed_the_claim() {
        let now = Utc::now();
        let flow = |state: &str, changed: DateTime<Utc>| Flow {
            state: Some(state.to_owned()),
            updated: Some(changed),
            ..Flow::default()
        };
        let mut job = Job::named("a");
        job.location = Location::Board;
        let expiry = Duration::from_secs(30);
        let after = |seconds: i64| now - TimeDelta::seconds(seconds);
        let is_reported =
            |job: &Job, flow: &Flow| changed_unclaimed(expiry, job, flow, now).is_some();
        for (seconds, expected) in [(-6, false), (-4, true), (0, true), (29, true), (31, false)] {
            assert_eq!(
                is_reported(&job, &flow("RUNNING", after(seconds))),
                expected,
                "{seconds}"
            );
        }
        for (state, expected) in [
            ("RESUMING", true),
            ("SUSPENDED", false),
            ("REVERTED", false),
        ] {
            assert_eq!(
                is_reported(&job, &flow(state, after(1))),
                expected,
                "{state}"
            );
        }
        job.holding = Some(Holding::new(None, ClaimEnd::Timed, None));
        assert!(!is_reported(&job, &flow("RUNNING", after(1))));
    }
}
