//! The details of a job. Heavy ones are decoded only on demand.

use std::{borrow::Cow, ptr::fn_addr_eq, sync::Arc};

use serde_json::Value;

/// The details of a job.
///
/// A megabyte of short values takes many times as much memory once it is decoded. Heavy details stay encoded, so that
/// the number of their bytes bounds the memory.
#[derive(Debug, Clone)]
pub(crate) enum Details {
    Decoded(Value),
    /// With the function that decodes them.
    Stored(Arc<[u8]>, Decode),
}

/// Decodes valid bytes, or only this member of a map.
pub(crate) type Decode = fn(&[u8], Option<&str>) -> Option<Value>;

impl Details {
    /// Details are heavy if they would take more bytes of memory than this.
    pub(crate) const HEAVY: usize = 8 * 1024;

    /// Decodes heavy details on every call.
    pub(crate) fn value(&self) -> Cow<'_, Value> {
        match self {
            Self::Decoded(value) => Cow::Borrowed(value),
            Self::Stored(bytes, decode) => Cow::Owned(decode(bytes, None).unwrap_or_default()),
        }
    }

    /// Returns a member, and decodes no other.
    pub(crate) fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        match self {
            Self::Decoded(value) => value.get(name).map(Cow::Borrowed),
            Self::Stored(bytes, decode) => decode(bytes, Some(name)).map(Cow::Owned),
        }
    }
}

impl From<Value> for Details {
    fn from(value: Value) -> Self {
        Self::Decoded(value)
    }
}

impl PartialEq for Details {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Stored(bytes, decode), Self::Stored(others, other))
                if bytes == others && fn_addr_eq(*decode, *other) =>
            {
                true
            }
            _ => self.value() == other.value(),
        }
    }
}
