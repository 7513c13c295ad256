//! Reports the result of a verb for each job, and groups the failures of a batch.

use std::{borrow::Cow, collections::HashMap};

use chrono::Utc;
use serde::Serialize;

use super::select::Chosen;
use crate::{
    context::Context,
    exit::{CommandError, chain},
    job::{Entry, Job, Shelf, State},
    output::{JobColumns, JobView, Page, Record, Report, Tone, count_jobs, short},
};

/// The number of jobs named per reason.
const NAMED: usize = 3;

/// The number of reasons printed, the most frequent ones.
const REASONS: usize = 10;

/// The number of distinct reasons kept.
const KEPT: usize = 1000;

/// The result line of a verb for one job.
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
        let known = Self {
            name: Some(job.name.clone()),
            ..Self::unnamed(done, &job.uuid)
        };
        match *job.reference() == job.uuid {
            true => known,
            false => known.with("key", job.key.text()),
        }
    }

    /// Reports a job that was left as it is.
    pub(super) fn skipped(reference: &str, name: String) -> Self {
        let done = Self {
            name: Some(name),
            ..Self::unnamed("skipped", reference)
        };
        match reference.strip_prefix("key:") {
            Some(key) => Self { uuid: None, ..done }.with("key", key),
            None => done,
        }
    }

    /// Reports a job with only a uuid.
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

    /// Returns the reference, unless it is the display name.
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

impl Record for Done {
    fn fields(&self) -> Vec<String> {
        vec![
            self.id().unwrap_or_default().into_owned(),
            self.called().into_owned(),
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
}

impl Report for Done {
    fn human(&self, page: &mut Page) {
        let line = page.line().plain(self.done).plain(" ");
        match self.id() {
            Some(id) => line.add(Tone::Strong, short(&id)).plain(" "),
            None => line,
        }
        .plain(self.called());
    }
}

#[derive(Debug)]
pub(crate) struct Failures {
    verb: &'static str,
    /// Whether each failure is printed as it comes.
    is_each_told: bool,
    count: usize,
    alike: HashMap<String, Alike>,
    /// The number of failures with a reason that was not kept.
    others: usize,
}

#[derive(Debug)]
struct Alike {
    reason: anyhow::Error,
    /// The reference of the first job on the command line.
    reference: String,
    named: Vec<String>,
    count: usize,
}

impl Failures {
    /// Groups failures by reason for people who chose jobs by filter.
    pub(crate) fn new(ctx: &Context, verb: &'static str, is_bulk: bool) -> Self {
        Self {
            verb,
            is_each_told: !is_bulk || ctx.out.is_json() || ctx.out.is_verbose(),
            count: 0,
            alike: HashMap::new(),
            others: 0,
        }
    }

    /// Adds a failure, and prints it unless failures are grouped.
    pub(crate) fn add(
        &mut self,
        ctx: &Context,
        name: String,
        reference: String,
        reason: anyhow::Error,
    ) {
        self.count += 1;
        if self.is_each_told {
            return ctx.tell(&reason.context(ctx.trying(self.verb, name).with(reference)));
        }
        let told = chain(reason.as_ref());
        if self.alike.len() >= KEPT && !self.alike.contains_key(&told) {
            self.others += 1;
            return;
        }
        let alike = self.alike.entry(told).or_insert_with(|| Alike {
            reason,
            reference,
            named: Vec::new(),
            count: 0,
        });
        alike.count += 1;
        if alike.named.len() < NAMED {
            alike.named.push(name);
        }
    }

    /// Prints the groups, and returns the error for all jobs.
    pub(crate) fn end(self, ctx: &Context, total: usize) -> anyhow::Result<()> {
        let failed = self.count;
        self.report_mistakes(ctx);
        match failed {
            0 => Ok(()),
            failed => Err(CommandError::Partly { failed, total }.into()),
        }
    }

    fn report_mistakes(self, ctx: &Context) {
        let mut alike: Vec<_> = self.alike.into_values().collect();
        alike.sort_by(|one, other| (other.count, &one.named).cmp(&(one.count, &other.named)));
        let untold = alike.split_off(alike.len().min(REASONS));
        let is_any_unnamed = alike.iter().any(|alike| alike.count > NAMED);
        for Alike {
            reason,
            reference,
            named,
            count,
        } in alike
        {
            let names = names_of(&named, count);
            ctx.tell(&reason.context(ctx.trying(self.verb, names).with(reference)));
        }
        let others: u64 = untold.iter().map(|alike| alike.count as u64).sum();
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

/// Separates the records found from the failures.
pub(super) fn sorted_out(
    ctx: &Context,
    verb: &'static str,
    chosen: Chosen,
) -> anyhow::Result<(Vec<Entry>, Failures)> {
    let total = chosen.jobs.len();
    let mut failures = Failures::new(ctx, verb, chosen.is_bulk());
    let mut entries = Vec::new();
    for named in chosen.jobs {
        match named.entry {
            Ok(entry) => entries.push(entry),
            Err(error) if total == 1 => {
                let trying = ctx.trying(verb, named.name).with(named.reference);
                return Err(error.context(trying));
            }
            Err(error) => failures.add(ctx, named.name, named.reference, error),
        }
    }
    Ok((entries, failures))
}

/// `--dry-run`: lists the chosen jobs like `list`, and reports missing ones.
pub(super) fn dry_run(ctx: &mut Context, verb: &'static str, chosen: Chosen) -> anyhow::Result<()> {
    let total = chosen.jobs.len();
    let (entries, failures) = sorted_out(ctx, verb, chosen)?;
    let now = Utc::now();
    let are_trashed = entries.iter().all(|it| it.state() == State::Trashed);
    let shelf = match are_trashed {
        true => Shelf::Trash,
        false => Shelf::Board,
    };
    let columns = JobColumns::usual(shelf);
    let hides = ctx.hides_secrets();
    let mut rows = ctx.out.rows(&columns.shapes());
    for entry in &entries {
        rows.push(&columns.row(JobView::of(entry, now).covered(hides)))?;
    }
    rows.finish()?;
    if total == 0 {
        ctx.out.note("no job matches");
    }
    failures.end(ctx, total)
}
