//! Diagnoses an Octavia board: its configuration, its logbooks, and load balancers without their job.

use std::collections::{BTreeMap, HashSet};

use anyhow::Context as _;
use chrono::{TimeDelta, Utc};
use futures_util::TryStreamExt;
use tokio::time;

use super::checkup::WHOLE;
use crate::{
    board::{Board, BoardError, Detail, Query, examine::Examined},
    config::{Octavia, Sourced},
    context::Context,
    exit::chain,
    job::{Entry, Shelf, octavia},
    logbook::{Logbook, LogbookError, LogbookUrl, PendingBalancer, StaleBook},
    problem::{Code, Fix, Problem},
    secret::Secret,
    suggest::Suggestion,
};

/// Younger items may still be in progress.
const OLD: TimeDelta = TimeDelta::minutes(5);

const NAMED: usize = 5;

pub(super) async fn examine(ctx: &Context, board: &dyn Board, conf: &Octavia) -> Examined {
    let mut seen = Examined::default();
    for remark in conf.remarks() {
        let remedy = Fix::look(Suggestion::of("config"));
        seen.add(Problem::new(Code::OddConfig, remark).fixed_by(remedy));
    }
    let before = Utc::now() - OLD;
    let mut logbook = Database::open(ctx, "the logbooks", ctx.config.logbook.as_ref()).await;
    let mut own = Database::open(ctx, "the load balancers", conf.database.as_ref()).await;
    let short = logbook.ask(&mut seen, Logbook::short_columns).await;
    seen.problems
        .extend(short.filter(|it| !it.is_empty()).map(short_columns));
    // Read the logbooks before the jobs, so that a new job is not reported as missing.
    let books = logbook
        .ask(&mut seen, async |it| it.books_before(before).await)
        .await;
    let pending = own
        .ask(&mut seen, async |it| it.pending_balancers(before).await)
        .await;
    let (books, pending) = (books.unwrap_or_default(), pending.unwrap_or_default());
    if books.is_empty() && pending.is_empty() {
        return seen;
    }
    let Some(jobs) = Jobs::seen(board, &mut seen).await else {
        return seen;
    };
    let without = books.iter().filter(|it| !jobs.books.contains(&it.uuid));
    let without: Vec<_> = without.collect();
    let uuids: Vec<_> = without.iter().map(|book| book.uuid.as_str()).collect();
    if let Some(there) = logbook
        .ask(&mut seen, async |it| it.books(&uuids).await)
        .await
    {
        let without: Vec<_> = without
            .into_iter()
            .filter(|it| there.contains(&it.uuid))
            .collect();
        seen.problems.extend(books_without_job(&without));
    }
    let waiting = without_job(pending, &jobs, &mut logbook, &mut seen).await;
    if !waiting.is_empty() {
        // They may have ended meanwhile.
        let again = own
            .ask(&mut seen, async |it| it.pending_balancers(before).await)
            .await
            .unwrap_or_default();
        let still = waiting.iter().filter(|it| again.contains(it));
        seen.problems.extend(still.map(pending_without_job));
    }
    seen
}

/// Returns the load balancers without a job on the board, if that is certain.
async fn without_job(
    mut waiting: Vec<PendingBalancer>,
    jobs: &Jobs,
    logbook: &mut Database,
    seen: &mut Examined,
) -> Vec<PendingBalancer> {
    waiting.retain(|it| !jobs.balancers.contains(&it.id));
    if waiting.is_empty() {
        return waiting;
    }
    // Some postings lack the load balancer; their logbooks have it.
    let untold: Vec<_> = jobs.untold.iter().map(String::as_str).collect();
    let told = logbook
        .ask(seen, async |it| it.balancers(&untold).await)
        .await
        .unwrap_or_default();
    let unknown = jobs.unnamed + untold.iter().filter(|it| !told.contains_key(**it)).count();
    if unknown > 0 {
        let what =
            format!("cannot check all pending load balancers: {unknown} jobs do not name theirs");
        seen.unseen(what, None);
        return Vec::new();
    }
    let of_books: HashSet<_> = told.values().flatten().map(String::as_str).collect();
    waiting.retain(|it| !of_books.contains(it.id.as_str()));
    waiting
}

/// A database connection, and the gap in the diagnosis if it is unreachable.
struct Database {
    what: &'static str,
    /// `None`: not configured, or already reported as unreachable.
    opened: anyhow::Result<Option<Logbook>>,
}

impl Database {
    async fn open(ctx: &Context, what: &'static str, url: Option<&Sourced<Secret>>) -> Self {
        let opened = match url {
            Some(url) => Self::reach(ctx, url).await.map(Some),
            None => Ok(None),
        };
        Self { what, opened }
    }

    async fn reach(ctx: &Context, url: &Sourced<Secret>) -> anyhow::Result<Logbook> {
        let read = url.value.expose().parse::<LogbookUrl>();
        let url = read.with_context(|| url.source.to_string())?;
        let opened = Logbook::open(&url, ctx.config.op_timeout.value).await;
        opened.with_context(|| format!("cannot read {url}"))
    }

