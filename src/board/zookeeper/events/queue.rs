//! A queue of unreported changes, with fast access to the changes of one job.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::{board::Event, job::JobKey};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeChange {
    OfJob(NodeEvent, JobKey),
    Event(Box<Event>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeEvent {
    JobCame,
    JobWent,
    LockCame,
    LockWent,
    TrashCame,
    TrashWent,
    /// A node of this job was overwritten, which no client does.
    Rewritten,
}

impl NodeChange {
    pub(crate) fn job(&self) -> Option<&JobKey> {
        match self {
            Self::OfJob(_, key) => Some(key),
            Self::Event(_) => None,
        }
    }
}

/// Ordered. The cost of a change does not depend on the length, so that a slow subscriber can catch up.
#[derive(Debug, Default)]
pub(crate) struct NodeChanges {
    /// By number; numbers are never reused.
    all: BTreeMap<u64, NodeChange>,
    /// The numbers of each job's changes, in order.
    of_job: HashMap<JobKey, VecDeque<u64>>,
    pub(super) end: u64,
}

impl NodeChanges {
    pub(crate) fn push(&mut self, change: NodeChange) {
        if let Some(key) = change.job() {
            let numbers = self.of_job.entry(key.clone()).or_default();
            numbers.push_back(self.end);
        }
        self.all.insert(self.end, change);
        self.end += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn since(&self, number: u64) -> impl Iterator<Item = &NodeChange> {
        self.all.range(number..).map(|(_, change)| change)
    }

    pub(super) fn pop_before(&mut self, number: u64) -> Option<NodeChange> {
        let (&first, _) = self.all.first_key_value()?;
        (first < number).then(|| self.remove(first)).flatten()
    }

    pub(super) fn of(&self, key: &JobKey) -> impl Iterator<Item = NodeEvent> {
        self.numbered(key).map(|(_, step)| step)
    }

    pub(super) fn next_on_board(&self, key: &JobKey) -> Option<NodeEvent> {
        use NodeEvent::{JobCame, JobWent, LockCame, LockWent};
        self.of(key)
            .find(|kind| matches!(kind, JobCame | JobWent | LockCame | LockWent))
    }

    pub(super) fn take(&mut self, wanted: NodeEvent, key: &JobKey) -> bool {
        let found = self.numbered(key).find(|(_, step)| *step == wanted);
        found.is_some_and(|(at, _)| self.remove(at).is_some())
    }

    fn numbered(&self, key: &JobKey) -> impl Iterator<Item = (u64, NodeEvent)> {
        let numbers = self.of_job.get(key).into_iter().flatten();
        numbers.filter_map(|number| match self.all.get(number)? {
            NodeChange::OfJob(step, _) => Some((*number, *step)),
            NodeChange::Event(_) => None,
        })
    }

    fn remove(&mut self, number: u64) -> Option<NodeChange> {
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
