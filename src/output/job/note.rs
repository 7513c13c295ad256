//! What a listing notes of a job beside its facts.

use super::JobView;
use crate::{
    duration,
    job::{Holding, Job, Lease, State},
};

/// Says why a job is not as one would expect, or will not go on by itself; what is worst comes
/// first.
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
