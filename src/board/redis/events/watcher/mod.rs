//! The event watcher: receives messages, reads changed records and reports events.

mod reading;
mod starting;
mod surveying;

use std::collections::{HashSet, VecDeque};

use redis::{PushInfo, PushKind};
use tokio::time::{self, Duration, Instant};

use super::{
    Subscription,
    conductors::ConductorPresences,
    message,
    pace::{PollPace, ReadPace},
    picture::{BoardPicture, Traces},
    recheck::{RecheckQueue, Urgency},
    survey::{AnnouncedNumbers, Numbers},
};
use crate::{
    board::{
        Event, EventKind, Result,
        redis::{Redis, keys::KeyPart, link::PushListener},
    },
    job::JobKey,
    optional::or_never,
};

/// Maximum queued events: about as many as the queued pushes can carry.
const PENDING: usize = 100_000;

/// How long a survey waits for the pending job reads.
const COURTESY: Duration = Duration::from_secs(1);

/// `starting` begins it, `reading` reads records, and `surveying` compares whole hashes.
pub(super) struct RedisWatcher<'a> {
    board: &'a Redis,
    listener: Option<PushListener>,
    picture: BoardPicture,
    recheck: RecheckQueue,
    conductors: ConductorPresences,
    /// Since when the hashes may have changed.
    hashes_stale_since: Option<Instant>,
    numbers: Numbers,
    announced_numbers: AnnouncedNumbers,
    /// The last assigned number at the last comparison, and its time, until settled.
    unsettled_number: Option<(i64, Instant)>,
    read_pace: ReadPace,
    survey_pace: ReadPace,
    /// Set for a server that does not report other clients' changes.
    poll_pace: Option<PollPace>,
    has_lost: bool,
    pending: VecDeque<Event>,
}

impl<'a> RedisWatcher<'a> {
    pub(super) fn new(board: &'a Redis, subscription: Subscription) -> Self {
        Self {
            board,
            listener: subscription.listener,
            picture: BoardPicture::default(),
            recheck: RecheckQueue::default(),
            conductors: ConductorPresences::default(),
            hashes_stale_since: None,
            numbers: Numbers::default(),
            announced_numbers: AnnouncedNumbers::default(),
            unsettled_number: None,
            read_pace: ReadPace::new(),
            survey_pace: ReadPace::new(),
            poll_pace: (!subscription.is_tracking).then(PollPace::new),
            has_lost: false,
            pending: VecDeque::new(),
        }
    }

