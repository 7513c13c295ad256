//! Interprets pushed messages: events on the board's channel, and names of changed keys.

use chrono::Utc;
use redis::{Cmd, Value};
use serde_bytes::ByteBuf;

use super::super::keys::{KeyPart, Keys, key_of};
use crate::{
    board::{
        Event, EventKind,
        event::Subject,
        wire::message::{self, Message},
    },
    job::{AuditEntry, Fence, Owner, Priority, Rank, from_json, shortened},
};

/// Reads a channel message; a foreign one means a resync.
pub(super) fn events(message: Option<Value>) -> Vec<Event> {
    let messages = match message {
        Some(Value::BulkString(message)) => message::read(&message),
        _ => None,
    };
    match messages {
        Some(messages) => messages.into_iter().map(Event::from).collect(),
        None => vec![Event::resync()],
    }
}

impl From<Message> for Event {
    fn from(message: Message) -> Self {
        let text = |bytes: &Option<ByteBuf>| {
            bytes
                .as_ref()
                .map(|bytes| shortened(&String::from_utf8_lossy(bytes)))
        };
        let priority = text(&message.priority).and_then(|text| text.parse::<Priority>().ok());
        let (uuid, name) = (text(&message.uuid), text(&message.name));
        Self {
            // This release cannot report a kind that a later release added.
            kind: message.event.parse().unwrap_or(EventKind::Resync),
            time: message.time.parse().unwrap_or_else(|_| Utc::now()),
            subject: message.field.map(|field| Subject {
                key: key_of(&field),
                uuid: uuid.unwrap_or_default(),
                name: name.unwrap_or_default(),
                sequence: message.sequence,
                rank: Rank::new(priority.unwrap_or_default(), message.sequence),
                not_before: None,
            }),
            names: text(&message.names),
            owner: message
                .owner
                .filter(|owner| !owner.is_empty())
                .map(|owner| Owner::from_stored(owner.into_vec())),
            fence: message
                .fence
                .filter(|fence| !fence.is_empty())
                .map(|fence| Fence(shortened(&fence))),
            outcome: message
                .outcome
                .as_deref()
                .and_then(|name| name.parse().ok()),
            audit: message.audit.and_then(|audit| from_json(&audit).ok()),
        }
    }
}

pub(crate) fn announcement(
    keys: &Keys,
    kind: EventKind,
    about: (&'static str, &str),
    audit: Option<&AuditEntry>,
) -> Option<Cmd> {
    let message = message::announcement(kind, about, audit)?;
    Some(Cmd::publish(keys.events(), message))
}

/// Returns the changed parts; `None` if everything was deleted, or the server dropped its tracking.
pub(super) fn touched(keys: &Keys, data: Vec<Value>) -> Option<Vec<KeyPart>> {
    let Some(Value::Array(names)) = data.into_iter().next() else {
        return None;
    };
    let parts = names.iter().filter_map(|name| match name {
        Value::BulkString(name) => keys.part(name),
        _ => None,
    });
    Some(parts.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        board::{redis::keys::field_of, wire::msgpack},
        untrusted::{Answer, Bounds, Corpus, refused, same},
    };

    #[test]
    fn untrusted_messages_become_events_or_a_resync() {
        let uuid = "3f9a12cd-0000-4000-8000-000000000001";
        let time = "2026-01-01T00:00:00.000000Z";
        let messages = [
            json!([{"event": "posted", "time": time, "field": uuid, "uuid": uuid, "name": "a",
                    "priority": "HIGH", "sequence": 7}]),
            json!([{"event": "claimed", "time": time, "field": "x y%", "owner": "ada", "fence": "7"},
                   {"event": "consumed", "time": time, "field": uuid, "outcome": "failed",
                    "remark": "{\"by\":\"olga\"}"}]),
            json!([{"event": "paused", "time": time, "names": "backup-*", "later": [{"a": 1}]}]),
        ];
        let bounds = Bounds {
            // The buffer for the announced events is allocated in one piece, within a limit.
            memory: (4 << 20, 4096),
            ..Bounds::STORED
        };
        Corpus::of(bounds, messages.iter().map(msgpack::bytes)).hold(|input| {
            let heard = events(Some(Value::BulkString(input.to_vec())));
            if heard.iter().any(|event| event.kind == EventKind::Resync) {
                return refused("a check is needed");
            }
            if heard.len() > input.len() {
                return Err(format!("{} events from too few bytes", heard.len()));
            }
            for subject in heard.iter().filter_map(|event| event.subject.as_ref()) {
                let again = key_of(&field_of(&subject.key));
                same("its field leads back to it", &subject.key, &again)?;
            }
            Ok(Answer::Read)
        });
    }
}
