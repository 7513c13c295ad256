//! Reading jobs: a posting and what is beside it, page by page.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use redis::{Cmd, Pipeline, ServerError, Value};

use super::{
    keys::{Keys, field_of, key_of},
    link::Link,
    record::{Beside, read},
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

/// A page should be about as large as this.
const PAGE_BYTES: usize = 512 * 1024;

/// The first page, and the largest.
const PAGE: (usize, usize) = (128, 1000);

/// How many jobs an ambiguous reference yields.
const CANDIDATES: usize = 10;

/// A posting in its field, undecoded.
type Stored = (Vec<u8>, Vec<u8>);

/// Walks a shelf in the order in which the server has it.
#[derive(Debug)]
struct Scan {
    hash: String,
    cursor: Option<u64>,
    count: usize,
    /// A server may hand a field out twice while its table grows or shrinks.
    seen: HashSet<Vec<u8>>,
}

impl Scan {
    fn of(keys: &Keys, shelf: Shelf) -> Self {
        Self {
            hash: hash(keys, shelf),
            cursor: Some(0),
            count: PAGE.0,
            seen: HashSet::new(),
        }
    }

    /// Returns the next page; none, when there is no more.
    async fn next(&mut self, link: &Link) -> Result<Option<Vec<Stored>>> {
        let Some(cursor) = self.cursor else {
            return Ok(None);
        };
        let mut command = Cmd::new();
        command
            .arg("HSCAN")
            .arg(&self.hash)
            .arg(cursor)
            .arg("COUNT")
            .arg(self.count);
        let (next, flat): (u64, Vec<Vec<u8>>) = link.ask(DOING, &command).await?;
        self.cursor = (next != 0).then_some(next);
        let bytes: usize = flat.iter().map(Vec::len).sum();
        let mut page = Vec::with_capacity(flat.len() / 2);
        let mut parts = flat.into_iter();
        while let (Some(field), Some(posting)) = (parts.next(), parts.next()) {
            if self.seen.insert(field.clone()) {
                page.push((field, posting));
            }
        }
        let average = bytes / page.len().max(1);
        self.count = (PAGE_BYTES / average.max(1)).clamp(1, PAGE.1);
        Ok(Some(page))
    }
}

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
    Ranked(VecDeque<Vec<u8>>, usize),
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
            self.source = Source::Ranked(ranked, PAGE.0);
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
                let fields: Vec<_> = fields.drain(..fields.len().min(*count)).collect();
                let stored = postings(link, keys, self.query.shelf, &fields).await?;
                let bytes: usize = stored.iter().map(|(_, posting)| posting.len()).sum();
                let average = bytes / stored.len().max(1);
                *count = (PAGE_BYTES / average.max(1)).clamp(1, PAGE.1);
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
async fn ranked(link: &Link, keys: &Keys, shelf: Shelf) -> Result<VecDeque<Vec<u8>>> {
    let mut scan = Scan::of(keys, shelf);
    let mut ranks: Vec<(Option<Rank>, Vec<u8>)> = Vec::new();
    while let Some(page) = scan.next(link).await? {
        for (field, posting) in page {
            let rank = msgpack::decode(&posting, Detail::Brief)
                .ok()
                .map(|posting| Rank::new(posting.priority, posting.sequence));
            ranks.push((rank, field));
        }
    }
    ranks.sort_by(|(one, field), (other, other_field)| {
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

async fn beside(link: &Link, keys: &Keys, shelf: Shelf, fields: &[&[u8]]) -> Result<Vec<Beside>> {
    if fields.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<_> = fields.iter().map(|field| keys.beside(field)).collect();
    let mut command = Cmd::new();
    command.arg("MGET");
    for name in &names {
        command
            .arg(name.owner.as_slice())
            .arg(name.last_modified.as_slice())
            .arg(name.side.as_slice());
    }
    let found: Vec<Option<Vec<u8>>> = link.ask(DOING, &command).await?;
    let mut found = found.into_iter();
    let mut all: Vec<Beside> = names
        .iter()
        .map(|_| Beside {
            // In the trash nobody holds it: an owner would be that of a namesake on the board.
            owner: found.next().flatten().filter(|_| shelf == Shelf::Board),
            left: None,
            last_modified: found.next().flatten(),
            side: found.next().flatten(),
        })
        .collect();
    let mut lives = Pipeline::new();
    for (name, _) in names
        .iter()
        .zip(&all)
        .filter(|(_, one)| one.owner.is_some())
    {
        lives.cmd("PTTL").arg(name.owner.as_slice());
    }
    let lives = link.ask_all(DOING, &lives).await?;
    let held = all.iter_mut().filter(|one| one.owner.is_some());
    for (one, life) in held.zip(lives) {
        match milliseconds(link, life)? {
            // It lapsed between the two questions.
            -2 => one.owner = None,
            -1 => {}
            left => one.left = Some(Duration::from_millis(left.unsigned_abs())),
        }
    }
    Ok(all)
}

fn milliseconds(link: &Link, answer: Result<Value, ServerError>) -> Result<i64> {
    match answer {
        Ok(Value::Int(left)) => Ok(left),
        Ok(_) => Ok(-1),
        Err(error) => Err(link.refusal(DOING, &error)),
    }
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

fn hash(keys: &Keys, shelf: Shelf) -> String {
    match shelf {
        Shelf::Board => keys.listings(),
        Shelf::Trash => keys.trash(),
    }
}
