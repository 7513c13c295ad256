//! A scripted in-memory board for tests of readers, subscribers and leases.

use std::{
    collections::VecDeque,
    future,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use chrono::Utc;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{
    board::{
        Board, BoardError, Capabilities, Event, EventKind, Events, JobRef, Query, Result, Settled,
        Which, event::Subject,
    },
    job::{Claim, ClaimEnd, Entry, Holding, Job, JobKey, Location, Owner, Settlement},
};

/// The reply to renewals; `None` means that no reply comes.
type Renew = dyn Fn(&[Claim]) -> Option<Result<Vec<Result<()>>>> + Send + Sync;

pub(crate) struct Scripted {
    jobs: Mutex<Vec<Job>>,
    sender: UnboundedSender<Event>,
    receiver: Mutex<Option<UnboundedReceiver<Event>>>,
    /// Events to emit when the next lookup fails; `None` if it succeeds.
    failure: Mutex<Option<Vec<Event>>>,
    looks: AtomicUsize,
    finds: AtomicUsize,
    /// How many jobs these looked for.
    wanted: AtomicUsize,
    has_expiring_claims: bool,
    renew: Box<Renew>,
    /// The results of the next settlements, in order.
    settled: Mutex<VecDeque<Result<Settled>>>,
}

impl Scripted {
    pub(crate) fn new() -> Self {
        Self::renewing(false, |_| unasked())
    }

    pub(crate) fn renewing(
        has_expiring_claims: bool,
        renew: impl Fn(&[Claim]) -> Option<Result<Vec<Result<()>>>> + Send + Sync + 'static,
    ) -> Self {
        let (sender, receiver) = unbounded_channel();
        Self {
            jobs: Mutex::default(),
            sender,
            receiver: Mutex::new(Some(receiver)),
            failure: Mutex::default(),
            looks: AtomicUsize::new(0),
            finds: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
            has_expiring_claims,
            renew: Box::new(renew),
            settled: Mutex::default(),
        }
    }

    pub(crate) fn settling(answers: impl IntoIterator<Item = Result<Settled>>) -> Self {
        Self {
            settled: Mutex::new(answers.into_iter().collect()),
            ..Self::new()
        }
    }

    pub(crate) fn post(&self, name: &str, size: Option<u64>) -> Job {
        let mut jobs = self.jobs.lock().unwrap();
        let job = Job {
            key: JobKey::new(name),
            uuid: name.to_owned(),
            sequence: Some(jobs.len() as i64),
            created_on: Some(Utc::now()),
            details: Some(json!({ "size": size }).into()),
            ..Job::named(name)
        };
        jobs.push(job.clone());
        job
    }

    pub(crate) fn change(&self, job: &Job, change: impl FnOnce(&mut Job)) {
        let mut jobs = self.jobs.lock().unwrap();
        let found = jobs.iter_mut().find(|found| found.key == job.key);
        change(found.unwrap());
    }

    pub(crate) fn claim_silently(&self, job: &Job) {
        self.change(job, |job| {
            let owner = Some(Owner::new("ada").unwrap());
            job.holding = Some(Holding::new(owner, ClaimEnd::Never, None));
        });
    }

    pub(crate) fn remove(&self, job: &Job) {
        let mut jobs = self.jobs.lock().unwrap();
        jobs.retain(|found| found.key != job.key);
    }

    pub(crate) fn send(&self, event: Event) {
        self.sender.send(event).unwrap();
    }

    /// Makes the next lookup fail and emits these events meanwhile.
    pub(crate) fn fails_next(&self, meanwhile: &[Event]) {
        *self.failure.lock().unwrap() = Some(meanwhile.to_vec());
    }

    pub(crate) fn looks(&self) -> usize {
        self.looks.load(Ordering::Relaxed)
    }

    pub(crate) fn finds(&self) -> usize {
        self.finds.load(Ordering::Relaxed)
    }

    pub(crate) fn wanted(&self) -> usize {
        self.wanted.load(Ordering::Relaxed)
    }
}

pub(crate) fn event(kind: EventKind, job: &Job) -> Event {
    Event {
        subject: Some(Subject {
            key: job.key.clone(),
            uuid: job.uuid.clone(),
            name: job.name.clone(),
            sequence: job.sequence,
            rank: job.rank(),
            not_before: None,
        }),
        ..Event::now(kind)
    }
}

#[async_trait]
impl Board for Scripted {
    fn url(&self) -> &str {
        "scripted"
    }

    fn entries(&self, query: Query) -> BoxStream<'_, Result<Entry>> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        let jobs = self.jobs.lock().unwrap().clone();
        let is_wanted = |job: &Job| query.which == Which::All || job.holding.is_none();
        let found: Vec<_> = jobs.into_iter().filter(is_wanted).collect();
        stream::iter(found.into_iter().map(|job| Ok(Entry::Job(Box::new(job))))).boxed()
    }

    async fn find(&self, location: Location, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>> {
        self.finds.fetch_add(1, Ordering::Relaxed);
        self.wanted.fetch_add(wanted.len(), Ordering::Relaxed);
        if let Some(meanwhile) = self.failure.lock().unwrap().take() {
            meanwhile.into_iter().for_each(|event| self.send(event));
            return Err(BoardError::Unreachable {
                board: "scripted".to_owned(),
                source: "as the test says".into(),
            });
        }
        let jobs = self.jobs.lock().unwrap();
        let is_meant = |wanted: &JobRef, job: &Job| {
            job.location == location && *wanted == JobRef::Key(job.key.clone())
        };
        let found = wanted.iter().map(|wanted| {
            let found = jobs.iter().filter(|job| is_meant(wanted, job));
            found.map(|job| Entry::Job(Box::new(job.clone()))).collect()
        });
        Ok(found.collect())
    }

    async fn events(&self) -> Result<Events<'_>> {
        let receiver = self.receiver.lock().unwrap().take().unwrap();
        let next = async |mut receiver: UnboundedReceiver<Event>| {
            Some((Ok(receiver.recv().await?), receiver))
        };
        let stream = stream::unfold(receiver, next).boxed();
        Ok(Events { stream, lack: None })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            has_expiring_claims: self.has_expiring_claims,
            finds_by_uuid: true,
            ..Capabilities::default()
        }
    }

    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        match (self.renew)(claims) {
            Some(answer) => answer,
            None => future::pending().await,
        }
    }

    async fn close(&self) {}

    async fn settle(&self, _: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        match self.settled.lock().unwrap().pop_front() {
            Some(answer) => Ok(vec![Ok(answer?)]),
            None => unasked(),
        }
    }
    async fn pauses(&self) -> Result<Vec<crate::job::Pause>> {
        Ok(Vec::new())
    }

    unasked! {
        lease_term post claim revise purge register publish registry pause resume begin_move
        moves end_moves health examine
    }
}

fn unasked() -> ! {
    panic!("it does more than look, wait and renew")
}
