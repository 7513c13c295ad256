//! Reports the result of a verb for each job, and groups the failures of a batch.

use std::{borrow::Cow, collections::HashMap, pin::pin};

use anyhow::Context as _;
use chrono::Utc;
use futures_util::TryStreamExt;
use serde::Serialize;

use super::select::Chosen;
use crate::{
    board::{Board, collect::whole},
    context::Context,
    exit::{CommandError, chain},
    job::{Entry, Job, Location, State, shortened},
    output::{JobColumns, JobView, Page, Progress, Report, Tone, count_jobs, short},
    transfer::batches::Unusable,
};

const MAX_NAMED_JOBS: usize = 3;

const REASONS: usize = 10;

const KEPT: usize = 1000;

#[derive(Debug, Serialize)]
pub(crate) struct Done {
    pub(crate) uuid: Option<String>,
    pub(crate) name: Option<String>,
    /// The past participle, for example `claimed`.
    pub(crate) done: &'static str,
    #[serde(flatten)]
    pub(crate) more: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Done {
    pub(crate) fn of_job(done: &'static str, job: &Job) -> Self {
        let known = Self::named(done, &job.uuid, shortened(&job.name));
        match *job.reference() == job.uuid {
            true => known,
            false => known.with("key", job.key.text()),
        }
    }

    pub(crate) fn skipped(reference: &str, name: String) -> Self {
        let done = Self::named("skipped", reference, name);
        match reference.strip_prefix("key:") {
            Some(key) => Self { uuid: None, ..done }.with("key", key),
            None => done,
        }
    }

    pub(crate) fn named(done: &'static str, uuid: &str, name: String) -> Self {
        Self {
            name: Some(name),
            ..Self::unnamed(done, uuid)
        }
    }

    pub(crate) fn unnamed(done: &'static str, uuid: &str) -> Self {
        Self {
            uuid: Some(uuid.to_owned()),
            name: None,
            done,
            more: None,
        }
    }

    pub(crate) fn of(done: &'static str, entry: &Entry) -> Self {
        match entry {
            Entry::Job(job) => Self::of_job(done, job),
            Entry::Malformed(record) => Self {
                uuid: None,
                ..Self::unnamed(done, "").with("key", record.key.text())
            },
        }
    }

    /// Returns the display name: the key for a malformed record.
    fn called(&self) -> Cow<'_, str> {
        match (&self.name, &self.uuid) {
            (Some(name), _) => Cow::Borrowed(name),
            (None, Some(_)) => Cow::Borrowed(""),
            (None, None) => self.reference().unwrap_or_default(),
        }
    }

    fn id(&self) -> Option<Cow<'_, str>> {
        self.uuid.as_ref().and_then(|_| self.reference())
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.more
            .get_or_insert_default()
            .insert(name.to_owned(), value.into());
        self
    }
}

impl Report for Done {
    fn fields(&self) -> Vec<String> {
        vec![
            self.reference().unwrap_or_default().into_owned(),
            self.name.clone().unwrap_or_default(),
            self.done.into(),
        ]
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        let key = self
            .more
            .as_ref()
            .and_then(|more| more.get("key")?.as_str());
        let uuid = self.uuid.as_deref().map(Cow::Borrowed);
        key.map(|key| Cow::Owned(format!("key:{key}"))).or(uuid)
    }

    fn human(&self, page: &mut Page) {
        let line = page.line().plain(self.done).plain(" ");
        match self.id() {
            Some(id) => line.add(Tone::Strong, short(&id)).plain(" "),
            None => line,
        }
        .plain(self.called());
    }
}

#[derive(Debug, Default)]
pub(crate) struct Results {
    verb: &'static str,
    progress: Option<Progress>,
    prints_each: bool,
    pub(crate) total: usize,
    pub(crate) failed: usize,
    reasons: HashMap<String, FailedJobs>,
    others: usize,
}

#[derive(Debug)]
struct FailedJobs {
    reason: anyhow::Error,
    reference: String,
    named: Vec<String>,
    count: usize,
}

impl Results {
    /// Groups failures by reason for people who chose jobs by filter.
    pub(crate) fn new(ctx: &Context, verb: &'static str, is_bulk: bool) -> Self {
        Self {
            verb,
            prints_each: !is_bulk || ctx.out.is_json() || ctx.out.is_verbose(),
            ..Self::default()
        }
    }

    pub(crate) fn with_progress(self, progress: Progress) -> Self {
        Self {
            progress: Some(progress),
            ..self
        }
    }

