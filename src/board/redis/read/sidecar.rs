//! Reads the keys beside postings: owners, expiries, sidecars.

use std::time::Duration;

use redis::{Pipeline, ServerError, Value, cmd};

use super::record::Sidecars;
use crate::{
    board::{
        Result,
        redis::{
            keys::{Keys, Sidecars as Names},
            link::Client,
        },
    },
    job::Shelf,
};

const DOING: &str = "read";

/// The server's TTL of a missing key.
const GONE: i64 = -2;

pub(crate) async fn beside(
    client: &Client,
    keys: &Keys,
    shelf: Shelf,
    fields: &[&[u8]],
) -> Result<Vec<Sidecars>> {
    if fields.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<_> = fields.iter().map(|field| keys.beside(field)).collect();
    let mut command = cmd("MGET");
    for name in &names {
        command
            .arg(name.owner.as_slice())
            .arg(name.last_modified.as_slice())
            .arg(name.side.as_slice());
    }
    let (found, _): (Vec<Option<Vec<u8>>>, _) = client.read(&command).await?;
    let mut found = found.into_iter();
    let mut all: Vec<Sidecars> = names
        .iter()
        .map(|_| Sidecars {
            // In the trash an owner key belongs to a namesake on the board.
            owner: found.next().flatten().filter(|_| shelf == Shelf::Board),
            left: None,
            last_modified: found.next().flatten(),
            side: found.next().flatten(),
        })
        .collect();
    if shelf == Shelf::Board {
        add_lives(client, &names, &mut all).await?;
    }
    Ok(all)
}

pub(crate) async fn is_any_held(client: &Client, keys: &Keys, fields: &[&[u8]]) -> Result<bool> {
    if fields.is_empty() {
        return Ok(false);
    }
    let mut command = cmd("EXISTS");
    for field in fields {
        command.arg(keys.owner(field));
    }
    let (held, _): (u64, _) = client.read(&command).await?;
    Ok(held > 0)
}

/// Adds the claims' remaining time, and finds owners and sidecars that are no text.
async fn add_lives(client: &Client, names: &[Names], all: &mut [Sidecars]) -> Result<()> {
    let mut questions = Pipeline::new();
    let mut is_there = cmd("EXISTS");
    let mut free = 0;
    for (name, one) in names.iter().zip(&*all) {
        if one.owner.is_some() {
            questions.cmd("PTTL").arg(name.owner.as_slice());
        } else {
            is_there.arg(name.owner.as_slice());
            if one.side.is_none() {
                is_there.arg(name.side.as_slice());
            }
            free += 1;
        }
    }
    if free > 0 {
        questions.add_command(is_there);
    }
    let mut answers = client.read_all(&questions).await?;
    let hidden = if free > 0 { answers.pop() } else { None };
    let held = all.iter_mut().filter(|one| one.owner.is_some());
    for (one, answer) in held.zip(answers) {
        let owner = one.owner.take();
        one.claim(owner, number(client, answer)?);
    }
    match hidden.map(|answer| number(client, answer)).transpose()? {
        // Jobs without an owner key are unclaimed.
        None | Some(0) => Ok(()),
        Some(_) => add_nameless(client, names, all).await,
    }
}

/// Finds owners and sidecars that are no text.
async fn add_nameless(client: &Client, names: &[Names], all: &mut [Sidecars]) -> Result<()> {
    let mut questions = Pipeline::new();
    let free: Vec<_> = names
        .iter()
        .zip(all)
        .filter(|(_, one)| one.owner.is_none())
        .collect();
    for (name, _) in &free {
        questions.cmd("TYPE").arg(name.owner.as_slice());
        questions.cmd("PTTL").arg(name.owner.as_slice());
        questions.cmd("TYPE").arg(name.side.as_slice());
    }
    let mut answers = client.read_all(&questions).await?.into_iter();
    for (_, one) in free {
        let (Some(kind), Some(left), Some(side)) = (answers.next(), answers.next(), answers.next())
        else {
            break;
        };
        if is_no_text(client, kind)? {
            one.claim(None, number(client, left)?);
        }
        if is_no_text(client, side)? {
            // An empty value is an unreadable sidecar.
            one.side = Some(Vec::new());
        }
    }
    Ok(())
}

impl Sidecars {
    /// TaskFlow takes any value under this key for a claim. The claim may have expired between two queries.
    pub(crate) fn claim(&mut self, owner: Option<Vec<u8>>, left: i64) {
        self.owner = (left != GONE).then(|| owner.unwrap_or_default());
        self.left = u64::try_from(left).ok().map(Duration::from_millis);
    }
}

/// Whether the value is no text; a text may have replaced it between the queries.
fn is_no_text(client: &Client, kind: Result<Value, ServerError>) -> Result<bool> {
    let kind = kind.map_err(|error| client.refusal(DOING, &error))?;
    Ok(!matches!(&kind, Value::SimpleString(kind) if kind == "none" || kind == "string"))
}

fn number(client: &Client, answer: Result<Value, ServerError>) -> Result<i64> {
    match answer {
        Ok(Value::Int(number)) => Ok(number),
        Ok(_) => Ok(-1),
        Err(error) => Err(client.refusal(DOING, &error)),
    }
}
