//! Sends the dashboard's requests to the board.

use futures_util::{
    StreamExt, TryStreamExt,
    stream::{self, LocalBoxStream},
};

use chrono::Utc;

use super::{
    act::{self, DashEffect},
    row::RowPlace,
    update::DashInput,
};
use crate::{
    board::{Board, Detail, JobRef, Query, Result, ext::the_answer, filter::Filters},
    commands::{explain::explained, show::find_everywhere},
    context::Context,
    diagnosis::read_snapshot,
    exit::chain,
    job::{Entry, Location},
};

/// The number of records per update, so that keys are answered in between.
const SOME: usize = 200;

const MAX_ENDED: usize = 1000;

#[derive(Clone, Copy)]
pub(super) struct Questions<'a> {
    pub(super) ctx: &'a Context,
    pub(super) board: &'a dyn Board,
}

impl<'a> Questions<'a> {
    /// Reads the board and its trash; stops at the first error.
    pub(super) fn read(self, filters: &Filters) -> LocalBoxStream<'a, DashInput> {
        let around = stream::once(self.snapshot());
        // The diagnosis needs the whole jobs of the board.
        let locations = [
            (Location::Board, Detail::Whole),
            (Location::Trash, filters.detail()),
        ];
        let some = stream::iter(locations).flat_map(move |(location, detail)| {
            let entries = self.board.entries(Query::all(location, detail));
            entries.ready_chunks(SOME).map(move |some| (location, some))
        });
        let inputs = some.flat_map(|(location, some)| {
            let mut entries = Vec::with_capacity(some.len());
            let mut error = None;
            for entry in some {
                match entry {
                    Ok(entry) => entries.push(entry),
                    Err(failed) if failed.is_retryable() => {
                        error = Some(DashInput::Unread(chain(&failed)));
                    }
                    Err(failed) => error = Some(DashInput::Hidden(location, chain(&failed))),
                }
            }
            let entries = DashInput::Entries(location, entries);
            stream::iter([Some(entries), error].into_iter().flatten())
        });
        around.chain(inputs).boxed_local()
    }

    async fn snapshot(self) -> DashInput {
        let snapshot = async {
            let mut snapshot = read_snapshot(&self.ctx.config, self.board).await?;
            // The number of the last job may be out of date, as the events come later.
            snapshot.examine_keys_and_moves(self.board, None).await?;
            anyhow::Ok(snapshot)
        };
        DashInput::Snapshot(snapshot.await.map_err(|error| chain(error.as_ref())))
    }

    async fn found(self, places: &[RowPlace]) -> Result<Vec<(RowPlace, Option<Entry>)>> {
        let mut found = Vec::with_capacity(places.len());
        for location in Location::LIVE {
            let there: Vec<_> = places.iter().filter(|place| place.0 == location).collect();
            let wanted: Vec<_> = (there.iter().map(|(_, key)| JobRef::Key(key.clone()))).collect();
            if !wanted.is_empty() {
                let answers = self.board.find(location, &wanted).await?;
                let answers = there.into_iter().cloned().zip(answers);
                found.extend(answers.map(|(place, mut it)| (place, it.pop())));
            }
        }
        Ok(found)
    }

    pub(super) async fn ask(self, effect: DashEffect, filters: Filters) -> DashInput {
        match effect {
            DashEffect::ReadHistory => DashInput::History(in_words(self.history(&filters).await)),
            DashEffect::ReadSnapshot => self.snapshot().await,
            DashEffect::Ping => DashInput::Pinged(in_words(self.board.health().await.map(drop))),
            DashEffect::Find(places) => DashInput::Found(in_words(self.found(&places).await)),
            DashEffect::Open(job) => {
                let found = find_everywhere(self.board, std::slice::from_ref(&job)).await;
                let found = found.and_then(|it| the_answer(self.board, it));
                DashInput::Opened(job, in_words(found))
            }
            DashEffect::Explain(job) => {
                let explained = explained(self.ctx, self.board, &job).await;
                let explained = explained.map_err(|error| chain(error.as_ref()));
                DashInput::Explained(job, explained)
            }
            DashEffect::Prepare(operation, places) => {
                let found = in_words(self.found(&places).await);
                let jobs = |found: Vec<(_, Option<_>)>| found.into_iter().filter_map(|it| it.1);
                let jobs = found.map(|found| jobs(found).collect());
                DashInput::Prepared(operation, places, jobs)
            }
            DashEffect::Perform(task) => {
                DashInput::Performed(act::perform(self.board, &task, self.ctx.who()).await)
            }
            DashEffect::Quit
            | DashEffect::Suspend
            | DashEffect::Redraw
            | DashEffect::Read
            | DashEffect::ReadNow => DashInput::Tick,
        }
    }

    async fn history(self, filters: &Filters) -> Result<Vec<Entry>> {
        let now = Utc::now();
        let entries = self
            .board
            .entries(Query::all(Location::History, filters.detail()));
        let meant = entries.try_filter(|entry| std::future::ready(filters.matches(entry, now)));
        meant.take(MAX_ENDED).try_collect().await
    }
}

fn in_words<T>(answer: Result<T>) -> std::result::Result<T, String> {
    answer.map_err(|error| chain(&error))
}
