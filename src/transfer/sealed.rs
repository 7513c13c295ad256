//! Sealed files of JSON lines, for dumps and plans: a header, records, and a trailer with counts and a hash.

use std::{
    env, fmt,
    fs::{self, File, OpenOptions},
    io::{BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use aws_lc_rs::digest::{Context as Digest, SHA256};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::lines::LineReader;
use crate::{
    atomic_file::{AtomicFile, on_file},
    exit::CommandError,
    job::{Entry, State},
    output::{Output, Page, Report, json_line},
};

#[derive(Debug, Clone, Copy)]
pub(crate) enum SealedKind {
    Dump,
    Plan,
}

/// The last line: the number of records, and a hash of everything before it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Trailer {
    #[serde(default)]
    pub(crate) end: bool,
    pub(crate) jobs: u64,
    pub(crate) trash: u64,
    pub(crate) malformed: u64,
    pub(crate) sha256: String,
}

impl Trailer {
    pub(crate) fn count(&mut self, entry: &Entry) {
        *match entry.state() {
            State::Malformed => &mut self.malformed,
            State::Trashed => &mut self.trash,
            State::Unclaimed | State::Claimed | State::Complete => &mut self.jobs,
        } += 1;
    }

    pub(crate) fn total(&self) -> u64 {
        self.jobs + self.trash + self.malformed
    }
}

impl fmt::Display for Trailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on the board, {} in the trash", self.jobs, self.trash)?;
        match self.malformed {
            0 => Ok(()),
            malformed => write!(f, ", {malformed} unreadable"),
        }
    }
}

fn hex(hash: Digest) -> String {
    let hash = hash.finish();
    hash.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[derive(Debug, Serialize)]
struct SealedFile {
    #[serde(skip)]
    done: &'static str,
    file: PathBuf,
    #[serde(flatten)]
    trailer: Trailer,
}

impl Report for SealedFile {
    fn fields(&self) -> Vec<String> {
        let trailer = &self.trailer;
        vec![
            self.file.display().to_string(),
            trailer.jobs.to_string(),
            trailer.trash.to_string(),
            trailer.malformed.to_string(),
            trailer.sha256.clone(),
        ]
    }

    fn human(&self, page: &mut Page) {
        let (done, file) = (self.done, self.file.display());
        page.line()
            .plain(format!("{done} {file}: {}", self.trailer));
    }
}

pub(crate) struct SealedWriter {
    hash: Digest,
    file: Option<AtomicFile>,
}

impl SealedWriter {
    /// Opens a file, or standard output without a path or with the path `-`.
    pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let path = path.filter(|path| path.as_os_str() != "-");
        let file = path.map(AtomicFile::open).transpose()?;
        Ok(Self {
            hash: Digest::new(&SHA256),
            file,
        })
    }

    pub(crate) fn line(&mut self, out: &mut Output, line: &impl Serialize) -> anyhow::Result<()> {
        // The text must be safe on a terminal.
        let bytes = json_line(line)?;
        self.hash.update(&bytes);
        match &mut self.file {
            Some(file) => file.write(&bytes),
            None => out.pass(&bytes),
        }
    }

    pub(crate) fn seal(
        mut self,
        out: &mut Output,
        done: &'static str,
        mut trailer: Trailer,
    ) -> anyhow::Result<()> {
        (trailer.end, trailer.sha256) = (true, hex(self.hash.clone()));
        self.line(out, &trailer)?;
        let Some(file) = self.file else {
            out.flush()?;
            out.detail(format!("{done} standard output: {trailer}"));
            return Ok(());
        };
        let file = file.finish()?;
        out.report(&SealedFile {
            done,
            file,
            trailer,
        })
    }
}

pub(crate) async fn first(lines: &mut LineReader) -> anyhow::Result<Option<Vec<u8>>> {
    while let Some(line) = lines.next().await? {
        let line = line.with_context(|| lines.place())?;
        if !line.trim_ascii().is_empty() {
            return Ok(Some(line));
        }
    }
    Ok(None)
}

/// Verifies a sealed file after its header, and returns it from its first record on.
///
/// Input that can be read only once is kept in an unnamed file. A file that was cut off or changed is rejected.
pub(crate) async fn whole(
    mut lines: LineReader,
    header: &[u8],
    kind: SealedKind,
) -> anyhow::Result<(LineReader, Trailer)> {
    let mut spool = match lines.is_file() {
        true => None,
        false => Some(nameless().context("cannot store the input while checking it")?),
    };
    let mut hash = Digest::new(&SHA256);
    let mut last = header.to_vec();
    while let Some(line) = lines.next().await? {
        let line = line.with_context(|| lines.place())?;
        last.push(b'\n');
        hash.update(&last);
        if let Some(spool) = &mut spool {
            spool.write_all(&last)?;
        }
        last = line;
    }
    let trailer = serde_json::from_slice::<Trailer>(&last)
        .ok()
        .filter(|trailer| trailer.end);
    let Some(trailer) = trailer else {
        let problem = "is truncated: the trailer is missing";
        return Err(refused(&lines, kind, problem));
    };
    if hex(hash) != trailer.sha256 {
        return Err(refused(&lines, kind, "is damaged: its hash does not match"));
    }
    let spool = spool.map(|spool| spool.into_inner().map_err(|error| error.into_error()));
    let mut records = lines.again(spool.transpose()?)?;
    first(&mut records).await?;
    Ok((records, trailer))
}

fn refused(lines: &LineReader, kind: SealedKind, problem: &str) -> anyhow::Error {
    let source = lines.source();
    match kind {
        SealedKind::Dump => {
            let message = format!("the dump {source} {problem}; nothing was loaded");
            let hint = "to load the readable records, without their stored bytes, pipe \
                `tail -n +2 FILE` into `jobboard load -`";
            CommandError::refused(message).hint(hint)
        }
        SealedKind::Plan => {
            let message = format!("the plan {source} {problem}; nothing changed");
            CommandError::refused(message).hint("write the plan again with `--plan`")
        }
    }
    .into()
}

/// Creates a private file without a name, which the kernel deletes when the process ends.
fn nameless() -> anyhow::Result<BufWriter<File>> {
    let path = env::temp_dir().join(format!(".jobboard-{}", Uuid::new_v4().simple()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let file = on_file(&path, "make", options.open(&path))?;
    on_file(&path, "remove", fs::remove_file(&path))?;
    Ok(BufWriter::new(file))
}
