//! Lists the jobs on the board that this conductor may run.

use std::{mem, sync::Arc};

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use tokio::time::{Duration, Instant};

use super::{Picker, listing::SortedListing};
use crate::{
    backoff::doubled,
    board::{
        BoardExt, Detail, InitialListing, JobRef, Query, Result, backlog::Candidate, show_entries,
    },
    conductor::{
        admission::{admit, admit_now, is_meant},
        log::Note,
        skipped::{SkipReasons, SkippedJob},
    },
    job::{Aftermath, ClaimEnd, Entry, JobKey, Location},
    process::clock,
};

/// A full backlog is refreshed after this long, so that a more urgent job does not wait behind all of it.
const STALE: Duration = Duration::from_secs(10);

/// How often pauses are read on a board that may not report their changes.
const UNPUSHED_PAUSE: Duration = Duration::from_secs(1);

/// The pause between counts of the remaining jobs, and its maximum while no job is won.
const COUNT_PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(5));

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RemainingWork {
    Nothing,
    /// Jobs that are backing off, or that other owners hold for a time.
    Held,
    Candidates,
}

/// Jobs that delay the end of a drain.
#[derive(Debug, Default)]
struct Waits {
    held: u64,
    /// The name of a held job.
    example: Option<String>,
    held_for_ever: u64,
    delayed: u64,
    /// When the first delayed job may start.
    first_turn: Option<DateTime<Utc>>,
}

