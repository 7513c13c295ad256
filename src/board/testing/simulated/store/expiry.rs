//! Expiry of claims and sessions, by the server's clock.

use std::{collections::BTreeSet, time::Duration};

use super::{ClaimLifetime, Expiry, Hold, Session, Store};
use crate::{board::EventKind, process::clock};

impl Store {
    /// Sets the server's clock. A jump forward ends claims early, before their owners notice.
    pub(crate) fn set_clock(&mut self, offset: Duration) {
        for record in self.data.board.values() {
            let left = record.hold.as_ref().and_then(|hold| self.time_left(hold));
            if let Some(left) = left {
                self.machine.excuse(&record.job.uuid, left);
            }
        }
        self.offset = offset;
        self.next_expiry = Duration::ZERO;
    }

    /// Allows jobs that wait for the end of a former claim to start: a wall clock is about to be set.
    pub(crate) fn excuse_waiting(&self) {
        for record in self.data.board.values() {
            let wait = record.side.not_before.map(|it| it - clock::wall());
            if let Some(wait) = wait.and_then(|it| it.to_std().ok()) {
                self.machine.excuse(&record.job.uuid, wait);
            }
        }
    }

    fn has_ended(&self, hold: &Hold) -> bool {
        match hold.expiry {
            Expiry::Never => false,
            Expiry::At(end) => end <= self.now(),
            Expiry::WithSession(session) => !self.sessions.contains_key(&session),
        }
    }

    /// Returns how long a claim lasts unless it is renewed; `None` if forever or its session has ended.
    pub(super) fn time_left(&self, hold: &Hold) -> Option<Duration> {
        let end = match hold.expiry {
            Expiry::Never => return None,
            Expiry::At(end) => end,
            Expiry::WithSession(session) => self.sessions.get(&session)?.until,
        };
        Some(end.saturating_sub(self.now()))
    }

    /// Removes expired sessions with their registrations, and expired claims.
    pub(in crate::board::testing::simulated) fn expire(&mut self) {
        let now = self.now();
        if now < self.next_expiry {
            return;
        }
        let over = |it: &Session| it.until <= now;
        let clients = self.sessions.values().filter(|it| over(it));
        let clients: BTreeSet<_> = clients.map(|it| it.client).collect();
        self.sessions.retain(|_, it| !over(it));
        self.conductors
            .retain(|_, (client, _)| !clients.contains(client));
        let ended = self.data.board.iter().filter(|(_, record)| {
            let hold = record.hold.as_ref();
            hold.is_some_and(|hold| self.has_ended(hold))
        });
        let ended: Vec<_> = ended.map(|(key, _)| key.clone()).collect();
        for key in ended {
            let Some(record) = self.data.board.get_mut(&key) else {
                continue;
            };
            let hold = record.hold.take();
            let uuid = record.job.uuid.clone();
            let (owner, subject) = (hold.map(|hold| hold.owner), record.subject());
            let left = self.machine.guarded_of(&uuid);
            if !left.is_empty() && !self.forced.contains(&uuid) && !self.machine.excuses(&uuid) {
                let text = format!("the command of job {uuid} outlives its claim: {left:?}");
                self.machine.violate(text);
            }
            self.machine.note(format_args!("expired {uuid}"));
            self.announce(EventKind::Expired, subject, owner);
        }
        let next = self.earliest_end().unwrap_or(Duration::from_secs(3600));
        self.next_expiry = now + next;
    }

    /// Returns for how long no claim and no session can expire.
    pub(in crate::board::testing::simulated) fn until_next_expiry(&self) -> Duration {
        self.next_expiry.saturating_sub(self.now())
    }

    fn earliest_end(&self) -> Option<Duration> {
        let holds = self.data.board.values().filter_map(|it| it.hold.as_ref());
        let claims = holds.filter_map(|hold| self.time_left(hold));
        let now = self.now();
        let sessions = self.sessions.values();
        let sessions = sessions.map(|it| it.until.saturating_sub(now));
        claims.chain(sessions).min()
    }

    /// Records contact with a client, and returns its session.
    pub(in crate::board::testing::simulated) fn record_contact(&mut self, client: u32) -> u64 {
        let now = self.now();
        let end = |lag: f64| now + self.term.mul_f64(1.0 - lag);
        let known = self
            .sessions
            .iter_mut()
            .find(|(_, it)| it.client == client && self.lifetime == ClaimLifetime::Session);
        if let Some((&id, session)) = known {
            session.until = session.until.max(end(session.lag));
            return id;
        }
        if self.lifetime == ClaimLifetime::Expiry {
            return 0;
        }
        let lag = self.machine.with_dice(|dice| dice.chance() / 4.0);
        let until = end(lag);
        self.next_expiry = self.next_expiry.min(until);
        self.fences += 1;
        let session = Session { client, until, lag };
        self.sessions.insert(self.fences, session);
        self.fences
    }
}
