//! Decodes the nodes of a job.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    board::{
        BoardError, Detail, Result,
        wire::{
            json::{self, Lock},
            posting::{Limit, Posting, together},
            sidecar::Sidecar,
        },
        zookeeper::{
            link::nodes::Node,
            paths::{is_numbered, number_of},
        },
    },
    job::{ClaimEnd, Entry, Fence, Holding, Job, JobKey, Location, Malformed, Origin, Owner},
};

#[derive(Debug, Clone)]
pub(crate) struct JobNodes {
    pub(crate) location: Location,
    pub(crate) key: JobKey,
    pub(crate) posting: Node,
    pub(crate) lock: Option<Node>,
    pub(crate) side: Option<Node>,
    pub(crate) origin: Origin,
}

impl JobNodes {
    pub(crate) fn new(
        location: Location,
        key: JobKey,
        posting: Node,
        lock: Option<Node>,
        side: Option<Node>,
    ) -> Self {
        let origin = Origin::Here;
        Self {
            location,
            key,
            posting,
            lock,
            side,
            origin,
        }
    }

    pub(crate) fn read(&self, detail: Detail, limit: Limit) -> Entry {
        let lock = self.lock.as_ref();
        let (mut holding, lock_problem) = lock.map_or((None, None), holding);
        if let Some(holding) = &mut holding {
            let session = self.side_of_claim().and_then(|side| side.session);
            holding.outlives = session.map(Duration::from_millis);
        }
        match decode(&self.key, &self.posting, detail, limit) {
            Ok(posting) => {
                let can_be_read = !(posting.is_oversized && detail.is_whole());
                let mut job = self.job(posting);
                job.raw = detail.raw(&self.posting.data, can_be_read);
                // A lock without an owner blocks every client.
                job.is_blocked = self.lock.is_some() && holding.is_none();
                job.holding = holding;
                job.problem = together([job.problem, lock_problem]);
                Entry::Job(Box::new(job))
            }
            Err(problem) => Entry::Malformed(Malformed {
                is_denied: !self.is_readable(),
                size: self.posting.data.len() as u64,
                raw: detail.raw(&self.posting.data, false),
                holding,
                origin: self.origin.clone(),
                ..Malformed::new(self.key.clone(), problem)
            }),
        }
    }

    pub(crate) fn holding(&self) -> Option<Holding> {
        self.lock.as_ref().and_then(|lock| holding(lock).0)
    }

    pub(crate) fn owner(&self) -> Option<Owner> {
        self.holding()?.owner
    }

    /// Rejects a record that is no job, or one that TaskFlow cannot handle.
    pub(crate) fn require_job(&self) -> Result<Posting> {
        let read = decode(&self.key, &self.posting, Detail::Brief, Limit::USUAL);
        read.map_err(|problem| BoardError::malformed(&self.key, problem))
    }

    pub(crate) fn side(&self) -> Option<Sidecar> {
        self.readable_side().ok()
    }

    pub(crate) fn readable_side(&self) -> Result<Sidecar, String> {
        match self.sidecar() {
            (side, None) => Ok(side),
            (_, Some(problem)) => Err(problem),
        }
    }

    /// Returns the sidecar if our claim wrote it together with the lock, not if it predates a peer's claim.
    fn side_of_claim(&self) -> Option<Sidecar> {
        let (lock, side) = (self.lock.as_ref()?, self.side.as_ref()?);
        (lock.stat.czxid == side.stat.mzxid)
            .then(|| self.side())
            .flatten()
    }

    fn sidecar(&self) -> (Sidecar, Option<String>) {
        let node = self.side.as_ref().filter(|node| self.is_ours(node));
        if node.is_some_and(Node::is_denied) {
            let problem = "no right to read the sidecar";
            return (Sidecar::default(), Some(problem.to_owned()));
        }
        Sidecar::read(node.map(|node| node.data.as_slice()))
    }

    /// A recreated board counts from zero, so the sidecar may belong to an earlier job of this number. A peer that
    /// trashes a job leaves the sidecar alone.
    fn is_ours(&self, side: &Node) -> bool {
        let is_older = side.stat.mzxid < self.posting.stat.czxid;
        side.is_denied() || self.location == Location::Trash || !is_older
    }

    pub(crate) fn is_readable(&self) -> bool {
        let nodes = [Some(&self.posting), self.lock.as_ref(), self.side.as_ref()];
        !nodes.into_iter().flatten().any(Node::is_denied)
    }

    /// Returns when the job was posted, also if it has moved since.
    pub(crate) fn created_on(&self) -> Option<DateTime<Utc>> {
        let moved = self.side().and_then(|side| side.created_on);
        // The server dates the node, and a move creates a new one.
        moved.or_else(|| match self.location {
            Location::Board => time(self.posting.stat.ctime),
            Location::Trash | Location::History => None,
        })
    }

