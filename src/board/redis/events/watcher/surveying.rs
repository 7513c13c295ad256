//! Surveying: finds jobs that came or went unannounced when the server reports only that a hash changed.

use std::collections::HashSet;

use redis::{Pipeline, Value, from_redis_value};
use tokio::time::Instant;

use super::Watcher;
use crate::{
    board::{
        BoardError, Result,
        known::Looked,
        redis::{
            events::{
                DOING, observation,
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

/// Up to this many names fit one request as fast as a page of postings. A new job is then found sooner.
const FEW: usize = 2000;

type Names = Vec<Vec<u8>>;

/// The fields of a hash, and the jobs announced before the reply.
type Named = (Names, HashSet<JobKey>);

impl Watcher<'_> {
    /// Finds the jobs that came or went, unless their claims were touched as well.
    pub(super) async fn survey(&mut self) -> Result<()> {
        let began = Instant::now();
        // The server reports every change from here on.
        self.stale_since = None;
        self.account.ask();
        let (counts, names) = match self.numbers.settle() {
            true => self.counts_and_names().await?,
            false => (self.counts().await?, None),
        };
        let before = self.lengths();
        let told = self.drain()?;
        let after = self.lengths();
        // Numbers never go back, unless the board was deleted or the server lost data.
        self.has_lost |= self.account.is_beyond(counts.sequence);
        if self.has_lost {
            return Ok(());
        }
        let is_missing = self.account.lacks_some(counts.sequence);
        // Messages received with the reply may precede or follow it.
        let differs = |count: usize, of: fn((usize, usize)) -> usize| {
            count < of(before).min(of(after)) || count > of(before).max(of(after))
        };
        let differ = [
            (
                Shelf::Board,
                counts.jobs,
                is_missing || differs(counts.jobs, |it| it.0),
            ),
            (
                Shelf::Trash,
                counts.trashed,
                differs(counts.trashed, |it| it.1),
            ),
        ];
        if before != after {
            // Compare again once fewer messages arrive.
            self.be_stale();
        }
        let is_whole = names.is_some() || differ.iter().any(|(_, _, differs)| *differs);
        let mut named = names.map(|names| (names, told));
        for (shelf, count, _) in differ.into_iter().filter(|(_, _, differs)| *differs) {
            let named = named.take().filter(|_| shelf == Shelf::Board);
            self.compare(shelf, count, named).await?;
        }
        self.to_settle = Some((counts.sequence, Instant::now()));
        match is_whole {
            true => self.surveys.spent(began),
            false => self.surveys.spared(began),
        }
        Ok(())
    }

    fn lengths(&self) -> (usize, usize) {
        let length = |shelf| self.picture.len(shelf);
        (length(Shelf::Board), length(Shelf::Trash))
    }

    async fn compare(&mut self, shelf: Shelf, count: usize, named: Option<Named>) -> Result<()> {
        let found = match count <= FEW {
            true => self.find_by_names(shelf, named).await?,
            false => Some(self.find_by_pages(shelf).await?),
        };
        let Some(found) = found.filter(|_| !self.has_lost) else {
            return Ok(());
        };
        for key in missing(self.picture.keys(shelf), &found) {
            self.recheck.add(key, Cause::Noted, Traces::default());
        }
        Ok(())
    }

    /// Finds new jobs by their names alone, and returns all present jobs; `None` if all known ones are present.
    async fn find_by_names(
        &mut self,
        shelf: Shelf,
        named: Option<Named>,
    ) -> Result<Option<HashSet<JobKey>>> {
        let (names, mut told) = match named {
            Some(named) => named,
            None => match self.names(shelf).await {
                // A client with the right to scan the board sees the same.
                Err(BoardError::Denied { .. }) => {
                    return self.find_by_pages(shelf).await.map(Some);
                }
                names => (names?, self.drain()?),
            },
        };
        let keys: Vec<_> = names.iter().map(|field| key_of(field)).collect();
        let is_known = |key: &JobKey| self.picture.has(shelf, key);
        let (known, mut new): (Vec<_>, Vec<_>) = keys.into_iter().partition(is_known);
        let are_all_there = known.len() == self.picture.len(shelf);
        new.retain(|key| !told.contains(key));
        if !new.is_empty() && !self.has_lost {
            told.extend(self.look_for(shelf, &new).await?);
        }
        if are_all_there {
            return Ok(None);
        }
        told.extend(known.into_iter().chain(new));
        Ok(Some(told))
    }

    /// Reads new jobs; returns those announced meanwhile.
    async fn look_for(&mut self, shelf: Shelf, new: &[JobKey]) -> Result<HashSet<JobKey>> {
        let mut commands = Pipeline::with_capacity(1);
        let command = commands.cmd("HMGET").arg(hash(&self.board.keys, shelf));
        for key in new {
            command.arg(field_of(key));
        }
        let asked = Instant::now();
        let postings: Vec<Option<Vec<u8>>> = self.ask_one(&commands).await?;
        let told = self.drain()?;
        let answered = Instant::now();
        if !self.has_lost {
            for (key, posting) in new.iter().zip(postings) {
                if let (Some(posting), false) = (posting, told.contains(key)) {
                    self.find(shelf, key, &posting, Looked { asked, answered });
                }
            }
        }
        Ok(told)
    }

    /// Finds new jobs page by page, and returns all present jobs.
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
            // A job posted after the scan passed its page is not missing.
            found.extend(told);
        }
        Ok(found)
    }

    /// Records an unknown posting; a later read shows the rest.
    fn find(&mut self, shelf: Shelf, key: &JobKey, posting: &[u8], looked: Looked) {
        self.recheck
            .add(key.clone(), Cause::Noted, Traces::default());
        if shelf == Shelf::Board && !self.picture.has(Shelf::Trash, key) {
            // The job may be gone by then, but this proves that it existed.
            let place = Place {
                board: Some(observation::posted(key, posting, looked)),
                trash: None,
            };
            let told = self.picture.see(key, place, Traces::default(), looked);
            self.tell(told);
        }
    }

    pub(super) async fn counts(&self) -> Result<Counts> {
        let answers = self.ask(&Counts::commands(&self.board.keys)).await?;
        self.read_counts(answers)
    }

    /// Sends both queries together, where the reply is small, to find a peer's post.
    async fn counts_and_names(&self) -> Result<(Counts, Option<Names>)> {
        if self.picture.len(Shelf::Board) > FEW {
            return Ok((self.counts().await?, None));
        }
        let mut commands = Counts::commands(&self.board.keys);
        commands.cmd("HKEYS").arg(self.board.keys.listings());
        let mut answers = match self.ask(&commands).await {
            Err(BoardError::Denied { .. }) => return Ok((self.counts().await?, None)),
            answers => answers?,
        };
        let names = answers.pop();
        let names = names.and_then(|names| from_redis_value(names).ok());
        Ok((self.read_counts(answers)?, names))
    }

    fn read_counts(&self, answers: Vec<Value>) -> Result<Counts> {
        let (client, keys) = (&self.board.client, &self.board.keys);
        for (answer, key) in answers.iter().zip([keys.listings(), keys.trash()]) {
            if let Value::ServerError(error) = answer {
                return Err(client.refusal_of(DOING, error, key.as_ref()));
            }
        }
        Counts::read(answers).ok_or_else(|| self.strange())
    }

    async fn names(&self, shelf: Shelf) -> Result<Names> {
        let mut commands = Pipeline::with_capacity(1);
        commands.cmd("HKEYS").arg(hash(&self.board.keys, shelf));
        self.ask_one(&commands).await
    }
}
