//! The events of the drill's jobs, as a subscriber received them.

use std::{
    collections::{BTreeSet, HashMap},
    convert::Infallible,
};

use futures_util::TryStreamExt;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::report::Pickups;
use crate::board::{
    Board, BoardError, Event, EventKind,
    follow::{News, Start, follow},
};

#[derive(Debug, Clone)]
struct SeenEvent {
    kind: EventKind,
    owner: Option<String>,
    at: Instant,
}

impl SeenEvent {
    fn takes_over(&self, owner: &str, since: Instant) -> bool {
        let is_other = self.owner.as_deref() != Some(owner);
        self.kind == EventKind::Claimed && self.at > since && is_other
    }
}

/// The events of each job, in the order of their arrival.
#[derive(Default)]
pub(super) struct DrillRecord {
    jobs: Mutex<HashMap<String, Vec<SeenEvent>>>,
    /// The number of events so far; 0 until the subscription stands.
    count: watch::Sender<u64>,
}

impl DrillRecord {
    /// Records events until the subscription fails for good.
    pub(super) async fn listen(&self, board: &dyn Board) -> BoardError {
        match self.follow(board).await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn follow(&self, board: &dyn Board) -> Result<Infallible, BoardError> {
        let mut news = follow(board, Start::Now);
        loop {
            match news.try_next().await? {
                Some(News::Event(event)) => self.add(event),
                Some(News::Listening(_) | News::Back(_)) => {}
                Some(News::Lost(_)) | None => continue,
            }
            self.count.send_modify(|count| *count += 1);
        }
    }

    fn add(&self, event: Event) {
        let Some(subject) = event.subject else { return };
        let seen = SeenEvent {
            kind: event.kind,
            owner: event.owner.map(|it| it.text().into_owned()),
            at: Instant::now(),
        };
        self.jobs.lock().entry(subject.uuid).or_default().push(seen);
    }

    /// Waits until no later event is missed.
    pub(super) async fn listens(&self) {
        let _ = self.count.subscribe().wait_for(|count| *count > 0).await;
    }

    /// Waits until this holds; returns whether it did by the deadline.
    pub(super) async fn until(&self, deadline: Instant, holds: impl Fn() -> bool) -> bool {
        let mut count = self.count.subscribe();
        let held = timeout_at(deadline, count.wait_for(|_| holds())).await;
        held.is_ok()
    }

    /// Returns the jobs that this owner claimed last.
    pub(super) fn held_by(&self, owner: &str) -> Vec<String> {
        let jobs = self.jobs.lock();
        let held = jobs.iter().filter(|(_, events)| {
            events.last().is_some_and(|last| {
                last.kind == EventKind::Claimed && last.owner.as_deref() == Some(owner)
            })
        });
        held.map(|(uuid, _)| uuid.clone()).collect()
    }

    fn count_of(&self, uuid: &str, is_meant: impl Fn(&SeenEvent) -> bool) -> usize {
        let jobs = self.jobs.lock();
        let events = jobs.get(uuid).map_or(&[][..], Vec::as_slice);
        events.iter().filter(|it| is_meant(it)).count()
    }

    fn ends(&self, uuid: &str) -> usize {
        self.count_of(uuid, |it| it.kind == EventKind::Consumed)
    }

    pub(super) fn has_ended(&self, uuid: &str) -> bool {
        let is_end = |kind| matches!(kind, EventKind::Consumed | EventKind::Trashed);
        self.count_of(uuid, |it| is_end(it.kind)) > 0
    }

    pub(super) fn finished(&self, uuids: &[String]) -> usize {
        uuids.iter().filter(|it| self.ends(it) > 0).count()
    }

    pub(super) fn finished_twice(&self, uuids: &[String]) -> usize {
        uuids.iter().filter(|it| self.ends(it) > 1).count()
    }

    pub(super) fn finished_by_former(&self, jobs: &[String], owner: &str, since: Instant) -> usize {
        let takeovers = |uuid: &str| self.count_of(uuid, |it| it.takes_over(owner, since));
        let without = |uuid: &&String| self.ends(uuid) > 0 && takeovers(uuid) == 0;
        jobs.iter().filter(without).count()
    }

    /// Counts the jobs with a missing event: posted, claimed or consumed.
    pub(super) fn missed(&self, uuids: &[String]) -> usize {
        let kinds = [EventKind::Posted, EventKind::Claimed, EventKind::Consumed];
        let misses = |uuid: &&String| {
            kinds
                .iter()
                .any(|kind| self.count_of(uuid, |it| it.kind == *kind) == 0)
        };
        uuids.iter().filter(misses).count()
    }

    /// Measures the time until another owner claimed the jobs of a failed one.
    pub(super) fn pickups(&self, jobs: &[String], owner: &str, since: Instant) -> Pickups {
        let record = self.jobs.lock();
        let mut waits: Vec<_> = jobs
            .iter()
            .filter_map(|uuid| {
                let mut events = record.get(uuid)?.iter();
                let claim = events.find(|it| it.takes_over(owner, since))?;
                Some((claim.at - since).as_secs_f64())
            })
            .collect();
        waits.sort_by(f64::total_cmp);
        Pickups {
            conductor: owner.to_owned(),
            jobs: jobs.len(),
            picked_up: waits.len(),
            p50: waits.get(waits.len() / 2).copied(),
            max: waits.last().copied(),
        }
    }

    pub(super) fn took_over(&self, jobs: &[String], since: Instant) -> BTreeSet<String> {
        let record = self.jobs.lock();
        let events = jobs.iter().filter_map(|uuid| record.get(uuid)).flatten();
        let claims = events.filter(|it| it.kind == EventKind::Claimed && it.at > since);
        claims.filter_map(|it| it.owner.clone()).collect()
    }
}
