//! What is told on the channel of a board of something that is no job.

use std::collections::BTreeMap;

use chrono::Utc;
use redis::Cmd;
use serde_bytes::ByteBuf;

use crate::{
    board::{
        EventKind,
        redis::keys::Keys,
        wire::{as_json, sidecar::text_of},
    },
    job::Remark,
};

pub(crate) fn message(
    keys: &Keys,
    kind: EventKind,
    about: (&'static str, &str),
    remark: Option<&Remark>,
) -> Option<Cmd> {
    let time = text_of(Utc::now());
    let mut event = BTreeMap::from([
        ("event", ByteBuf::from(kind.name())),
        ("time", ByteBuf::from(time.as_str())),
        (about.0, ByteBuf::from(about.1)),
    ]);
    event.extend(remark.map(|remark| ("remark", ByteBuf::from(as_json(remark)))));
    let message = rmp_serde::to_vec_named(&[event]).ok()?;
    let mut publish = Cmd::new();
    publish.arg("PUBLISH").arg(keys.events()).arg(message);
    Some(publish)
}