    fn job(&self, mut posting: Posting) -> Job {
        let (mut side, side_problem) = self.sidecar();
        if self.side_of_claim().is_some() {
            // While the job is claimed, its command may be running.
            side.count_ahead();
        }
        let stat = &self.posting.stat;
        let is_unfit = side_problem.is_some() || posting.is_oversized;
        let problem = posting.problem.take();
        let trashed_on = side.trashed_on.or_else(|| time(stat.ctime));
        let below = "another client created nodes below the job's node, so no client can delete it";
        let below = (stat.num_children > 0).then(|| below.to_owned());
        Job {
            sequence: number_of(&self.key),
            created_on: self.created_on(),
            last_modified: time(stat.mtime),
            origin: self.origin.clone(),
            is_unfit,
            is_denied: !self.is_readable(),
            trashed_on: trashed_on.filter(|_| self.location == Location::Trash),
            location: self.location,
            attempts: side.into_attempts(),
            problem: together([problem, side_problem, below, unconfirmed(&self.origin)]),
            ..posting.into_job(self.key.clone(), self.posting.data.len())
        }
    }
}

pub(crate) fn decode(
    key: &JobKey,
    posting: &Node,
    detail: Detail,
    limit: Limit,
) -> Result<Posting, String> {
    if posting.is_denied() {
        return Err("no right to read the record".to_owned());
    }
    if !is_numbered(key) {
        let problem = "its name has no number, and every TaskFlow listing fails on it";
        return Err(problem.to_owned());
    }
    json::decode(&posting.data, detail, limit).map_err(|problem| problem.to_string())
}

pub(crate) fn holding(lock: &Node) -> (Option<Holding>, Option<String>) {
    let held_by = |owner| Holding {
        owner,
        end: match lock.stat.ephemeral_owner {
            0 => ClaimEnd::Never,
            _ => ClaimEnd::Session,
        },
        expires_in: None,
        outlives: None,
        claimed_on: time(lock.stat.ctime).filter(|_| !lock.is_denied()),
        fence: (!lock.is_denied()).then(|| fence(lock)),
    };
    if lock.is_denied() {
        let problem = "no right to read its lock";
        return (Some(held_by(None)), Some(problem.to_owned()));
    }
    match json::read_lock(&lock.data) {
        Lock::Owned(owner) => (Some(held_by(Some(owner))), None),
        Lock::Vacant(problem) => (None, Some(problem)),
        Lock::Unreadable(problem) => (Some(held_by(None)), Some(problem)),
    }
}

/// Identifies a claim by the creation of its lock, which is otherwise like any other.
pub(crate) fn fence(lock: &Node) -> Fence {
    Fence(lock.stat.czxid.to_string())
}

fn time(milliseconds: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(milliseconds)
}

fn unconfirmed(origin: &Origin) -> Option<String> {
    match origin {
        Origin::Here => None,
        Origin::Unknown => Some(
            "another client trashed the job, so it may belong to another board that shares this \
             trash"
                .to_owned(),
        ),
        Origin::Beside(board) => Some(format!(
            "the job belongs to the board {board}, which shares this trash"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused, same};

    /// Separates posting, lock and sidecar; occurs in none of them.
    const BETWEEN: u8 = 0x1e;

    fn node(data: Option<&[u8]>, at: i64) -> Option<Node> {
        let data = data.filter(|data| !data.is_empty())?.to_vec();
        let times = i64::from(data[0]) << (data.len() % 64);
        let mut node = Node {
            data,
            ..Node::denied()
        };
        (node.stat.czxid, node.stat.mzxid) = (at, at);
        (node.stat.ctime, node.stat.mtime) = (times, times.wrapping_neg());
        node.stat.ephemeral_owner = times;
        Some(node)
    }

    #[test]
    fn untrusted_nodes_become_a_job_or_an_error() {
        let posting = r#"{"uuid": "u", "name": "n", "priority": "LOW", "details": {"a": [1.5]}}"#;
        let side = r#"{"v":1,"owner":"ada","session":10000,"attempts":1,"ahead":true}"#;
        let lock = r#"{"owner": "ada"}"#;
        let between = char::from(BETWEEN).to_string();
        let corpus = [
            [posting, lock, side].join(&between),
            [posting, "{}", ""].join(&between),
            [
                posting,
                "",
                r#"{"v":1,"created_on":"2026-01-01T00:00:00Z"}"#,
            ]
            .join(&between),
        ];
        Corpus::of(Bounds::STORED, corpus).hold(|input| {
            let mut parts = input.split(|byte| *byte == BETWEEN);
            let Some(posting) = node(parts.next(), 7) else {
                return refused("there is none");
            };
            let locations = Location::LIVE;
            let (lock, side) = (node(parts.next(), 8), node(parts.next(), 8));
            let (location, key) = (locations[input.len() % 2], JobKey::new("job0000000042"));
            let record = JobNodes::new(location, key, posting, lock, side);
            let read = || record.read(Detail::Stored, Limit::USUAL);
            let entry = read();
            same("read again", &entry, &read())?;
            let is_job = record.require_job().is_ok();
            same("all agree", &is_job, &entry.job().is_some())?;
            match &entry {
                Entry::Job(job) => match &job.problem {
                    Some(problem) => refused(problem),
                    None => Ok(Answer::Read),
                },
                Entry::Malformed(record) => refused(&record.problem),
            }
        });
    }
}
