//! Reads jobs page by page, each with its lock and sidecar.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    slice::from_ref,
};

use uuid::Uuid;
use zookeeper_client::Error;

use super::record::{self, JobNodes};
use crate::{
    board::{
        BoardError, Detail, Order, Query, Result, Which,
        pages::{KEPT_BYTES, MAX_KEPT, page_length},
        wire::{json, posting::Limit},
        zookeeper::{
            board_session::BoardSession,
            link::nodes::{self, Node, READING, ReadLimit},
            paths::{NodeKind, locked_by, number_of},
        },
    },
    job::{Entry, JobKey, Location, Rank},
};

pub(crate) const PAGE: (usize, usize) = (128, nodes::MAX_NODES_PER_EXCHANGE);

#[derive(Debug)]
pub(crate) struct LocationReader {
    location: Location,
    keys: VecDeque<JobKey>,
    locked: HashSet<JobKey>,
    recorded: HashSet<JobKey>,
    kept: HashMap<JobKey, Node>,
    room: ReadLimit,
    count: usize,
}

impl LocationReader {
    pub(crate) async fn look(board: &BoardSession<'_>, location: Location) -> Result<Self> {
        let (children, sides) = tokio::try_join!(
            board.children(location.into()),
            board.children(NodeKind::Sidecar),
        )?;
        let keys = (children.iter()).filter_map(|child| board.paths.key_of(location, child));
        let mut keys: Vec<_> = keys.collect();
        keys.sort_by_cached_key(|key| (number_of(key).is_none(), number_of(key), key.clone()));
        let locks = children.iter().filter_map(|child| locked_by(child));
        Ok(Self {
            location,
            keys: keys.into(),
            // A lock in the trash is a stray node.
            locked: locks.filter(|_| location == Location::Board).collect(),
            recorded: sides.into_iter().map(JobKey::new).collect(),
            kept: HashMap::new(),
            room: ReadLimit::PAGE,
            count: PAGE.0,
        })
    }

    pub(crate) fn take(&mut self, count: usize) -> Vec<JobKey> {
        self.keys.drain(..count.min(self.keys.len())).collect()
    }

    /// Reads only the postings of the next jobs; `None` at the end.
    pub(crate) async fn next_postings<T>(
        &mut self,
        board: &BoardSession<'_>,
        room: &mut ReadLimit,
        mut of: impl FnMut(&JobKey, Node) -> T,
    ) -> Result<Option<Vec<(JobKey, T)>>> {
        let page = self.take(self.count);
        if page.is_empty() {
            return Ok(None);
        }
        let paths = page.iter().map(|key| board.paths.job(self.location, key));
        let paths: Vec<_> = paths.collect();
        let (mut keys, mut bytes) = (page.iter(), 0);
        let read = |_: &str, node: Option<Node>| {
            let (key, node) = (keys.next()?, node?);
            bytes += node.data.len();
            Some(of(key, node))
        };
        let found = board.session.read_as(&paths, room, read).await?;
        self.count = page_length(page.len(), bytes, PAGE.1);
        let found = page.into_iter().zip(found);
        let found = found.filter_map(|(key, found)| Some((key, found?)));
        Ok(Some(found.collect()))
    }

    /// Reads the nodes of some jobs. Skips deleted jobs; puts back those that do not fit.
    pub(crate) async fn read(
        &mut self,
        board: &BoardSession<'_>,
        mut keys: Vec<JobKey>,
    ) -> Result<Vec<JobNodes>> {
        let (mut wanted, mut ends) = (Vec::with_capacity(keys.len() * 2), Vec::new());
        for key in &keys {
            if !self.kept.contains_key(key) {
                wanted.push(board.paths.job(self.location, key));
            }
            if self.locked.contains(key) {
                wanted.push(board.paths.lock(key));
            }
            if self.recorded.contains(key) {
                wanted.push(board.paths.side(key));
            }
            ends.push(wanted.len());
        }
        let room = &mut self.room;
        let found = board.session.read_as(&wanted, room, |_, node| node).await?;
        let whole = ends.partition_point(|end| *end <= found.len());
        let later = keys.drain(whole..).rev();
        later.for_each(|key| self.keys.push_front(key));
        let mut found = found.into_iter();
        let mut next = |is_wanted: bool| is_wanted.then(|| found.next().flatten()).flatten();
        let records = keys.into_iter().filter_map(|key| {
            let kept = self.kept.remove(&key);
            let posting = next(kept.is_none()).or(kept);
            let lock = next(self.locked.contains(&key));
            let side = next(self.recorded.contains(&key));
            Some(JobNodes::new(self.location, key, posting?, lock, side))
        });
        Ok(records.collect())
    }
}

#[derive(Debug)]
pub(crate) struct PageReader {
    query: Query,
    located: Option<LocationReader>,
    count: usize,
    /// The uuids of the jobs that were read: 16 bytes for each.
    uuids: HashSet<Uuid>,
}

impl PageReader {
    pub(crate) fn new(query: Query) -> Self {
        Self {
            query,
            located: None,
            count: PAGE.0,
            uuids: HashSet::new(),
        }
    }

