//! Reading jobs: the nodes of a shelf, page by page, each with its lock and the record beside it.

use std::collections::{HashSet, VecDeque};

use super::{
    link::Link,
    nodes::{self, Node},
    paths::{Paths, locked_by, number_of, numbered},
    record::Record,
    session::Session,
};
use crate::{
    board::{Detail, JobRef, Order, Query, Result, Which, wire::json},
    job::{Entry, JobKey, Rank, Shelf},
};

/// A page should be about as large as this.
const PAGE_BYTES: usize = 512 * 1024;

/// The first page, and the largest.
const PAGE: (usize, usize) = (128, nodes::MOST);

/// How many jobs an ambiguous reference yields.
const CANDIDATES: usize = 10;

/// Which jobs are on a shelf, and what there is to be read of each.
#[derive(Debug)]
struct Shelved {
    shelf: Shelf,
    /// In the order of their numbers.
    keys: VecDeque<JobKey>,
    locked: HashSet<JobKey>,
    recorded: HashSet<JobKey>,
}

impl Shelved {
    async fn look(session: &Session, paths: &Paths, shelf: Shelf) -> Result<Self> {
        let (folder, sides) = (paths.folder(shelf), paths.sides());
        let (children, sides) = tokio::try_join!(
            nodes::children(session, &folder),
            nodes::children(session, &sides),
        )?;
        let mut keys: Vec<_> = children
            .iter()
            .filter_map(|child| paths.key_of(shelf, child))
            .collect();
        keys.sort_by_cached_key(|key| (number_of(key).is_none(), number_of(key), key.clone()));
        let locks = children.iter().filter_map(|child| locked_by(child));
        Ok(Self {
            shelf,
            keys: keys.into(),
            // In the trash nobody holds it: a lock there would be a stray node.
            locked: locks.filter(|_| shelf == Shelf::Board).collect(),
            recorded: sides.into_iter().map(JobKey::new).collect(),
        })
    }

    /// Reads the nodes of some jobs; those that are gone by now are left out.
    async fn read(
        &self,
        session: &Session,
        paths: &Paths,
        keys: Vec<JobKey>,
    ) -> Result<Vec<Record>> {
        let mut wanted = Vec::with_capacity(keys.len() * 2);
        for key in &keys {
            wanted.push(paths.job(self.shelf, key));
            if self.locked.contains(key) {
                wanted.push(paths.lock(key));
            }
            if self.recorded.contains(key) {
                wanted.push(paths.side(key));
            }
        }
        let mut found = nodes::read(session, &wanted).await?.into_iter();
        let mut next = |is_wanted: bool| is_wanted.then(|| found.next().flatten()).flatten();
        let records = keys.into_iter().filter_map(|key| {
            let posting = next(true);
            let lock = next(self.locked.contains(&key));
            let side = next(self.recorded.contains(&key));
            Some(Record {
                posting: posting?,
                lock,
                side,
                key,
            })
        });
        Ok(records.collect())
    }
}

/// Reads what a query asks for, page by page.
#[derive(Debug)]
pub(super) struct Reader {
    query: Query,
    shelved: Option<Shelved>,
    count: usize,
}

impl Reader {
    pub(super) fn new(query: Query) -> Self {
        Self {
            query,
            shelved: None,
            count: PAGE.0,
        }
    }

    /// Returns the next page; none, when there is no more.
    pub(super) async fn next(&mut self, link: &Link, paths: &Paths) -> Result<Option<Vec<Entry>>> {
        let session = link.session(nodes::READING).await?;
        let shelved = match &mut self.shelved {
            Some(shelved) => shelved,
            None => {
                let mut shelved = Shelved::look(&session, paths, self.query.shelf).await?;
                if self.query.which == Which::Unclaimed {
                    leave_out_claimed(&session, paths, &mut shelved).await?;
                }
                if self.query.order == Order::Rank {
                    rank(&session, paths, &mut shelved).await?;
                }
                self.shelved.insert(shelved)
            }
        };
        if shelved.keys.is_empty() {
            return Ok(None);
        }
        let count = self.count.min(shelved.keys.len());
        let keys = shelved.keys.drain(..count).collect();
        let records = shelved.read(&session, paths, keys).await?;
        self.count = next_count(records.iter().map(|record| &record.posting), count);
        let entries = records
            .iter()
            .map(|record| record.read(self.query.shelf, self.query.detail));
        let is_wanted = |entry: &Entry| {
            self.query.which == Which::All || entry.job().is_none_or(|job| job.holding.is_none())
        };
        Ok(Some(entries.filter(is_wanted).collect()))
    }
}

