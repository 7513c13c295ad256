//! Looking: at the jobs that were touched, and for those that came or went.

use std::collections::HashSet;

use redis::{FromRedisValue, Pipeline, Value, from_redis_value};
use tokio::time::Instant;

use super::Watcher;
use crate::{
    board::{
        Board, BoardError, Event, Result,
        known::{Known, Looked},
        redis::{
            events::{
                DOING,
                conductors::Presence,
                observation,
                picture::{Place, Traces},
                recheck::Cause,
                survey::{Counts, missing},
            },
            keys::{field_of, key_of},
            read::scan::{Scan, hash},
        },
    },
    job::{JobKey, Shelf},
};

/// How many jobs are looked at at once: few enough to keep no server busy.
const AT_ONCE: usize = 200;

/// The names of so many jobs are asked for at once, which takes no longer than a page of postings;
/// one that is new is then found sooner, and the next look may follow sooner.
const FEW: usize = 2000;

impl Watcher<'_> {
    /// Looks at some of the jobs that were touched.
    pub(super) async fn look(&mut self) -> Result<()> {
        let (some, traces): (Vec<_>, Vec<_>) = self.recheck.take(AT_ONCE).into_iter().unzip();
        if some.is_empty() {
            return Ok(());
        }
        let asked = Instant::now();
        let commands = observation::commands(&self.board.keys, &some);
        let answers = self.ask(&commands).await?;
        let looked = Looked {
            asked,
            answered: Instant::now(),
        };
        let places = observation::places(&some, answers, looked).ok_or_else(|| self.strange())?;
        // What was told of a job before the answer may be older or newer than the answer is.
        let told = self.drain()?;
        self.looks.spent(asked);
        // Of a board that was flushed nothing that is gone was consumed.
        if self.has_lost {
            return Ok(());
        }
        let mut seen = Vec::new();
        for ((key, place), mut traces) in some.into_iter().zip(places).zip(traces) {
            if told.contains(&key) {
                self.recheck.add(key, Cause::Touched, traces);
                continue;
            }
            // Also by what came with the answer.
            traces.add(self.recheck.traces(&key));
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
            if traces.claim {
                self.account.suspect();
                self.be_stale();
            }
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

    pub(super) async fn look_at_conductors(&mut self) -> Result<()> {
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
            let presence = match answer {
                Value::Int(0) => Presence::Gone,
                _ => Presence::There,
            };
            self.pending.extend(self.conductors.see(name, presence));
        }
        Ok(())
    }

    /// Finds the jobs that came or went unless their claims were touched as well.
    pub(super) async fn survey(&mut self) -> Result<()> {
        let began = Instant::now();
        // What changes from here on is told again.
        self.stale_since = None;
        self.account.ask();
        let counts = self.counts().await?;
        self.drain()?;
        // Numbers never go back, unless everything was removed or the server lost what it had.
        self.has_lost |= self.account.is_beyond(counts.sequence);
        if self.has_lost {
            return Ok(());
        }
        let is_missing = self.account.lacks_some(counts.sequence);
        let differ = [
            (
                Shelf::Board,
                counts.jobs,
                is_missing || counts.jobs != self.picture.len(Shelf::Board),
            ),
            (
                Shelf::Trash,
                counts.trashed,
                counts.trashed != self.picture.len(Shelf::Trash),
            ),
        ];
        for (shelf, count, _) in differ.into_iter().filter(|(_, _, differs)| *differs) {
            self.compare(shelf, count).await?;
        }
        self.to_settle = Some((counts.sequence, Instant::now()));
        match differ.iter().any(|(_, _, differs)| *differs) {
            true => self.surveys.spent(began),
            false => self.surveys.spared(began),
        }
        Ok(())
    }

    /// Compares which jobs are on a shelf with which are known to be; those that differ are touched.
    async fn compare(&mut self, shelf: Shelf, count: usize) -> Result<()> {
        let found = match count <= FEW {
            true => self.find_by_names(shelf).await?,
            false => self.find_by_pages(shelf).await?,
        };
        if self.has_lost {
            return Ok(());
        }
        for key in missing(self.picture.keys(shelf), &found) {
            self.recheck.add(key, Cause::Noted, Traces::default());
        }
        Ok(())
    }

    /// Finds what is new on a shelf by the names alone, and returns the jobs that are there.
    async fn find_by_names(&mut self, shelf: Shelf) -> Result<HashSet<JobKey>> {
        let hash = hash(&self.board.keys, shelf);
        let mut commands = Pipeline::with_capacity(1);
        commands.cmd("HKEYS").arg(&hash);
        let fields: Vec<Vec<u8>> = match self.ask_one(&commands).await {
            // Who may walk over the board sees the same.
            Err(BoardError::Denied { .. }) => return self.find_by_pages(shelf).await,
            fields => fields?,
        };
        let mut found = self.drain()?;
        let keys: Vec<_> = fields.iter().map(|field| key_of(field)).collect();
        let is_new = |key: &&JobKey| !self.picture.has(shelf, key) && !found.contains(*key);
        let new: Vec<_> = keys.iter().filter(is_new).cloned().collect();
        found.extend(keys);
        if new.is_empty() || self.has_lost {
            return Ok(found);
        }
        let mut commands = Pipeline::with_capacity(1);
        let command = commands.cmd("HMGET").arg(&hash);
        for key in &new {
            command.arg(field_of(key));
        }
        let asked = Instant::now();
        let postings: Vec<Option<Vec<u8>>> = self.ask_one(&commands).await?;
        let told = self.drain()?;
        let answered = Instant::now();
        if self.has_lost {
            return Ok(found);
        }
        for (key, posting) in new.iter().zip(postings) {
            if let (Some(posting), false) = (posting, told.contains(key)) {
                self.find(shelf, key, &posting, Looked { asked, answered });
            }
        }
        found.extend(told);
        Ok(found)
    }

    /// Finds what is new on a shelf, in pages, and returns the jobs that are there.
    async fn find_by_pages(&mut self, shelf: Shelf) -> Result<HashSet<JobKey>> {
        let mut scan = Scan::of(&self.board.keys, shelf);
        let mut found = HashSet::new();
        while let Some(command) = scan.command() {
            let asked = Instant::now();
            let mut commands = Pipeline::with_capacity(1);
            commands.add_command(command);
            let page = scan.page(self.ask_one(&commands).await?);
            let told = self.drain()?;
            if self.has_lost {
                break;
            }
            let answered = Instant::now();
            for (field, posting) in page {
                let key = key_of(&field);
                if !self.picture.has(shelf, &key) && !told.contains(&key) {
                    self.find(shelf, &key, &posting, Looked { asked, answered });
                }
                found.insert(key);
            }
            // What was posted behind the page on which it would have been is not missing.
            found.extend(told);
        }
        Ok(found)
    }

    /// Notes a posting that was not known; what else happened to its job, a look will show.
    fn find(&mut self, shelf: Shelf, key: &JobKey, posting: &[u8], looked: Looked) {
        self.recheck
            .add(key.clone(), Cause::Noted, Traces::default());
        if shelf == Shelf::Board && !self.picture.has(Shelf::Trash, key) {
            // By then it may be gone, and it is proven that it was there.
            let place = Place {
                board: Some(observation::posted(key, posting, looked)),
                trash: None,
            };
            let told = self.picture.see(key, place, Traces::default(), looked);
            self.tell(told);
        }
    }

    /// Looks at everything, since nobody says where to look.
    pub(super) async fn go_round(&mut self) -> Result<()> {
        let began = Instant::now();
        let before = self.pending.len();
        self.survey().await?;
        for key in self.picture.keys(Shelf::Board) {
            self.recheck
                .add(key.clone(), Cause::Noted, Traces::default());
        }
        while !self.recheck.is_empty() && !self.has_lost {
            self.look().await?;
        }
        let found = self.pending.len().saturating_sub(before);
        if let Some(rounds) = &mut self.rounds {
            rounds.done(began, found);
        }
        Ok(())
    }

    pub(super) async fn counts(&self) -> Result<Counts> {
        let (client, keys) = (&self.board.client, &self.board.keys);
        let answers = self.ask(&Counts::commands(keys)).await?;
        for (answer, key) in answers.iter().zip([keys.listings(), keys.trash()]) {
            if let Value::ServerError(error) = answer {
                return Err(client.refusal_of(DOING, error, key.as_ref()));
            }
        }
        Counts::read(answers).ok_or_else(|| self.strange())
    }

    /// Asks where it is known what came before the answer, if anything is pushed at all.
    async fn ask(&self, commands: &Pipeline) -> Result<Vec<Value>> {
        match &self.listener {
            Some(listener) => listener.ask_at_once(DOING, commands).await,
            None => self.board.client.ask_at_once(DOING, commands).await,
        }
    }

    /// Asks one thing.
    async fn ask_one<T: FromRedisValue>(&self, command: &Pipeline) -> Result<T> {
        let answer = self.ask(command).await?.pop();
        let answer = answer.and_then(|answer| from_redis_value(answer).ok());
        answer.ok_or_else(|| self.strange())
    }

    fn strange(&self) -> BoardError {
        BoardError::Failed {
            doing: DOING,
            board: self.board.name().to_owned(),
            source: "the server answered something else".into(),
        }
    }
}