    pub(crate) async fn next(&mut self, board: &BoardSession<'_>) -> Result<Option<Vec<Entry>>> {
        let located = match &mut self.located {
            Some(located) => located,
            None => {
                let mut located = LocationReader::look(board, self.query.location).await?;
                if self.query.which == Which::Unclaimed {
                    drop_claimed(board, &mut located).await?;
                }
                if self.query.order == Order::Rank {
                    rank(board, &mut located).await?;
                }
                self.located.insert(located)
            }
        };
        let keys = located.take(self.count);
        if keys.is_empty() {
            return Ok(None);
        }
        let mut records = located.read(board, keys).await?;
        board.find_origins(&mut records).await?;
        self.count = next_count(records.iter().map(|record| &record.posting), records.len());
        let read = |record: &JobNodes| record.read(self.query.detail, board.limit);
        let entries = records.iter().map(read);
        let is_wanted = |entry: &Entry| {
            self.query.which == Which::All || entry.job().is_none_or(|job| job.holding.is_none())
        };
        let mut entries: Vec<_> = entries.filter(is_wanted).collect();
        for entry in &mut entries {
            if let Entry::Job(job) = entry
                && let Ok(uuid) = Uuid::try_parse(&job.uuid)
            {
                job.is_misnamed = !self.uuids.insert(uuid);
            }
        }
        Ok(Some(entries))
    }
}

pub(crate) fn next_count<'a>(read: impl Iterator<Item = &'a Node>, count: usize) -> usize {
    let bytes: usize = read.map(|node| node.data.len()).sum();
    page_length(count, bytes, PAGE.1)
}

/// Removes the claimed jobs, reading only their locks.
async fn drop_claimed(board: &BoardSession<'_>, located: &mut LocationReader) -> Result<()> {
    let is_locked = |key: &&JobKey| located.locked.contains(*key);
    let locked = located.keys.iter().filter(is_locked);
    let locks: Vec<_> = locked.clone().map(|key| board.paths.lock(key)).collect();
    let is_held = |_: &str, lock: Option<Node>| {
        lock.is_some_and(|lock| !matches!(json::read_lock(&lock.data), json::Lock::Vacant(_)))
    };
    let room = &mut ReadLimit::default();
    let found = board.session.read_as(&locks, room, is_held).await?;
    let held = locked.zip(&found).filter(|(_, is_held)| **is_held);
    let held: HashSet<JobKey> = held.map(|(key, _)| key.clone()).collect();
    located.keys.retain(|key| !held.contains(key));
    Ok(())
}

async fn rank(board: &BoardSession<'_>, located: &mut LocationReader) -> Result<()> {
    let mut ranked: Vec<(Option<Rank>, JobKey)> = Vec::with_capacity(located.keys.len());
    let (mut kept, mut budget, mut room) = (HashMap::new(), KEPT_BYTES, ReadLimit::default());
    let mut read = |key: &JobKey, node: Node| {
        let posting = record::decode(key, &node, Detail::Brief, Limit::USUAL).ok();
        let rank = posting.map(|posting| Rank::new(posting.priority, number_of(key)));
        let is_small = node.data.len() <= MAX_KEPT;
        let rest = budget.checked_sub(node.data.len() + size_of::<Node>());
        if let Some(rest) = rest.filter(|_| is_small) {
            budget = rest;
            kept.insert(key.clone(), node);
        }
        rank
    };
    while let Some(page) = located.next_postings(board, &mut room, &mut read).await? {
        ranked.extend(page.into_iter().map(|(key, rank)| (rank, key)));
    }
    located.kept = kept;
    ranked.sort_by(|(one, key), (other, other_key)| {
        (one.is_none(), one, key).cmp(&(other.is_none(), other, other_key))
    });
    located.keys = ranked.into_iter().map(|(_, key)| key).collect();
    Ok(())
}

impl BoardSession<'_> {
    pub(crate) async fn record(
        &self,
        location: Location,
        key: &JobKey,
    ) -> Result<Option<JobNodes>> {
        let found = self.records(location, from_ref(key)).await?;
        Ok(found.into_iter().flatten().next())
    }

    /// Returns an existing job if all nodes that matter are readable.
    pub(crate) fn require<'r>(&self, found: Option<&'r JobNodes>) -> Result<&'r JobNodes> {
        let record = found.ok_or(BoardError::NoSuchJob)?;
        if !record.is_readable() {
            return Err(self.session.refusal(READING, &Error::NoAuth));
        }
        Ok(record)
    }

    /// The sidecar is read before the lock. A later claim also changes the sidecar, so an old lock never comes with a
    /// newer sidecar.
    pub(crate) async fn records(
        &self,
        location: Location,
        keys: &[JobKey],
    ) -> Result<Vec<Option<JobNodes>>> {
        let paths = &self.paths;
        let is_known = |key: &JobKey| paths.key_of(Location::Board, &key.text()).is_some();
        let known = keys.iter().filter(|key| is_known(key));
        let wanted =
            known.flat_map(|key| [paths.side(key), paths.job(location, key), paths.lock(key)]);
        let found = self.session.read(&wanted.collect::<Vec<_>>()).await?;
        let mut found = found.into_iter();
        let records = keys.iter().map(|key| {
            if !is_known(key) {
                return None;
            }
            let (side, posting, lock) = (found.next()?, found.next()?, found.next()?);
            let lock = lock.filter(|_| location == Location::Board);
            Some(JobNodes::new(location, key.clone(), posting?, lock, side))
        });
        Ok(records.collect())
    }
}
