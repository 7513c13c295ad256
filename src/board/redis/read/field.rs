//! A compact hash field: a listing remembers one for each job.

use std::{borrow::Cow, collections::HashSet};

use uuid::Uuid;

use crate::job::usual;

/// The exact bytes of a job's field: a uuid text except for hand-made jobs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Field {
    Uuid(Uuid),
    Other(Box<[u8]>),
}

impl Field {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        usual(bytes).map_or_else(|| Self::Other(bytes.into()), Self::Uuid)
    }

    pub(crate) fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Uuid(uuid) => Cow::Owned(uuid.to_string().into_bytes()),
            Self::Other(bytes) => Cow::Borrowed(bytes),
        }
    }
}

/// A set of fields, compact for ordinary jobs.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    uuids: HashSet<Uuid>,
    others: HashSet<Box<[u8]>>,
}

impl Seen {
    pub(crate) fn insert(&mut self, field: &[u8]) -> bool {
        match Field::of(field) {
            Field::Uuid(uuid) => self.uuids.insert(uuid),
            Field::Other(bytes) => self.others.insert(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_keeps_its_exact_bytes() {
        let text = "1f0c9a58-8f0e-5d0a-8a43-6b0c3f6d2e7b";
        let upper = text.to_uppercase();
        let plain = text.replace('-', "");
        let braced = format!("{{{text}}}");
        for field in [text, &upper, &plain, &braced, "", "bad-1"] {
            let kept = Field::of(field.as_bytes());
            assert_eq!(*kept.bytes(), *field.as_bytes());
            assert_eq!(matches!(kept, Field::Uuid(_)), field == text, "{field}");
        }
        assert_eq!(*Field::of(b"\xff\0").bytes(), *b"\xff\0");
    }

    #[test]
    fn each_field_counts_once_as_new() {
        let text = "1f0c9a58-8f0e-5d0a-8a43-6b0c3f6d2e7b";
        let upper = text.to_uppercase();
        let mut seen = Seen::default();
        for field in [text, &upper, "bad"] {
            assert!(seen.insert(field.as_bytes()), "{field}");
        }
        for field in [text, &upper, "bad"] {
            assert!(!seen.insert(field.as_bytes()), "{field}");
        }
    }

    #[test]
    fn field_is_no_larger_than_a_string() {
        assert!(size_of::<Field>() <= size_of::<String>());
    }
}
