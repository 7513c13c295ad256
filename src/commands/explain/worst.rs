//! Ranks the jobs that need help and counts them.

use std::{
    cmp::Reverse,
    collections::{
        BTreeMap, HashMap,
        hash_map::Entry::{Occupied, Vacant},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::time;

use super::{
    PAUSE,
    finding::{Code, Explanation, Severity},
    left,
    scene::{Case, Scene},
};
use crate::{
    board::{Board, BoardError, JobRef},
    job::{Entry, JobKey, Shelf},
};

/// The number of jobs explained by default.
pub(super) const WORST: usize = 10;

#[derive(Default)]
pub(crate) struct Worst(BTreeMap<(Reverse<Severity>, Code), Kind>);

impl Worst {
    pub(crate) fn add(&mut self, scene: &Scene, entry: &Entry) {
        let explanation = scene.explain(&Case::first(entry));
        if let Some(trouble) = explanation.trouble() {
            let kind = self.0.entry((Reverse(trouble.severity), trouble.code));
            kind.or_default().add(Brief::of(entry, scene));
        }
    }

    /// Explains the worst: the oldest job of each problem, the worst problem first, then the next of each. Also returns
    /// the number of jobs per problem.
    pub(crate) async fn finish(
        self,
        board: &dyn Board,
        scene: &Scene,
    ) -> Result<(Vec<Explanation>, Vec<(Code, u64)>), BoardError> {
        let kinds: Vec<_> = (self.0.into_iter())
            .map(|((_, code), kind)| (code, kind.oldest()))
            .collect();
        let rounds = (0..WORST).flat_map(|round| {
            let kinds = kinds.iter();
            kinds.filter_map(move |(_, (_, oldest))| oldest.get(round))
        });
        let chosen: Vec<&Brief> = rounds.take(WORST).collect();
        if chosen.iter().any(|seen| seen.is_doubtful) {
            time::sleep(PAUSE).await;
        }
        let keys = chosen.iter().map(|seen| JobRef::Key(seen.key.clone()));
        let keys: Vec<_> = keys.collect();
        let again = board.find(Shelf::Board, &keys).await?;
        let mut explanations = Vec::new();
        for (seen, again) in chosen.iter().zip(&again) {
            // The job is gone since.
            let Some(again) = again.first() else { continue };
            let explanation = scene.explain(&Case {
                has_aged: seen.is_doubtful.then(|| left(again) < seen.left),
                ..Case::first(again)
            });
            explanations.extend(explanation.trouble().is_some().then_some(explanation));
        }
        likened(&mut explanations);
        let counts = kinds.iter().map(|(code, (count, _))| (*code, *count));
        Ok((explanations, counts.collect()))
    }
}

/// Links each job to an earlier one with the same explanation.
fn likened(explanations: &mut [Explanation]) {
    let mut told: HashMap<_, String> = HashMap::new();
    for it in explanations {
        let said = it.findings.iter().map(|it| (it.code, it.summary.clone()));
        let said = (said.collect::<Vec<_>>(), it.unseen.clone());
        match told.entry(said) {
            Occupied(first) => it.like = Some(first.get().clone()),
            Vacant(first) => drop(first.insert(it.title())),
        }
    }
}

/// The part of a job kept for the ranking; the worst jobs are read again.
struct Brief {
    key: JobKey,
    /// The start of the claim or the posting; unreadable records have no time and come first.
    since: Option<DateTime<Utc>>,
    is_doubtful: bool,
    left: Option<Duration>,
}

impl Brief {
    fn of(entry: &Entry, scene: &Scene) -> Self {
        let job = entry.job();
        Self {
            key: entry.key().clone(),
            since: job.and_then(|job| job.held_since().or(job.created_on)),
            is_doubtful: scene.is_doubtful(entry),
            left: left(entry),
        }
    }
}

#[derive(Default)]
struct Kind {
    count: u64,
    /// The oldest, and some more.
    some: Vec<Brief>,
}

impl Kind {
    fn add(&mut self, seen: Brief) {
        self.count += 1;
        self.some.push(seen);
        if self.some.len() > WORST * 100 {
            self.keep_oldest();
        }
    }

    fn keep_oldest(&mut self) {
        self.some.sort_by_key(|seen| seen.since);
        self.some.truncate(WORST);
    }

    fn oldest(mut self) -> (u64, Vec<Brief>) {
        self.keep_oldest();
        (self.count, self.some)
    }
}
