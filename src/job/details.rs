//! The details of a job, which are decoded only on demand.

use std::{borrow::Cow, ptr::fn_addr_eq, sync::Arc};

use serde_json::Value;

/// A megabyte of short values takes many times as much memory once it is decoded, and most commands need no member,
/// or one. So details that were read stay encoded.
#[derive(Debug, Clone)]
pub(crate) enum Details {
    Decoded(Value),
    Stored(Arc<[u8]>, Decode),
}

/// Decodes all details, or only these members; `None` if they are unreadable.
pub(crate) type Decode = fn(&[u8], Option<&[&str]>) -> Option<Value>;

/// Details with more encoded bytes are not decoded merely to add a trace.
const HEAVY: usize = 2048;

impl Details {
    /// Whether they may take much memory once they are decoded.
    pub(crate) fn is_heavy(&self) -> bool {
        matches!(self, Self::Stored(bytes, _) if bytes.len() > HEAVY)
    }

    /// Decodes stored details on every call.
    pub(crate) fn value(&self) -> Cow<'_, Value> {
        self.decoded(None)
    }

    /// Decodes these members if present.
    pub(crate) fn members(&self, names: &[&str]) -> Cow<'_, Value> {
        self.decoded(Some(names))
    }

    fn decoded(&self, names: Option<&[&str]>) -> Cow<'_, Value> {
        match self {
            Self::Decoded(value) => Cow::Borrowed(value),
            Self::Stored(bytes, decode) => Cow::Owned(decode(bytes, names).unwrap_or_default()),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        match self.members(&[name]) {
            Cow::Borrowed(value) => value.get(name).map(Cow::Borrowed),
            Cow::Owned(mut value) => value.get_mut(name).map(|it| Cow::Owned(it.take())),
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
