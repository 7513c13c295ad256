//! Waiting for a condition on a board, woken by its events.

mod ending;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream::BoxStream};
use tokio::time::{self, Instant};

pub(crate) use self::ending::{Awaited, Ending};
use self::ending::{AwaitedEvents, absent, look_for_endings};
use super::{
    Board, BoardError, BoardExt, Detail, Event, EventKind, JobRef, Query, Result,
    ext::Candidates,
    filter::Filters,
    follow::{News, RECONNECT_PAUSES, Start, follow},
};
use crate::{
    backoff::Backoff,
    job::{Job, JobKey, Location},
};

/// How often to read the clock while a job is delayed: it may be adjusted.
const LOOK_AT_CLOCK: Duration = Duration::from_secs(60);

/// How often to look for jobs that match by the passing of time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Maximum delay of the event after a job ends.
const LATEST_WORD: Duration = Duration::from_secs(30);

const MAX_PENDING_EVENTS: usize = 1000;

pub(crate) struct Waiter<'a> {
    board: &'a dyn Board,
    news: BoxStream<'a, Result<News>>,
    /// Called when the board becomes unreachable and reachable again.
    on_news: Box<dyn Fn(&News) + 'a>,
    began: News,
    is_lost: bool,
    pending: VecDeque<Event>,
}

impl<'a> Waiter<'a> {
    /// Subscribes; an unreachable board is an error here, and an outage later.
    pub(crate) async fn begin(board: &'a dyn Board) -> Result<Self> {
        let mut waiter = Self {
            board,
            news: follow(board, Start::Now),
            on_news: Box::new(|_| {}),
            began: News::Listening(None),
            is_lost: false,
            pending: VecDeque::new(),
        };
        waiter.began = waiter.news().await?;
        Ok(waiter)
    }