/// Returns how many jobs make a page, by those that were just read.
fn next_count<'a>(read: impl Iterator<Item = &'a Node>, count: usize) -> usize {
    let bytes: usize = read.map(|node| node.data.len()).sum();
    (PAGE_BYTES / (bytes / count.max(1)).max(1)).clamp(1, PAGE.1)
}

/// Takes out the jobs that somebody has, for whom no more is read than their locks.
async fn leave_out_claimed(session: &Session, paths: &Paths, shelved: &mut Shelved) -> Result<()> {
    let is_locked = |key: &&JobKey| shelved.locked.contains(*key);
    let locked = shelved.keys.iter().filter(is_locked);
    let locks: Vec<_> = locked.clone().map(|key| paths.lock(key)).collect();
    let found = nodes::read(session, &locks).await?;
    let is_held = |lock: &Option<Node>| {
        lock.as_ref()
            .is_some_and(|lock| !matches!(json::read_lock(&lock.data), json::Lock::Vacant(_)))
    };
    let held: HashSet<JobKey> = locked
        .zip(&found)
        .filter(|(_, lock)| is_held(lock))
        .map(|(key, _)| key.clone())
        .collect();
    shelved.keys.retain(|key| !held.contains(key));
    Ok(())
}

/// Puts the jobs into the ranked order; those that cannot be read come last.
async fn rank(session: &Session, paths: &Paths, shelved: &mut Shelved) -> Result<()> {
    let mut ranked: Vec<(Option<Rank>, JobKey)> = Vec::with_capacity(shelved.keys.len());
    let mut count = PAGE.0;
    while !shelved.keys.is_empty() {
        let page: Vec<_> = shelved
            .keys
            .drain(..count.min(shelved.keys.len()))
            .collect();
        let wanted: Vec<_> = page
            .iter()
            .map(|key| paths.job(shelved.shelf, key))
            .collect();
        let found = nodes::read(session, &wanted).await?;
        count = next_count(found.iter().flatten(), page.len());
        for (key, node) in page.into_iter().zip(found) {
            let Some(node) = node else { continue };
            let rank = json::decode(&node.data, Detail::Brief)
                .ok()
                .map(|posting| Rank::new(posting.priority, number_of(&key)));
            ranked.push((rank, key));
        }
    }
    ranked.sort_by(|(one, key), (other, other_key)| {
        (one.is_none(), one, key).cmp(&(other.is_none(), other, other_key))
    });
    shelved.keys = ranked.into_iter().map(|(_, key)| key).collect();
    Ok(())
}

/// Reads jobs by their keys, each with its lock and the record beside it.
pub(super) async fn records(
    session: &Session,
    paths: &Paths,
    shelf: Shelf,
    keys: &[JobKey],
) -> Result<Vec<Option<Record>>> {
    let known: Vec<_> = keys
        .iter()
        .filter(|key| paths.key_of(Shelf::Board, key.as_str()).is_some())
        .collect();
    let wanted: Vec<_> = known
        .iter()
        .flat_map(|key| [paths.job(shelf, key), paths.lock(key), paths.side(key)])
        .collect();
    let mut found = nodes::read(session, &wanted).await?.into_iter();
    let records = keys.iter().map(|key| {
        paths.key_of(Shelf::Board, key.as_str())?;
        let (posting, lock, side) = (found.next()?, found.next()?, found.next()?);
        Some(Record {
            key: key.clone(),
            posting: posting?,
            lock: lock.filter(|_| shelf == Shelf::Board),
            side,
        })
    });
    Ok(records.collect())
}

