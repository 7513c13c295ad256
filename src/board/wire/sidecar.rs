//! The sidecar: job state that TaskFlow's records have no place for.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};

use super::as_json;
use crate::job::{
    Attempts, AuditEntry, Failure, Fence, Former, Location, MAX_RECORD_BYTES, from_json, shortened,
    sortable_time,
};

const VERSION: u32 = 1;

const MAX_SIDECAR_BYTES: usize = MAX_RECORD_BYTES;

pub(in crate::board) const MEMBERS: [&str; 14] = [
    "v",
    "owner",
    "claimed_on",
    "fence",
    "attempts",
    "session",
    "ahead",
    "postponed",
    "not_before",
    "failures",
    "trashed_on",
    "created_on",
    "first_claimed_on",
    "remark",
];

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Sidecar {
    #[serde(default = "Version::missing")]
    pub(in crate::board) v: Version,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "sortable_time"
    )]
    pub(crate) claimed_on: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fence: Option<Fence>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "session")]
    pub(crate) session: Option<u64>,
    /// Whether the last claim was made ahead of its turn and counts only once settled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ahead: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) postponed: u32,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "sortable_time"
    )]
    pub(crate) not_before: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<Failure>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "sortable_time"
    )]
    pub(crate) trashed_on: Option<DateTime<Utc>>,
    /// The posting time, if a move makes the server lose it.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "sortable_time"
    )]
    pub(crate) created_on: Option<DateTime<Utc>>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "sortable_time"
    )]
    pub(crate) first_claimed_on: Option<DateTime<Utc>>,
    #[serde(rename = "remark", skip_serializing_if = "Option::is_none")]
    pub(crate) audit: Option<AuditEntry>,
}

/// A new sidecar has our version.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(in crate::board) struct Version(u32);

impl Default for Version {
    fn default() -> Self {
        Self(VERSION)
    }
}

impl Version {
    fn missing() -> Self {
        Self(0)
    }
}

impl Sidecar {
    /// Reads a record. An unreadable one, or one of an unknown version, yields only its problem.
    ///
    /// The scripts on Redis use the same rules.
    pub(crate) fn read(bytes: Option<&[u8]>) -> (Self, Option<String>) {
        let Some(bytes) = bytes else {
            return (Self::default(), None);
        };
        let side = match bytes.len() {
            0 => Err("the sidecar is empty or not text".to_owned()),
            1..=MAX_SIDECAR_BYTES => {
                let side = from_json::<Self>(bytes);
                // Unknown members are skipped unread, but the scripts on Redis refuse half a surrogate pair in them.
                let is_surrogate = |it: &[u8]| matches!(it, [b'\\', b'u', b'd' | b'D']);
                let side = match bytes.contains(&b'\\') && bytes.windows(3).any(is_surrogate) {
                    true => from_json::<Value>(bytes).and(side),
                    false => side,
                };
                // The invalid value may be long.
                side.map_err(|error| shortened(&error.to_string()))
            }
            length => Err(format!("the sidecar has {length} bytes")),
        };
        let version = match &side {
            Ok(side) => Some(side.v.0),
            Err(_) => version(bytes),
        };
        let problem = match (side, version) {
            (Ok(side), Some(VERSION)) => return (side, None),
            (_, Some(version)) if version > VERSION => {
                format!("the sidecar has the unknown version {version}")
            }
            (Err(error), _) => format!("the sidecar is unreadable: {error}"),
            (Ok(_), _) => "the sidecar is unreadable: the version is missing".to_owned(),
        };
        (Self::default(), Some(problem))
    }

    pub(crate) fn problem(bytes: &[u8]) -> String {
        let problem = Self::read(Some(bytes)).1;
        problem.unwrap_or_else(|| "the sidecar cannot be changed".to_owned())
    }

    pub(crate) fn first_attempt(now: DateTime<Utc>) -> Self {
        Self {
            attempts: 1,
            first_claimed_on: Some(now),
            ..Self::default()
        }
    }

    pub(crate) fn of_former(former: &Former) -> Option<Self> {
        let attempts = former.attempts.clone();
        let side = Self {
            attempts: attempts.count,
            postponed: attempts.postponed,
            not_before: attempts.not_before,
            failures: attempts.failures,
            first_claimed_on: attempts.first_claimed_on,
            audit: attempts.audit,
            trashed_on: former
                .trashed_on
                .filter(|_| former.location == Location::Trash),
            ..Self::default()
        };
        (side != Self::default()).then_some(side)
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        as_json(self).into_bytes()
    }

    /// Writes over the former record and keeps its unknown members.
    pub(crate) fn write_over(&self, former: &[u8]) -> Vec<u8> {
        let mut members: Map<String, Value> = serde_json::from_slice(former).unwrap_or_default();
        members.retain(|name, _| !MEMBERS.contains(&name.as_str()));
        if let Value::Object(known) = serde_json::json!(self) {
            members.extend(known);
        }
        Value::Object(members).to_string().into_bytes()
    }

    pub(crate) fn into_attempts(mut self) -> Attempts {
        // Other clients may have recorded more.
        let surplus = self.failures.len().saturating_sub(Attempts::MAX_FAILURES);
        self.failures.drain(..surplus);
        Attempts {
            count: self.attempts,
            postponed: self.postponed,
            not_before: self.not_before,
            failures: self.failures,
            first_claimed_on: self.first_claimed_on,
            audit: self.audit,
        }
    }
}

fn version(bytes: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Versioned {
        v: u32,
    }
    let versioned = serde_json::from_slice::<Versioned>(bytes).ok()?;
    Some(versioned.v)
}

/// The scripts on Redis would round a greater number when they write it again.
const MAX_STORED_SESSION: u64 = 100_000_000_000_000;

fn session<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<u64>, D::Error> {
    let session = Option::<u64>::deserialize(reader)?;
    match session.is_some_and(|it| it >= MAX_STORED_SESSION) {
        true => Err(D::Error::custom("`session` is too large")),
        false => Ok(session),
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Writes the form in which times sort as text.
pub(crate) fn text_of(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

#[cfg(test)]
mod tests;
