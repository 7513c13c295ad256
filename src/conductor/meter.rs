//! Metrics of a conductor since its start.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;

use crate::{
    job::{Aftermath, Counters, Decision},
    names::named,
};

/// The most job names with their own counts: the first ones.
pub(crate) const MAX_NAMES: usize = 50;

/// The bucket bounds for attempts, in seconds.
pub(crate) const BUCKETS: [f64; 11] = [
    0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0,
];

named! {
    /// The end of an attempt, as metrics and traces count it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    pub(crate) enum CountedEnd ("end", str::eq) {
        Consumed => "consumed",
        Failed => "failed",
        /// It asked to be tried later.
        Postponed => "postponed",
        Trashed => "trashed",
        /// It failed for good, and its job was consumed nevertheless.
        ConsumedFailed => "consumed_failed",
        Lost => "lost",
        /// It was given back, for no fault of its own.
        Interrupted => "interrupted",
    }
}

impl From<&Decision> for CountedEnd {
    fn from(decision: &Decision) -> Self {
        match decision {
            Decision::Consume => Self::Consumed,
            Decision::ConsumeFailed(_) => Self::ConsumedFailed,
            Decision::Trash(_) | Decision::Spent(_) => Self::Trashed,
            Decision::Abandon(Aftermath::Failed { .. }) => Self::Failed,
            Decision::Abandon(Aftermath::Postponed { .. }) => Self::Postponed,
            Decision::Abandon(_) => Self::Interrupted,
        }
    }
}

/// The counts up to each of [`BUCKETS`], the total count, and the sum.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DurationHistogram {
    pub(crate) within: [u64; BUCKETS.len()],
    pub(crate) count: u64,
    pub(crate) sum: f64,
}

impl DurationHistogram {
    pub(super) fn add(&mut self, span: Duration) {
        let seconds = span.as_secs_f64();
        for (within, most) in self.within.iter_mut().zip(BUCKETS) {
            *within += u64::from(seconds <= most);
        }
        self.count += 1;
        self.sum += seconds;
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Measurements {
    pub(crate) claims: u64,
    /// The attempts by job name and end; `None` collects all further names.
    pub(crate) ends: BTreeMap<Option<String>, [u64; CountedEnd::ALL.len()]>,
    pub(crate) runs: DurationHistogram,
    pub(crate) waits: DurationHistogram,
    pub(crate) renewed: u64,
    pub(crate) not_renewed: u64,
    pub(crate) lateness: Duration,
    pub(crate) reconnects: u64,
}

impl Measurements {
    pub(super) fn claimed(&mut self, waited: Option<Duration>) {
        self.claims += 1;
        if let Some(waited) = waited {
            self.waits.add(waited);
        }
    }

    pub(super) fn ended(&mut self, name: &str, end: CountedEnd) {
        let is_known = self.ends.contains_key(&Some(name.to_owned()));
        let name = (is_known || self.ends.len() < MAX_NAMES).then(|| name.to_owned());
        self.ends.entry(name).or_default()[end as usize] += 1;
    }

    pub(super) fn count(&self, ends: &[CountedEnd]) -> u64 {
        let counts = self.ends.values();
        counts
            .flat_map(|counts| ends.iter().map(|end| counts[*end as usize]))
            .sum()
    }

    pub(super) fn counters(&self) -> Counters {
        use CountedEnd::{Consumed, ConsumedFailed, Failed, Lost, Postponed, Trashed};
        Counters {
            done: self.count(&[Consumed]),
            failed: self.count(&[Failed, Trashed, ConsumedFailed]),
            postponed: self.count(&[Postponed]),
            lost: self.count(&[Lost]),
        }
    }

    pub(super) fn renewed(&mut self, late: Option<Duration>) {
        match late {
            Some(late) => (self.renewed, self.lateness) = (self.renewed + 1, late),
            None => self.not_renewed += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_names_share_one_entry() {
        let mut measured = Measurements::default();
        for number in 0..10_000 {
            measured.ended(&number.to_string(), CountedEnd::Consumed);
        }
        measured.ended("7", CountedEnd::Lost);
        assert_eq!(measured.ends.len(), MAX_NAMES + 1);
        let count = measured.ends.values().flatten().sum::<u64>();
        assert_eq!(count, 10_001);
        let seven = &measured.ends[&Some("7".to_owned())];
        assert_eq!(seven[CountedEnd::Lost as usize], 1);
    }

    #[test]
    fn duration_counts_in_every_bucket_above_it() {
        let mut histogram = DurationHistogram::default();
        for millis in [5, 10, 700, 7_200_000] {
            histogram.add(Duration::from_millis(millis));
        }
        assert_eq!(histogram.within, [2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3]);
        assert_eq!((histogram.count, histogram.sum), (4, 7200.715));
    }
}
