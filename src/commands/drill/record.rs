//! The events of the drill's jobs, as a subscriber received them, and the report that they result in.

use std::{
    collections::{BTreeSet, HashMap},
    convert::Infallible,
};

use futures_util::TryStreamExt;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use crate::{
    board::{
        Board, BoardError, Event, EventKind,
        follow::{News, Start, follow},
    },
    output::{Page, Report, Tone, count_jobs, listed},
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

#[derive(Default)]
pub(super) struct DrillRecord {
    jobs: Mutex<HashMap<String, Vec<SeenEvent>>>,
    /// The number of events so far; 0 until the subscription stands.
    count: watch::Sender<u64>,
}

impl DrillRecord {
    /// Records events until the subscription fails for good.
    pub(super) async fn listen(&self, board: &dyn Board) -> Result<Infallible, BoardError> {
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

    pub(super) fn missed(&self, uuids: &[String]) -> usize {
        let kinds = [EventKind::Posted, EventKind::Claimed, EventKind::Consumed];
        let misses = |uuid: &&String| {
            kinds
                .iter()
                .any(|kind| self.count_of(uuid, |it| it.kind == *kind) == 0)
        };
        uuids.iter().filter(misses).count()
    }

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

#[derive(Debug, Serialize)]
pub(super) struct DrillReport {
    pub(super) board: String,
    pub(super) jobs: usize,
    /// In seconds, as all durations here.
    pub(super) lease: f64,
    pub(super) crash: Pickups,
    pub(super) stop: Pickups,
    pub(super) stopped_for: f64,
    /// Results of the stopped conductor that the board refused; `None` if the board does not show it.
    pub(super) refused: Option<u64>,
    pub(super) finished: usize,
    pub(super) finished_twice: usize,
    pub(super) finished_by_former_owner: usize,
    pub(super) lost: usize,
    pub(super) events_missed: usize,
    pub(super) took_over: BTreeSet<String>,
}

/// The jobs of a failed conductor, and the time until others claimed them.
#[derive(Debug, Serialize)]
pub(super) struct Pickups {
    pub(super) conductor: String,
    pub(super) jobs: usize,
    pub(super) picked_up: usize,
    pub(super) p50: Option<f64>,
    pub(super) max: Option<f64>,
}

impl DrillReport {
    pub(super) fn works(&self) -> bool {
        let wrong = self.finished_twice + self.finished_by_former_owner + self.lost;
        let is_whole = self.crash.is_whole() && self.stop.is_whole();
        is_whole && wrong == 0 && self.finished == self.jobs
    }

    fn problems(&self) -> impl Iterator<Item = String> {
        let counted = |count: usize, what: &str| {
            (count > 0).then(|| format!("{} {what}", count_jobs(count as u64)))
        };
        let waiting = |it: &Pickups| it.jobs - it.picked_up;
        let left = waiting(&self.crash) + waiting(&self.stop);
        let problems = [
            counted(self.lost, "lost"),
            counted(self.finished_twice, "finished twice"),
            counted(
                self.finished_by_former_owner,
                "finished by a conductor that no longer owned them",
            ),
            counted(left, "not taken over"),
            counted(
                self.jobs - self.finished.min(self.jobs),
                "not finished in time",
            ),
        ];
        problems.into_iter().flatten()
    }
}

impl Pickups {
    fn is_whole(&self) -> bool {
        self.jobs > 0 && self.picked_up == self.jobs
    }

    fn line(&self, deed: &str) -> String {
        let Self {
            conductor, jobs, ..
        } = self;
        let jobs = count_jobs(*jobs as u64);
        match (self.p50, self.max) {
            (Some(p50), Some(max)) => format!(
                "{deed} {conductor} with {jobs}: taken over after {p50:.1}s (median), {max:.1}s at most"
            ),
            _ => format!("{deed} {conductor} with {jobs}: not taken over"),
        }
    }
}

impl Report for DrillReport {
    const IS_TEXT: bool = true;

    fn human(&self, page: &mut Page) {
        page.line().add(Tone::Strong, &self.board);
        page.fact("crash", self.crash.line("killed"));
        page.fact("stop", self.stop.line("stopped"));
        let refused = match self.refused {
            Some(refused) => format!("{refused} of its results came too late and were refused"),
            None => "whether its results were refused is unknown".to_owned(),
        };
        page.fact(
            "",
            format!("continued after {:.1}s; {refused}", self.stopped_for),
        );
        page.fact(
            "jobs",
            format!("{} of {} finished", self.finished, self.jobs),
        );
        let by = listed(self.took_over.iter().map(String::as_str));
        if !by.is_empty() {
            page.fact("taken by", by);
        }
        page.fact(
            "events",
            match self.events_missed {
                0 => "a subscriber saw all of them".to_owned(),
                missed => format!("a subscriber missed some of {}", count_jobs(missed as u64)),
            },
        );
        page.line();
        match self.works() {
            true => {
                let line = page.sentence(0).add(Tone::Good, "failover works");
                line.plain(
                    ": no job was lost or finished twice, and a former owner could not finish any.",
                );
            }
            false => {
                let line = page.sentence(0).add(Tone::Bad, "failover does not work");
                line.plain(format!(": {}.", listed(self.problems())));
            }
        }
    }
}
