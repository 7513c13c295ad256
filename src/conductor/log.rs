//! Reports the conductor's work to the code that prints it.

use std::{
    collections::VecDeque,
    fmt,
    fs::File,
    io::Write as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;
use tokio::{
    sync::{
        mpsc::{self, error::TrySendError},
        oneshot,
    },
    time,
};

use crate::job::Job;

/// How many reports may wait before commands wait with their output.
const MAX_QUEUED: usize = 1024;

/// How long to wait for room where no command waits.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);

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
pub(crate) enum OutputStream {
    Output,
    Errors,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Note {
    /// TaskFlow's name for it, if TaskFlow has this event.
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

    pub(crate) fn with(self, name: &'static str, value: impl Into<Value>) -> Self {
        self.with_any(name, Some(value))
    }

    pub(super) fn with_time(self, name: &'static str, time: Option<DateTime<Utc>>) -> Self {
        self.with_any(
            name,
            time.map(|it| it.to_rfc3339_opts(SecondsFormat::Millis, true)),
        )
    }

    pub(super) fn with_any(mut self, name: &'static str, value: Option<impl Into<Value>>) -> Self {
        self.facts.extend(value.map(|value| (name, value.into())));
        self
    }
}

#[derive(Debug)]
pub(crate) struct Log {
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

    /// Appends to the file. After the first failure it returns a note, and appends nothing more.
    pub(crate) fn write(&self, bytes: &[u8]) -> Option<Note> {
        if self.has_failed.load(Relaxed) {
            return None;
        }
        let error = (&self.file).write_all(bytes).err()?;
        self.has_failed.store(true, Relaxed);
        let reason = format!("{}: {error}", self.path.display());
        Some(not_kept(self.job.as_ref(), reason))
    }
}

pub(super) fn not_kept(job: Option<&Arc<Tag>>, reason: String) -> Note {
    let note = Note::new("output_not_kept").with("reason", reason);
    let job = job.cloned();
    Note { job, ..note }
}

#[derive(Debug)]
pub(crate) enum LogItem {
    Note(Note),
    /// A line of a command, or a piece of a very long one, without its end.
    Line {
        job: Arc<Tag>,
        stream: OutputStream,
        text: Vec<u8>,
    },
    Bytes(Arc<Log>, Vec<u8>),
    /// This many notes found no room.
    Missed(u64),
    /// The last report. The sender learns when it was shown.
    End(oneshot::Sender<()>),
}

/// Reporting never waits: a slow reader must not delay renewals.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    sender: mpsc::Sender<LogItem>,
    /// Whether notes are wanted besides the output of commands.
    has_notes: bool,
    missed: Arc<AtomicU64>,
}

impl Reporter {
    pub(crate) fn new() -> (Self, mpsc::Receiver<LogItem>) {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED);
        let reporter = Self {
            sender,
            has_notes: true,
            missed: Arc::default(),
        };
        (reporter, receiver)
    }

    /// From here on passes on only the output of commands.
    pub(crate) fn silence(&mut self) {
        self.has_notes = false;
    }

    /// Sends a note. Without room it counts the note, and reports the count later.
    pub(crate) fn report(&self, note: Note) {
        if !self.has_notes {
            return;
        }
        let missed = self.missed.swap(0, Relaxed);
        if missed > 0 && self.sender.try_send(LogItem::Missed(missed)).is_err() {
            self.missed.fetch_add(missed, Relaxed);
        }
        if let Err(TrySendError::Full(_)) = self.sender.try_send(LogItem::Note(note)) {
            self.missed.fetch_add(1, Relaxed);
        }
    }

    pub(crate) async fn finish(&self) {
        let (sender, shown) = oneshot::channel();
        self.send(LogItem::End(sender)).await;
        // The receiver may be gone; do not wait for it.
        let _ = shown.await;
    }

    /// Appends to a file. Without room for some time, it counts as a missed note.
    pub(super) async fn write(&self, file: &Arc<Log>, bytes: Vec<u8>) {
        let handed = self.send(LogItem::Bytes(Arc::clone(file), bytes));
        if time::timeout(REPORT_TIMEOUT, handed).await.is_err() {
            self.missed.fetch_add(1, Relaxed);
        }
    }

    async fn send(&self, progress: LogItem) {
        // Without a receiver no one wants the report.
        let _ = self.sender.send(progress).await;
    }

    /// Keeps the order. If dropped early, it leaves the remaining reports in `waiting`.
    pub(super) async fn send_all(&self, waiting: &mut VecDeque<LogItem>) {
        while !waiting.is_empty() {
            match self.sender.reserve().await {
                Ok(room) => {
                    if let Some(progress) = waiting.pop_front() {
                        room.send(progress);
                    }
                }
                // Without a receiver no one wants the reports.
                Err(_) => waiting.clear(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn overflowing_notes_are_counted() {
        let (reporter, mut receiver) = Reporter::new();
        for _ in 0..MAX_QUEUED + 3 {
            reporter.report(Note::new("a"));
        }
        for _ in 0..2 {
            receiver.recv().await;
        }
        reporter.report(Note::new("b"));
        let mut last = Vec::new();
        while let Ok(progress) = receiver.try_recv() {
            last.push(progress);
        }
        assert!(matches!(
            &last[last.len() - 2..],
            [LogItem::Missed(3), LogItem::Note(note)] if note.event == "b"
        ));
    }
}
