//! Entities: the nodes that list conductors.

use serde::Serialize;

use super::{
    read::{map, record, require},
    token::{JsonItem, JsonToken},
    write::bytes,
};
use crate::{
    board::wire::{members::MemberValue, posting::RecordProblem},
    job::shortened,
};

const KIND: &str = "conductor";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entity {
    /// The name of its node: with TaskFlow `<owner>@<host>:<pid>`.
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
}

#[derive(Serialize)]
struct EntityRecord<'a> {
    kind: &'static str,
    name: &'a str,
    metadata: Metadata<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    hostname: &'a str,
    pid: u32,
}

impl Entity {
    pub(crate) fn encode(&self) -> Vec<u8> {
        bytes(&EntityRecord {
            kind: KIND,
            name: &self.name,
            metadata: Metadata {
                hostname: &self.host,
                pid: self.pid,
            },
        })
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
