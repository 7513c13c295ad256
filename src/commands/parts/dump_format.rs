//! The format of a dump: a header, a line for each record, and a trailer.

use std::fmt;

use aws_lc_rs::digest::{Context as Digest, SHA256};
use chrono::Utc;
use serde::{Deserialize, Serialize};

use crate::{
    board::url::BoardKind,
    job::Shelf,
    output::{JobView, rfc3339},
};

pub(crate) const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) jobboard_dump: u32,
    pub(crate) board: String,
    /// `None` for a kind that only a later jobboard knows.
    #[serde(deserialize_with = "known")]
    pub(crate) backend: Option<BoardKind>,
    #[serde(default)]
    version: String,
    #[serde(default, alias = "taken")]
    pub(crate) created_on: String,
    #[serde(default)]
    filter: Vec<String>,
}

impl Header {
    /// Returns the header of a dump that starts now.
    pub(crate) fn new(board: &str, kind: BoardKind, filter: Vec<String>) -> Self {
        Self {
            jobboard_dump: VERSION,
            board: board.to_owned(),
            backend: Some(kind),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            created_on: rfc3339(Utc::now()),
            filter,
        }
    }
}

fn known<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Option<BoardKind>, D::Error> {
    Ok(String::deserialize(reader)?.parse().ok())
}

/// A record: its listing plus its stored bytes.
#[derive(Serialize)]
pub(crate) struct Line<'a> {
    kind: &'static str,
    #[serde(flatten)]
    view: JobView<'a>,
}

pub(crate) const TRASH: &str = "trash";

impl<'a> Line<'a> {
    pub(crate) fn new(shelf: Shelf, view: JobView<'a>) -> Self {
        let kind = match shelf {
            Shelf::Trash => TRASH,
            Shelf::Board | Shelf::Past => "job",
        };
        Self { kind, view }
    }
}

/// The last line: the number of records, and a hash of everything before it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Trailer {
    #[serde(default, serialize_with = "always")]
    pub(crate) end: bool,
    pub(crate) jobs: u64,
    pub(crate) trash: u64,
    pub(crate) malformed: u64,
    pub(crate) sha256: String,
}

fn always<S: serde::Serializer>(_: &bool, writer: S) -> Result<S::Ok, S::Error> {
    writer.serialize_bool(true)
}

impl fmt::Display for Trailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            jobs,
            trash,
            malformed,
            ..
        } = self;
        write!(f, "{jobs} on the board, {trash} in the trash")?;
        match malformed {
            0 => Ok(()),
            _ => write!(f, ", {malformed} unreadable"),
        }
    }
}

pub(crate) struct Hash(Digest);

impl Default for Hash {
    fn default() -> Self {
        Self(Digest::new(&SHA256))
    }
}

impl Hash {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn hex(&self) -> String {
        let hash = self.0.clone().finish();
        hash.as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}
