//! Reads changed jobs and conductors, and all of them if the server does not push their names.

use redis::{FromRedisValue, Pipeline, Value, from_redis_value};
use tokio::time::Instant;

use super::Watcher;
use crate::{
    board::{
        Board, BoardError, Event, Result,
        known::{Known, Looked},
        redis::events::{
            DOING,
            conductors::Presence,
            observation,
            picture::{Place, Traces},
            recheck::Cause,
        },
    },
    job::{JobKey, Shelf},
};

/// Maximum jobs per read: few enough to keep no server busy.
const AT_ONCE: usize = 200;

impl Watcher<'_> {
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
        // Messages received with the reply may precede or follow it.
        let told = self.drain()?;
        self.looks.spent(asked);
        // After a flush, missing jobs were not consumed.
        if self.has_lost {
            return Ok(());
        }
        let mut seen = Vec::new();
        for ((key, place), mut traces) in some.into_iter().zip(places).zip(traces) {
            if told.contains(&key) {
                self.recheck.add(key, Cause::Touched, traces);
                continue;
            }
            // Include messages that came with the reply.
            traces.add(self.recheck.traces(&key));
            seen.extend(self.see(&key, place, traces, looked));
        }
        // Report new jobs in the order of their numbers.
        seen.sort_by_key(|(sequence, _)| *sequence);
        for (_, events) in seen {
            self.tell(events);
        }
        Ok(())
    }

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
            // The client is unknown, but only our own clients prolong our claims.
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

    /// Reads everything, since no message says where to look.
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

    /// Uses the subscribed connection, if any, so that the order of pushes and reply is known.
    pub(super) async fn ask(&self, commands: &Pipeline) -> Result<Vec<Value>> {
        match &self.listener {
            Some(listener) => listener.ask_at_once(DOING, commands).await,
            None => self.board.client.ask_at_once(DOING, commands).await,
        }
    }

    pub(super) async fn ask_one<T: FromRedisValue>(&self, command: &Pipeline) -> Result<T> {
        let answer = self.ask(command).await?.pop();
        let answer = answer.and_then(|answer| from_redis_value(answer).ok());
        answer.ok_or_else(|| self.strange())
    }

    pub(super) fn strange(&self) -> BoardError {
        BoardError::Failed {
            doing: DOING,
            board: self.board.name().to_owned(),
            source: "the server sent an unexpected reply".into(),
        }
    }
}
