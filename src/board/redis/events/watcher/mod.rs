//! Whoever listens to a board: hears, looks where something was touched, and tells what happened.

mod looking;

use std::collections::{HashMap, HashSet, VecDeque};

use redis::{PushInfo, PushKind};
use tokio::time::{self, Instant};

use super::{
    super::{Redis, keys::Part, link::Listener, look::Reader},
    DOING, Ears,
    conductors::Conductors,
    pace::{Pace, Round},
    survey::{Account, Stale},
    told,
    touched::{self, Touched},
};
use crate::{
    board::{
        Detail, Event, EventKind, Order, Query, Result, Which,
        picture::{Known, Looked, Picture, Traces},
    },
    job::{JobKey, Shelf},
};

/// So many events may wait to be told: about as many as the pushes that may wait can tell of.
const PENDING: usize = 100_000;

/// It hears here, and looks in `looking`.
pub(super) struct Watcher<'a> {
    board: &'a Redis,
    listener: Option<Listener>,
    picture: Picture,
    /// The jobs to look at, and what is known of why.
    touched: HashMap<JobKey, Traces>,
    conductors: Conductors,
    stale: Stale,
    account: Account,
    /// The last number that was given out when the hashes were compared, until that is settled.
    to_settle: Option<i64>,
    looks: Pace,
    surveys: Pace,
    /// Set for a server that does not tell what others change.
    rounds: Option<Round>,
    has_lost: bool,
    pending: VecDeque<Event>,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(board: &'a Redis, ears: Ears) -> Self {
        Self {
            board,
            listener: ears.listener,
            picture: Picture::default(),
            touched: HashMap::new(),
            conductors: Conductors::default(),
            stale: Stale::default(),
            account: Account::default(),
            to_settle: None,
            looks: Pace::new(),
            surveys: Pace::new(),
            rounds: (!ears.is_tracking).then(Round::new),
            has_lost: false,
            pending: VecDeque::new(),
        }
    }

    /// Makes a picture of the board as it is; where something was lost meanwhile, it is not whole.
    pub(super) async fn start(&mut self) -> Result<()> {
        self.forget()?;
        let before = self.counts().await?.sequence;
        let mut picture = Picture::default();
        for shelf in [Shelf::Board, Shelf::Trash] {
            self.read(shelf, &mut picture).await?;
        }
        let sequence = self.counts().await?.sequence;
        self.skip()?;
        // Numbers never go back, unless everything was removed; not every server tells of that.
        self.has_lost |= sequence < before;
        self.picture = picture;
        self.account = Account::at(sequence);
        Ok(())
    }

    /// Forgets all that is known, and what was pushed by now.
    fn forget(&mut self) -> Result<()> {
        while let Some(push) = self.pushed() {
            if push.kind == PushKind::Disconnection {
                return self.hear(Some(push));
            }
        }
        self.picture = Picture::default();
        (self.touched, self.conductors) = (HashMap::new(), Conductors::default());
        (self.stale, self.to_settle) = (Stale::ALL, None);
        self.pending.clear();
        self.has_lost = false;
        Ok(())
    }

    /// Adds a shelf to a picture, page by page, for as long as nothing is lost.
    async fn read(&mut self, shelf: Shelf, picture: &mut Picture) -> Result<()> {
        let query = Query {
            shelf,
            which: Which::All,
            order: Order::Any,
            detail: Detail::Brief,
        };
        let mut reader = Reader::new(&self.board.keys, query);
        while !self.has_lost {
            let asked = Instant::now();
            let page = reader.next(&self.board.link, &self.board.keys).await?;
            let answered = Instant::now();
            let Some(page) = page else { break };
            for entry in page {
                let known = Known::of(&entry, Looked { asked, answered });
                picture.put(shelf, entry.key(), known);
            }
            self.skip()?;
        }
        Ok(())
    }

    /// Hears what was pushed by now: it may be older than what was read, and is looked at again.
    fn skip(&mut self) -> Result<()> {
        for key in self.drain()? {
            self.touched.entry(key).or_default();
        }
        self.pending.clear();
        Ok(())
    }

    pub(super) async fn next(&mut self) -> Result<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            self.listen()?;
            if self.has_lost {
                self.start().await?;
                self.pending.push_back(Event::resync());
                continue;
            }
            let now = Instant::now();
            for key in self.picture.due(now) {
                self.touched.entry(key).or_default();
            }
            match self.work_at() {
                Some(at) if at <= now => self.work(now).await?,
                at if self.pending.is_empty() => self.rest(at).await?,
                _ => {}
            }
        }
    }

    /// Returns when there is something to be looked at.
    fn work_at(&self) -> Option<Instant> {
        let look = self.has_touched().then(|| self.looks.next());
        let survey = (self.stale.is_any() || self.to_settle.is_some()) && !self.has_touched();
        let survey = survey.then(|| self.surveys.next());
        let round = self.rounds.map(Round::next);
        [look, survey, round, self.picture.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    fn has_touched(&self) -> bool {
        !self.touched.is_empty() || self.conductors.has_touched()
    }

    /// Waits for a push, or for the time to look.
    async fn rest(&mut self, until: Option<Instant>) -> Result<()> {
        let wake = async {
            match until {
                Some(until) => time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let Some(listener) = &mut self.listener else {
            wake.await;
            return Ok(());
        };
        let push = tokio::select! {
            biased;
            push = listener.recv() => push,
            () = wake => return Ok(()),
        };
        self.hear(push)
    }

    async fn work(&mut self, now: Instant) -> Result<()> {
        if self.rounds.is_some_and(|rounds| rounds.next() <= now) {
            return self.go_round().await;
        }
        if self.has_touched() {
            if self.looks.next() <= now {
                self.look_at_conductors().await?;
                self.look().await?;
            }
            return Ok(());
        }
        if let Some(sequence) = self.to_settle.take()
            && self.account.settle(sequence, now)
        {
            self.tell(vec![Event::resync()]);
        }
        if self.stale.is_any() && self.surveys.next() <= now {
            return self.survey().await;
        }
        Ok(())
    }

    /// Returns the next push, if one has come by now.
    fn pushed(&mut self) -> Option<PushInfo> {
        let listener = self.listener.as_mut()?;
        self.has_lost |= listener.has_lost();
        listener.try_recv()
    }

    /// Hears what was pushed by now, until there is something to be told.
    fn listen(&mut self) -> Result<()> {
        while self.pending.is_empty()
            && let Some(push) = self.pushed()
        {
            self.hear(Some(push))?;
        }
        Ok(())
    }

    /// Hears all that was pushed by now; returns the jobs of which something was told.
    fn drain(&mut self) -> Result<HashSet<JobKey>> {
        let mut told = HashSet::new();
        while let Some(push) = self.pushed() {
            let before = self.pending.len();
            self.hear(Some(push))?;
            let events = self.pending.range(before..);
            let subjects = events.filter_map(|event| event.subject.as_ref());
            told.extend(subjects.map(|subject| subject.key.clone()));
            if self.pending.len() > PENDING {
                self.has_lost = true;
                self.pending.clear();
                break;
            }
        }
        Ok(told)
    }

    fn hear(&mut self, push: Option<PushInfo>) -> Result<()> {
        let broken = |listener: &Option<Listener>| match listener {
            Some(listener) => Err(listener.broken(DOING)),
            None => Ok(()),
        };
        let Some(push) = push else {
            return broken(&self.listener);
        };
        match push.kind {
            PushKind::Disconnection => return broken(&self.listener),
            PushKind::Message => {
                for event in told::events(push.data.into_iter().nth(1)) {
                    self.follow(event);
                }
            }
            PushKind::Invalidate => match touched::read(&self.board.keys, push.data) {
                Touched::Everything => self.has_lost = true,
                Touched::Parts(parts) => parts.into_iter().for_each(|part| self.touch(part)),
            },
            _ => {}
        }
        Ok(())
    }

    /// Follows what one of us has told.
    fn follow(&mut self, event: Event) {
        if !self.conductors.hear(&event) {
            return;
        }
        if let Some(subject) = &event.subject {
            // When its claim lapses, only a look can tell.
            let traces = self.touched.entry(subject.key.clone()).or_default();
            traces.is_ours = true;
        }
        let told = self.picture.hear(event);
        self.tell(told);
    }

    fn touch(&mut self, part: Part) {
        if let Some(key) = part.job() {
            let traces = self.touched.entry(key.clone()).or_default();
            traces.claim |= matches!(part, Part::Owner(_));
            traces.is_ours |= matches!(part, Part::Side(_));
            return;
        }
        match part {
            Part::Postings => self.stale.postings = true,
            Part::Trash => self.stale.trash = true,
            Part::Conductor(name) => self.conductors.touch(name),
            Part::Owner(_) | Part::Modified(_) | Part::Side(_) => {}
        }
    }

    fn tell(&mut self, events: Vec<Event>) {
        for event in events {
            if event.kind == EventKind::Posted
                && let Some(sequence) = event.subject.as_ref().and_then(|it| it.sequence)
            {
                self.account.tell(sequence);
            }
            let is_said = |last: &Event| last.kind == EventKind::Resync;
            if event.kind != EventKind::Resync || !self.pending.back().is_some_and(is_said) {
                self.pending.push_back(event);
            }
        }
    }
}
