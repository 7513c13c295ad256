//! Planned losses on the simulated server, and checks of its data.

use std::time::Duration;

use super::{Data, Expiry, Record, Store};
use crate::{
    board::EventKind,
    job::{JobKey, Owner},
    process::clock,
};

impl Store {
    /// Checks that the board made a settlement that its client reports, and that the client has not reported it before.
    pub(crate) fn hear_report(&mut self, uuid: &str, owner: &Owner, kind: EventKind) {
        let key = (uuid.to_owned(), owner.clone());
        let made = self.unreported.entry(key).or_default();
        if let Some(at) = made.iter().position(|it| *it == kind) {
            made.remove(at);
        } else if !self.machine.excuses(uuid) && !self.forced.contains(uuid) {
            // Without an answer, a client takes a job that an operator has released for settled.
            let text = format!("{owner} reports job {uuid} as {kind}, which it is not");
            self.machine.violate(text);
        }
    }

    /// Remembers the data on the disk.
    pub(crate) fn save(&mut self) {
        self.saved = Some(self.data.clone());
    }

    /// Restarts with the saved data. The later writes are lost, and claims with them.
    pub(crate) fn lose_writes(&mut self) {
        let Some(saved) = self.saved.take() else {
            return;
        };
        let before = std::mem::replace(&mut self.data, saved);
        self.next_expiry = Duration::ZERO;
        // Renewals are lost as well.
        let claim = |data: &Data, key: &JobKey| {
            let hold = data.board.get(key)?.hold.as_ref()?;
            Some((hold.fence, hold.expiry))
        };
        let both = before.board.iter().chain(&self.data.board);
        for (key, record) in both {
            if claim(&before, key) != claim(&self.data, key) {
                // A Python service keeps working until its lost claim would have ended.
                let rest = match claim(&before, key) {
                    Some((_, Expiry::At(end))) => end.saturating_sub(self.now()),
                    _ => Duration::ZERO,
                };
                self.machine.excuse(&record.job.uuid, self.term.max(rest));
            }
        }
        let knows = |uuid: &str| {
            let key = JobKey::new(uuid);
            let Data { board, trash, .. } = &self.data;
            board.contains_key(&key)
                || trash.contains_key(&key)
                || self.data.consumed.contains(uuid)
        };
        let locations = before.board.values().chain(before.trash.values());
        let known = locations.map(|it| &it.job.uuid).chain(&before.consumed);
        let lost = known.filter(|uuid| !knows(uuid)).cloned();
        self.lost.extend(lost);
    }

    pub(crate) fn has_lost(&self, uuid: &str) -> bool {
        self.lost.contains(uuid)
    }

    pub(in crate::board::testing) fn forget_ended(&mut self) {
        self.data.trash.clear();
        self.data.consumed.clear();
        self.unreported.clear();
        self.forced.clear();
        self.lost.clear();
    }

    /// Returns the unclaimed jobs that any conductor may start now.
    pub(crate) fn claimable(&self) -> Vec<&str> {
        let wall = clock::wall();
        let is_due =
            |it: &&Record| it.hold.is_none() && it.side.not_before.is_none_or(|time| time <= wall);
        let due = self.data.board.values().filter(is_due);
        due.map(|it| it.job.uuid.as_str()).collect()
    }

    /// Whether all jobs left are unclaimed, and to be retried later.
    pub(crate) fn only_waits_for_retries(&self) -> bool {
        let is_free = self.data.board.values().all(|it| it.hold.is_none());
        is_free && self.jobs_left() > 0 && self.claimable().is_empty()
    }

    pub(crate) fn count_of(&self, owner: &str) -> usize {
        let holds = self.data.board.values().filter_map(|it| it.hold.as_ref());
        holds.filter(|hold| hold.owner.text() == owner).count()
    }

    /// Returns the state of a job, or `None` if the board does not know it.
    pub(crate) fn fate(&self, uuid: &str) -> Option<String> {
        let key = JobKey::new(uuid);
        if self.data.consumed.contains(uuid) {
            return Some("consumed".to_owned());
        }
        if self.data.trash.contains_key(&key) {
            return Some("trashed".to_owned());
        }
        let record = self.data.board.get(&key)?;
        let state = match &record.hold {
            Some(hold) => format!("claimed by {}", hold.owner),
            None => "unclaimed".to_owned(),
        };
        Some(state)
    }

    pub(crate) fn jobs_left(&self) -> usize {
        self.data.board.len()
    }
}
