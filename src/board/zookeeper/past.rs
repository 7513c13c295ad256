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
    job::{Entry, JobKey},
};

impl Target<'_> {
    /// Returns what is remembered, the latest end first.
    pub(super) async fn past(self) -> Result<Vec<Entry>> {
        let (remembered, _) = self.remembered().await?;
        let past = remembered.iter();
        Ok(past.filter_map(|(path, node)| entry(path, node)).collect())
    }

    /// Forgets what has been remembered for too long.
    pub(super) async fn forget(self) -> Result<()> {
        let (_, surplus) = self.remembered().await?;
        self.delete(&surplus).await
    }

    /// Returns the records of jobs that are gone, the latest end first, and those beyond what is to
    /// be remembered.
    async fn remembered(self) -> Result<(Vec<(String, Node)>, Vec<(String, Node)>)> {
        let sides = self.paths.sides();
        let recorded = nodes::children(self.session, &sides).await?;
        let recorded = recorded.into_iter().map(|name| format!("{sides}/{name}"));
        let mut past = self.read_all(recorded.collect()).await?;
        past.retain(|(_, node)| past_of(node).is_some());
        past.sort_by_cached_key(|(_, node)| Reverse(past_of(node).map(|past| past.ended_on())));
        let surplus = past.split_off(past.len().min(self.history as usize));
        Ok((past, surplus))
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

/// Makes a job of a record, if its job is gone.
fn entry(path: &str, node: &Node) -> Option<Entry> {
    let (mut side, _) = Sidecar::read(Some(&node.data));
    let past = side.past.take()?;
    let key = JobKey::new(path.rsplit('/').next().unwrap_or_default());
    Some(Entry::Job(Box::new(past.into_job(key, side))))
}

/// Returns what a record says of a job that is gone; none, if its job is not.
pub(super) fn past_of(node: &Node) -> Option<PastJob> {
    Sidecar::read(Some(&node.data)).0.past.map(|past| *past)
}
