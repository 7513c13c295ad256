//! Pauses: a hash of globs.

use std::collections::BTreeMap;

use redis::{Cmd, Pipeline};

use super::{events::told::message, keys::Keys, link::Client, read::scan::scan_hash};
use crate::{
    board::{EventKind, Result, wire::as_json},
    job::{MOST_PAUSES, Pause, Remark, from_json},
};

pub(super) async fn pause(client: &Client, keys: &Keys, pause: &Pause) -> Result<()> {
    let set = Cmd::hset(keys.paused(), &pause.names, as_json(pause));
    let names = ("names", pause.names.as_str());
    let tell = message(keys, EventKind::Paused, names, Some(&pause.remark));
    change(client, keys, set, tell).await.map(drop)
}

pub(super) async fn resume(
    client: &Client,
    keys: &Keys,
    names: &str,
    remark: &Remark,
) -> Result<bool> {
    let delete = Cmd::hdel(keys.paused(), names);
    let tell = message(keys, EventKind::Resumed, ("names", names), Some(remark));
    Ok(change(client, keys, delete, tell).await? > 0)
}

/// Changes a pause and announces it in one transaction.
async fn change(client: &Client, keys: &Keys, change: Cmd, tell: Option<Cmd>) -> Result<u64> {
    let mut commands = Pipeline::new();
    commands.add_command(change);
    tell.into_iter()
        .for_each(|tell| _ = commands.add_command(tell));
    // A denied message does not undo the change: late subscribers read the hash.
    let mut answers = client.ask_all("write to", &commands).await?.into_iter();
    match answers.next() {
        Some(Ok(changed)) => Ok(redis::from_redis_value(changed).unwrap_or_default()),
        Some(Err(error)) => Err(client.refusal_of("write to", &error, keys.paused().as_ref())),
        None => Ok(0),
    }
}

pub(super) async fn pauses(client: &Client, keys: &Keys) -> Result<Vec<Pause>> {
    let count = client.ask("read", &Cmd::hlen(keys.paused())).await?;
    let (mut found, mut cursor) = (BTreeMap::new(), 0_u64);
    while found.len() < MOST_PAUSES {
        let scan = scan_hash(&keys.paused(), cursor, 200);
        let (next, some): (u64, BTreeMap<Vec<u8>, Vec<u8>>) = client.ask("read", &scan).await?;
        let read = some.into_iter();
        found.extend(read.filter_map(|(names, text)| Some((names, from_json(&text).ok()?))));
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    Ok(Pause::bounded(found.into_values().collect(), count))
}
