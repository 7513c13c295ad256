//! Reads jobs page by page: postings and the keys beside them.

use std::collections::HashSet;

use futures_util::{Stream, StreamExt};

use super::{
    ranking::ranked,
    record::{Reading, complete, posted, read},
    scan::{AHEAD, Scan, Stored, postings, scanned},
    sidecar::{beside, is_any_held},
};
use crate::{
    board::{
        Detail, JobRef, Order, Query, Result, Which,
        redis::{
            keys::{Keys, field_of, key_of},
            link::{Client, give_way},
        },
        wire::{
            msgpack,
            posting::{Limit, Posting},
        },
    },
    job::{Entry, Job, Shelf},
};

/// Bytes of postings kept after they were read for ranking.
const KEPT_BYTES: usize = 64 * 1024 * 1024;

const CANDIDATES: usize = 10;

/// Streams a query page by page, with read-ahead.
pub(crate) fn pages<'a>(
    client: &'a Client,
    keys: &'a Keys,
    query: Query,
) -> impl Stream<Item = Result<Vec<Entry>>> + Send + 'a {
    let stored = match query.order {
        Order::Any => scanned(client, keys, query.shelf).boxed(),
        order => ranked(client, keys, (query.shelf, order), KEPT_BYTES).boxed(),
    };
    stored
        .map(move |page| async move {
            let mut entries = entries(client, keys, query, page?).await?;
            if query.which == Which::Unclaimed {
                entries.retain(|entry| entry.job().is_none_or(|job| job.holding.is_none()));
            }
            Ok(entries)
        })
        .buffered(AHEAD)
}

pub(crate) async fn entries(
    client: &Client,
    keys: &Keys,
    query: Query,
    stored: Vec<Stored>,
) -> Result<Vec<Entry>> {
    let fields: Vec<&[u8]> = stored.iter().map(|(field, _)| field.as_slice()).collect();
    let beside = beside(client, keys, query.shelf, &fields).await?;
    give_way().await;
    let reading = reading(client, query);
    Ok(stored
        .iter()
        .zip(beside)
        .map(|((field, posting), beside)| read(reading, field, posting, beside))
        .collect())
}

/// Reads postings, and adds the sidecars of wanted or claimed ones; returns for each whether it did.
pub(crate) async fn entries_wanted(
    client: &Client,
    keys: &Keys,
    query: Query,
    stored: Vec<Stored>,
    wants: &(dyn Fn(&Job) -> bool + Send + Sync),
) -> Result<Vec<(Entry, bool)>> {
    give_way().await;
    let reading = reading(client, query);
    let mut unwanted = Vec::new();
    let mut read: Vec<_> = (stored.iter())
        .map(|(field, posting)| {
            let entry = posted(reading, field, posting);
            let is_wanted = entry.job().is_some_and(wants);
            if !is_wanted {
                unwanted.push(field.as_slice());
            }
            (entry, is_wanted)
        })
        .collect();
    if is_any_held(client, keys, &unwanted).await? {
        read.iter_mut().for_each(|(_, is_wanted)| *is_wanted = true);
    }
    let wanted = stored.iter().zip(&read).filter(|(_, (_, is))| *is);
    let wanted: Vec<&[u8]> = wanted.map(|((field, _), _)| field.as_slice()).collect();
    let beside = beside(client, keys, query.shelf, &wanted).await?;
    let wanted = read.iter_mut().filter(|(_, is_wanted)| *is_wanted);
    for ((entry, _), beside) in wanted.zip(beside) {
        complete(entry, beside);
    }
    Ok(read)
}

fn reading(client: &Client, query: Query) -> Reading {
    Reading {
        shelf: query.shelf,
        detail: query.detail,
        limit: client.limit,
    }
}

/// Returns the records that each reference could mean; one scan serves all that need one.
pub(crate) async fn find(
    client: &Client,
    keys: &Keys,
    shelf: Shelf,
    wanted: &[JobRef],
) -> Result<Vec<Vec<Entry>>> {
    let direct: Vec<Option<Vec<u8>>> = wanted.iter().map(field_named).collect();
    let named: Vec<Vec<u8>> = direct.iter().flatten().cloned().collect();
    let stored = postings(client, keys, shelf, &named).await?;
    let stored = named.into_iter().zip(stored);
    let mut all: Vec<Stored> = stored
        .filter_map(|(field, posting)| Some((field, posting?)))
        .collect();
    let query = Query::all(shelf, Detail::Whole);
    let mut found: Vec<Vec<Vec<u8>>> = direct
        .iter()
        .map(|field| field.iter().cloned().collect())
        .collect();
    if direct.iter().any(Option::is_none) {
        let mut scan = Scan::of(keys, shelf);
        while let Some(page) = scan.next(client).await? {
            for (field, posting) in page {
                let Ok(read) = msgpack::decode(&posting, Detail::Brief, Limit::USUAL) else {
                    continue;
                };
                let mut is_wanted = false;
                for (wanted, found) in wanted.iter().zip(&mut found) {
                    if found.len() < CANDIDATES && could_mean(wanted, &read) {
                        found.push(field.clone());
                        is_wanted = true;
                    }
                }
                if is_wanted {
                    all.push((field, posting));
                }
            }
        }
    }
    let entries = entries(client, keys, query, all).await?;
    // A record's own uuid counts, not the key that it is stored under.
    let is_meant = |wanted: &JobRef, entry: &Entry| match (wanted, entry.job()) {
        (JobRef::Uuid(uuid), Some(job)) if wanted.is_exact() => job.uuid.eq_ignore_ascii_case(uuid),
        _ => true,
    };
    Ok(found
        .iter()
        .zip(wanted)
        .map(|(fields, wanted)| {
            let keys: Vec<_> = fields.iter().map(|field| key_of(field)).collect();
            let mut seen = HashSet::new();
            entries
                .iter()
                .filter(|entry| keys.contains(entry.key()) && is_meant(wanted, entry))
                .filter(|entry| seen.insert(entry.key().clone()))
                .cloned()
                .collect()
        })
        .collect())
}

fn field_named(wanted: &JobRef) -> Option<Vec<u8>> {
    match wanted {
        JobRef::Key(key) => Some(field_of(key)),
        JobRef::Uuid(uuid) if wanted.is_exact() => Some(uuid.clone().into_bytes()),
        JobRef::Uuid(_) | JobRef::Sequence(_) => None,
    }
}

fn could_mean(wanted: &JobRef, posting: &Posting) -> bool {
    match wanted {
        JobRef::Uuid(beginning) if !wanted.is_exact() => posting
            .uuid
            .to_ascii_lowercase()
            .starts_with(beginning.as_str()),
        JobRef::Sequence(number) => posting.sequence == Some(*number),
        JobRef::Uuid(_) | JobRef::Key(_) => false,
    }
}
