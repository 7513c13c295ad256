//! Reading jobs: a posting and what is beside it, page by page.

use std::collections::{HashSet, VecDeque};

use redis::Cmd;

use super::{
    beside::beside,
    field::Field,
    keys::{Keys, field_of, key_of},
    link::Link,
    record::read,
    scan::{FIRST_PAGE, Scan, Stored, hash, page_after},
};
use crate::{
    board::{
        Detail, JobRef, Order, Query, Result, Which,
        wire::{msgpack, posting::Posting},
    },
    job::{Entry, Rank, Shelf},
};

/// What a reader was doing when it failed.
const DOING: &str = "read";

/// How many jobs an ambiguous reference yields.
const CANDIDATES: usize = 10;

/// Reads what a query asks for, page by page.
#[derive(Debug)]
pub(super) struct Reader {
    query: Query,
    source: Source,
}

/// Where the next page comes from.
#[derive(Debug)]
enum Source {
    Scan(Scan),
    /// To be ranked first.
    Unranked,
    Ranked(VecDeque<Field>, usize),
}

impl Reader {
    pub(super) fn new(keys: &Keys, query: Query) -> Self {
        Self {
            query,
            source: match query.order {
                Order::Any => Source::Scan(Scan::of(keys, query.shelf)),
                Order::Rank => Source::Unranked,
            },
        }
    }

    /// Returns the next page; none, when there is no more.
    pub(super) async fn next(&mut self, link: &Link, keys: &Keys) -> Result<Option<Vec<Entry>>> {
        if matches!(self.source, Source::Unranked) {
            let ranked = ranked(link, keys, self.query.shelf).await?;
            self.source = Source::Ranked(ranked, FIRST_PAGE);
        }
        let stored = match &mut self.source {
            Source::Scan(scan) => match scan.next(link).await? {
                None => return Ok(None),
                Some(page) => page,
            },
            Source::Ranked(fields, count) => {
                if fields.is_empty() {
                    return Ok(None);
                }
                let fields = fields.drain(..fields.len().min(*count));
                let fields: Vec<_> = fields.map(|field| field.bytes().into_owned()).collect();
                let stored = postings(link, keys, self.query.shelf, &fields).await?;
                let bytes: usize = stored.iter().map(|(_, posting)| posting.len()).sum();
                *count = page_after(stored.len(), bytes);
                stored
            }
            Source::Unranked => return Ok(None),
        };
        let mut entries = entries(link, keys, self.query, stored).await?;
        if self.query.which == Which::Unclaimed {
            entries.retain(|entry| entry.job().is_none_or(|job| job.holding.is_none()));
        }
        Ok(Some(entries))
    }
}

/// Returns the fields of all jobs, in the ranked order; those that cannot be read come last.
async fn ranked(link: &Link, keys: &Keys, shelf: Shelf) -> Result<VecDeque<Field>> {
    let mut scan = Scan::of(keys, shelf);
    let mut ranks: Vec<(Option<Rank>, Field)> = Vec::new();
    while let Some(page) = scan.next(link).await? {
        for (field, posting) in page {
            let rank = msgpack::decode(&posting, Detail::Brief)
                .ok()
                .map(|posting| Rank::new(posting.priority, posting.sequence));
            ranks.push((rank, Field::of(&field)));
        }
    }
    // What the walk has seen takes as much room again, and is of no more use.
    drop(scan);
    ranks.sort_unstable_by(|(one, field), (other, other_field)| {
        let unranked = (one.is_none(), one, field);
        unranked.cmp(&(other.is_none(), other, other_field))
    });
    Ok(ranks.into_iter().map(|(_, field)| field).collect())
}

/// Fetches the postings in some fields; those that are gone are left out.
async fn postings(
    link: &Link,
    keys: &Keys,
    shelf: Shelf,
    fields: &[Vec<u8>],
) -> Result<Vec<Stored>> {
    if fields.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = Cmd::new();
    command.arg("HMGET").arg(hash(keys, shelf));
    for field in fields {
        command.arg(field.as_slice());
    }
    let found: Vec<Option<Vec<u8>>> = link.ask(DOING, &command).await?;
    Ok(fields
        .iter()
        .zip(found)
        .filter_map(|(field, posting)| Some((field.clone(), posting?)))
        .collect())
}

/// Adds to postings what is beside them, and reads them.
async fn entries(
    link: &Link,
    keys: &Keys,
    query: Query,
    stored: Vec<Stored>,
) -> Result<Vec<Entry>> {
    let fields: Vec<&[u8]> = stored.iter().map(|(field, _)| field.as_slice()).collect();
    let beside = beside(link, keys, query.shelf, &fields).await?;
    Ok(stored
        .iter()
        .zip(beside)
        .map(|((field, posting), beside)| read(query.shelf, query.detail, field, posting, beside))
        .collect())
}

/// Returns the records that each reference could mean; one scan serves all that need one.
pub(super) async fn find(
    link: &Link,
    keys: &Keys,
    shelf: Shelf,
    wanted: &[JobRef],
) -> Result<Vec<Vec<Entry>>> {
    let direct: Vec<Option<Vec<u8>>> = wanted.iter().map(field_named).collect();
    let named: Vec<Vec<u8>> = direct.iter().flatten().cloned().collect();
    let stored = postings(link, keys, shelf, &named).await?;
    let query = Query {
        shelf,
        which: Which::All,
        order: Order::Any,
        detail: Detail::Whole,
    };
    let mut found: Vec<Vec<Vec<u8>>> = direct
        .iter()
        .map(|field| field.iter().cloned().collect())
        .collect();
    let mut all = stored;
    if direct.iter().any(Option::is_none) {
        let mut scan = Scan::of(keys, shelf);
        while let Some(page) = scan.next(link).await? {
            for (field, posting) in page {
                let Ok(read) = msgpack::decode(&posting, Detail::Brief) else {
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
    let entries = entries(link, keys, query, all).await?;
    Ok(found
        .iter()
        .map(|fields| {
            let keys: Vec<_> = fields.iter().map(|field| key_of(field)).collect();
            let mut seen = HashSet::new();
            entries
                .iter()
                .filter(|entry| keys.contains(entry.key()) && seen.insert(entry.key().clone()))
                .cloned()
                .collect()
        })
        .collect())
}

/// Returns the field that a reference names by itself.
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
