//! Surveying: finds jobs that came or went unannounced when the server reports only that a hash changed.

use std::collections::HashSet;

use redis::{Pipeline, Value, from_redis_value};
use tokio::time::Instant;

use super::{RedisWatcher, reading::posted};
use crate::{
    board::{
        BoardError, Result,
        cached_job::ReadTime,
        redis::{
            events::{
                DOING,
                picture::{JobPlaces, Traces},
                recheck::Urgency,
                survey::Counts,
            },
            keys::{field_of, key_of},
            read::scan::Scan,
        },
    },
    job::{JobKey, Location},
};

/// Up to this many names fit one request as fast as a page of postings. A new job is then found sooner.
const FEW: usize = 2000;

type Names = Vec<Vec<u8>>;

/// The fields of a hash, and the jobs announced before the reply.
type NamedFields = (Names, HashSet<JobKey>);

impl RedisWatcher<'_> {
    /// Finds the jobs that came or went, unless their claims were touched as well.
    pub(super) async fn survey(&mut self) -> Result<()> {
        let began = Instant::now();
        // The server reports every change from here on.
        self.hashes_stale_since = None;
        self.announced_numbers.ask();
        // Read before the request: a later number may exceed the reply.
        let least_count = self.announced_numbers.least_count();
        let (counts, names) = match std::mem::take(&mut self.numbers.are_of_peers) {
            true => self.counts_and_names().await?,
            false => (self.counts().await?, None),
        };
        let before = self.lengths();
        let announced = self.drain()?;
        let after = self.lengths();
        self.has_lost |= counts.sequence < least_count;
        if self.has_lost {
            return Ok(());
        }
        let is_missing = self.announced_numbers.lacks_some(counts.sequence);
        // Messages received with the reply may precede or follow it.
        let differs = |count: usize, (one, other): (usize, usize)| {
            count < one.min(other) || count > one.max(other)
        };
        let differ = [
            is_missing || differs(counts.jobs, (before.0, after.0)),
            differs(counts.trashed, (before.1, after.1)),
        ];
        if before != after {
            // Compare again once fewer messages arrive.
            self.hashes_stale_since.get_or_insert_with(Instant::now);
        }
        let is_whole = names.is_some() || differ.contains(&true);
        if differ[0] {
            let named = names.map(|names| (names, announced));
            self.compare(Location::Board, counts.jobs, named).await?;
        }
        if differ[1] {
            self.compare(Location::Trash, counts.trashed, None).await?;
        }
        self.unsettled_number = Some((counts.sequence, Instant::now()));
        self.survey_pace.spent(began, is_whole);
        Ok(())
    }

    fn lengths(&self) -> (usize, usize) {
        let length = |location| self.picture.len(location);
        (length(Location::Board), length(Location::Trash))
    }

    async fn compare(
        &mut self,
        location: Location,
        count: usize,
        named: Option<NamedFields>,
    ) -> Result<()> {
        let named = match named {
            None if count <= FEW => self.names(location).await?,
            named => named,
        };
        let present = match named {
            None => self.find_by_pages(location).await?,
            Some((names, mut present)) => {
                let keys: Vec<_> = names.iter().map(|field| key_of(field)).collect();
                let new = keys.iter().filter(|key| !self.picture.has(location, key));
                let new: Vec<_> = new.filter(|key| !present.contains(*key)).cloned().collect();
                present.extend(keys);
                if !new.is_empty() && !self.has_lost {
                    present.extend(self.find_new(location, &new).await?);
                }
                present
            }
        };
        if !self.has_lost {
            for key in self.picture.keys(location) {
                if !present.contains(key) {
                    self.recheck
                        .add(key.clone(), Urgency::Noted, Traces::default());
                }
            }
        }
        Ok(())
    }

    async fn find_new(&mut self, location: Location, new: &[JobKey]) -> Result<HashSet<JobKey>> {
        let mut commands = Pipeline::with_capacity(1);
        let command = commands.cmd("HMGET").arg(self.board.keys.hash(location));
        for key in new {
            command.arg(field_of(key));
        }
        let asked = Instant::now();
        let postings: Vec<Option<Vec<u8>>> = self.ask_one(&commands).await?;
        let announced = self.drain()?;
        let answered = Instant::now();
        if !self.has_lost {
            for (key, posting) in new.iter().zip(postings) {
                if let (Some(posting), false) = (posting, announced.contains(key)) {
                    self.find(location, key, &posting, ReadTime { asked, answered });
                }
            }
        }
        Ok(announced)
    }

    async fn find_by_pages(&mut self, location: Location) -> Result<HashSet<JobKey>> {
        let mut scan = Scan::of(self.board.keys.hash(location));
        let mut found = HashSet::new();
        while let Some(command) = scan.command() {
            let asked = Instant::now();
            let mut commands = Pipeline::with_capacity(1);
            commands.add_command(command);
            let page = scan.page(self.ask_one(&commands).await?);
            let page = page.map_err(|cause| self.board.client.error(DOING, cause))?;
            let announced = self.drain()?;
            if self.has_lost {
                break;
            }
            let answered = Instant::now();
            for (field, posting) in page {
                let key = key_of(&field);
                if !self.picture.has(location, &key) && !announced.contains(&key) {
                    self.find(location, &key, &posting, ReadTime { asked, answered });
                }
                found.insert(key);
            }
            // A job posted after the scan passed its page is not missing.
            found.extend(announced);
        }
        Ok(found)
    }

    /// Records an unknown posting; a later read shows the rest.
    fn find(&mut self, location: Location, key: &JobKey, posting: &[u8], looked: ReadTime) {
        self.recheck
            .add(key.clone(), Urgency::Noted, Traces::default());
        if location == Location::Board && !self.picture.has(Location::Trash, key) {
            // The job may be gone by then, but this proves that it existed.
            let place = JobPlaces {
                board: Some(posted(key, posting, looked)),
                trash: None,
            };
            let announced = self.picture.observe(key, place, Traces::default(), looked);
            self.report(announced);
        }
    }

    pub(super) async fn counts(&self) -> Result<Counts> {
        let answers = self.ask(&Counts::commands(&self.board.keys)).await?;
        self.read_counts(answers)
    }

    /// Sends both queries together, where the reply is small, to find a peer's post.
    async fn counts_and_names(&self) -> Result<(Counts, Option<Names>)> {
        if self.picture.len(Location::Board) > FEW {
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
                return Err(client.refusal(DOING, error, Some(&key)));
            }
        }
        Counts::read(answers).ok_or_else(|| self.unexpected_reply())
    }

    /// Returns the jobs of a hash and those announced meanwhile; `None` without the right, which pages do not need.
    async fn names(&mut self, location: Location) -> Result<Option<NamedFields>> {
        let mut commands = Pipeline::with_capacity(1);
        commands.cmd("HKEYS").arg(self.board.keys.hash(location));
        match self.ask_one(&commands).await {
            Err(BoardError::Denied { .. }) => Ok(None),
            names => Ok(Some((names?, self.drain()?))),
        }
    }
}
