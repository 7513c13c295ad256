//! The jobs that will not run without help: the worst of them, and how many there are.

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

/// How many jobs are explained if nobody says which.
pub(super) const WORST: usize = 10;

/// The jobs that will not run without help, as they come, in bounded memory.
#[derive(Default)]
pub(crate) struct Worst(BTreeMap<(Reverse<Severity>, Code), Kind>);

impl Worst {
    /// Notes a job on the board, if anything is the matter with it.
    pub(crate) fn add(&mut self, scene: &Scene, entry: &Entry) {
        let explanation = scene.explain(&Case::first(entry));
        if let Some(trouble) = explanation.trouble() {
            let kind = self.0.entry((Reverse(trouble.severity), trouble.code));
            kind.or_default().add(Brief::of(entry, scene));
        }
    }

    /// Explains the worst: of each kind the oldest, what is worst first, then of each kind the next; and says how
    /// many there are of each kind.
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
            // One that has gone meanwhile is nobody's trouble.
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

/// Notes of each job whether the same was said of one before it.
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

/// What is kept of a job until it is known whether it is among the worst; those are read again.
struct Brief {
    key: JobKey,
    /// Since when somebody has it, or it is there; what cannot be read has no time, and comes first.
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
    /// The oldest among them, and some others.
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

    /// Returns how many there are, and the oldest of them.
    fn oldest(mut self) -> (u64, Vec<Brief>) {
        self.keep_oldest();
        (self.count, self.some)
    }
}
