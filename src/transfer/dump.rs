//! The lines of a dump: a header and records. `sealed` adds the trailer.

use chrono::Utc;
use serde::{Deserialize, Serialize};

use super::{json, lines::MARK};
use crate::{
    board::{filter::Filter, url::BoardKind},
    exit::CommandError,
    job::{Location, shortened},
    output::{JobView, rfc3339},
};

pub(crate) const DUMP: &str = "jobboard_dump";

const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DumpHeader {
    jobboard_dump: u32,
    board: String,
    /// `None` for a kind that only a later jobboard knows.
    #[serde(deserialize_with = "known")]
    pub(crate) backend: Option<BoardKind>,
    #[serde(default)]
    version: String,
    #[serde(default, alias = "taken")]
    created_on: String,
    #[serde(default)]
    filter: Vec<String>,
}

impl DumpHeader {
    pub(crate) fn new(board: &str, kind: BoardKind, filter: &[Filter]) -> Self {
        Self {
            jobboard_dump: VERSION,
            board: board.to_owned(),
            backend: Some(kind),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            created_on: rfc3339(Utc::now()),
            filter: filter.iter().map(Filter::to_string).collect(),
        }
    }
}

fn known<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Option<BoardKind>, D::Error> {
    Ok(String::deserialize(reader)?.parse().ok())
}

/// A record: its listing plus its stored bytes.
#[derive(Serialize)]
pub(crate) struct DumpLine<'a> {
    kind: &'static str,
    #[serde(flatten)]
    view: JobView<'a>,
}

pub(crate) const TRASH: &str = "trash";

impl<'a> DumpLine<'a> {
    pub(crate) fn new(location: Location, view: JobView<'a>) -> Self {
        let kind = match location {
            Location::Trash => TRASH,
            Location::Board | Location::History => "job",
        };
        let view = JobView {
            is_dump: true,
            ..view
        };
        Self { kind, view }
    }
}

pub(crate) fn header(line: &[u8]) -> anyhow::Result<Option<DumpHeader>> {
    // A header after a byte order mark counts, and its hash then rejects the dump.
    let line = line.strip_prefix(MARK).unwrap_or(line).trim_ascii_start();
    if !line.starts_with(format!("{{\"{DUMP}\":").as_bytes()) {
        return Ok(None);
    }
    let damaged = |reason: String| {
        CommandError::refused(shortened(&format!("the header of the dump {reason}")))
    };
    let members = json::object(line).map_err(|error| damaged(format!("is damaged: {error}")))?;
    // Another version may have other members.
    if let Some(version) = members.get(DUMP).filter(|it| **it != VERSION) {
        let message =
            format!("the dump has version {version}; this jobboard reads version {VERSION}");
        return Err(CommandError::usage(shortened(&message)).into());
    }
    let header = DumpHeader::deserialize(&members);
    let wrong = "lacks a valid `board` or `backend`, or another member has a wrong type";
    Ok(Some(header.map_err(|_| damaged(wrong.to_owned()))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused, same};

    #[test]
    fn untrusted_headers_round_trip() {
        let headers = [
            r#"{"jobboard_dump":1,"board":"b","backend":"redis","version":"0.2.0","taken":"2026-01-01T00:00:00Z"}"#,
            r#"{"jobboard_dump":1,"board":"b","backend":"of later","filter":["name=a"],"later":[1]}"#,
            r#"{"jobboard_dump":2,"board":"b","backend":"embedded","created_on":"2026-01-01T00:00:00Z"}"#,
        ];
        Corpus::of(Bounds::STORED, headers).hold(|input| match header(input) {
            Ok(Some(header)) => {
                let text = |header: &DumpHeader| serde_json::to_string(header).unwrap();
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
