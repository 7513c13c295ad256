//! Posts jobs that were on a board before; existing jobs are skipped.

use std::{
    collections::HashMap,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
};

use futures_util::TryStreamExt;
use uuid::Uuid;

use crate::{
    board::{self, Board, BoardError, BoardExt, Detail, JobRef, Query},
    exit::CommandError,
    job::{Draft, Entry, Job, JobKey, Location, Origin, Outcome},
    suggest::Hint,
};

type StoredJob = (u64, Location);

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
    Conflict,
}

impl Loaded {
    /// Returns this word for a posted record, `exists`, or the reason for skipping a record.
    pub(crate) fn done(self, posted: &'static str, entry: &Entry) -> anyhow::Result<&'static str> {
        let message = match (self, entry.job().map(|job| job.location)) {
            (Self::Posted { .. }, _) => return Ok(posted),
            (Self::Exists, _) => return Ok("exists"),
            (Self::Ended, _) => return Ok("ended"),
            (Self::OtherLocation, Some(Location::Trash)) => {
                "the job is on the board already, not in the trash; skipped"
            }
            (Self::OtherLocation, _) => {
                "the job is in the trash already, not on the board; skipped"
            }
            (Self::Conflict, _) => "the board has a different job with this uuid; skipped",
        };
        let hint = Hint::new(
            "`jobboard show {}` prints the existing job",
            [&[&entry.reference()]],
        );
        Err(CommandError::refused(message).hint(hint).into())
    }
}

/// Hashes the fields that are the same on any board; location and history are not.
pub(crate) fn fingerprint(job: &Job) -> u64 {
    let book = job.book.as_ref().map(|book| (&book.name, &book.uuid));
    let raw = job.details.is_none().then_some(&job.raw);
    let content = (&job.name, job.priority, book, job.details(), raw);
    BuildHasherDefault::<DefaultHasher>::new().hash_one(content)
}

pub(crate) struct Loader<'a> {
    board: &'a dyn Board,
    is_dry: bool,
    /// Whether to skip jobs that have ended on this board: posting them would run them again.
    pub(crate) skips_ended: bool,
    /// The index of a board that has to be read whole to find one job.
    index: Option<HashMap<Uuid, (StoredJob, JobKey)>>,
}

impl<'a> Loader<'a> {
    /// A dry run changes nothing and reports the jobs that it would post.
    pub(crate) async fn new(board: &'a dyn Board, is_dry: bool) -> board::Result<Self> {
        let mut loader = Self {
            board,
            is_dry,
            skips_ended: false,
            index: None,
        };
        if !board.capabilities().finds_by_uuid {
            let mut index = HashMap::new();
            loader
                .each(Detail::Stored, |entry| {
                    if let Entry::Job(job) = entry
                        && let Ok(uuid) = Uuid::try_parse(&job.uuid)
                    {
                        index.insert(uuid, ((fingerprint(&job), job.location), job.key));
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
                        index.insert(
                            draft.uuid,
                            ((fingerprint(job), draft.location()), posted.key),
                        );
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
            answers[at] = Ok(found.unwrap_or(Loaded::Conflict));
        }
        Ok(answers)
    }

    async fn note_ended(
        &self,
        jobs: &[(&Entry, &Draft)],
        known: &mut [Option<Loaded>],
    ) -> board::Result<()> {
        let is_new = |at: &usize| known[*at].is_none() && jobs[*at].0.job().is_some();
        let new: Vec<_> = (0..jobs.len()).filter(is_new).collect();
        let wanted: Vec<_> = new.iter().map(|at| reference(jobs[*at].1)).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let found = self.board.find(Location::History, &wanted).await?;
        let has_run = |entry: &Entry| {
            let ended = entry.job().and_then(|job| job.ended.as_ref());
            // A purged job was given up, and a dump brings it back.
            ended.is_some_and(|it| it.outcome != Outcome::Purged)
        };
        for (at, found) in new.into_iter().zip(found) {
            if found.iter().any(has_run) {
                known[at] = Some(Loaded::Ended);
            }
        }
        Ok(())
    }

    pub(crate) async fn known(
        &self,
        jobs: &[(&Entry, &Draft)],
    ) -> board::Result<Vec<Option<Loaded>>> {
        let Some(index) = &self.index else {
            return self.found(jobs).await;
        };
        let known = |job: &(&Entry, &Draft)| compared(*job, index.get(&job.1.uuid).map(|it| it.0));
        Ok(jobs.iter().map(known).collect())
    }

    async fn found(&self, jobs: &[(&Entry, &Draft)]) -> board::Result<Vec<Option<Loaded>>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: Vec<_> = jobs.iter().map(|(_, draft)| reference(draft)).collect();
        let found = self.board.resolve_on(&Location::LIVE, &wanted).await?;
        let stored = found.into_iter().map(|found| match found {
            Ok(Entry::Job(job)) => Ok(Some((fingerprint(&job), job.location))),
            // Any record takes the name.
            Ok(Entry::Malformed(_)) | Err(BoardError::Ambiguous { .. }) => {
                Ok(Some((0, Location::Board)))
            }
            Err(BoardError::NoSuchJob) => Ok(None),
            Err(error) => Err(error),
        });
        let compared = jobs
            .iter()
            .zip(stored)
            .map(|(job, it)| Ok(compared(*job, it?)));
        compared.collect()
    }

    pub(crate) async fn lookup(
        &self,
        drafts: &[&Draft],
    ) -> board::Result<Vec<board::Result<Entry>>> {
        let key = |draft: &Draft| match &self.index {
            Some(index) => index
                .get(&draft.uuid)
                .map(|(_, key)| JobRef::Key(key.clone())),
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

fn compared((entry, draft): (&Entry, &Draft), there: Option<StoredJob>) -> Option<Loaded> {
    there.map(|(there, location)| match entry {
        Entry::Job(job) if fingerprint(job) != there => Loaded::Conflict,
        Entry::Job(_) if draft.location() != location => Loaded::OtherLocation,
        Entry::Job(_) => Loaded::Exists,
        Entry::Malformed(_) => Loaded::Conflict,
    })
}
