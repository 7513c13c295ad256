//! Posts jobs that were on a board before; existing jobs are skipped.

use std::{
    collections::HashMap,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
};

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use uuid::Uuid;

use crate::{
    board::{self, Board, BoardError, BoardExt, Detail, JobRef, Query},
    exit::CommandError,
    job::{Draft, Entry, Job, JobKey, Location, Origin, Outcome},
    suggest::Hint,
};

/// A record with the uuid of a job; without a fingerprint if it is not one readable job.
type StoredJob = (Option<Fingerprint>, Location);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loaded {
    Posted {
        sequence: i64,
    },
    Exists,
    /// The job was here and ended, as the history shows.
    Ended,
    /// The same job exists, but in the trash instead of on the board, or the reverse.
    OtherLocation,
    /// A different record has the uuid, in this location.
    Conflict(Location),
}

impl Loaded {
    /// Returns this word for a posted record, `exists`, or the reason for skipping a record. A copy names its target.
    pub(crate) fn done(
        self,
        posted: &'static str,
        draft: &Draft,
        target: Option<&str>,
    ) -> anyhow::Result<&'static str> {
        let board = target.map_or("the board", |_| "the target");
        let message = match (self, draft.location()) {
            (Self::Posted { .. }, _) => return Ok(posted),
            (Self::Exists, _) => return Ok("exists"),
            (Self::Ended, _) => return Ok("ended"),
            (Self::OtherLocation, Location::Trash) => {
                format!("{board} has the job already, but not in the trash; skipped")
            }
            (Self::OtherLocation, _) => {
                format!("{board} has the job already, but in the trash; skipped")
            }
            (Self::Conflict(Location::Board), Location::Trash) => format!(
                "{board} has a different live job with this uuid; the trashed job is skipped"
            ),
            (Self::Conflict(_), _) => {
                format!("{board} has a different job with this uuid; skipped")
            }
        };
        let uuid = draft.uuid.to_string();
        let hint = match target {
            Some(target) => {
                let show = ["jobboard", "--board", target, "show", &uuid];
                Hint::new("`{}` prints the existing job", [&show])
            }
            None => Hint::new("`jobboard show {}` prints the existing job", [&[&uuid]]),
        };
        Err(CommandError::refused(message).hint(hint).into())
    }
}

/// Hashes of the fields that are the same on any board; location and history are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    head: u64,
    details: Option<u64>,
}

impl Fingerprint {
    pub(crate) fn of(job: &Job) -> Self {
        let hasher = BuildHasherDefault::<DefaultHasher>::new();
        let book = job.book.as_ref().map(|book| (&book.name, &book.uuid));
        Self {
            head: hasher.hash_one((&job.name, job.priority, book)),
            details: job.details().map(|it| hasher.hash_one(it)),
        }
    }

    /// Details that are too large to read on one board are not compared.
    fn matches(self, other: Self) -> bool {
        let mut details = self.details.iter().zip(other.details);
        self.head == other.head && details.all(|(one, other)| *one == other)
    }
}

pub(crate) struct Loader<'a> {
    board: &'a dyn Board,
    is_dry: bool,
    /// Whether to skip jobs that have ended on this board: posting them would run them again.
    pub(crate) skips_ended: bool,
    /// The index of a board that has to be read whole to find one job.
    index: Option<HashMap<(Uuid, Location), (Fingerprint, JobKey)>>,
    /// Whether the jobs in the history have run, as far as it was read.
    ended: HashMap<Uuid, bool>,
    /// The latest end that was read.
    latest_end: Option<(JobKey, DateTime<Utc>)>,
}

impl<'a> Loader<'a> {
    /// A dry run changes nothing and reports the jobs that it would post.
    pub(crate) async fn new(board: &'a dyn Board, is_dry: bool) -> board::Result<Self> {
        let mut loader = Self {
            board,
            is_dry,
            skips_ended: false,
            index: None,
            ended: HashMap::new(),
            latest_end: None,
        };
        if !board.capabilities().finds_by_uuid {
            let mut index = HashMap::new();
            loader
                .each(Detail::Stored, |entry| {
                    if let Entry::Job(job) = entry
                        && let Ok(uuid) = Uuid::try_parse(&job.uuid)
                    {
                        index.insert((uuid, job.location), (Fingerprint::of(&job), job.key));
                    }
                })
                .await?;
            loader.index = Some(index);
        }
        Ok(loader)
    }

