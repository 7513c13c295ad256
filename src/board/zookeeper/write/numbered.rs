//! Posting jobs under numbers known beforehand, so that one transaction can write more than the job.
//!
//! The server numbers a node by the count of children its parent ever had. A node that we name by that count looks
//! like one that the server named, and the count continues after it. If another job was posted meanwhile, the name is
//! taken, nothing happens and the next count is tried. A number that a lock used up stays free forever. A job that
//! came and ended meanwhile leaves its name to ours; no check in a transaction detects that, and no data depends on
//! the number alone.

use std::{collections::HashSet, time::Duration};

use chrono::Utc;
use futures_util::future::join;
use zookeeper_client::Error;

use super::{
    claim::{mode, session_of},
    marker::uuid_of,
};
use crate::{
    backoff::jittered,
    board::{
        BoardError, Posted, Result,
        net::failure::RequestFailure,
        wire::{json, marker::MarkerRecord, sidecar::Sidecar},
        zookeeper::{
            board_session::BoardSession,
            link::{
                nodes::{Node, READING},
                transaction::Transaction,
            },
            paths::{NodeKind, number_of, numbered},
            read::record::fence,
        },
    },
    job::{Claimant, Draft, Former, JobKey, Location},
};

const TRIES: u32 = 64;

pub(crate) type Encoded<'a> = (&'a Draft, Vec<u8>);

enum UuidUse {
    /// No other client can have chosen it.
    Free,
    /// It may be taken if its marker is unchanged.
    Marked(Option<Node>),
    Taken,
}

/// The most numbers to skip in one transaction, without and with jobs: each takes two small steps.
const MOST_SKIPPED: [usize; 2] = [1000, 200];

