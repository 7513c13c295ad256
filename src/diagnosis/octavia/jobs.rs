//! The jobs of an Octavia board, by the load balancer that they work on, and databases that may be unreachable.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use anyhow::Context as _;
use futures_util::TryStreamExt;
use tokio::time;

use crate::{
    board::{Board, BoardError, Detail, PeerOrder, Query, examine::Examined},
    config::Sourced,
    diagnosis::survey::WHOLE,
    exit::chain,
    job::{Entry, Job, Location, Owner, octavia},
    logbook::{Logbook, LogbookError, LogbookUrl},
    secret::Secret,
};

#[derive(Default)]
pub(super) struct Jobs {
    /// The jobs about each load balancer, on the board and in the trash, without their details.
    of_balancers: HashMap<String, Vec<Entry>>,
    /// The logbooks of all jobs; `None` if some jobs could not be read.
    pub(super) books: Option<HashSet<String>>,
    unclaimed: Vec<i64>,
    order: Option<PeerOrder>,
    pub(super) owners: BTreeSet<Owner>,
    /// Set if a load balancer may have a job that is not in the map.
    pub(super) gap: Option<String>,
}

impl Jobs {
    /// Reads all jobs; a failure is a gap.
    pub(super) async fn read(
        board: &dyn Board,
        logbook: &mut Database,
        examined: &mut Examined,
    ) -> Self {
        let (mut jobs, unnamed) = Self::of(board, examined).await;
        jobs.add_unnamed(unnamed, logbook, examined).await;
        if let Some(gap) = &jobs.gap {
            examined.unseen(format!("pending load balancers: {gap}"), None);
        }
        jobs
    }

    /// Returns the logbooks of all jobs; `None`, with a gap, if some jobs could not be read.
    pub(super) async fn books(
        board: &dyn Board,
        examined: &mut Examined,
    ) -> Option<HashSet<String>> {
        let (jobs, _) = Self::of(board, examined).await;
        if let Some(gap) = &jobs.gap {
            examined.unseen(format!("logbooks without a job: {gap}"), None);
        }
        jobs.books
    }

    pub(super) fn about(&self, balancer: &str, location: Location) -> impl Iterator<Item = &Entry> {
        let jobs = self.of_balancers.get(balancer).into_iter().flatten();
        jobs.filter(move |it| it.job().is_some_and(|job| job.location == location))
    }

    /// Counts the unclaimed jobs that workers claim before this one.
    pub(super) fn in_front(&self, job: &Job) -> usize {
        let Some(own) = job.sequence else { return 0 };
        // Octavia gives all of its jobs the same priority.
        let goes_first = |other: &&i64| match self.order {
            Some(PeerOrder::NewestOfTheMostUrgent) => **other > own,
            Some(PeerOrder::OldestOfTheLeastUrgent) | None => **other < own,
        };
        self.unclaimed.iter().filter(goes_first).count()
    }

    /// Reads all jobs; returns those without a load balancer separately.
    async fn of(board: &dyn Board, examined: &mut Examined) -> (Self, Vec<Entry>) {
        let mut unnamed = Vec::new();
        let mut jobs = Self {
            books: Some(HashSet::new()),
            order: board.capabilities().peer_order(),
            ..Self::default()
        };
        match time::timeout(WHOLE, jobs.add_all(board, &mut unnamed)).await {
            Ok(Ok(0)) => {}
            Ok(Ok(unreadable)) => {
                jobs.books = None;
                jobs.gap = Some(format!("{unreadable} records are unreadable"));
            }
            failed => {
                let why = failed.ok().and_then(Result::err);
                examined.unseen("the jobs", why);
                jobs.books = None;
                jobs.gap = Some("the jobs cannot be read".to_owned());
            }
        }
        (jobs, unnamed)
    }

    /// Returns the number of unreadable records.
    async fn add_all(
        &mut self,
        board: &dyn Board,
        unnamed: &mut Vec<Entry>,
    ) -> Result<usize, BoardError> {
        let mut unreadable = 0;
        for location in Location::LIVE {
            let mut entries = board.entries(Query::all(location, Detail::Whole));
            while let Some(entry) = entries.try_next().await? {
                let Entry::Job(mut job) = entry else {
                    unreadable += 1;
                    continue;
                };
                let balancer = octavia::load_balancer(&job).map(|it| it.into_owned());
                // They may be large, and contain keys.
                job.details = None;
                self.count(&job);
                match balancer {
                    Some(balancer) => self.add(balancer, Entry::Job(job)),
                    None => unnamed.push(Entry::Job(job)),
                }
            }
        }
        Ok(unreadable)
    }

    fn count(&mut self, job: &Job) {
        let books = self.books.get_or_insert_default();
        books.extend(job.book.as_ref().map(|it| it.uuid.clone()));
        if job.location == Location::Board {
            self.owners.extend(job.owner().cloned());
            let is_free = job.holding.is_none();
            self.unclaimed.extend(job.sequence.filter(|_| is_free));
        }
    }

    fn add(&mut self, balancer: String, entry: Entry) {
        self.of_balancers.entry(balancer).or_default().push(entry);
    }

    /// Adds jobs whose posting lacks the load balancer; the logbooks name it.
    async fn add_unnamed(
        &mut self,
        jobs: Vec<Entry>,
        logbook: &mut Database,
        examined: &mut Examined,
    ) {
        let book = |entry: &Entry| Some(entry.job()?.book.as_ref()?.uuid.clone());
        let books: Vec<_> = jobs.iter().filter_map(book).collect();
        let books: Vec<_> = books.iter().map(String::as_str).collect();
        let balancers = match books.as_slice() {
            [] => None,
            books => {
                logbook
                    .ask(examined, async |it| it.balancers(books).await)
                    .await
            }
        };
        let balancers = balancers.unwrap_or_default();
        let mut unknown = 0;
        for entry in jobs {
            // No worker runs a job that Octavia did not post.
            let is_waiting = entry.job().is_some_and(|job| {
                job.location == Location::Board && octavia::flow(&job.name).is_some()
            });
            match book(&entry).and_then(|book| balancers.get(&book)) {
                Some(Some(balancer)) => self.add(balancer.clone(), entry),
                // The flow of a spare amphora has none.
                Some(None) => {}
                None => unknown += usize::from(is_waiting),
            }
        }
        if unknown > 0 {
            let gap = match unknown {
                1 => "1 job does not name its load balancer".to_owned(),
                unknown => format!("{unknown} jobs do not name their load balancer"),
            };
            self.gap.get_or_insert(gap);
        }
    }
}

/// A database connection, and the gap in the diagnosis if it is unreachable.
pub(super) struct Database {
    what: &'static str,
    /// `None`: not configured, or already reported as unreachable.
    opened: anyhow::Result<Option<Logbook>>,
}

impl Database {
    pub(super) async fn open(
        op_timeout: Duration,
        what: &'static str,
        url: Option<&Sourced<Secret>>,
    ) -> Self {
        let opened = match url {
            Some(url) => Self::reach(op_timeout, url).await.map(Some),
            None => Ok(None),
        };
        Self { what, opened }
    }

    async fn reach(op_timeout: Duration, url: &Sourced<Secret>) -> anyhow::Result<Logbook> {
        let read = url.value.expose().parse::<LogbookUrl>();
        let url = read.with_context(|| url.source.to_string())?;
        let opened = Logbook::open(&url, op_timeout).await;
        opened.with_context(|| format!("cannot read {url}"))
    }

    pub(super) async fn ask<T>(
        &mut self,
        examined: &mut Examined,
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
        examined.unseen(format!("{}: {why}", self.what), None);
        None
    }
}
