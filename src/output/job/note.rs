//! Remarks on a job in a listing.

use super::JobView;
use crate::{
    duration,
    job::{Holding, Job, Lease, State},
};

/// Explains why a job is unusual or stuck; the worst reason comes first.
pub(super) fn note(view: JobView<'_>, job: &Job) -> Option<String> {
    let not_before = job.history.not_before.map(|time| time - view.now);
    let backing_off = not_before
        .filter(|_| job.state() == State::Unclaimed)
        .and_then(|left| left.to_std().ok())
        .filter(|left| !left.is_zero())
        .map(|left| format!("retry in {}", duration::brief(left)));
    let lease = job.holding.as_ref().map(|Holding { lease, .. }| *lease);
    let forever = lease.filter(|lease| *lease == Lease::None && job.state() == State::Claimed);
    let paused = view.pause.map(|pause| {
        let left = pause
            .until
            .and_then(|until| (until - view.now).to_std().ok());
        let left = left.map_or_else(String::new, |left| format!(" {}", duration::brief(left)));
        format!("paused{left}")
    });
    let notes = [
        job.problem.clone(),
        paused,
        forever.map(|_| "never expires".to_owned()),
        backing_off,
    ];
    let notes: Vec<_> = notes.into_iter().flatten().collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}
