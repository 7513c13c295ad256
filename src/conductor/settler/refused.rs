//! Jobs that the board refuses to settle for a reason other than the claim, such as an undeletable node.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::{self, Instant};

use super::{DueSettlement, Settler};
use crate::{
    backoff::Backoff,
    board::{BoardError, chain, error::NodeConflict},
    conductor::{log::Note, policy::excerpt, status::ConductorStatus},
    job::{JobKey, Unsettled},
    optional::or_never,
};

/// The shortest and the longest pause before a retry, doubled each time.
const SETTLE_PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Kept until they succeed or the claims are lost.
#[derive(Default)]
pub(crate) struct RefusedSettlements {
    jobs: BTreeMap<JobKey, RefusedSettlement>,
    /// Whether they changed since the last report.
    has_changed: bool,
}

struct RefusedSettlement {
    /// `None` during a retry.
    due: Option<DueSettlement>,
    entry: Unsettled,
    since: Instant,
    again_at: Instant,
    backoff: Backoff,
}

impl RefusedSettlements {
    pub(crate) fn add(&mut self, due: DueSettlement, error: &BoardError, status: &ConductorStatus) {
        let now = Instant::now();
        let (key, reason) = (due.attempt.held.job.key.clone(), chain(error));
        let former = self.jobs.remove(&key);
        if former.as_ref().is_none_or(|it| it.entry.reason != reason) {
            self.has_changed = true;
            status.log(refusal(&due, &reason, error));
        }
        let entry = Unsettled {
            uuid: due.attempt.tag.uuid.clone(),
            name: due.attempt.tag.name.clone(),
            reason,
        };
        let first = || (now, Backoff::after_one(SETTLE_PAUSES));
        let (since, mut backoff) = former.map_or_else(first, |it| (it.since, it.backoff));
        let refusal = RefusedSettlement {
            due: Some(due),
            entry,
            since,
            again_at: now + backoff.exact_pause(),
            backoff,
        };
        self.jobs.insert(key, refusal);
    }

    pub(crate) fn forget(&mut self, key: &JobKey) {
        self.has_changed |= self.jobs.remove(key).is_some();
    }

    pub(crate) async fn due(&self) {
        let now = Instant::now();
        let moments = self.jobs.values().filter(|job| job.due.is_some());
        let moments = moments.flat_map(|job| {
            // The end of the wait needs attention too.
            let end = Some(job.since + SETTLE_TIMEOUT).filter(|end| *end > now);
            [Some(job.again_at), end].into_iter().flatten()
        });
        or_never(moments.min().map(time::sleep_until)).await;
    }

    pub(crate) fn take_due(&mut self) -> Vec<DueSettlement> {
        let now = Instant::now();
        let due = self.jobs.values_mut().filter(|job| job.again_at <= now);
        due.filter_map(|job| job.due.take()).collect()
    }

    /// Returns the jobs that the conductor no longer waits for.
    fn overdue(&self) -> impl Iterator<Item = &JobKey> {
        let overdue = self.jobs.iter();
        overdue
            .filter(|(_, job)| job.since.elapsed() >= SETTLE_TIMEOUT)
            .map(|(key, _)| key)
    }

    pub(crate) fn is_hopeless(&self) -> bool {
        self.overdue().count() == self.jobs.len()
    }

    fn news(&mut self) -> Option<Vec<Unsettled>> {
        let entries = self
            .jobs
            .values()
            .map(|RefusedSettlement { entry, .. }| Unsettled {
                uuid: excerpt(&entry.uuid).into_owned(),
                name: excerpt(&entry.name).into_owned(),
                reason: excerpt(&entry.reason).into_owned(),
            });
        std::mem::take(&mut self.has_changed).then(|| entries.collect())
    }
}

impl Settler {
    /// Stops waiting for permanent refusals, and publishes all refusals to the registry.
    pub(crate) fn set_aside(&mut self) {
        for key in self.refused.overdue() {
            self.shared.in_flight.set_aside(key);
        }
        if let Some(jobs) = self.refused.news() {
            self.shared.status.work(|work| work.unsettled = jobs);
        }
    }

    /// Leaves all jobs; their claims expire.
    pub(crate) fn leave(&mut self, due: Vec<DueSettlement>, reason: &str) {
        for due in &due {
            let note = Note::new("left_claimed").of(&due.attempt.tag);
            let note = note.with("wanted", due.decision.verb());
            self.shared.status.log(note.with("reason", reason));
        }
        // These were reported when they were refused.
        let refused = std::mem::take(&mut self.refused.jobs).into_values();
        for due in refused.filter_map(|job| job.due).chain(due) {
            self.shared.status.work(|work| work.left_unsettled += 1);
            self.shared.in_flight.remove(&due.attempt.held.job.key);
        }
    }
}

fn refusal(due: &DueSettlement, reason: &str, error: &BoardError) -> Note {
    let note = Note::new("not_settled")
        .of(&due.attempt.tag)
        .with("wanted", due.decision.verb())
        .with("reason", reason);
    match error {
        BoardError::NodeConflict(NodeConflict::Children { remedy, .. }) => {
            note.with("hint", remedy.to_string())
        }
        _ => note,
    }
}
