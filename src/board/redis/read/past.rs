//! What is remembered of the jobs that left the board.

use redis::Cmd;

use crate::{
    board::{
        Result,
        redis::{keys::Keys, link::Client},
        wire::{past, sidecar::Sidecar},
    },
    job::Entry,
};

/// An entry of a stream: its id, and names and values by turns.
type Stored = (String, Vec<Vec<u8>>);

/// Returns what is remembered, the latest end first.
pub(crate) async fn entries(client: &Client, keys: &Keys, history: u32) -> Result<Vec<Entry>> {
    if history == 0 {
        return Ok(Vec::new());
    }
    let mut command = Cmd::new();
    command.arg("XREVRANGE").arg(keys.past()).arg("+").arg("-");
    command.arg("COUNT").arg(history);
    let (stored, _): (Vec<Stored>, _) = client.read(&command).await?;
    Ok(stored.iter().map(entry).collect())
}

/// Whether the user of a script may write to the past; before Redis 7 there is no asking.
const MAY_WRITE: &str = "if not redis.acl_check_cmd then return 1 end \
    return redis.acl_check_cmd('XADD', ARGV[1], 'MAXLEN', '~', '1', '*', 'job', '') and 1 or 0";

/// Fails as reading the past or writing to it would.
pub(crate) async fn try_it(client: &Client, keys: &Keys) -> Result<()> {
    entries(client, keys, 1).await?;
    let mut command = Cmd::new();
    command.arg("EVAL").arg(MAY_WRITE).arg(0).arg(keys.past());
    match client.read::<i64>(&command).await {
        Ok((0, _)) => Err(client.said(
            "write to",
            "NOPERM this user has no permissions to run the 'xadd' command",
        )),
        Err(error) if error.is_retryable() => Err(error),
        // Who may run no scripts ends no jobs.
        Ok(_) | Err(_) => Ok(()),
    }
}

fn entry((id, parts): &Stored) -> Entry {
    let part = |name: &[u8]| {
        let mut pairs = parts.chunks_exact(2);
        let pair = pairs.find(|pair| pair[0] == name)?;
        Some(pair[1].as_slice())
    };
    let side = part(b"side").filter(|side| !side.is_empty());
    let (side, problem) = Sidecar::read(side);
    let job = part(b"job").unwrap_or_default();
    past::entry(
        id,
        serde_json::from_slice(job),
        side.history_at_the_end(),
        problem,
    )
}
