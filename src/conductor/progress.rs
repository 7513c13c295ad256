//! What a conductor tells of its work, to whoever shows it.

use std::{
    collections::VecDeque,
    fmt,
    fs::File,
    io::Write as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::{
    sync::{
        mpsc::{self, error::TrySendError},
        oneshot,
    },
    time,
};

use crate::job::Job;

/// How many things may wait to be shown before commands wait with their output.
const ROOM: usize = 1024;

/// How long room is waited for where nobody has to wait.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) uuid: String,
    pub(crate) name: String,
}

impl Tag {
    pub(super) fn of(job: &Job) -> Self {
        Self {
            uuid: job.reference().into_owned(),
            name: job.name.clone(),
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short: String = self.uuid.chars().take(8).collect();
        write!(f, "{}/{short}", self.name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Output,
    Errors,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Note {
    /// By the name that TaskFlow gives it, if it has one there.
    pub(crate) event: &'static str,
    pub(crate) job: Option<Arc<Tag>>,
    pub(crate) facts: Vec<(&'static str, Value)>,
}

impl Note {
    pub(crate) fn new(event: &'static str) -> Self {
        Self {
            event,
            job: None,
            facts: Vec::new(),
        }
    }

    pub(crate) fn of(mut self, job: &Arc<Tag>) -> Self {
        self.job = Some(Arc::clone(job));
        self
    }

    pub(crate) fn fact(&self, name: &str) -> Option<&Value> {
        let mut facts = self.facts.iter();
        facts.find_map(|(fact, value)| (*fact == name).then_some(value))
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.facts.push((name, value.into()));
        self
    }
}

/// A file that the output of an attempt goes to, or what is told of all attempts.
#[derive(Debug)]
pub(crate) struct Log {
    /// Whose it is, if it is of one job.
    job: Option<Arc<Tag>>,
    path: PathBuf,
    file: File,
    has_failed: AtomicBool,
}

impl Log {
    pub(super) fn new(job: Option<&Arc<Tag>>, path: PathBuf, file: File) -> Self {
        Self {
            job: job.cloned(),
            path,
            file,
            has_failed: AtomicBool::new(false),
        }
    }

    /// Adds to it; once that fails returns what there is to tell, and adds nothing any more.
    pub(crate) fn write(&self, bytes: &[u8]) -> Option<Note> {
        if self.has_failed.load(Ordering::Relaxed) {
            return None;
        }
        let error = (&self.file).write_all(bytes).err()?;
        self.has_failed.store(true, Ordering::Relaxed);
        let reason = format!("{}: {error}", self.path.display());
        Some(not_kept(self.job.as_ref(), reason))
    }
}

/// Says that what was to be in a file is dropped, or the rest of it.
pub(super) fn not_kept(job: Option<&Arc<Tag>>, reason: String) -> Note {
    let note = Note::new("output_not_kept").with("reason", reason);
    match job {
        Some(job) => note.of(job),
        None => note,
    }
}

#[derive(Debug)]
pub(crate) enum Progress {
    Note(Note),
    /// A line that a command wrote, or a piece of one that is very long; without its end.
    Line {
        job: Arc<Tag>,
        stream: Stream,
        text: Vec<u8>,
    },
    Bytes(Arc<Log>, Vec<u8>),
    /// So many notes found no room.
    Missed(u64),
    /// This was the last; whoever waits for its having been shown is told so.
    End(oneshot::Sender<()>),
}

/// Reporting never waits: whoever keeps claims alive must not be held up by who reads of it.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    sender: mpsc::Sender<Progress>,
    /// Whether anybody wants to know what happens, beside what commands write.
    tells: bool,
    missed: Arc<std::sync::atomic::AtomicU64>,
}

impl Reporter {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Progress>) {
        let (sender, receiver) = mpsc::channel(ROOM);
        let missed = Arc::default();
        let tells = true;
        (
            Self {
                sender,
                tells,
                missed,
            },
            receiver,
        )
    }

    /// From here on only passes on what commands write.
    pub(crate) fn hush(&mut self) {
        self.tells = false;
    }

    /// Tells what happened; what finds no room is counted, and the count told later.
    pub(crate) fn tell(&self, note: Note) {
        use std::sync::atomic::Ordering::Relaxed;
        if !self.tells {
            return;
        }
        let missed = self.missed.swap(0, Relaxed);
        if missed > 0 && self.sender.try_send(Progress::Missed(missed)).is_err() {
            self.missed.fetch_add(missed, Relaxed);
        }
        if let Err(TrySendError::Full(_)) = self.sender.try_send(Progress::Note(note)) {
            self.missed.fetch_add(1, Relaxed);
        }
    }

    pub(crate) async fn finish(&self) {
        let (sender, shown) = oneshot::channel();
        self.hand(Progress::End(sender)).await;
        // Whoever shows it may be gone, and is not waited for.
        let _ = shown.await;
    }

    /// Adds something to a file; what finds no room for long is counted like what is told.
    pub(super) async fn write(&self, file: &Arc<Log>, bytes: Vec<u8>) {
        let handed = self.hand(Progress::Bytes(Arc::clone(file), bytes));
        if time::timeout(PATIENCE, handed).await.is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn hand(&self, progress: Progress) {
        // Whoever showed it may be gone: then nobody wants to see it.
        let _ = self.sender.send(progress).await;
    }

    /// In order. Dropped meanwhile, it leaves what was not handed over in `waiting`.
    pub(super) async fn hand_all(&self, waiting: &mut VecDeque<Progress>) {
        while !waiting.is_empty() {
            match self.sender.reserve().await {
                Ok(room) => {
                    if let Some(progress) = waiting.pop_front() {
                        room.send(progress);
                    }
                }
                // Whoever showed it is gone, and nobody wants to see it.
                Err(_) => waiting.clear(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_finds_no_room_is_counted() {
        let (reporter, mut receiver) = Reporter::new();
        for _ in 0..ROOM + 3 {
            reporter.tell(Note::new("a"));
        }
        for _ in 0..2 {
            receiver.recv().await;
        }
        reporter.tell(Note::new("b"));
        let mut last = Vec::new();
        while let Ok(progress) = receiver.try_recv() {
            last.push(progress);
        }
        assert!(matches!(
            &last[last.len() - 2..],
            [Progress::Missed(3), Progress::Note(note)] if note.event == "b"
        ));
    }
}
