//! The messages on the channel of a Redis board: msgpack lists of events, for subscribers of jobboard alone.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::{as_json, msgpack, sidecar::text_of};
use crate::{
    board::EventKind,
    job::{AuditEntry, Draft},
};

/// Maximum nesting, also of members from later releases: a deeper message could overflow our stack.
const DEEPEST: usize = 32;

/// Maximum length of a message: its events take many times the memory.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// An event, as the scripts and [`PostedMessage`] write it.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    pub(crate) event: String,
    pub(crate) time: String,
    pub(crate) field: Option<ByteBuf>,
    pub(crate) uuid: Option<ByteBuf>,
    pub(crate) name: Option<ByteBuf>,
    pub(crate) priority: Option<ByteBuf>,
    pub(crate) sequence: Option<i64>,
    pub(crate) owner: Option<ByteBuf>,
    pub(crate) fence: Option<String>,
    pub(crate) names: Option<ByteBuf>,
    pub(crate) outcome: Option<String>,
    #[serde(rename = "remark")]
    pub(crate) audit: Option<ByteBuf>,
}

/// Returns `None` for a message of another program.
pub(crate) fn read(message: &[u8]) -> Option<Vec<Message>> {
    if message.len() > MAX_MESSAGE_BYTES {
        return None;
    }
    let mut reader = rmp_serde::Deserializer::from_read_ref(message);
    reader.set_max_depth(DEEPEST);
    Vec::deserialize(&mut reader).ok()
}

/// Announces an event that no script announces: `about` is a member of the message and its value.
pub(crate) fn announcement(
    kind: EventKind,
    about: (&'static str, &str),
    audit: Option<&AuditEntry>,
) -> Option<Vec<u8>> {
    let time = text_of(Utc::now());
    let mut event = BTreeMap::from([
        ("event", ByteBuf::from(kind.name())),
        ("time", ByteBuf::from(time.as_str())),
        (about.0, ByteBuf::from(about.1)),
    ]);
    event.extend(audit.map(|audit| ("remark", ByteBuf::from(as_json(audit)))));
    rmp_serde::to_vec_named(&[event]).ok()
}

/// Announces posts whose numbers begin after `last`.
pub(crate) fn posted(
    drafts: &[Draft],
    fields: &[String],
    now: DateTime<Utc>,
    last: i64,
) -> Vec<u8> {
    let time = text_of(now);
    let jobs = drafts.iter().zip(fields).zip(last + 1..);
    let events: Vec<_> = jobs
        .map(|((draft, field), sequence)| PostedMessage {
            event: "posted",
            time: &time,
            field,
            uuid: field,
            name: &draft.name,
            priority: draft.priority.name(),
            sequence,
        })
        .collect();
    msgpack::bytes(&events)
}

#[derive(Serialize)]
struct PostedMessage<'a> {
    event: &'static str,
    time: &'a str,
    field: &'a str,
    uuid: &'a str,
    name: &'a str,
    priority: &'static str,
    sequence: i64,
}