    async fn each(&self, detail: Detail, mut see: impl FnMut(Entry)) -> board::Result<()> {
        for location in Location::LIVE {
            let mut entries = self.board.entries(Query::all(location, detail));
            while let Some(entry) = entries.try_next().await? {
                // A sibling board may have put it into the shared trash.
                if !matches!(entry.origin(), Origin::Beside(_)) {
                    see(entry);
                }
            }
        }
        Ok(())
    }

    /// Posts the jobs that are missing, each given as listing and draft.
    ///
    /// The outer error has the meaning of [`Board::post`].
    pub(crate) async fn load(
        &mut self,
        jobs: &[(&Entry, &Draft)],
    ) -> board::Result<Vec<board::Result<Loaded>>> {
        let mut known = self.known(jobs).await?;
        if self.skips_ended {
            self.note_ended(jobs, &mut known).await?;
        }
        let is_new = |at: &usize| known[*at].is_none();
        let new: Vec<_> = (0..jobs.len()).filter(is_new).collect();
        let mut answers: Vec<_> = known
            .into_iter()
            .map(|known| Ok(known.unwrap_or(Loaded::Posted { sequence: 0 })))
            .collect();
        if self.is_dry || new.is_empty() {
            return Ok(answers);
        }
        let drafts: Vec<_> = new.iter().map(|at| jobs[*at].1.clone()).collect();
        let posted = self.board.post(&drafts, None).await?;
        let mut late = Vec::new();
        for (at, posted) in new.into_iter().zip(posted) {
            let (entry, draft) = jobs[at];
            match posted {
                Ok(posted) => {
                    let sequence = posted.sequence;
                    answers[at] = Ok(Loaded::Posted { sequence });
                    if let (Some(index), Entry::Job(job)) = (&mut self.index, entry) {
                        let place = (draft.uuid, draft.location());
                        index.insert(place, (Fingerprint::of(job), posted.key));
                    }
                }
                Err(error) => {
                    // Another client was faster, or the input has the job twice.
                    if matches!(error, BoardError::Exists { .. }) && entry.job().is_some() {
                        late.push(at);
                    }
                    answers[at] = Err(error);
                }
            }
        }
        let again: Vec<_> = late.iter().map(|at| jobs[*at]).collect();
        // The posts succeeded, so an error here does not matter.
        let found = self.found(&again).await.unwrap_or_default();
        for (at, found) in late.into_iter().zip(found) {
            let location = jobs[at].1.location();
            answers[at] = Ok(found.unwrap_or(Loaded::Conflict(location)));
        }
        Ok(answers)
    }

    async fn note_ended(
        &mut self,
        jobs: &[(&Entry, &Draft)],
        known: &mut [Option<Loaded>],
    ) -> board::Result<()> {
        let is_new = |at: &usize| known[*at].is_none() && jobs[*at].0.job().is_some();
        let new: Vec<_> = (0..jobs.len()).filter(is_new).collect();
        if new.is_empty() {
            return Ok(());
        }
        let (mut latest, mut new_ends) = (None, HashMap::new());
        let history = Query::all(Location::History, Detail::Brief);
        let mut entries = self.board.entries(history);
        while let Some(entry) = entries.try_next().await? {
            let Some((job, end)) = entry
                .job()
                .and_then(|it| it.ended.as_ref().map(|end| (it, end)))
            else {
                continue;
            };
            let this = Some((job.key.clone(), end.on));
            // The latest end comes first, so an earlier batch has seen the rest.
            if this == self.latest_end {
                break;
            }
            latest = latest.or(this);
            if let Ok(uuid) = Uuid::try_parse(&job.uuid) {
                // A purged job was given up, and a dump brings it back.
                let has_run = end.outcome != Outcome::Purged;
                new_ends.entry(uuid).or_insert(has_run);
            }
        }
        self.ended.extend(new_ends);
        self.latest_end = latest.or(self.latest_end.take());
        for at in new {
            if self.ended.get(&jobs[at].1.uuid) == Some(&true) {
                known[at] = Some(Loaded::Ended);
            }
        }
        Ok(())
    }

