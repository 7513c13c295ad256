//! Reads changed jobs and conductors, and all of them if the server does not push their names.

use redis::{FromRedisValue, Pipeline, Value, cmd, from_redis_value};
use tokio::time::Instant;

use super::RedisWatcher;
use crate::{
    board::{
        Board, BoardError, Detail, Event, Result,
        cached_job::{CachedJob, ReadTime},
        redis::{
            events::{
                DOING,
                conductors::Presence,
                picture::{JobPlaces, Traces},
                recheck::Urgency,
            },
            keys::{Keys, field_of},
            read::record::{CompanionValues, Reading, read},
        },
        wire::posting::Limit,
    },
    job::{JobKey, Location},
};

/// Maximum jobs per read: few enough to keep no server busy.
const JOBS_PER_READ: usize = 200;

impl RedisWatcher<'_> {
    pub(super) async fn read_changed(&mut self) -> Result<()> {
        let (some, traces): (Vec<_>, Vec<_>) = self.recheck.take(JOBS_PER_READ).into_iter().unzip();
        if some.is_empty() {
            return Ok(());
        }
        let asked = Instant::now();
        let commands = commands_of(&self.board.keys, &some);
        let answers = self.ask(&commands).await?;
        let answered = Instant::now();
        let looked = ReadTime { asked, answered };
        let places = places(&some, answers, looked).ok_or_else(|| self.unexpected_reply())?;
        let (places, leaves_time): (Vec<_>, Vec<_>) = places.into_iter().unzip();
        // Messages received with the reply may precede or follow it.
        let announced = self.drain()?;
        self.read_pace.spent(asked, true);
        // A client deletes the time of a job with the job; a server that evicts keys does not.
        let mut left = some.iter().zip(leaves_time);
        self.has_lost |= left.any(|(key, it)| it && self.picture.has(Location::Board, key));
        // After a flush, missing jobs were not consumed.
        if self.has_lost {
            return Ok(());
        }
        let mut seen = Vec::new();
        for ((key, place), mut traces) in some.into_iter().zip(places).zip(traces) {
            if announced.contains(&key) {
                self.recheck.add(key, Urgency::Touched, traces);
                continue;
            }
            // Include messages that came with the reply.
            traces.add(self.recheck.traces(&key));
            seen.extend(self.observe(&key, place, traces, looked));
        }
        // Report new jobs in the order of their numbers.
        seen.sort_by_key(|(sequence, _)| *sequence);
        for (_, events) in seen {
            self.report(events);
        }
        Ok(())
    }

    fn observe(
        &mut self,
        key: &JobKey,
        place: JobPlaces,
        mut traces: Traces,
        looked: ReadTime,
    ) -> Option<(Option<i64>, Vec<Event>)> {
        let is_known = Location::LIVE
            .into_iter()
            .any(|location| self.picture.has(location, key));
        if !is_known && place.board.is_none() && place.trash.is_none() {
            if traces.claim {
                self.announced_numbers.suspect();
                self.hashes_stale_since.get_or_insert_with(Instant::now);
            }
            return None;
        }
        if self.poll_pace.is_some() {
            // The client is unknown, but only our own clients prolong our claims.
            let claim = place.board.as_ref().and_then(CachedJob::claim);
            traces.is_ours = claim.is_some_and(|(_, fence)| fence.is_some());
        }
        let sequence = place.board.as_ref().and_then(|known| known.sequence);
        let events = self.picture.observe(key, place, traces, looked);
        Some((sequence, events))
    }

    pub(super) async fn look_at_conductors(&mut self) -> Result<()> {
        let names: Vec<_> = self.conductors.touched.drain().collect();
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
            self.pending
                .extend(self.conductors.observe(&name, presence));
        }
        Ok(())
    }

    /// Reads everything, since no message says where to look.
    pub(super) async fn survey_all(&mut self) -> Result<()> {
        let began = Instant::now();
        let before = self.pending.len();
        self.survey().await?;
        for key in self.picture.keys(Location::Board) {
            self.recheck
                .add(key.clone(), Urgency::Noted, Traces::default());
        }
        while !self.recheck.is_empty() && !self.has_lost {
            self.read_changed().await?;
        }
        let found = self.pending.len().saturating_sub(before);
        if let Some(pace) = &mut self.poll_pace {
            pace.done(began, found);
        }
        Ok(())
    }

    /// Uses the subscribed connection, if any, so that the order of pushes and reply is known.
    pub(super) async fn ask(&self, commands: &Pipeline) -> Result<Vec<Value>> {
        match &self.listener {
            Some(listener) => listener.in_transaction(commands).await,
            None => self.board.client.in_transaction(DOING, commands).await,
        }
    }

    pub(super) async fn ask_one<T: FromRedisValue>(&self, command: &Pipeline) -> Result<T> {
        let answer = self.ask(command).await?.pop();
        let answer = answer.and_then(|answer| from_redis_value(answer).ok());
        answer.ok_or_else(|| self.unexpected_reply())
    }

    pub(super) fn unexpected_reply(&self) -> BoardError {
        let source = "the server sent an unexpected reply";
        BoardError::failed(DOING, self.board.url(), source)
    }
}

