//! Whoever listens to a board: hears, looks where something was touched, and tells what happened.

use std::collections::{HashMap, HashSet, VecDeque};

use futures_util::TryStreamExt;
use redis::{Pipeline, PushInfo, PushKind, Value, from_redis_value};
use tokio::time::{self, Instant};

use super::{
    super::{
        Redis,
        keys::{Part, key_of},
        link::Listener,
        scan::Scan,
    },
    DOING, Ears,
    conductors::Conductors,
    gaze,
    pace::{Pace, Round},
    survey::{Account, Counts, Stale, differing},
    told,
    touched::{self, Touched},
};
use crate::{
    board::{
        Board, BoardError, Detail, Event, EventKind, Order, Query, Result, Which,
        picture::{Known, Looked, Picture, Place, Traces},
    },
    job::{JobKey, Shelf},
};

/// How many jobs are looked at at once: few enough to keep no server busy.
const AT_ONCE: usize = 200;

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

    /// Makes a picture of the board as it is.
    pub(super) async fn start(&mut self) -> Result<()> {
        let mut picture = Picture::default();
        for shelf in [Shelf::Board, Shelf::Trash] {
            let asked = Instant::now();
            let mut entries = self.board.entries(Query {
                shelf,
                which: Which::All,
                order: Order::Any,
                detail: Detail::Brief,
            });
            while let Some(entry) = entries.try_next().await? {
                let answered = Instant::now();
                let known = Known::of(&entry, Looked { asked, answered });
                picture.put(shelf, entry.key(), known);
            }
        }
        self.picture = picture;
        (self.to_settle, self.touched) = (None, HashMap::new());
        // What was touched meanwhile is looked at again; what was told meanwhile is in the past.
        self.drain()?;
        (self.has_lost, self.stale) = (false, Stale::ALL);
        self.pending.clear();
        self.account = Account::at(self.counts().await?.sequence);
        Ok(())
    }

    pub(super) async fn next(&mut self) -> Result<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            self.drain()?;
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
            push = listener.pushes.recv() => push,
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
            && self.account.settle(sequence)
        {
            self.pending.push_back(Event::resync());
        }
        if self.stale.is_any() && self.surveys.next() <= now {
            return self.survey().await;
        }
        Ok(())
    }

    /// Hears all that was pushed by now; returns the jobs of which something was told.
    fn drain(&mut self) -> Result<HashSet<JobKey>> {
        let before = self.pending.len();
        while let Some(listener) = &mut self.listener {
            self.has_lost |= listener.has_lost();
            match listener.pushes.try_recv() {
                Ok(push) => self.hear(Some(push))?,
                Err(_) => break,
            }
        }
        let told = self.pending.range(before..);
        let subjects = told.filter_map(|event| event.subject.as_ref());
        Ok(subjects.map(|subject| subject.key.clone()).collect())
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
            self.pending.push_back(event);
        }
    }

    /// Looks at some of the jobs that were touched.
    async fn look(&mut self) -> Result<()> {
        let some: Vec<_> = self.touched.keys().take(AT_ONCE).cloned().collect();
        if some.is_empty() {
            return Ok(());
        }
        let traces: Vec<_> = some.iter().map(|key| self.touched.remove(key)).collect();
        let asked = Instant::now();
        let commands = gaze::commands(&self.board.keys, &some);
        let answers = self.ask(&commands).await?;
        let looked = Looked {
            asked,
            answered: Instant::now(),
        };
        let places = gaze::places(&some, answers, looked).ok_or_else(|| self.strange())?;
        // What was told of a job before the answer may be older or newer than the answer is.
        let told = self.drain()?;
        self.looks.spent(asked);
        // Of a board that was flushed nothing that is gone was consumed.
        if self.has_lost {
            return Ok(());
        }
        let mut seen = Vec::new();
        for ((key, place), traces) in some.into_iter().zip(places).zip(traces) {
            let traces = traces.unwrap_or_default();
            if told.contains(&key) {
                let again = self.touched.entry(key).or_default();
                again.claim |= traces.claim;
                again.is_ours |= traces.is_ours;
                continue;
            }
            seen.extend(self.see(&key, place, traces, looked));
        }
        // Jobs that were posted between two looks are at least told in the order of their numbers.
        seen.sort_by_key(|(sequence, _)| *sequence);
        for (_, events) in seen {
            self.tell(events);
        }
        Ok(())
    }

    /// Compares a job with what is known of it, and returns what happened, and its number.
    fn see(
        &mut self,
        key: &JobKey,
        place: Place<Known>,
        mut traces: Traces,
        looked: Looked,
    ) -> Option<(Option<i64>, Vec<Event>)> {
        let is_known = [Shelf::Board, Shelf::Trash]
            .into_iter()
            .any(|shelf| self.picture.has(shelf, key));
        if !is_known && place.board.is_none() && place.trash.is_none() {
            self.account.has_ghosts |= traces.claim;
            self.stale.postings |= traces.claim;
            return None;
        }
        if self.rounds.is_some() {
            // Nobody says who it was; but our own claims are prolonged by ourselves.
            traces.is_ours = place.board.as_ref().is_some_and(Known::has_fence);
        }
        let sequence = place.board.as_ref().and_then(|known| known.sequence);
        let events = self.picture.see(key, place, traces, looked);
        Some((sequence, events))
    }

    async fn look_at_conductors(&mut self) -> Result<()> {
        let names = self.conductors.take_touched();
        if names.is_empty() {
            return Ok(());
        }
        let mut commands = Pipeline::with_capacity(names.len());
        for name in &names {
            commands.cmd("EXISTS").arg(self.board.keys.conductor(name));
        }
        let answers = self.ask(&commands).await?;
        self.drain()?;
        for (name, answer) in names.into_iter().zip(answers) {
            let is_there: bool = from_redis_value(answer).unwrap_or(true);
            self.pending.extend(self.conductors.see(name, is_there));
        }
        Ok(())
    }

    /// Finds the jobs that came or went unless their claims were touched as well.
    async fn survey(&mut self) -> Result<()> {
        let began = Instant::now();
        // What changes from here on is told again.
        self.stale = Stale::default();
        let counts = self.counts().await?;
        self.drain()?;
        // Numbers never go back, unless everything was removed or the server lost what it had.
        self.has_lost |= self.account.is_beyond(counts.sequence);
        if self.has_lost {
            return Ok(());
        }
        let is_missing = self.account.lacks_some(counts.sequence);
        if counts.jobs != self.picture.len(Shelf::Board) || is_missing {
            self.compare(Shelf::Board).await?;
        }
        if counts.trashed != self.picture.len(Shelf::Trash) {
            self.compare(Shelf::Trash).await?;
        }
        self.to_settle = Some(counts.sequence);
        self.surveys.spent(began);
        Ok(())
    }

    /// Compares which jobs are on a shelf with which are known to be; those that differ are touched.
    async fn compare(&mut self, shelf: Shelf) -> Result<()> {
        let mut scan = Scan::of(&self.board.keys, shelf);
        let mut found = HashSet::new();
        while let Some(page) = scan.next(&self.board.link).await? {
            found.extend(page.iter().map(|(field, _)| key_of(field)));
            self.drain()?;
        }
        for key in differing(self.picture.keys(shelf), found) {
            self.touched.entry(key).or_default();
        }
        Ok(())
    }

    /// Looks at everything, since nobody says where to look.
    async fn go_round(&mut self) -> Result<()> {
        let began = Instant::now();
        let before = self.pending.len();
        self.stale = Stale::ALL;
        self.survey().await?;
        for key in self.picture.keys(Shelf::Board) {
            self.touched.entry(key.clone()).or_default();
        }
        while !self.touched.is_empty() && !self.has_lost {
            self.look().await?;
        }
        let found_something = self.pending.len() > before;
        if let Some(rounds) = &mut self.rounds {
            rounds.done(began, found_something);
        }
        Ok(())
    }

    async fn counts(&self) -> Result<Counts> {
        let answers = self.ask(&Counts::commands(&self.board.keys)).await?;
        Counts::read(answers).ok_or_else(|| self.strange())
    }

    /// Asks where it is known what came before the answer, if anything is pushed at all.
    async fn ask(&self, commands: &Pipeline) -> Result<Vec<Value>> {
        match &self.listener {
            Some(listener) => listener.ask_at_once(DOING, commands).await,
            None => self.board.link.ask_at_once(DOING, commands).await,
        }
    }

    fn strange(&self) -> BoardError {
        BoardError::Failed {
            doing: DOING,
            board: self.board.name().to_owned(),
            source: "the server answered something else".into(),
        }
    }
}
