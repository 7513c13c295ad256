//! Which part of a board a key belongs to that the server says was touched.

use redis::Value;

use super::super::keys::{Keys, Part};
use crate::job::JobKey;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Touched {
    /// Everything was removed, or the server forgot what it was to tell.
    Everything,
    Parts(Vec<Part>),
}

pub(super) fn read(keys: &Keys, data: Vec<Value>) -> Touched {
    let Some(Value::Array(names)) = data.into_iter().next() else {
        return Touched::Everything;
    };
    let parts = names.iter().filter_map(|name| match name {
        Value::BulkString(name) => keys.part(name),
        _ => None,
    });
    Touched::Parts(parts.collect())
}

impl Part {
    pub(super) fn job(&self) -> Option<&JobKey> {
        match self {
            Self::Owner(key) | Self::Modified(key) | Self::Sidecar(key) => Some(key),
            Self::Postings | Self::Trash | Self::Sequence | Self::Conductor(_) => None,
        }
    }
}
