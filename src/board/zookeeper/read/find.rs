//! Finding jobs by reference.

use std::collections::{BTreeSet, HashMap};

use super::{
    look::LocationReader,
    record::{JobNodes, decode},
};
use crate::{
    board::{
        Detail, JobRef, Result,
        reference::CANDIDATES,
        wire::posting::Limit,
        zookeeper::{
            board_session::BoardSession,
            link::nodes::{Node, ReadLimit},
            paths::{is_job, number_of, numbered},
        },
    },
    job::{Entry, JobKey, Location},
};

/// Returns the records that each reference could mean; one scan serves all that need one.
pub(crate) async fn find(
    board: &BoardSession<'_>,
    location: Location,
    wanted: &[JobRef],
) -> Result<Vec<Vec<Entry>>> {
    let direct: Vec<_> = wanted.iter().map(named).collect();
    let keys: Vec<_> = direct.iter().flatten().cloned().collect();
    let mut records = board.records(location, &keys).await?;
    board.find_origins(records.iter_mut().flatten()).await?;
    let mut records = records.into_iter();
    let found = direct.iter().map(|key| {
        let record = key.as_ref().and_then(|_| records.next().flatten());
        let read = |it: &JobNodes| it.read(Detail::Whole, board.limit);
        record.iter().map(read).collect()
    });
    let mut found: Vec<Vec<Entry>> = found.collect();
    // A number may have another spelling, which only a full scan finds.
    let needs_scan = |(wanted, found): (&JobRef, &Vec<Entry>)| {
        matches!(wanted, JobRef::Uuid(_))
            || matches!(wanted, JobRef::Sequence(_)) && found.is_empty()
    };
    if wanted.iter().zip(&found).any(needs_scan) {
        scan(board, location, wanted, &mut found).await?;
    }
    Ok(found)
}

async fn scan(
    board: &BoardSession<'_>,
    location: Location,
    wanted: &[JobRef],
    found: &mut [Vec<Entry>],
) -> Result<()> {
    let mut located = LocationReader::look(board, location).await?;
    let meanings = ReferenceIndex::of(wanted);
    let mut room = ReadLimit::default();
    let mut meant = |key: &JobKey, node: Node| meanings.of_job(key, &node);
    while let Some(page) = located.next_postings(board, &mut room, &mut meant).await? {
        let (mut hits, mut keys) = (HashMap::new(), Vec::new());
        for (key, mut meant) in page {
            // Drop candidates that were also found directly.
            meant.retain(|at| {
                found[*at].len() < CANDIDATES && found[*at].iter().all(|one| *one.key() != key)
            });
            if !meant.is_empty() {
                keys.push(key.clone());
                hits.insert(key, meant);
            }
        }
        let mut records = located.read(board, keys).await?;
        board.find_origins(&mut records).await?;
        for record in records {
            let entry = record.read(Detail::Whole, board.limit);
            for &at in hits.get(&record.key).into_iter().flatten() {
                found[at].push(entry.clone());
            }
        }
    }
    Ok(())
}

/// References indexed by meaning: there may be as many as jobs.
#[derive(Default)]
struct ReferenceIndex<'a> {
    uuids: HashMap<&'a str, Vec<usize>>,
    beginnings: HashMap<&'a str, Vec<usize>>,
    lengths: BTreeSet<usize>,
    numbers: HashMap<i64, Vec<usize>>,
}

impl<'a> ReferenceIndex<'a> {
    fn of(wanted: &'a [JobRef]) -> Self {
        let mut meanings = Self::default();
        for (at, wanted) in wanted.iter().enumerate() {
            let places = match wanted {
                JobRef::Uuid(text) if wanted.is_exact() => meanings.uuids.entry(text).or_default(),
                JobRef::Uuid(text) => {
                    meanings.lengths.insert(text.len());
                    meanings.beginnings.entry(text).or_default()
                }
                JobRef::Sequence(number) => meanings.numbers.entry(*number).or_default(),
                JobRef::Key(_) => continue,
            };
            places.push(at);
        }
        meanings
    }

    fn of_job(&self, key: &JobKey, node: &Node) -> Vec<usize> {
        let posting = decode(key, node, Detail::Brief, Limit::USUAL).ok();
        let uuid = posting.map(|posting| posting.uuid.to_ascii_lowercase());
        let uuid = uuid.as_deref();
        let beginnings =
            (self.lengths.iter()).filter_map(|length| self.beginnings.get(uuid?.get(..*length)?));
        let whole = uuid.and_then(|uuid| self.uuids.get(uuid));
        let number = number_of(key).and_then(|number| self.numbers.get(&number));
        let all = beginnings.chain(whole).chain(number).flatten();
        all.copied().collect()
    }
}

fn named(wanted: &JobRef) -> Option<JobKey> {
    match wanted {
        JobRef::Key(key) => Some(key.clone()).filter(|key| is_job(&key.text())),
        JobRef::Sequence(number) => Some(numbered(*number)),
        JobRef::Uuid(_) => None,
    }
}