    pub(crate) async fn known(
        &self,
        jobs: &[(&Entry, &Draft)],
    ) -> board::Result<Vec<Option<Loaded>>> {
        if self.index.is_none() {
            return self.found(jobs).await;
        }
        let known = |(entry, draft): &(&Entry, &Draft)| {
            let (location, (fingerprint, _)) = self.indexed(draft)?;
            Some(compared((entry, draft), (Some(*fingerprint), location)))
        };
        Ok(jobs.iter().map(known).collect())
    }

    fn indexed(&self, draft: &Draft) -> Option<(Location, &(Fingerprint, JobKey))> {
        let index = self.index.as_ref()?;
        let mut locations = places(draft.location()).into_iter();
        locations.find_map(|it| Some((it, index.get(&(draft.uuid, it))?)))
    }

    async fn found(&self, jobs: &[(&Entry, &Draft)]) -> board::Result<Vec<Option<Loaded>>> {
        let mut known = vec![None; jobs.len()];
        for location in Location::LIVE {
            let is_there = |at: &usize| jobs[*at].1.location() == location;
            let some: Vec<_> = (0..jobs.len()).filter(is_there).collect();
            if some.is_empty() {
                continue;
            }
            let wanted: Vec<_> = some.iter().map(|at| reference(jobs[*at].1)).collect();
            let found = self.board.resolve_on(&places(location), &wanted).await?;
            for (at, found) in some.into_iter().zip(found) {
                let stored = match found {
                    Ok(Entry::Job(job)) => (Some(Fingerprint::of(&job)), job.location),
                    // Any record takes the name.
                    Ok(Entry::Malformed(_)) | Err(BoardError::Ambiguous { .. }) => (None, location),
                    Err(BoardError::NoSuchJob) => continue,
                    Err(error) => return Err(error),
                };
                known[at] = Some(compared(jobs[at], stored));
            }
        }
        Ok(known)
    }

    pub(crate) async fn lookup(
        &self,
        drafts: &[&Draft],
    ) -> board::Result<Vec<board::Result<Entry>>> {
        let key = |draft: &Draft| match &self.index {
            Some(_) => (self.indexed(draft)).map(|(_, (_, key))| JobRef::Key(key.clone())),
            None => Some(reference(draft)),
        };
        let keys: Vec<_> = drafts.iter().map(|draft| key(draft)).collect();
        let wanted: Vec<_> = keys.iter().flatten().cloned().collect();
        let found = self.board.resolve_on(&Location::LIVE, &wanted).await?;
        let mut found = found.into_iter();
        let found = keys.iter().map(|key| {
            let found = key.as_ref().and_then(|_| found.next());
            found.unwrap_or(Err(BoardError::NoSuchJob))
        });
        Ok(found.collect())
    }
}

fn reference(draft: &Draft) -> JobRef {
    JobRef::Uuid(draft.uuid.to_string())
}

/// Returns where to look for a job: a trashed job and a job on the board may have the same uuid.
fn places(own: Location) -> [Location; 2] {
    let mut places = Location::LIVE;
    places.sort_by_key(|it| *it != own);
    places
}

fn compared((entry, draft): (&Entry, &Draft), (there, location): StoredJob) -> Loaded {
    match (entry.job(), there) {
        (Some(job), Some(there)) if there.matches(Fingerprint::of(job)) => {
            match draft.location() == location {
                true => Loaded::Exists,
                false => Loaded::OtherLocation,
            }
        }
        _ => Loaded::Conflict(location),
    }
}