    pub(crate) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.progress {
            Some(progress) => progress.suspend(write),
            None => write(),
        }
    }

    pub(crate) fn print(&mut self, ctx: &mut Context, result: &impl Report) -> anyhow::Result<()> {
        self.total += 1;
        let printed = self.suspend(|| ctx.out.print(result));
        printed.with_context(|| self.unprinted())
    }

    fn unprinted(&self) -> String {
        let done = count_jobs((self.total - self.failed) as u64);
        let verb = self.verb;
        format!("{verb} succeeded for at least {done}, but the output could not be written")
    }

    pub(crate) fn print_error(&mut self, ctx: &Context, error: &anyhow::Error) {
        self.total += 1;
        self.failed += 1;
        self.suspend(|| ctx.print_error(error));
    }

    /// Counts the failure of a job, and prints it unless failures are grouped.
    pub(crate) fn fail(
        &mut self,
        ctx: &Context,
        name: impl Into<String>,
        reference: impl Into<String>,
        reason: anyhow::Error,
    ) {
        let (name, reference) = (name.into(), reference.into());
        if self.prints_each {
            let error = reason.context(ctx.trying(self.verb, name).with(reference));
            return self.print_error(ctx, &error);
        }
        self.total += 1;
        self.failed += 1;
        let text = chain(reason.as_ref());
        if self.reasons.len() >= KEPT && !self.reasons.contains_key(&text) {
            self.others += 1;
            return;
        }
        let alike = self.reasons.entry(text).or_insert_with(|| FailedJobs {
            reason,
            reference,
            named: Vec::new(),
            count: 0,
        });
        alike.count += 1;
        if alike.named.len() < MAX_NAMED_JOBS {
            alike.named.push(name);
        }
    }

    pub(crate) fn fail_unusable(&mut self, ctx: &Context, unusable: Unusable) {
        let (name, reference) = unusable.job;
        self.fail(ctx, name, reference, unusable.error);
    }

    pub(crate) fn fail_entry(&mut self, ctx: &Context, entry: &Entry, reason: anyhow::Error) {
        self.fail(ctx, entry.name(), entry.reference(), reason);
    }

    pub(crate) fn flush(&self, ctx: &mut Context, records: u64) -> anyhow::Result<()> {
        let printed = self.suspend(|| ctx.out.flush());
        printed.with_context(|| self.unprinted())?;
        self.progress.iter().for_each(|it| it.add(records));
        Ok(())
    }

    pub(crate) fn end(mut self, ctx: &Context) -> anyhow::Result<()> {
        drop(self.progress.take());
        let (failed, total) = (self.failed, self.total);
        self.print_groups(ctx);
        CommandError::partly("jobs", failed, total)
    }

    fn print_groups(self, ctx: &Context) {
        let mut alike: Vec<_> = self.reasons.into_values().collect();
        alike.sort_by(|one, other| (other.count, &one.named).cmp(&(one.count, &other.named)));
        let unprinted = alike.split_off(alike.len().min(REASONS));
        let is_any_unnamed = alike.iter().any(|alike| alike.count > MAX_NAMED_JOBS);
        for of in alike {
            let trying = ctx.trying(self.verb, names_of(&of.named, of.count));
            ctx.print_error(&of.reason.context(trying.with(of.reference)));
        }
        let others: u64 = unprinted.iter().map(|alike| alike.count as u64).sum();
        let others = others + self.others as u64;
        if others > 0 {
            let others = count_jobs(others);
            ctx.out
                .note(format!("{others} more failed for other reasons"));
        }
        if is_any_unnamed || others > 0 {
            ctx.out.note("-v prints each failure");
        }
    }
}

fn names_of(named: &[String], jobs: usize) -> String {
    let (names, unnamed) = (named.join(", "), jobs - named.len());
    match (jobs, unnamed) {
        (1, _) => names,
        (_, 0) => format!("{} ({names})", count_jobs(jobs as u64)),
        (_, unnamed) => format!("{} ({names} and {unnamed} more)", count_jobs(jobs as u64)),
    }
}

pub(super) fn sorted_out(
    ctx: &Context,
    verb: &'static str,
    chosen: Chosen,
) -> anyhow::Result<(Vec<Entry>, Results)> {
    let total = chosen.jobs.len();
    let mut results = Results::new(ctx, verb, chosen.is_bulk());
    let mut entries = Vec::new();
    for named in chosen.jobs {
        match named.entry {
            Ok(entry) => entries.push(entry),
            Err(error) if total == 1 => {
                let trying = ctx.trying(verb, named.name).with(named.reference);
                return Err(error.context(trying));
            }
            Err(error) => results.fail(ctx, named.name, named.reference, error),
        }
    }
    results.total = total;
    Ok((entries, results))
}

/// `--dry-run`: lists the chosen jobs like `list`, and reports missing ones.
pub(super) async fn dry_run(
    ctx: &mut Context,
    board: &dyn Board,
    verb: &'static str,
    chosen: Chosen,
) -> anyhow::Result<()> {
    let (entries, results) = sorted_out(ctx, verb, chosen)?;
    let now = Utc::now();
    let are_trashed = entries.iter().all(|it| it.state() == State::Trashed);
    let location = match are_trashed {
        true => Location::Trash,
        false => Location::Board,
    };
    let columns = JobColumns::usual(location);
    let hides = ctx.hides_secrets();
    let trying = ctx.trying("list", "the jobs");
    let entries = whole(board, entries, usize::MAX, |_| true);
    let entries = entries.map_err(|it| anyhow::Error::from(it).context(trying.clone()));
    let entries = pin!(entries);
    let listed = ctx.out.rows(&columns.shapes());
    let listed = listed.stream(entries, |rows, entry| {
        rows.push(&columns.row(JobView::of(&entry, now).covered(hides)))
    });
    listed.await?;
    if results.total == 0 {
        ctx.out.note("no job matches");
    }
    results.end(ctx)
}
