//! Compact keys of records: a subscriber of a board keeps one per job.

use std::{borrow::Cow, cmp::Ordering, fmt};

use serde::{Serialize, Serializer};
use uuid::{Uuid, fmt::Hyphenated};

/// Identifies a record of a board; opaque, and different for each backend.
///
/// It is the record's own name, which may differ from the uuid in its posting.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct JobKey(Form);

/// A name. Almost every name is a uuid in its usual form, stored as its number.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    Uuid(Uuid),
    Other(Box<str>),
}

impl JobKey {
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        standard_uuid(text.as_bytes()).map_or_else(|| Self(Form::Other(text.into())), Self::from)
    }

    pub(crate) fn text(&self) -> Cow<'_, str> {
        match &self.0 {
            Form::Uuid(uuid) => Cow::Owned(uuid.to_string()),
            Form::Other(text) => Cow::Borrowed(text),
        }
    }
}

/// The key of no record.
impl Default for JobKey {
    fn default() -> Self {
        Uuid::nil().into()
    }
}

impl From<Uuid> for JobKey {
    fn from(uuid: Uuid) -> Self {
        Self(Form::Uuid(uuid))
    }
}

/// Returns the uuid of a text in the usual form. Uuids have other notations, too.
pub(crate) fn standard_uuid(text: &[u8]) -> Option<Uuid> {
    let is_usual = text.len() == Hyphenated::LENGTH && !text.iter().any(u8::is_ascii_uppercase);
    is_usual.then(|| Uuid::try_parse_ascii(text).ok())?
}

impl Ord for JobKey {
    /// Compares them as texts, as boards do.
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Form::Uuid(one), Form::Uuid(other)) => one.cmp(other),
            _ => self.text().cmp(&other.text()),
        }
    }
}

impl PartialOrd for JobKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Debug for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JobKey").field(&self.text()).finish()
    }
}

impl Serialize for JobKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_no_larger_than_a_string() {
        let text = "1f0c9a58-8f0e-5d0a-8a43-6b0c3f6d2e7b";
        let mut texts = [
            text.to_owned(),
            text.to_uppercase(),
            text.replace('-', ""),
            format!("{{{text}}}"),
            "job0000000007".to_owned(),
            "1f0d".to_owned(),
            String::new(),
        ];
        let mut keys = texts.clone().map(JobKey::new);
        texts.sort();
        keys.sort();
        assert_eq!(keys.map(|key| key.to_string()), texts);
        assert_eq!(size_of::<JobKey>(), size_of::<String>());
    }
}
