//! Job references: a uuid, its beginning, the sequence number, or the record's key.

use std::{fmt, str::FromStr};

use futures_util::TryStreamExt;
use thiserror::Error;
use uuid::Uuid;

use super::{Board, Detail, Query};
use crate::job::{Entry, JobKey, Location};

/// The uuid namespace of unique keys; must never change.
const UNIQUE: Uuid = Uuid::from_u128(0x6d9b_8f0e_5c1d_4a7b_9f3e_2b6a_7c41_d05e);

pub(crate) fn uuid_of(unique: &str) -> Uuid {
    Uuid::new_v5(&UNIQUE, unique.as_bytes())
}

/// Maximum matches of an ambiguous reference.
pub(super) const CANDIDATES: usize = 10;

const MIN_PREFIX: usize = 4;

const UUID_LENGTH: usize = 36;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobRef {
    /// A whole uuid or a prefix, in lower case.
    Uuid(String),
    /// `@12`: the job with that number.
    Sequence(i64),
    /// `key:TEXT`: the record of that name.
    Key(JobKey),
}

impl JobRef {
    pub(crate) fn is_exact(&self) -> bool {
        match self {
            Self::Uuid(text) => text.len() == UUID_LENGTH,
            Self::Sequence(_) | Self::Key(_) => true,
        }
    }

    fn could_mean(&self, entry: &Entry) -> bool {
        match self {
            Self::Key(key) => entry.key() == key,
            Self::Uuid(beginning) => entry
                .job()
                .is_some_and(|job| job.uuid.to_ascii_lowercase().starts_with(beginning)),
            Self::Sequence(number) => entry.job().is_some_and(|job| job.sequence == Some(*number)),
        }
    }
}

/// Finds ended jobs, as [`Board::find`] does, by reading the history.
pub(super) async fn find_ended(
    board: &impl Board,
    wanted: &[JobRef],
) -> super::Result<Vec<Vec<Entry>>> {
    let mut entries = board.entries(Query::all(Location::History, Detail::Brief));
    let mut found: Vec<Vec<Entry>> = vec![Vec::new(); wanted.len()];
    while let Some(entry) = entries.try_next().await? {
        for (wanted, found) in wanted.iter().zip(&mut found) {
            // A job may end more than once; the last time counts.
            let is_new = || found.iter().all(|it| it.reference() != entry.reference());
            if found.len() < CANDIDATES && wanted.could_mean(&entry) && is_new() {
                found.push(entry.clone());
            }
        }
    }
    Ok(found)
}

impl fmt::Display for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid(text) => f.write_str(text),
            Self::Sequence(number) => write!(f, "@{number}"),
            Self::Key(key) => write!(f, "key:{key}"),
        }
    }
}

#[derive(Debug, Error)]
#[error("`{text}` is not a job reference; use {}", forms(text))]
pub(crate) struct NotAReference {
    text: String,
}

fn forms(text: &str) -> String {
    match text.parse::<i64>() {
        Ok(number) => format!("@{number} for the job with this number"),
        Err(_) => format!(
            "the uuid, its first {MIN_PREFIX} or more hex digits, @SEQUENCE, key:TEXT or unique:KEY"
        ),
    }
}

impl FromStr for JobRef {
    type Err = NotAReference;

    fn from_str(text: &str) -> Result<Self, NotAReference> {
        let wrong = || NotAReference {
            text: text.to_owned(),
        };
        if let Some(key) = text.strip_prefix("key:") {
            // A peer can store a record on Redis under an empty name.
            return Ok(Self::Key(JobKey::new(key)));
        }
        if let Some(key) = text.strip_prefix("unique:") {
            return match key {
                "" => Err(wrong()),
                key => Ok(Self::Uuid(uuid_of(key).to_string())),
            };
        }
        if let Some(number) = text.strip_prefix('@') {
            return number.parse().map(Self::Sequence).map_err(|_| wrong());
        }
        let fits = text.len() >= MIN_PREFIX
            && text.len() <= UUID_LENGTH
            && text.bytes().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
        match fits {
            true => Ok(Self::Uuid(text.to_ascii_lowercase())),
            false => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused, same};

    #[test]
    fn uuids_and_prefixes_are_references() {
        for text in [
            "3f9a",
            "3F9A12cd",
            "3f9a12cd-0",
            "3f9a12cd-0000-4000-8000-000000000001",
        ] {
            assert_eq!(
                text.parse::<JobRef>().unwrap(),
                JobRef::Uuid(text.to_lowercase())
            );
        }
    }

    #[test]
    fn numbers_and_keys_are_references() {
        assert_eq!("@12".parse::<JobRef>().unwrap(), JobRef::Sequence(12));
        assert_eq!("@-1".parse::<JobRef>().unwrap(), JobRef::Sequence(-1));
        assert_eq!(
            "key:job %ff".parse::<JobRef>().unwrap(),
            JobRef::Key(JobKey::new("job %ff"))
        );
        assert_eq!(
            "key:".parse::<JobRef>().unwrap(),
            JobRef::Key(JobKey::new(""))
        );
    }

    #[test]
    fn unique_key_means_the_derived_uuid() {
        let wanted: JobRef = "unique:nightly a:b".parse().unwrap();
        assert_eq!(wanted, JobRef::Uuid(uuid_of("nightly a:b").to_string()));
        assert!(wanted.is_exact());
    }

    #[test]
    fn invalid_references_are_refused() {
        for text in [
            "",
            "3f9",
            "resize",
            "@",
            "@x",
            "unique:",
            "3f9a12cd0",
            "3f9a12cd-00000",
        ] {
            assert!(text.parse::<JobRef>().is_err(), "{text}");
        }
    }

    #[test]
    fn untrusted_references_are_printed_as_they_were_read() {
        let uuid = "3f9a12cd-0000-4000-8000-000000000001";
        let texts = [uuid, "3F9A", "@12", "@-1", "key:job %ff", "unique:nightly"];
        Corpus::of(Bounds::TYPED, texts).hold_for_text(|text| match text.parse::<JobRef>() {
            Ok(reference) => {
                let again = reference
                    .to_string()
                    .parse()
                    .map_err(|it: NotAReference| it.to_string());
                same("printed again", &Ok(reference), &again).and(Ok(Answer::Read))
            }
            Err(wrong) => refused(&wrong),
        });
    }
}
