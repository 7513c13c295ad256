//! Locks: the nodes that name a job's owner.

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::{
    read::record,
    token::{JsonItem, JsonToken},
    value::show,
    write::bytes,
};
use crate::{board::wire::posting::RecordProblem, job::Owner};

#[derive(Serialize)]
struct LockRecord<'a> {
    owner: &'a str,
}

#[derive(Debug)]
pub(crate) enum Lock {
    Owned(Owner),
    /// The job has no owner but cannot be claimed.
    Vacant(Flaw),
    /// The job is claimed by an unknown owner.
    Unreadable(Flaw),
}

#[derive(Debug, Error)]
pub(crate) enum Flaw {
    #[error("the lock is unreadable, and TaskFlow fails on it: {0}")]
    Malformed(RecordProblem),
    #[error("the lock names no owner, so the job counts as unclaimed, but no worker can claim it")]
    Nobody,
    #[error("the owner in the lock has {0} bytes")]
    TooLong(usize),
    #[error("the owner in the lock is {0}, not a string")]
    NotText(&'static str),
}

pub(crate) fn lock(owner: &Owner) -> Vec<u8> {
    bytes(&LockRecord {
        owner: &owner.text(),
    })
}

/// Reads a lock as TaskFlow does, but never fails.
///
/// An owner's name with a lone surrogate becomes bytes that are no valid text; they compare as the name does.
pub(crate) fn read_lock(bytes: &[u8]) -> Lock {
    match owner(bytes) {
        Ok(lock) => lock,
        Err(problem) => Lock::Unreadable(Flaw::Malformed(problem)),
    }
}

fn owner(bytes: &[u8]) -> Result<Lock, RecordProblem> {
    let Some([Some(owner)]) = record(bytes, ["owner"])? else {
        return Ok(Lock::Vacant(Flaw::Nobody));
    };
    Ok(match owner.head {
        _ if is_nothing(owner)? => Lock::Vacant(Flaw::Nobody),
        JsonToken::Text(text) => match text.bytes() {
            name if name.len() > Owner::LONGEST => Lock::Unreadable(Flaw::TooLong(name.len())),
            name => Lock::Owned(Owner::from_stored(name)),
        },
        other => Lock::Unreadable(Flaw::NotText(other.kind())),
    })
}

/// Whether Python treats the value as false.
fn is_nothing(item: JsonItem<'_>) -> Result<bool, RecordProblem> {
    Ok(match show(item)? {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    })
}
