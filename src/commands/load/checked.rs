//! Making sure that a dump is whole before anything of it is loaded.

use std::{
    env,
    fs::{self, File, OpenOptions},
    io::{BufWriter, Seek, Write},
    os::unix::fs::OpenOptionsExt,
};

use anyhow::Context as _;
use uuid::Uuid;

use crate::{
    commands::{
        parts::{
            dump_format::{Hash, Header, Trailer, VERSION},
            line_reader::LineReader,
        },
        post::lines::DUMP,
    },
    context::on_file,
    exit::CommandError,
};

/// Reads the header of a dump; none, if the line is none, as the lines of a listing are not.
pub(super) fn header(line: &[u8]) -> anyhow::Result<Option<Header>> {
    if !line.starts_with(format!("{{\"{DUMP}\":").as_bytes()) {
        return Ok(None);
    }
    let header: Header = serde_json::from_slice(line)
        .map_err(|error| CommandError::usage(format!("the header of the dump: {error}")))?;
    if header.jobboard_dump != VERSION {
        let message = format!(
            "the dump has version {}, and {VERSION} is known here",
            header.jobboard_dump
        );
        return Err(CommandError::usage(message).into());
    }
    Ok(Some(header))
}

/// Reads a dump to its end, of which the header was read, and returns it from its first record on.
///
/// What can be read only once is kept in a file without a name meanwhile. Refuses a dump that was cut
/// off, or is not what was written.
pub(super) async fn whole(
    mut lines: LineReader,
    header: &[u8],
    longest: u64,
) -> anyhow::Result<(LineReader, Trailer)> {
    let mut spool = match lines.is_file() {
        true => None,
        false => Some(nameless().context("cannot keep the dump while it is checked")?),
    };
    let mut hash = Hash::default();
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
        return Err(refused(&lines, "was cut off: it has no trailer"));
    };
    if hash.hex() != trailer.sha256 {
        return Err(refused(
            &lines,
            "is not what was written: its hash is another one",
        ));
    }
    let mut records = match spool {
        None => lines.again()?,
        Some(spool) => {
            let mut file = spool.into_inner().map_err(|error| error.into_error())?;
            file.rewind()?;
            LineReader::of(file, lines.source().to_owned(), longest)?
        }
    };
    records.next().await?;
    Ok((records, trailer))
}

fn refused(lines: &LineReader, what: &str) -> anyhow::Error {
    let message = format!("the dump {} {what}; nothing was loaded", lines.source());
    let hint = "`tail -n +2 FILE | jobboard load -` loads the records that are in it, as far as they \
                can be read";
    CommandError::refused(message).hint(hint).into()
}

/// Makes a file that is gone with us, whatever ends us, and that nobody else can read.
fn nameless() -> anyhow::Result<BufWriter<File>> {
    let path = env::temp_dir().join(format!(".jobboard-{}", Uuid::new_v4().simple()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let file = on_file(&path, "make", options.open(&path))?;
    on_file(&path, "remove", fs::remove_file(&path))?;
    Ok(BufWriter::new(file))
}