    pub(crate) fn on_news(mut self, on_news: impl Fn(&News) + 'a) -> Self {
        on_news(&self.began);
        self.on_news = Box::new(on_news);
        self
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Waits until these jobs are complete, or one of them is in the trash.
    ///
    /// Returns the known outcomes. They come from the history or from events since the subscription began, which must
    /// precede the last read of the job.
    pub(crate) async fn until_finished(
        &mut self,
        awaited: &[Awaited],
    ) -> Result<Vec<Option<Ending>>> {
        let mut endings = vec![None; awaited.len()];
        let (mut heard, mut latest) = (AwaitedEvents::of_all(awaited), None);
        loop {
            let was_torn = std::mem::take(&mut heard.is_torn);
            let named = std::mem::take(&mut heard.named);
            let may_have_ended = |at: &usize| {
                endings[*at].is_none() && (was_torn || named.contains(&awaited[*at].key))
            };
            let open: Vec<_> = (0..awaited.len()).filter(may_have_ended).collect();
            let found = self
                .patiently(async |board| look_for_endings(board, awaited, open.clone()).await)
                .await?;
            // Jobs missing by now may have passed through the trash.
            let mut has_more = heard.receive(self.arrived()?, awaited);
            let is_torn = was_torn || heard.is_torn;
            let mut silent = Vec::new();
            for (at, location) in found {
                let heard = heard.ends.get(&awaited[at].key).copied();
                let trashed = (location == Location::Trash).then_some(Ending::Trashed);
                endings[at] = trashed.or(heard);
                silent.extend(endings[at].is_none().then_some(at));
            }
            let unknown = self
                .patiently(async |board| {
                    absent(board, Location::History, awaited, silent.clone()).await
                })
                .await
                // Without read permission there is no outcome.
                .unwrap_or_else(|_| silent.clone());
            for at in silent {
                let is_known = !unknown.contains(&at);
                let vanished = is_torn.then_some(Ending::Vanished);
                endings[at] = is_known.then_some(Ending::Gone).or(vanished);
            }
            let is_over = endings.iter().all(Option::is_some);
            if is_over || endings.contains(&Some(Ending::Trashed)) {
                return Ok(endings);
            }
            if latest.is_none() && !unknown.is_empty() {
                latest = Some(Instant::now() + LATEST_WORD);
            }
            while !has_more {
                let left = latest.map(|at: Instant| at.saturating_duration_since(Instant::now()));
                match time::timeout(left.unwrap_or(Duration::MAX), self.events()).await {
                    Ok(events) => has_more = heard.receive(events?, awaited),
                    Err(_) => (latest, heard.is_torn, has_more) = (None, true, true),
                }
            }
        }
    }

    /// Waits until `look` returns a value; an event on one of these jobs makes it look again.
    pub(crate) async fn until_known<T>(
        &mut self,
        uuids: &HashSet<String>,
        look: impl AsyncFn(&dyn Board) -> Result<Option<T>>,
    ) -> Result<T> {
        loop {
            if let Some(known) = self.patiently(&look).await? {
                return Ok(known);
            }
            // Events without a uuid may be about any job.
            let concerns = |event: &Event| match &event.subject {
                Some(subject) => subject.uuid.is_empty() || uuids.contains(&subject.uuid),
                None => event.kind == EventKind::Resync,
            };
            while !self.events().await?.iter().any(concerns) {}
        }
    }

    pub(crate) async fn until_empty(&mut self) -> Result<()> {
        while !self.patiently(is_empty).await? {
            let can_empty = |event: &Event| {
                use EventKind::{Consumed, Resync, Trashed};
                matches!(event.kind, Consumed | Trashed | Resync)
            };
            while !self.events().await?.iter().any(can_empty) {}
        }
        Ok(())
    }

    /// Waits until a job can be claimed, and returns the best one.
    ///
    /// An excluded job counts again once an event releases it.
    pub(crate) async fn until_claimable(
        &mut self,
        filters: &Filters,
        except: &HashSet<JobKey>,
    ) -> Result<Job> {
        loop {
            let start = Instant::now();
            let mut candidates = self
                .patiently(async |board| board.candidates(filters, 1, except).await)
                .await?;
            if let Some(job) = candidates.jobs.pop() {
                return Ok(job);
            }
            // No event reports that a job is old enough, and a large board is not read constantly.
            let again = filters
                .change_with_time()
                .then(|| Instant::now() + LOOK_AGAIN.max(start.elapsed()));
            let mut next = candidates.next_not_before;
            // No job was claimable, so only released jobs can be.
            loop {
                let left = again.map(|again| again.saturating_duration_since(Instant::now()));
                let patience = until(next).min(left.unwrap_or(Duration::MAX));
                let events = match time::timeout(patience, self.events()).await {
                    Ok(events) => events?,
                    Err(_) => break,
                };
                use EventKind::{Paused, Resumed, Resync};
                let is_of_all = |it: &Event| matches!(it.kind, Resync | Paused | Resumed);
                if events.iter().any(is_of_all) {
                    break;
                }
                let freed = self.freed(events, filters).await?;
                if let Some(best) = freed.jobs.into_iter().min_by_key(Job::rank) {
                    return Ok(best);
                }
                next = next.into_iter().chain(freed.next_not_before).min();
            }
        }
    }

    async fn freed(&mut self, events: Vec<Event>, filters: &Filters) -> Result<Candidates> {
        use EventKind::{Abandoned, Expired, Posted, Restored};
        let frees = |it: &Event| matches!(it.kind, Posted | Abandoned | Expired | Restored);
        let freed = events.into_iter().filter(frees);
        let freed: HashSet<_> = freed.filter_map(|it| Some(it.subject?.key)).collect();
        let freed: Vec<_> = freed.into_iter().map(JobRef::Key).collect();
        let mut candidates = Candidates::default();
        if freed.is_empty() {
            return Ok(candidates);
        }
        let found = self
            .patiently(async |board| board.find(Location::Board, &freed).await)
            .await?;
        let now = Utc::now();
        let pauses = self
            .patiently(async |board| board.lasting_pauses(now).await)
            .await?;
        for entry in found.into_iter().flatten() {
            if entry.holding().is_none() && filters.matches(&entry, now) {
                candidates.consider(entry, &pauses, now);
            }
        }
        Ok(candidates)
    }

    async fn patiently<T>(&mut self, look: impl AsyncFn(&dyn Board) -> Result<T>) -> Result<T> {
        let mut backoff = Backoff::after_one(RECONNECT_PAUSES);
        loop {
            match look(self.board).await {
                Err(error) if error.is_retryable() => self.pause(error, backoff.pause()).await?,
                answer => return answer,
            }
        }
    }

    pub(crate) async fn recover(&mut self, error: BoardError) -> Result<()> {
        if !error.is_retryable() {
            return Err(error);
        }
        let pause = Backoff::after_one(RECONNECT_PAUSES).pause();
        self.pause(error, pause).await
    }

    async fn pause(&mut self, error: BoardError, pause: Duration) -> Result<()> {
        self.note(&News::Lost(error));
        let end = Instant::now() + pause;
        // The board keeps later events as long as it can.
        while self.pending.len() < MAX_PENDING_EVENTS {
            match time::timeout_at(end, self.news()).await {
                Err(_) => return Ok(()),
                Ok(news) => match news? {
                    News::Event(event) => self.pending.push_back(event),
                    News::Lost(_) => {}
                    News::Back(_) | News::Listening(_) => return Ok(()),
                },
            }
        }
        time::sleep_until(end).await;
        Ok(())
    }

    async fn events(&mut self) -> Result<Vec<Event>> {
        loop {
            let events = self.arrived()?;
            if !events.is_empty() {
                return Ok(events);
            }
            let event = event_of(self.news().await?);
            self.pending.extend(event);
        }
    }

    fn arrived(&mut self) -> Result<Vec<Event>> {
        while self.pending.len() < MAX_PENDING_EVENTS
            && let Some(news) = self.news().now_or_never()
        {
            self.pending.extend(event_of(news?));
        }
        Ok(self.pending.drain(..).collect())
    }

    async fn news(&mut self) -> Result<News> {
        let ended = || BoardError::unreachable(self.board.url(), "the event stream ended");
        let news = self.news.next().await.unwrap_or_else(|| Err(ended()))?;
        self.note(&news);
        Ok(news)
    }

    fn note(&mut self, news: &News) {
        match news {
            News::Event(_) => {}
            News::Lost(_) if self.is_lost => {}
            News::Lost(_) | News::Back(_) => {
                self.is_lost = matches!(news, News::Lost(_));
                (self.on_news)(news);
            }
            News::Listening(_) => (self.on_news)(news),
        }
    }
}

fn event_of(news: News) -> Option<Event> {
    match news {
        News::Event(event) => Some(event),
        News::Listening(_) | News::Lost(_) | News::Back(_) => None,
    }
}

fn until(time: Option<DateTime<Utc>>) -> Duration {
    time.map_or(Duration::MAX, |time| {
        let ahead = (time - Utc::now()).to_std().unwrap_or_default();
        ahead.min(LOOK_AT_CLOCK)
    })
}

async fn is_empty(board: &dyn Board) -> Result<bool> {
    let mut entries = board.entries(Query::all(Location::Board, Detail::Brief));
    Ok(entries.try_next().await?.is_none())
}
