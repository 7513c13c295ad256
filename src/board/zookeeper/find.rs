//! Finding jobs by what people call them.

use super::{
    look::{PAGE, Shelved, next_count, records},
    nodes::{self, Node},
    paths::{Paths, number_of, numbered},
    session::Session,
};
use crate::{
    board::{Detail, JobRef, Result, wire::json},
    job::{Entry, JobKey, Shelf},
};

/// How many jobs an ambiguous reference yields.
const CANDIDATES: usize = 10;

/// Returns the records that each reference could mean; one scan serves all that need one.
pub(super) async fn find(
    session: &Session,
    paths: &Paths,
    shelf: Shelf,
    wanted: &[JobRef],
) -> Result<Vec<Vec<Entry>>> {
    let direct: Vec<_> = wanted.iter().map(named).collect();
    let keys: Vec<_> = direct.iter().flatten().cloned().collect();
    let records = records(session, paths, shelf, &keys).await?;
    let mut records = records.into_iter();
    let mut found: Vec<Vec<Entry>> = direct
        .iter()
        .map(|key| {
            let record = key.as_ref().and_then(|_| records.next().flatten());
            record
                .map(|record| record.read(Detail::Whole))
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
        scan(session, paths, (shelf, wanted), &mut found).await?;
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
    loop {
        let page = shelved.take(count);
        if page.is_empty() {
            return Ok(());
        }
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
            let entry = record.read(Detail::Whole);
            let meant = hits.iter().find(|(key, _)| *key == record.key);
            for &at in meant.into_iter().flat_map(|(_, meant)| meant) {
                found[at].push(entry.clone());
            }
        }
    }
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
