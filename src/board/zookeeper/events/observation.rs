//! Reads new nodes to identify jobs and claims.

use std::collections::{BTreeMap, HashMap};

use tokio::time::Instant;

use super::queue::{NodeChange, NodeChanges, NodeEvent};
use crate::{
    board::{
        Detail, Result,
        cached_job::{CachedJob, ReadTime},
        wire::posting::Limit,
        zookeeper::{
            board_session::BoardSession,
            link::nodes::Node,
            paths::Paths,
            read::{
                look,
                record::{self, JobNodes},
            },
        },
    },
    job::{Fence, JobKey, Location, Owner},
};

#[derive(Debug, Default)]
pub(crate) struct Observations(HashMap<JobKey, SeenNodes>);

#[derive(Debug, Clone, Default)]
pub(crate) struct SeenNodes {
    pub(crate) job: Option<CachedJob>,
    pub(crate) lock: SeenLock,
    pub(crate) trashed: Option<CachedJob>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum SeenLock {
    #[default]
    Gone,
    Vacant,
    Held(Option<Owner>, Option<Fence>),
}

#[derive(Debug, Clone, Copy, Default)]
struct WantedNodes {
    job: bool,
    lock: bool,
    trashed: bool,
}

impl Observations {
    pub(crate) fn of(&self, key: &JobKey) -> SeenNodes {
        self.0.get(key).cloned().unwrap_or_default()
    }

    /// Drops the locks of jobs with further changes; returns whether there were any.
    pub(crate) fn forget_locks<'a>(&mut self, more: impl Iterator<Item = &'a NodeChange>) -> bool {
        let mut is_any = false;
        for key in more.filter_map(NodeChange::job) {
            if let Some(seen) = self.0.get_mut(key) {
                seen.lock = SeenLock::Gone;
                is_any = true;
            }
        }
        is_any
    }

    /// Once this returns, the watches have reported all earlier changes, even if there was nothing to read.
    pub(crate) async fn read(board: &BoardSession<'_>, changes: &NodeChanges) -> Result<Self> {
        let wanted: Vec<_> = wanted(changes).into_iter().collect();
        let (mut observations, mut count, mut rest) =
            (Self::default(), look::PAGE.0, wanted.as_slice());
        loop {
            let (page, more) = rest.split_at(count.min(rest.len()));
            let asked = Instant::now();
            let (paths, jobs) = (&board.paths, page.iter());
            let nodes = jobs.flat_map(|(key, wanted)| wanted.nodes(paths, key));
            let nodes = std::iter::once(paths.board.clone()).chain(nodes);
            let found = board.session.read(&nodes.collect::<Vec<_>>()).await?;
            let answered = Instant::now();
            let looked = ReadTime { asked, answered };
            // Each job may have five nodes.
            count = look::next_count(found.iter().flatten(), page.len()).min(look::PAGE.1 / 5);
            let mut found = found.into_iter().skip(1);
            for (key, wanted) in page {
                let seen = wanted.take(key, &mut found, looked);
                observations.0.insert(key.clone(), seen);
            }
            if more.is_empty() {
                return Ok(observations);
            }
            rest = more;
        }
    }
}

fn wanted(changes: &NodeChanges) -> BTreeMap<JobKey, WantedNodes> {
    let mut all: BTreeMap<JobKey, WantedNodes> = BTreeMap::new();
    for change in changes.since(0) {
        let NodeChange::OfJob(step, key) = change else {
            continue;
        };
        let wanted = all.entry(key.clone()).or_default();
        match step {
            NodeEvent::JobCame | NodeEvent::LockWent => wanted.job = true,
            NodeEvent::LockCame => wanted.lock = true,
            NodeEvent::TrashCame => wanted.trashed = true,
            NodeEvent::Rewritten => (wanted.job, wanted.lock) = (true, true),
            NodeEvent::JobWent | NodeEvent::TrashWent => {}
        }
    }
    all
}

impl WantedNodes {
    fn nodes(self, paths: &Paths, key: &JobKey) -> impl Iterator<Item = String> {
        [
            self.job.then(|| paths.job(Location::Board, key)),
            self.job.then(|| paths.side(key)),
            self.lock.then(|| paths.lock(key)),
            self.trashed.then(|| paths.job(Location::Trash, key)),
            self.trashed.then(|| paths.side(key)),
        ]
        .into_iter()
        .flatten()
    }

    fn take(
        self,
        key: &JobKey,
        found: &mut impl Iterator<Item = Option<Node>>,
        looked: ReadTime,
    ) -> SeenNodes {
        let mut next = |is_wanted: bool| is_wanted.then(|| found.next().flatten()).flatten();
        let (job, side) = (next(self.job), next(self.job));
        let lock = next(self.lock);
        let (trashed, side_of_trashed) = (next(self.trashed), next(self.trashed));
        SeenNodes {
            job: observed(Location::Board, key, job, side, looked),
            lock: seen_lock(lock),
            trashed: observed(Location::Trash, key, trashed, side_of_trashed, looked),
        }
    }
}

fn observed(
    location: Location,
    key: &JobKey,
    posting: Option<Node>,
    side: Option<Node>,
    looked: ReadTime,
) -> Option<CachedJob> {
    let record = JobNodes::new(location, key.clone(), posting?, None, side);
    // A job without read permission still exists.
    Some(CachedJob::of(
        &record.read(Detail::Brief, Limit::USUAL),
        looked,
    ))
}

fn seen_lock(found: Option<Node>) -> SeenLock {
    match found.map(|lock| record::holding(&lock).0) {
        Some(Some(holding)) => SeenLock::Held(holding.owner, holding.fence),
        Some(None) => SeenLock::Vacant,
        None => SeenLock::Gone,
    }
}

#[cfg(test)]
mod testing {
    use super::{JobKey, Observations, SeenNodes};

    impl Observations {
        pub(crate) fn add(&mut self, key: JobKey, seen: SeenNodes) {
            self.0.insert(key, seen);
        }
    }
}
