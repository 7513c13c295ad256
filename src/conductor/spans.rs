//! Attempts as those see them who trace them: a line of OTLP for each, in one file.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use chrono::Utc;
use rustix::fs::OFlags;

use super::{attempt::Attempt, meter::End, progress::Log};
use crate::{
    job::{Conductor, Outcome},
    trace::Told,
};

/// The file that attempts are told to.
#[derive(Debug)]
pub(crate) struct SpanFile {
    path: PathBuf,
    file: File,
}

impl SpanFile {
    /// Opens a file to add to it; what is new is for its owner alone.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // A pipe that nobody reads is told at once.
        options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let file = options.append(true).create(true).mode(0o600).open(path)?;
        let path = path.to_owned();
        Ok(Self { path, file })
    }
}

/// Tells attempts to those who trace them.
#[derive(Debug)]
pub(super) struct Spans {
    pub(super) file: Arc<Log>,
    board: String,
    conductor: String,
}

impl Spans {
    pub(super) fn new(file: SpanFile, board: &str, conductor: &Conductor) -> Self {
        Self {
            file: Arc::new(Log::new(None, file.path, file.file)),
            board: board.to_owned(),
            conductor: conductor.name.clone(),
        }
    }

    /// Words an attempt that has ended, with what becomes of its job if that is ours to say.
    pub(super) fn line(
        &self,
        attempt: &Attempt,
        outcome: Option<&Outcome>,
        took: Duration,
    ) -> Option<Vec<u8>> {
        let failure = outcome.and_then(Outcome::failure);
        let exit_code = failure.and_then(|failure| failure.exit_code);
        let is_done = outcome == Some(&Outcome::Consume);
        let lost = "the claim was lost";
        let ended = Utc::now();
        let told = Told {
            conductor: &self.conductor,
            board: &self.board,
            uuid: &attempt.job.uuid,
            name: &attempt.job.name,
            attempt: attempt.job.history.attempts,
            outcome: outcome.map_or(End::Lost, End::from).name(),
            failure: match outcome {
                Some(_) => failure.map(|failure| failure.reason.as_str()),
                None => Some(lost),
            },
            exit_code: exit_code.or(is_done.then_some(0)),
            began: ended - took,
            ended,
        };
        Some(attempt.span.as_ref()?.line(&told))
    }
}