impl Picker<'_> {
    /// Subscribes to the board, and lists it if too little is known.
    pub(super) async fn refresh_if_needed(&mut self) -> Result<()> {
        if self.backlog.is_full() {
            self.events = None;
        }
        let changes = self.backlog.is_full() || self.shared.settings.filters.change_with_time();
        let stale = |looked: Instant| changes && looked.elapsed() > STALE;
        // Without a subscription, new jobs went unnoticed.
        let was_unsubscribed = self.events.is_none() && !self.backlog.is_full();
        let pause_end = self.pauses.first_end();
        let has_pause_ended = pause_end.is_some_and(|end| end <= clock::wall());
        if has_pause_ended
            || was_unsubscribed
            || self.backlog.is_low()
            || self.listed.is_some_and(stale)
        {
            self.listed = None;
        }
        let may_miss_a_pause = self.events.is_none() || self.misses_events;
        if self.listed.is_some() && may_miss_a_pause && self.pauses_read.elapsed() > UNPUSHED_PAUSE
        {
            self.read_pauses().await?;
        }
        if self.listed.is_some() {
            return Ok(());
        }
        while self.listed.is_none() {
            self.refresh().await?;
        }
        if self.backlog.is_full() {
            self.events = None;
        }
        Ok(())
    }

    async fn read_pauses(&mut self) -> Result<()> {
        let pauses = self.shared.board.lasting_pauses(clock::wall()).await?;
        if !pauses.are(&self.pauses) {
            self.listed = None;
        }
        if let Some(problem) = pauses.unreadable()
            && self.pauses.unreadable().is_none()
        {
            let note = Note::new("pauses_unseen").with("reason", problem);
            self.shared.status.log(note);
        }
        self.pauses = pauses;
        self.pauses_read = Instant::now();
        Ok(())
    }

    async fn refresh(&mut self) -> Result<()> {
        self.read_pauses().await?;
        self.backlog.clear();
        let policy = self.shared.policy();
        let mut listing = SortedListing::new(
            &mut self.backlog,
            &self.shared.settings.filters,
            &self.pauses,
            Arc::clone(&policy),
            mem::take(&mut self.unreadable),
        );
        let is_subscribing = self.events.is_none();
        if is_subscribing {
            // A filter may use the sidecar of any job.
            let is_asked_of_all = !self.shared.settings.filters.are_answered_by_events();
            let initial = InitialListing {
                needs_sidecar: &|job| is_asked_of_all || admit(&policy, job).is_ok(),
                receive: &mut |entry| listing.see(entry),
            };
            let events = self.shared.board.events_and_jobs(initial).await?;
            self.misses_events = events.lack.is_some();
            self.events = Some(events.stream);
        } else {
            let query = Query::unclaimed(Detail::Whole);
            show_entries(self.shared.board.entries(query), &mut |entry| {
                listing.see(entry)
            })
            .await?;
        }
        let (reasons, is_whole) = (listing.reasons, listing.is_whole);
        self.unreadable = listing.unreadable;
        match is_whole {
            true => self.shared.status.skipped.found_all(reasons),
            false => self.shared.status.skipped.found_some(reasons),
        }
        self.listed = Some(Instant::now());
        self.has_looked = true;
        // Events may have been missed.
        self.check_unanswered(&self.unanswered);
        match is_subscribing {
            // No event reported earlier pauses, and a change requires another listing.
            true => self.read_pauses().await,
            false => Ok(()),
        }
    }

    pub(super) async fn verify(&mut self, candidates: Vec<Candidate>) -> Result<Vec<JobKey>> {
        let new = || candidates.iter().filter(|candidate| !candidate.is_verified);
        let wanted: Vec<_> = new().map(|it| JobRef::Key(it.key.clone())).collect();
        if !wanted.is_empty() {
            let found = self.shared.board.find(Location::Board, &wanted).await?;
            for (candidate, mut found) in new().zip(found) {
                self.verify_one(&candidate.key, found.pop());
            }
        }
        let is_left =
            |key: &JobKey| self.backlog.knows(key) && !self.shared.in_flight.may_have(key);
        let keys = candidates.into_iter().map(|candidate| candidate.key);
        let (fit, unfit): (Vec<_>, Vec<_>) = keys.partition(is_left);
        for key in unfit {
            self.backlog.remove(&key);
        }
        Ok(fit)
    }

    fn verify_one(&mut self, key: &JobKey, found: Option<Entry>) {
        let now = clock::wall();
        let job = match found {
            Some(Entry::Job(job)) if job.holding.is_none() => {
                is_meant(&self.shared.settings.filters, *job, now)
            }
            Some(entry) if self.is_left_over(&entry) => {
                self.shared.in_flight.mark_unreleased(key, Aftermath::None);
                None
            }
            _ => None,
        };
        let Some(job) = job else {
            return self.backlog.remove(key);
        };
        match admit_now(&self.shared.policy(), &self.pauses, &job) {
            Ok(()) => match job.attempts.not_before.filter(|time| *time > now) {
                None => self.backlog.mark_verified(key),
                Some(time) => self.backlog.delay(key, time, now),
            },
            Err(against) => {
                (self.shared.status.skipped).update(key, &SkippedJob::of(&job), &against);
                self.backlog.remove(key);
            }
        }
    }

    pub(super) async fn remaining_work(&mut self) -> Result<RemainingWork> {
        let query = Query::all(Location::Board, Detail::Whole);
        let mut entries = self.shared.board.entries(query);
        let in_flight = &self.shared.in_flight;
        let start = Instant::now();
        let policy = self.shared.policy();
        let mut left = RemainingWork::Nothing;
        let mut waits = Waits::default();
        let mut reasons = SkipReasons::default();
        let now = clock::wall();
        while let Some(entry) = entries.try_next().await? {
            if self.is_left_over(&entry) {
                in_flight.mark_unreleased(entry.key(), Aftermath::None);
                left = left.max(RemainingWork::Held);
                continue;
            }
            // The unsettled job is reported already, and may stay so forever.
            if in_flight.is_set_aside(entry.key()) {
                continue;
            }
            let Entry::Job(mut job) = entry else { continue };
            // The owner decides how long we wait, not whether a job matches.
            let holding = job.holding.take();
            let Some(job) = is_meant(&self.shared.settings.filters, *job, now) else {
                continue;
            };
            let admitted = admit_now(&policy, &self.pauses, &job);
            if let Some(against) = (self.unreadable.get(&job.key)).or(admitted.as_ref().err()) {
                // A claimed job does not count.
                if holding.is_none() {
                    reasons.add(&SkippedJob::of(&job), against);
                }
                continue;
            }
            match holding.map(|holding| holding.end) {
                None if self.backlog.knows(&job.key) => {
                    left = left.max(RemainingWork::Held);
                    if let Some(time) = job.attempts.not_before.filter(|time| *time > now) {
                        waits.delayed += 1;
                        waits.first_turn = waits.first_turn.into_iter().chain([time]).min();
                    }
                }
                None => left = RemainingWork::Candidates,
                Some(ClaimEnd::Never) => waits.held_for_ever += 1,
                Some(ClaimEnd::Timed | ClaimEnd::Session) => {
                    waits.held += 1;
                    waits.example.get_or_insert(job.name);
                    left = left.max(RemainingWork::Held);
                }
            }
        }
        drop(entries);
        self.shared.status.skipped.found_all(reasons);
        // Another listing hardly wins candidates that were there before and were not won.
        self.fruitless = match left {
            RemainingWork::Candidates => self.fruitless.saturating_add(1),
            RemainingWork::Nothing | RemainingWork::Held => 0,
        };
        let pause = doubled(COUNT_PAUSE, self.fruitless);
        self.next_count = Instant::now() + (start.elapsed() * 20).max(pause);
        self.has_news = false;
        self.report(waits, left);
        Ok(left)
    }

    /// Logs each reason for a drain to wait, or not to wait, once.
    fn report(&mut self, waits: Waits, left: RemainingWork) {
        let is_held = left == RemainingWork::Held;
        let mut log = |applies: bool, note: Note| {
            if applies && self.reported.insert(note.event) {
                self.shared.status.log(note);
            }
        };
        let waiting = Note::new("waiting").with("jobs", waits.held);
        log(
            is_held && waits.held > 0,
            waiting.with_any("example", waits.example),
        );
        let delayed = Note::new("delayed").with("jobs", waits.delayed);
        log(
            is_held && waits.delayed > 0,
            delayed.with_time("not_before", waits.first_turn),
        );
        let forever = Note::new("held_without_expiry").with("jobs", waits.held_for_ever);
        log(waits.held_for_ever > 0, forever);
    }
}