    pub(super) async fn next(&mut self) -> Result<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            self.listen()?;
            if self.has_lost {
                self.start(None).await?;
                self.pending.push_back(Event::resync());
                continue;
            }
            let now = Instant::now();
            for key in self.picture.due(now) {
                self.recheck.add(key, Urgency::Due, Traces::default());
            }
            match self.work_at() {
                Some(at) if at <= now => self.work(now).await?,
                at if self.pending.is_empty() => self.wait(at).await?,
                _ => {}
            }
        }
    }

    fn work_at(&self) -> Option<Instant> {
        let read = self.has_touched().then(|| self.read_pace.next());
        let poll = self.poll_pace.map(PollPace::next);
        [read, self.survey_at(), poll, self.picture.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Reading jobs first gives more events at less cost. On a busy board that never ends, and it never finds a
    /// peer's new job.
    fn survey_at(&self) -> Option<Instant> {
        let settle_since = self.unsettled_number.map(|(_, since)| since);
        let since = [self.hashes_stale_since, settle_since]
            .into_iter()
            .flatten()
            .min();
        let at = since?.max(self.survey_pace.next());
        Some(match self.has_touched() && !self.numbers.are_of_peers {
            true => at + COURTESY,
            false => at,
        })
    }

    fn has_touched(&self) -> bool {
        !self.recheck.is_empty() || !self.conductors.touched.is_empty()
    }

    async fn wait(&mut self, until: Option<Instant>) -> Result<()> {
        let wake = or_never(until.map(time::sleep_until));
        let Some(listener) = &mut self.listener else {
            wake.await;
            return Ok(());
        };
        let push = tokio::select! {
            biased;
            push = listener.pushed.recv() => push,
            () = wake => return Ok(()),
        };
        self.receive(push)
    }

    async fn work(&mut self, now: Instant) -> Result<()> {
        if self.poll_pace.is_some_and(|pace| pace.next() <= now) {
            return self.survey_all().await;
        }
        if self.survey_at().is_some_and(|at| at <= now) {
            if let Some((sequence, _)) = self.unsettled_number.take()
                && self.announced_numbers.settle(sequence, now)
            {
                self.report(vec![Event::resync()]);
            }
            if self.hashes_stale_since.is_some() {
                self.survey().await?;
            }
            return Ok(());
        }
        if self.has_touched() && self.read_pace.next() <= now {
            self.look_at_conductors().await?;
            self.read_changed().await?;
        }
        Ok(())
    }

    fn pushed(&mut self) -> Option<PushInfo> {
        let listener = self.listener.as_mut()?;
        self.has_lost |= listener.pushed.has_lost();
        listener.pushed.try_recv()
    }

    fn listen(&mut self) -> Result<()> {
        while self.pending.is_empty()
            && let Some(push) = self.pushed()
        {
            self.receive(Some(push))?;
        }
        Ok(())
    }

    /// Receives all pushed messages; returns the jobs that they name.
    fn drain(&mut self) -> Result<HashSet<JobKey>> {
        let mut announced = HashSet::new();
        while let Some(push) = self.pushed() {
            let before = self.pending.len();
            self.receive(Some(push))?;
            let events = self.pending.range(before..);
            let subjects = events.filter_map(|event| event.subject.as_ref());
            announced.extend(subjects.map(|subject| subject.key.clone()));
            if self.pending.len() > PENDING {
                self.has_lost = true;
                self.pending.clear();
                break;
            }
        }
        Ok(announced)
    }

    fn receive(&mut self, push: Option<PushInfo>) -> Result<()> {
        let Some(push) = push.filter(|push| push.kind != PushKind::Disconnection) else {
            let broken = |listener: &PushListener| Err(listener.broken());
            return self.listener.as_ref().map_or(Ok(()), broken);
        };
        match push.kind {
            PushKind::Message => {
                for event in message::events(push.data.into_iter().nth(1)) {
                    self.follow(event);
                }
            }
            PushKind::Invalidate => match message::touched(&self.board.keys, push.data) {
                None => self.has_lost = true,
                Some(parts) => parts.into_iter().for_each(|part| self.touch(part)),
            },
            _ => {}
        }
        Ok(())
    }

    fn follow(&mut self, event: Event) {
        if !self.conductors.apply(&event) {
            return;
        }
        if event.kind == EventKind::Posted {
            self.numbers.note();
            let sequence = event.subject.as_ref().and_then(|it| it.sequence);
            self.announced_numbers
                .note_given(sequence.unwrap_or_default());
        }
        if let Some(subject) = &event.subject
            && matches!(event.kind, EventKind::Claimed | EventKind::Extended)
        {
            // Only a read can show when its claim expires.
            let traces = Traces {
                claim: false,
                is_ours: true,
            };
            self.recheck
                .add(subject.key.clone(), Urgency::Noted, traces);
        }
        let announced = self.picture.apply(event);
        self.report(announced);
    }

    fn touch(&mut self, part: KeyPart) {
        let traces = Traces {
            claim: matches!(part, KeyPart::Owner(_)),
            is_ours: matches!(part, KeyPart::Sidecar(_)),
        };
        match part {
            KeyPart::Postings | KeyPart::Trash => {
                self.hashes_stale_since.get_or_insert_with(Instant::now);
            }
            KeyPart::Sequence => self.numbers.touch(),
            KeyPart::Conductor(name) => _ = self.conductors.touched.insert(name),
            KeyPart::Owner(key) | KeyPart::Modified(key) | KeyPart::Sidecar(key) => {
                self.recheck.add(key, Urgency::Touched, traces);
            }
        }
    }

    fn report(&mut self, events: Vec<Event>) {
        for event in events {
            // A job's post is announced before its other events, perhaps without its number.
            if let Some(sequence) = event.subject.as_ref().and_then(|it| it.sequence) {
                self.announced_numbers.note(sequence);
            }
            let is_resync = |last: &Event| last.kind == EventKind::Resync;
            if event.kind != EventKind::Resync || !self.pending.back().is_some_and(is_resync) {
                self.pending.push_back(event);
            }
        }
    }
}
