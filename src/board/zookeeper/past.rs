//! What is remembered of the jobs that left the board: the records beside them, which stay.

use std::cmp::Reverse;

use futures_util::future::join_all;

use super::{
    AT_ONCE, Target,
    link::{
        nodes::{self, Node},
        transaction::WRITING,
    },
};
use crate::{
    board::{
        Result,
        net::failure::Failure,
        wire::{past::PastJob, sidecar::Sidecar},
    },
    job::{Entry, Job, JobKey},
};

impl Target<'_> {
    /// Returns what is remembered, the latest end first.
    pub(super) async fn past(self) -> Result<Vec<Entry>> {
        let mut gone = self.gone().await?;
        gone.truncate(self.history as usize);
        Ok(gone.into_iter().map(Gone::into_entry).collect())
    }

    /// Forgets what has been remembered for too long.
    pub(super) async fn forget(self) -> Result<()> {
        let gone = self.gone().await?.into_iter();
        let surplus = gone.skip(self.history as usize);
        let surplus: Vec<_> = surplus.map(|gone| (gone.path, gone.node)).collect();
        self.delete(&surplus).await
    }

    /// Returns the records of all jobs that are gone, the latest end first.
    async fn gone(self) -> Result<Vec<Gone>> {
        let sides = self.paths.sides();
        let recorded = nodes::children(self.session, &sides).await?;
        let recorded = recorded.into_iter().map(|name| format!("{sides}/{name}"));
        let recorded = self.read_all(recorded.collect()).await?.into_iter();
        let gone = recorded.filter_map(|(path, node)| Gone::of(path, node));
        let mut gone: Vec<_> = gone.collect();
        gone.sort_unstable_by_key(|gone| Reverse(gone.past.ended_on()));
        Ok(gone)
    }

    /// Deletes nodes that are still as they were read.
    pub(super) async fn delete(self, doomed: &[(String, Node)]) -> Result<()> {
        for doomed in doomed.chunks(AT_ONCE) {
            let gone = doomed.iter().map(|(path, node)| {
                // One that is in use again by now is not what was seen, and stays.
                let delete = self.session.client().delete(path, Some(node.stat.version));
                self.session.ask(WRITING, delete)
            });
            // What one of them has against it is no reason to leave the others.
            let gone: Result<Vec<_>, Failure> = join_all(gone).await.into_iter().collect();
            gone?;
        }
        Ok(())
    }
}

/// The record of a job that is gone.
struct Gone {
    path: String,
    node: Node,
    side: Sidecar,
    past: PastJob,
}

impl Gone {
    fn of(path: String, node: Node) -> Option<Self> {
        let (mut side, _) = Sidecar::read(Some(&node.data));
        let past = *side.past.take()?;
        Some(Self {
            path,
            node,
            side,
            past,
        })
    }

    fn into_entry(self) -> Entry {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let job = self.past.job(self.side.history_at_the_end(), None);
        Entry::Job(Box::new(Job {
            key: JobKey::new(name),
            ..job
        }))
    }
}

/// Returns what a record says of a job that is gone; none, if its job is not.
pub(super) fn past_of(node: &Node) -> Option<PastJob> {
    Sidecar::read(Some(&node.data)).0.past.map(|past| *past)
}
