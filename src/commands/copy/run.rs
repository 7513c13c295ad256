//! Passes the chosen jobs to the other board, and compares the boards afterwards.

use std::collections::HashMap;

use anyhow::Context as _;
use uuid::Uuid;

use super::choice::{CopyChoice, borrowed};
use crate::{
    board::{BoardError, JobRef, Order},
    commands::bulk::{
        act::has_changed,
        report::{Done, Results},
    },
    context::Context,
    diagnosis::is_left_by_move,
    exit::CommandError,
    job::{Draft, Entry, Location},
    transfer::{
        loader::{Loaded, Loader},
        moving::{Candidate, Mover, Route, TransferResult},
    },
};

pub(super) struct CopyRun<'a> {
    pub(super) route: &'a Route,
    pub(super) choice: &'a CopyChoice<'a>,
    pub(super) loader: Loader<'a>,
    pub(super) mover: Option<Mover<'a>>,
    pub(super) results: Results,
    /// The jobs that the target board accepted, with their sequence numbers there.
    pub(super) posted: HashMap<(Uuid, Location), i64>,
}

impl CopyRun<'_> {
    /// Returns the jobs on the board that can move, and reports the other ones.
    pub(super) async fn movable(&mut self, ctx: &Context) -> anyhow::Result<Vec<Entry>> {
        let from = &*self.route.from;
        let mut batches = self.choice.batches(from, Location::Board, Order::Posted);
        let mut jobs = Vec::new();
        loop {
            let batch = batches.next(|it| self.results.fail_unusable(ctx, it));
            let batch = batch
                .await
                .with_context(|| ctx.trying("move", "the jobs"))?;
            let Some(batch) = batch else { return Ok(jobs) };
            for (entry, would) in self.preview(batch).await? {
                match would {
                    Ok(_) => jobs.push(entry),
                    Err(error) => self.results.fail_entry(ctx, &entry, error),
                }
            }
        }
    }

    async fn preview(&self, batch: Vec<Candidate>) -> anyhow::Result<Vec<TransferResult>> {
        let known = self.loader.known(&borrowed(&batch)).await;
        let known = known.with_context(|| self.route.failed())?;
        let results = batch.into_iter().zip(known);
        let results = results.map(|((entry, draft), known)| {
            let holding = entry.holding().filter(|it| !is_left_by_move(it));
            let owner = holding.map(|it| it.owner.clone());
            let claimed = owner.map(|owner| BoardError::AlreadyClaimed { owner }.into());
            let taken = known.map(|it| {
                let is_trashed = matches!(
                    it,
                    Loaded::OtherLocation | Loaded::Conflict(Location::Trash)
                );
                self.route.taken(&draft, is_trashed).into()
            });
            (entry, claimed.or(taken).map_or(Ok("would-move"), Err))
        });
        Ok(results.collect())
    }

    pub(super) async fn all(&mut self, ctx: &mut Context) -> anyhow::Result<()> {
        let is_planned = self.choice.args.planned.is_some();
        let locations = Location::LIVE.into_iter();
        for location in locations.filter(|it| !is_planned || *it == Location::Board) {
            let mut batches = self
                .choice
                .batches(&*self.route.from, location, Order::Posted);
            loop {
                let batch = batches.next(|it| self.results.fail_unusable(ctx, it));
                let batch = batch
                    .await
                    .with_context(|| ctx.trying("copy", "the jobs"))?;
                let Some(batch) = batch else { break };
                let copied = match (&self.mover, location) {
                    (Some(mover), Location::Board) => mover.pass(&self.loader, batch).await?,
                    (None, Location::Board) if self.choice.args.is_move => {
                        self.preview(batch).await?
                    }
                    _ => self.pass(batch).await?,
                };
                report(ctx, copied, &mut self.results, is_planned)?;
                self.results.flush(ctx, batches.count())?;
            }
        }
        Ok(())
    }

    async fn pass(&mut self, batch: Vec<Candidate>) -> anyhow::Result<Vec<TransferResult>> {
        let loaded = self.loader.load(&borrowed(&batch)).await;
        let loaded =
            loaded.with_context(|| format!("cannot copy jobs to {}", self.route.to.url()))?;
        let copied = match self.choice.args.dry_run {
            true => "would-copy",
            false => "copied",
        };
        let results = batch.into_iter().zip(loaded);
        let results = results.map(|((entry, draft), loaded)| {
            if let Ok(Loaded::Posted { sequence }) = loaded {
                self.posted.insert(place(&draft), sequence);
            }
            let done = loaded.map_err(Into::into);
            let target = Some(&*self.route.target);
            let done = done.and_then(|it: Loaded| it.done(copied, &draft, target));
            (entry, done)
        });
        Ok(results.collect())
    }

    pub(super) async fn verify(&mut self, ctx: &mut Context) -> anyhow::Result<()> {
        let (from, to) = (&*self.route.from, &*self.route.to);
        let loader = Loader::new(to, true).await;
        let loader = loader
            .with_context(|| format!("cannot compare the copy with the board {}", to.url()))?;
        for location in Location::LIVE {
            let mut batches = self.choice.batches(from, location, Order::Any);
            while let Some(mut batch) = batches.next(drop).await? {
                batch.retain(|(_, draft)| self.posted.contains_key(&place(draft)));
                let known = loader.known(&borrowed(&batch)).await?;
                let missing = batch.iter().zip(known);
                let missing = missing.filter(|(_, known)| *known != Some(Loaded::Exists));
                let missing = missing.map(|(it, _)| it).collect();
                for (entry, _) in self.unperformed(missing).await? {
                    let message = "the copy was posted, but it is now missing or a different job";
                    // It is counted already.
                    self.results.total -= 1;
                    let error = CommandError::refused(message).into();
                    self.results.fail_entry(ctx, entry, error);
                }
            }
        }
        Ok(())
    }

    /// Drops the jobs that have left the target board since: history has their sequence numbers.
    async fn unperformed<'p>(
        &self,
        jobs: Vec<&'p Candidate>,
    ) -> anyhow::Result<Vec<&'p Candidate>> {
        if jobs.is_empty() {
            return Ok(jobs);
        }
        let uuid = |(_, draft): &&Candidate| JobRef::Uuid(draft.uuid.to_string());
        let wanted: Vec<_> = jobs.iter().map(uuid).collect();
        let ended = self.route.to.find(Location::History, &wanted).await?;
        let left = jobs.into_iter().zip(ended).filter(|((_, draft), ended)| {
            let number = self.posted.get(&place(draft));
            let mut numbers = ended.iter().filter_map(|it| it.job()?.sequence);
            !numbers.any(|it| Some(&it) == number)
        });
        Ok(left.map(|(job, _)| job).collect())
    }
}

/// A uuid may be both on the board and in the trash.
fn place(draft: &Draft) -> (Uuid, Location) {
    (draft.uuid, draft.location())
}

pub(super) fn report(
    ctx: &mut Context,
    copied: Vec<TransferResult>,
    results: &mut Results,
    is_planned: bool,
) -> anyhow::Result<()> {
    for (entry, done) in copied {
        match done {
            Ok(done) => results.print(ctx, &Done::of(done, &entry))?,
            Err(error) if is_planned && has_changed(&error) => {
                let skipped = Done::skipped(&entry.reference(), entry.name().into_owned());
                results.print(ctx, &skipped)?;
            }
            Err(error) => results.fail_entry(ctx, &entry, error),
        }
    }
    Ok(())
}
