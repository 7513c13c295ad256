//! Changes that wait to be told, in order; what else happens to the same job is found at once.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::change::Change;
use crate::job::JobKey;

/// Changes in the order in which they happened.
///
/// However many they are, one more costs as much as the first: who is late has many to tell, and
/// would come to be later and later if each took longer then.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Each under its number, which no other one ever has.
    all: BTreeMap<u64, Change>,
    /// The numbers of those that are about a job, in order.
    of_job: HashMap<JobKey, VecDeque<u64>>,
    end: u64,
}

impl Changes {
    pub(crate) fn push(&mut self, change: Change) {
        if let Some(key) = change.job() {
            let numbers = self.of_job.entry(key.clone()).or_default();
            numbers.push_back(self.end);
        }
        self.all.insert(self.end, change);
        self.end += 1;
    }

    /// Returns the number that the next change will have.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Forgets them all.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.of_job.clear();
    }

    /// Returns those from a number on.
    pub(crate) fn since(&self, number: u64) -> impl Iterator<Item = &Change> {
        self.all.range(number..).map(|(_, change)| change)
    }

    /// Takes the first one out, if its number is a smaller one.
    pub(super) fn pop_before(&mut self, number: u64) -> Option<Change> {
        let (&first, _) = self.all.first_key_value()?;
        (first < number).then(|| self.remove(first)).flatten()
    }

    /// Returns what happens to a job.
    pub(super) fn of(&self, key: &JobKey) -> impl Iterator<Item = &Change> {
        let numbers = self.of_job.get(key).into_iter().flatten();
        numbers.filter_map(|number| self.all.get(number))
    }

    /// Takes out the first one that is like this, if there is any.
    pub(super) fn take(&mut self, wanted: &Change) -> bool {
        let numbers = wanted.job().and_then(|key| self.of_job.get(key));
        let is_wanted = |number: &&u64| self.all.get(number) == Some(wanted);
        let found = numbers.and_then(|numbers| numbers.iter().find(is_wanted));
        found.copied().is_some_and(|at| self.remove(at).is_some())
    }

    fn remove(&mut self, number: u64) -> Option<Change> {
        let change = self.all.remove(&number)?;
        if let Some(key) = change.job()
            && let Some(numbers) = self.of_job.get_mut(key)
        {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.of_job.remove(key);
            }
        }
        Some(change)
    }
}