impl BoardSession<'_> {
    /// Posts at least the first jobs of the batch.
    pub(crate) async fn post_numbered(
        &self,
        batch: &[Encoded<'_>],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>, RequestFailure> {
        let mut taken = HashSet::new();
        for attempt in 0..TRIES {
            let uuid_uses = self.uuid_uses(batch).await?;
            let Some(stat) = self.session.stat(&self.paths.board).await? else {
                self.make_board().await?;
                continue;
            };
            let next = children_ever(stat.cversion, stat.num_children);
            let (keys, skipped) = number(&uuid_uses, next, claimant, &taken);
            let nodes = |kind| -> Vec<_> {
                let keys = keys.iter().flatten();
                keys.map(|key| self.paths.node(kind, key)).collect()
            };
            let (locks, sides) = (nodes(NodeKind::Lock), nodes(NodeKind::Sidecar));
            // A recreated board may have old sidecars under these numbers.
            let has_sides = claimant.is_some() || batch.iter().any(|(it, _)| it.former.is_some());
            let sides = match has_sides {
                true => self.session.read(&sides).await?,
                false => Vec::new(),
            };
            let mut commit = self.posting(batch, &uuid_uses, &keys, claimant, sides)?;
            // Each created node uses up a number.
            for key in &skipped {
                commit.assert_absent(NodeKind::Job, key);
            }
            let commit = commit.commit();
            // Send after the transaction and before its reply: reads the locks as created.
            let created = if claimant.is_some() { &locks[..] } else { &[] };
            let read = self.session.read(created);
            let (done, locks) = join(commit, read).await;
            match done? {
                Ok(_) if keys.is_empty() => {}
                Ok(_) => return Ok(answers(batch, keys, locks.unwrap_or_default())),
                // A board that shares the trash has trashed a job with this number.
                Err(refused)
                    if refused.kind == NodeKind::TrashedJob
                        && refused.error == Error::NodeExists =>
                {
                    let trash = self.paths.directory(NodeKind::TrashedJob);
                    let trash = self.session.children(&trash).await?;
                    let key = |child: &String| self.paths.key_of(Location::Trash, child);
                    taken = trash.iter().filter_map(|it| number_of(&key(it)?)).collect();
                }
                Err(refused) if refused.kind == NodeKind::Job && refused.error == Error::NoNode => {
                    self.make_board().await?;
                }
                Err(refused) => self.prepare_retry(&refused).await?,
            }
            // Keeps competing clients from colliding again.
            let most = Duration::from_millis(u64::from(attempt));
            tokio::time::sleep(jittered(most, 1.0)).await;
        }
        Err(BoardError::Changed.into())
    }

    async fn uuid_uses(&self, batch: &[Encoded<'_>]) -> Result<Vec<UuidUse>> {
        let chosen = batch.iter().filter(|(draft, _)| draft.chosen);
        let paths: Vec<_> = (chosen.clone())
            .map(|(draft, _)| self.paths.node(NodeKind::Marker, draft.uuid))
            .collect();
        let mut markers = self.session.read(&paths).await?;
        let named = chosen.zip(&markers).map(|((draft, _), marker)| {
            let known = marker.as_ref().map(|node| MarkerRecord::read(&node.data));
            let known = known.unwrap_or_default();
            let locations = match draft.former {
                Some(_) => &Location::LIVE[..],
                None => &[Location::Board],
            };
            let places = locations.iter().filter_map(|location| {
                let key = known.on(*location)?;
                Some(self.paths.job(*location, &key))
            });
            places.collect::<Vec<_>>()
        });
        let named: Vec<_> = named.collect();
        let jobs = self.session.read(&named.concat()).await?;
        let denied = |nodes: &[Option<Node>]| nodes.iter().flatten().any(Node::is_denied);
        if denied(&markers) || denied(&jobs) {
            return Err(self.session.refusal(READING, &Error::NoAuth));
        }
        let (mut jobs, mut named) = (jobs.into_iter(), named.into_iter());
        let mut markers = markers.drain(..);
        let mut seen = HashSet::new();
        let uuid_uses = batch.iter().map(|(draft, _)| {
            if !draft.chosen {
                return UuidUse::Free;
            }
            let marker = markers.next().flatten();
            let count = named.next().map_or(0, |places| places.len());
            let found: Vec<_> = jobs.by_ref().take(count).collect();
            // Recreated boards restart their numbers, so this may be another job.
            let is_it = |job: &Node| uuid_of(job) == Some(draft.uuid);
            let is_there = found.iter().flatten().any(is_it);
            if is_there || !seen.insert(draft.uuid) {
                return UuidUse::Taken;
            }
            UuidUse::Marked(marker)
        });
        Ok(uuid_uses.collect())
    }

    fn posting(
        &self,
        batch: &[Encoded<'_>],
        uuid_uses: &[UuidUse],
        keys: &[Option<JobKey>],
        claimant: Option<&Claimant>,
        sides: Vec<Option<Node>>,
    ) -> Result<Transaction<'_>> {
        let mut transaction = self.transaction();
        let mut sides = sides.into_iter();
        for (((draft, posting), known), key) in batch.iter().zip(uuid_uses).zip(keys) {
            let Some(key) = key else { continue };
            let there = sides.next().flatten();
            match draft.location() {
                Location::Board | Location::History => {
                    transaction.create(NodeKind::Job, key, posting);
                }
                // Only a number assigned on the board can return there.
                Location::Trash => {
                    transaction.assert_absent(NodeKind::Job, key);
                    transaction.create(NodeKind::TrashedJob, key, posting);
                }
            }
            let mut side = draft.former.as_deref().map(side_of);
            if let Some(by) = claimant {
                let owner = json::lock(&by.owner);
                transaction.create_as(NodeKind::Lock, key, &owner, mode(by.term)?);
                side = side.or_else(|| {
                    let mut first = Sidecar::first_attempt(Utc::now());
                    first.session = session_of(by.term, &self.session);
                    Some(first)
                });
            }
            if let Some(side) = side.map(|side| side.write()) {
                let kind = NodeKind::Sidecar;
                // The existing record is another job's; discard all of it.
                match there {
                    None => transaction.create(kind, key, &side),
                    Some(node) => transaction.set(kind, key, &side, node.stat.version),
                }
            }
            if let UuidUse::Marked(marker) = known {
                self.mark(draft, key, marker.as_ref(), &mut transaction);
            }
        }
        Ok(transaction)
    }

    fn mark(
        &self,
        draft: &Draft,
        key: &JobKey,
        marker: Option<&Node>,
        transaction: &mut Transaction<'_>,
    ) {
        let (job, trashed) = match draft.location() {
            Location::Trash => (None, Some(key)),
            Location::Board | Location::History => (Some(key), None),
        };
        // An existing marker keeps a namesake in the trash.
        let namesake = marker.and_then(|node| MarkerRecord::read(&node.data).on(Location::Trash));
        let record = MarkerRecord::of(job, trashed.or(namesake.as_ref())).write();
        let kind = NodeKind::Marker;
        match marker {
            None => transaction.create(kind, draft.uuid, &record),
            Some(node) => transaction.set(kind, draft.uuid, &record, node.stat.version),
        }
    }
}

pub(crate) fn side_of(former: &Former) -> Sidecar {
    let mut side = Sidecar::of_former(former).unwrap_or_default();
    // The server only knows when its node was created.
    side.created_on = former.created_on;
    side
}

/// Returns the keys of the first jobs, and the taken numbers that they skip.
fn number(
    uuid_uses: &[UuidUse],
    mut next: i64,
    claimant: Option<&Claimant>,
    taken: &HashSet<i64>,
) -> (Vec<Option<JobKey>>, Vec<JobKey>) {
    // A lock is a child as well and uses up a number.
    let step = if claimant.is_some() { 2 } else { 1 };
    let (mut keys, mut skipped) = (Vec::with_capacity(uuid_uses.len()), Vec::new());
    for known in uuid_uses {
        if matches!(known, UuidUse::Taken) {
            keys.push(None);
            continue;
        }
        while taken.contains(&next) {
            if skipped.len() >= MOST_SKIPPED[usize::from(!keys.is_empty())] {
                return (keys, skipped);
            }
            skipped.push(numbered(next));
            next += 1;
        }
        // The request has no room for the steps and for large jobs.
        if skipped.len() > MOST_SKIPPED[1] {
            return (keys, skipped);
        }
        keys.push(Some(numbered(next)));
        next += step;
    }
    (keys, skipped)
}

fn children_ever(cversion: i32, num_children: i32) -> i64 {
    // The sum is twice that count, modulo 2³².
    let twice = (i64::from(cversion) + i64::from(num_children)).rem_euclid(1 << 32);
    twice / 2
}

fn answers(
    batch: &[Encoded<'_>],
    keys: Vec<Option<JobKey>>,
    locks: Vec<Option<Node>>,
) -> Vec<Result<Posted>> {
    let mut locks = locks.into_iter();
    let answers = batch.iter().zip(keys).map(|((draft, _), key)| {
        let key = key.ok_or_else(|| BoardError::exists(draft.uuid))?;
        Ok(Posted {
            sequence: number_of(&key).unwrap_or_default(),
            fence: locks.next().flatten().as_ref().map(fence),
            key,
        })
    });
    answers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn created_children_are_counted_from_the_version() {
        for (came, went) in [(0, 0), (5, 0), (5, 5), (1 << 30, 7), ((1 << 31) - 1, 9)] {
            let there: i64 = came - went;
            let cversion = (2 * came - there) as i32;
            let counted = children_ever(cversion, i32::try_from(there).unwrap());
            assert_eq!(counted, came, "{went} of them went");
        }
    }
}
