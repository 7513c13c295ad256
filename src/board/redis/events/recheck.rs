//! The jobs to read again, the most urgent first.

use std::collections::{HashMap, VecDeque};

use super::picture::Traces;
use crate::job::JobKey;

/// Why a job is to be read, the most urgent cause first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    Due,
    Touched,
    /// A message or a hash left its state open.
    Noted,
}

#[derive(Debug, Default)]
pub(super) struct RecheckQueue {
    jobs: HashMap<JobKey, (Urgency, Traces)>,
    /// In arrival order; a job that became more urgent also stays in its old queue.
    queues: [VecDeque<JobKey>; 3],
}

impl RecheckQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(super) fn add(&mut self, key: JobKey, cause: Urgency, traces: Traces) {
        match self.jobs.get_mut(&key) {
            Some((before, known)) => {
                known.add(traces);
                if cause >= *before {
                    return;
                }
                *before = cause;
            }
            None => _ = self.jobs.insert(key.clone(), (cause, traces)),
        }
        self.queues[cause as usize].push_back(key);
    }

    pub(super) fn traces(&self, key: &JobKey) -> Traces {
        self.jobs.get(key).map_or(Traces::default(), |it| it.1)
    }

    pub(super) fn take(&mut self, most: usize) -> Vec<(JobKey, Traces)> {
        // Constant touches must not starve the other causes.
        let share = self.queues[Urgency::Noted as usize].len().min(most / 4);
        let mut taken = Vec::new();
        self.move_to(&mut taken, Urgency::Due, most);
        self.move_to(&mut taken, Urgency::Touched, most - share);
        self.move_to(&mut taken, Urgency::Noted, most);
        taken
    }

    fn move_to(&mut self, taken: &mut Vec<(JobKey, Traces)>, cause: Urgency, most: usize) {
        while taken.len() < most
            && let Some(key) = self.queues[cause as usize].pop_front()
        {
            if self.jobs.get(&key).is_some_and(|it| it.0 == cause)
                && let Some((key, (_, traces))) = self.jobs.remove_entry(&key)
            {
                taken.push((key, traces));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recheck(jobs: &[(&str, Urgency)]) -> RecheckQueue {
        let mut recheck = RecheckQueue::default();
        for (key, cause) in jobs {
            recheck.add(JobKey::new(*key), *cause, Traces::default());
        }
        recheck
    }

    fn take(recheck: &mut RecheckQueue, most: usize) -> Vec<String> {
        let taken = recheck.take(most).into_iter();
        taken.map(|(key, _)| key.to_string()).collect()
    }

    #[test]
    fn recheck_order_is_by_urgency_then_arrival() {
        use Urgency::{Due, Noted, Touched};
        let mut recheck = recheck(&[
            ("noted", Noted),
            ("second", Touched),
            ("third", Touched),
            ("due", Due),
            ("noted", Touched),
            ("second", Noted),
        ]);
        assert_eq!(take(&mut recheck, 2), ["due", "second"]);
        assert_eq!(take(&mut recheck, 9), ["third", "noted"]);
        assert!(recheck.is_empty());
        assert_eq!(take(&mut recheck, 9), [""; 0]);
    }

    #[test]
    fn least_urgent_recheck_is_not_starved() {
        let touched: Vec<_> = (0..100).map(|job| format!("touched{job}")).collect();
        let mut all = vec![("noted", Urgency::Noted)];
        all.extend(touched.iter().map(|key| (key.as_str(), Urgency::Touched)));
        let taken = take(&mut recheck(&all), 8);
        assert_eq!(taken.len(), 8);
        assert!(taken.contains(&"noted".to_owned()), "{taken:?}");
    }

    #[test]
    fn traces_of_a_job_accumulate() {
        let key = JobKey::new("job");
        let mut recheck = RecheckQueue::default();
        let (claim, ours) = (
            Traces {
                claim: true,
                is_ours: false,
            },
            Traces {
                claim: false,
                is_ours: true,
            },
        );
        recheck.add(key.clone(), Urgency::Noted, claim);
        recheck.add(key.clone(), Urgency::Touched, ours);
        let both = Traces {
            claim: true,
            is_ours: true,
        };
        assert_eq!(recheck.traces(&key), both);
        assert_eq!(recheck.take(1), [(key, both)]);
    }
}
