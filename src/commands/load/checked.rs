//! Checks a whole dump before any of it is loaded.

use std::{
    env,
    fs::{self, File, OpenOptions},
    io::{BufWriter, Write},
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
        post::lines::{DUMP, MARK},
    },
    context::on_file,
    exit::CommandError,
    job::shortened,
};

/// Reads the first line that is not empty.
pub(super) async fn first(lines: &mut LineReader) -> anyhow::Result<Option<Vec<u8>>> {
    while let Some(line) = lines.next().await? {
        let line = line.with_context(|| lines.place())?;
        if !line.trim_ascii().is_empty() {
            return Ok(Some(line));
        }
    }
    Ok(None)
}

/// Parses the header; `None` for the line of a listing.
pub(super) fn header(line: &[u8]) -> anyhow::Result<Option<Header>> {
    // A header after a byte order mark counts, and its hash then rejects the dump.
    let line = line.strip_prefix(MARK).unwrap_or(line).trim_ascii_start();
    if !line.starts_with(format!("{{\"{DUMP}\":").as_bytes()) {
        return Ok(None);
    }
    let header: Header = serde_json::from_slice(line)
        .map_err(|error| shortened(&error.to_string()))
        .map_err(|words| CommandError::usage(format!("the header of the dump: {words}")))?;
    if header.jobboard_dump != VERSION {
        let message = format!(
            "the dump has version {}; this jobboard reads version {VERSION}",
            header.jobboard_dump
        );
        return Err(CommandError::usage(message).into());
    }
    Ok(Some(header))
}

/// Verifies a dump after its header, and returns it from its first record on.
///
/// Input that can be read only once is kept in an unnamed file. A dump that was cut off or changed is rejected.
pub(super) async fn whole(
    mut lines: LineReader,
    header: &[u8],
) -> anyhow::Result<(LineReader, Trailer)> {
    let mut spool = match lines.is_file() {
        true => None,
        false => Some(nameless().context("cannot store the dump while checking it")?),
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
        return Err(refused(&lines, "is truncated: the trailer is missing"));
    };
    if hash.hex() != trailer.sha256 {
        return Err(refused(&lines, "is damaged: its hash does not match"));
    }
    let spool = spool.map(|spool| spool.into_inner().map_err(|error| error.into_error()));
    let mut records = lines.again(spool.transpose()?)?;
    first(&mut records).await?;
    Ok((records, trailer))
}

fn refused(lines: &LineReader, what: &str) -> anyhow::Error {
    let message = format!("the dump {} {what}; nothing was loaded", lines.source());
    let hint = "`tail -n +2 FILE | jobboard load -` loads the readable records";
    CommandError::refused(message).hint(hint).into()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused, same};

    #[test]
    fn untrusted_headers_are_written_as_they_were_read() {
        let headers = [
            r#"{"jobboard_dump":1,"board":"b","backend":"redis","version":"0.2.0","taken":"2026-01-01T00:00:00Z"}"#,
            r#"{"jobboard_dump":1,"board":"b","backend":"of later","filter":["name=a"],"later":[1]}"#,
            r#"{"jobboard_dump":2,"board":"b","backend":"embedded","created_on":"2026-01-01T00:00:00Z"}"#,
        ];
        Corpus::of(Bounds::STORED, headers).hold(|input| match header(input) {
            Ok(Some(header)) => {
                let text = |header: &Header| serde_json::to_string(header).unwrap();
                let once = text(&header);
                if header.backend.is_some() {
                    let again = super::header(once.as_bytes()).map_err(|it| it.to_string())?;
                    same("read again", &Some(once), &again.as_ref().map(text))?;
                }
                Ok(Answer::Read)
            }
            Ok(None) => refused("it is none"),
            Err(error) => refused(&format!("{error:#}")),
        });
    }
}
