//! The small nodes of ZooKeeper: locks, which name a job's owner, and entities, which list conductors.

use serde_json::{Value, json};

use super::{
    read::{map, record, require},
    token::{JsonItem, JsonToken},
    value::show,
    write::bytes,
};
use crate::{
    board::wire::{members::MemberValue, posting::RecordProblem},
    job::{Owner, shortened},
};

#[derive(Debug)]
pub(crate) enum Lock {
    Owned(Owner),
    /// The job has no owner but cannot be claimed, for this reason.
    Vacant(String),
    /// The job is claimed by an owner that is unknown for this reason.
    Unreadable(String),
}

impl Lock {
    fn vacant() -> Self {
        let problem =
            "the lock names no owner, so the job counts as unclaimed, but no worker can claim it";
        Self::Vacant(problem.to_owned())
    }
}

pub(crate) fn lock(owner: &Owner) -> Vec<u8> {
    bytes(&json!({ "owner": owner.text() }))
}

/// Reads a lock as TaskFlow does, but never fails.
pub(crate) fn read_lock(bytes: &[u8]) -> Lock {
    owner(bytes).unwrap_or_else(|problem| {
        Lock::Unreadable(format!(
            "the lock is unreadable, and TaskFlow fails on it: {problem}"
        ))
    })
}

fn owner(bytes: &[u8]) -> Result<Lock, RecordProblem> {
    let Some([Some(owner)]) = record(bytes, ["owner"])? else {
        return Ok(Lock::vacant());
    };
    Ok(match owner.head {
        _ if is_nothing(owner)? => Lock::vacant(),
        JsonToken::Text(text) => match text.read() {
            name if name.len() > Owner::MAX_BYTES => {
                Lock::Unreadable(format!("the owner in the lock has {} bytes", name.len()))
            }
            name => Lock::Owned(Owner::from_stored(name.into_owned())),
        },
        other => {
            let kind = other.kind();
            Lock::Unreadable(format!("the owner in the lock is {kind}, not a string"))
        }
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

const KIND: &str = "conductor";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entity {
    /// The name of its node: with TaskFlow `<owner>@<host>:<pid>`.
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
}

impl Entity {
    pub(crate) fn encode(&self) -> Vec<u8> {
        bytes(&json!({
            "kind": KIND,
            "name": self.name,
            "metadata": { "hostname": self.host, "pid": self.pid },
        }))
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, RecordProblem> {
        let [kind, name, metadata] =
            record(bytes, ["kind", "name", "metadata"])?.unwrap_or_default();
        let kind = words("kind", kind)?;
        if kind != KIND {
            return Err(RecordProblem::Kind(shortened(&kind)));
        }
        let name = words("name", name)?;
        let metadata = require("metadata", metadata)?;
        let [host, pid] = map(metadata, ["hostname", "pid"])?.unwrap_or_default();
        Ok(Self {
            name,
            host: words("hostname", host)?,
            pid: number(require("pid", pid)?)?,
        })
    }
}

fn words(member: &'static str, item: Option<JsonItem<'_>>) -> Result<String, RecordProblem> {
    MemberValue::from(require(member, item)?).words(member)
}

fn number(item: JsonItem<'_>) -> Result<u32, RecordProblem> {
    match item.head {
        JsonToken::Integer(literal) => literal.parse().map_err(|_| RecordProblem::Pid),
        _ => Err(RecordProblem::Pid),
    }
}