fn commands_of(keys: &Keys, jobs: &[JobKey]) -> Pipeline {
    let fields: Vec<_> = jobs.iter().map(field_of).collect();
    let mut commands = Pipeline::with_capacity(3 + jobs.len());
    for hash in [keys.listings(), keys.trash()] {
        let command = commands.cmd("HMGET").arg(hash);
        for field in &fields {
            command.arg(field.as_slice());
        }
    }
    let companions: Vec<_> = fields
        .iter()
        .map(|field| keys.sidecar_names(field))
        .collect();
    let mut sidecars = cmd("MGET");
    companions
        .iter()
        .for_each(|names| names.add_to(&mut sidecars));
    commands.add_command(sidecars);
    for names in &companions {
        commands.cmd("PTTL").arg(names.owner.as_slice());
    }
    commands
}

/// Decodes the replies for each job, and whether only its time is left; `None` if invalid.
fn places(
    jobs: &[JobKey],
    answers: Vec<Value>,
    looked: ReadTime,
) -> Option<Vec<(JobPlaces, bool)>> {
    let mut answers = answers.into_iter();
    let mut list = || -> Option<std::vec::IntoIter<Option<Vec<u8>>>> {
        let list: Vec<Option<Vec<u8>>> = from_redis_value(answers.next()?).ok()?;
        Some(list.into_iter())
    };
    let (mut board, mut trash, mut companions) = (list()?, list()?, list()?);
    let mut places = Vec::with_capacity(jobs.len());
    for key in jobs {
        let (posting, trashed) = (board.next()?, trash.next()?);
        let (owner, last_modified, side) =
            (companions.next()?, companions.next()?, companions.next()?);
        let left: i64 = from_redis_value(answers.next()?).ok()?;
        let leaves_time = posting.is_none() && trashed.is_none() && last_modified.is_some();
        let field = field_of(key);
        let mut companions = CompanionValues {
            last_modified,
            side,
            ..CompanionValues::default()
        };
        let known = |location: Location, posting: &[u8], companions: CompanionValues| {
            CachedJob::of(&read(brief(location), &field, posting, companions), looked)
        };
        let trash = trashed.map(|posting| known(Location::Trash, &posting, companions.clone()));
        // In the trash a job is never claimed.
        companions.claim(owner, left);
        let board = posting.map(|posting| known(Location::Board, &posting, companions));
        places.push((JobPlaces { board, trash }, leaves_time));
    }
    Some(places)
}

pub(super) fn posted(key: &JobKey, posting: &[u8], looked: ReadTime) -> CachedJob {
    let alone = CompanionValues::default();
    let entry = read(brief(Location::Board), &field_of(key), posting, alone);
    CachedJob::of(&entry, looked)
}

fn brief(location: Location) -> Reading {
    Reading {
        location,
        detail: Detail::Brief,
        limit: Limit::USUAL,
    }
}