/// Returns the records that each reference could mean; one scan serves all that need one.
pub(super) async fn find(
    link: &Link,
    paths: &Paths,
    shelf: Shelf,
    wanted: &[JobRef],
) -> Result<Vec<Vec<Entry>>> {
    let session = link.session(nodes::READING).await?;
    let direct: Vec<_> = wanted.iter().map(named).collect();
    let keys: Vec<_> = direct.iter().flatten().cloned().collect();
    let records = records(&session, paths, shelf, &keys).await?;
    let mut records = records.into_iter();
    let mut found: Vec<Vec<Entry>> = direct
        .iter()
        .map(|key| {
            let record = key.as_ref().and_then(|_| records.next().flatten());
            record
                .map(|record| record.read(shelf, Detail::Whole))
                .into_iter()
                .collect()
        })
        .collect();
    // A number may also be written in another way, and then only a look at all of them tells.
    let needs_scan = |(wanted, found): (&JobRef, &Vec<Entry>)| {
        matches!(wanted, JobRef::Uuid(_))
            || matches!(wanted, JobRef::Sequence(_)) && found.is_empty()
    };
    if wanted.iter().zip(&found).any(needs_scan) {
        scan(&session, paths, (shelf, wanted), &mut found).await?;
    }
    Ok(found)
}

/// Looks through a whole shelf for what was not found directly.
async fn scan(
    session: &Session,
    paths: &Paths,
    (shelf, wanted): (Shelf, &[JobRef]),
    found: &mut [Vec<Entry>],
) -> Result<()> {
    let mut shelved = Shelved::look(session, paths, shelf).await?;
    let mut count = PAGE.0;
    while !shelved.keys.is_empty() {
        let page: Vec<_> = shelved
            .keys
            .drain(..count.min(shelved.keys.len()))
            .collect();
        let paths_of: Vec<_> = page.iter().map(|key| paths.job(shelf, key)).collect();
        let postings = nodes::read(session, &paths_of).await?;
        count = next_count(postings.iter().flatten(), page.len());
        let mut hits: Vec<(JobKey, Vec<usize>)> = Vec::new();
        for (key, node) in page.into_iter().zip(postings) {
            let Some(node) = node else { continue };
            let meant = could_be_meant(wanted, found, &key, &node);
            if !meant.is_empty() {
                hits.push((key, meant));
            }
        }
        let keys = hits.iter().map(|(key, _)| key.clone()).collect();
        for record in shelved.read(session, paths, keys).await? {
            let entry = record.read(shelf, Detail::Whole);
            let meant = hits.iter().find(|(key, _)| *key == record.key);
            for &at in meant.into_iter().flat_map(|(_, meant)| meant) {
                found[at].push(entry.clone());
            }
        }
    }
    Ok(())
}

/// Returns which references could mean this job, and do not have enough candidates.
fn could_be_meant(
    wanted: &[JobRef],
    found: &[Vec<Entry>],
    key: &JobKey,
    node: &Node,
) -> Vec<usize> {
    let uuid = json::decode(&node.data, Detail::Brief)
        .ok()
        .map(|posting| posting.uuid.to_ascii_lowercase());
    let could_mean = |wanted: &JobRef| match (wanted, &uuid) {
        (JobRef::Uuid(text), Some(uuid)) if wanted.is_exact() => uuid == text,
        (JobRef::Uuid(text), Some(uuid)) => uuid.starts_with(text.as_str()),
        (JobRef::Sequence(number), _) => number_of(key) == Some(*number),
        (JobRef::Uuid(_), None) | (JobRef::Key(_), _) => false,
    };
    let open = wanted.iter().zip(found).enumerate();
    open.filter(|(_, (wanted, found))| found.len() < CANDIDATES && could_mean(wanted))
        .filter(|(_, (wanted, found))| {
            !matches!(wanted, JobRef::Sequence(_)) || found.iter().all(|entry| entry.key() != key)
        })
        .map(|(at, _)| at)
        .collect()
}

/// Returns the job that a reference names by itself.
fn named(wanted: &JobRef) -> Option<JobKey> {
    match wanted {
        JobRef::Key(key) => Some(key.clone()),
        JobRef::Sequence(number) => Some(numbered(*number)),
        JobRef::Uuid(_) => None,
    }
}