    async fn ask<T>(
        &mut self,
        seen: &mut Examined,
        ask: impl AsyncFnOnce(&Logbook) -> Result<T, LogbookError>,
    ) -> Option<T> {
        let why = match &self.opened {
            Ok(None) => return None,
            Ok(Some(logbook)) => match ask(logbook).await {
                Ok(answer) => return Some(answer),
                Err(error) => chain(&error),
            },
            Err(error) => format!("{error:#}"),
        };
        if self.opened.is_err() {
            self.opened = Ok(None);
        }
        seen.unseen(format!("{}: {why}", self.what), None);
        None
    }
}

fn short_columns(columns: Vec<String>) -> Problem {
    let summary = format!(
        "the logbook tables are from an older TaskFlow: {} columns are too short",
        columns.len()
    );
    let remedy = Fix::elsewhere(Suggestion::of("octavia-db-manage upgrade_persistence"));
    let problem = Problem::new(Code::ShortColumns, summary).fixed_by(remedy);
    columns
        .into_iter()
        .fold(problem, |problem, column| problem.seen("column", column))
}

fn pending_without_job(balancer: &PendingBalancer) -> Problem {
    let PendingBalancer { id, status, since } = balancer;
    let summary = format!("load balancer {id} is {status}, but no job refers to it");
    let then = match status.as_str() {
        "PENDING_DELETE" => {
            r#"mysql octavia -e "$0" && openstack loadbalancer delete --cascade "$1""#
        }
        _ => r#"mysql octavia -e "$0" && openstack loadbalancer failover "$1""#,
    };
    let sql = format!(
        "UPDATE load_balancer SET provisioning_status = 'ERROR' WHERE id = '{id}' AND provisioning_status = \
         '{status}'"
    );
    let command = Suggestion::of("sh -c").with([then, &sql, id]);
    let problem =
        Problem::new(Code::PendingWithoutJob, summary).fixed_by(with_sql(command, &[id, status]));
    problem.seen("since", since.as_deref().unwrap_or_default())
}

#[derive(Default)]
struct Jobs {
    books: HashSet<String>,
    balancers: HashSet<String>,
    /// The logbooks of jobs without a load balancer, and the number of jobs without a logbook.
    untold: Vec<String>,
    unnamed: usize,
    unreadable: usize,
}

impl Jobs {
    async fn seen(board: &dyn Board, seen: &mut Examined) -> Option<Self> {
        let jobs = match time::timeout(WHOLE, Self::of(board)).await {
            Ok(Ok(jobs)) => jobs,
            Ok(Err(error)) => {
                seen.unseen("the load balancers of the jobs", error);
                return None;
            }
            Err(_) => {
                seen.unseen(
                    "the load balancers of the jobs: reading took too long",
                    None,
                );
                return None;
            }
        };
        if jobs.unreadable > 0 {
            let what = format!(
                "the load balancers of {} unreadable records",
                jobs.unreadable
            );
            seen.unseen(what, None);
            return None;
        }
        Some(jobs)
    }

    async fn of(board: &dyn Board) -> Result<Self, BoardError> {
        let mut jobs = Self::default();
        for shelf in [Shelf::Board, Shelf::Trash] {
            let mut entries = board.entries(Query::all(shelf, Detail::Whole));
            while let Some(entry) = entries.try_next().await? {
                let Entry::Job(job) = &entry else {
                    jobs.unreadable += 1;
                    continue;
                };
                let book = job.book.as_ref().map(|book| book.uuid.clone());
                jobs.books.extend(book.clone());
                // No conductor runs a trashed job.
                match (octavia::load_balancer(job), book) {
                    _ if shelf == Shelf::Trash => {}
                    (Some(id), _) => jobs.balancers.extend([id.into_owned()]),
                    (None, Some(book)) => jobs.untold.push(book),
                    (None, None) => jobs.unnamed += 1,
                }
            }
        }
        Ok(jobs)
    }
}

/// Returns a command, unless a database value would escape the quotes of its SQL.
fn with_sql(command: Suggestion, values: &[&str]) -> Fix {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    Fix::elsewhere(match values.iter().all(|it| it.bytes().all(is_plain)) {
        true => command,
        false => Suggestion::of("openstack loadbalancer list"),
    })
}

fn books_without_job(books: &[&StaleBook]) -> Option<Problem> {
    let first = books.first()?;
    let mut states = BTreeMap::new();
    for book in books {
        *states
            .entry(book.state.as_deref().unwrap_or("PENDING"))
            .or_insert(0) += 1;
    }
    let states: Vec<_> = states
        .into_iter()
        .map(|(state, count)| format!("{state} {count}"))
        .collect();
    let summary = format!(
        "logbooks without a job: {} ({})",
        books.len(),
        states.join(", ")
    );
    let sql = format!(
        "SELECT * FROM flowdetails WHERE parent_uuid = '{}'",
        first.uuid
    );
    let problem = Problem::new(Code::BookWithoutJob, summary).fixed_by(with_sql(
        Suggestion::of("mysql octavia_persistence -e").with([sql]),
        &[&first.uuid],
    ));
    let named = books.iter().take(NAMED);
    Some(named.fold(problem, |problem, book| {
        let about = book.load_balancer.as_ref().map(|id| format!(", lb {id}"));
        let told = format!("{} {}{}", book.uuid, book.name, about.unwrap_or_default());
        problem.seen("logbook", told)
    }))
}
