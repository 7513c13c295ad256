//! What the scripts tell on the channel of a board.

use chrono::{DateTime, Utc};
use redis::Value;
use serde::Deserialize;
use serde_bytes::ByteBuf;

use super::super::keys::key_of;
use crate::{
    board::{Event, EventKind, event::Subject},
    job::{Fence, Owner, Priority, Rank},
};

/// An event as a script words it.
#[derive(Debug, Deserialize)]
struct Told {
    event: String,
    time: String,
    #[serde(default)]
    field: Option<ByteBuf>,
    #[serde(default)]
    uuid: Option<ByteBuf>,
    #[serde(default)]
    name: Option<ByteBuf>,
    #[serde(default)]
    priority: Option<ByteBuf>,
    #[serde(default)]
    sequence: Option<i64>,
    #[serde(default)]
    owner: Option<ByteBuf>,
    #[serde(default)]
    fence: Option<String>,
    #[serde(default)]
    names: Option<ByteBuf>,
    /// How the job ended by it.
    #[serde(default)]
    outcome: Option<String>,
    /// Who did it and why, as JSON.
    #[serde(default)]
    remark: Option<ByteBuf>,
}

/// Reads a message of the channel; what is none of ours there may be about anything.
pub(super) fn events(message: Option<Value>) -> Vec<Event> {
    let Some(Value::BulkString(message)) = message else {
        return vec![Event::resync()];
    };
    match rmp_serde::from_slice::<Vec<Told>>(&message) {
        Ok(told) => told.into_iter().map(Event::from).collect(),
        Err(_) => vec![Event::resync()],
    }
}

impl From<Told> for Event {
    fn from(told: Told) -> Self {
        let text = |bytes: &Option<ByteBuf>| {
            bytes
                .as_ref()
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        let priority = text(&told.priority).and_then(|text| text.parse::<Priority>().ok());
        let (uuid, name) = (text(&told.uuid), text(&told.name));
        Self {
            // A kind that a later release added is something this one cannot tell.
            kind: told.event.parse().unwrap_or(EventKind::Resync),
            time: told
                .time
                .parse::<DateTime<Utc>>()
                .unwrap_or_else(|_| Utc::now()),
            subject: told.field.map(|field| Subject {
                key: key_of(&field),
                uuid: uuid.unwrap_or_default(),
                name: name.unwrap_or_default(),
                sequence: told.sequence,
                rank: Rank::new(priority.unwrap_or_default(), told.sequence),
                not_before: None,
            }),
            names: text(&told.names),
            owner: told
                .owner
                .filter(|owner| !owner.is_empty())
                .map(|owner| Owner::from_stored(owner.into_vec())),
            fence: told.fence.filter(|fence| !fence.is_empty()).map(Fence),
            departure: told.outcome.as_deref().and_then(|name| name.parse().ok()),
            remark: told
                .remark
                .and_then(|remark| serde_json::from_slice(&remark).ok()),
        }
    }
}
