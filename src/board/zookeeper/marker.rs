//! Markers: the nodes that keep a uuid unique which somebody has chosen, since no server does.

use serde::{Deserialize, Serialize};

use super::{
    Target,
    nodes::{self, Node},
    paths::Paths,
    record::Record,
    transaction::{Step, Transaction},
};
use crate::{
    board::{Detail, Result, wire::json},
    job::{JobKey, Shelf},
};

/// Where the job of a uuid is; void for a shelf that does not have it any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Whereabouts {
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trashed: Option<String>,
}

impl Whereabouts {
    pub(super) fn read(node: &Node) -> Self {
        // One that says nothing keeps no uuid, and is replaced by the next that does.
        serde_json::from_slice(&node.data).unwrap_or_default()
    }

    pub(super) fn on(&self, shelf: Shelf) -> Option<JobKey> {
        let name = match shelf {
            Shelf::Board => &self.job,
            Shelf::Trash => &self.trashed,
        };
        name.clone().map(JobKey::new)
    }

    fn write(&self) -> Vec<u8> {
        serde_json::json!(self).to_string().into_bytes()
    }
}

/// The marker of a job, as it was read.
#[derive(Debug)]
pub(super) struct Mark {
    path: String,
    version: i32,
    /// A job of the same uuid in the trash: its key and the version of its node.
    namesake: Option<(JobKey, i32)>,
    /// Whether there is one on the board that is another job than the one that was asked about.
    pub(super) is_on_board: bool,
}

impl Mark {
    pub(super) fn has_namesake(&self) -> bool {
        self.namesake.is_some()
    }

    /// Adds that the job goes to the trash, where its namesake has to make room.
    pub(super) fn move_to_trash(
        &self,
        transaction: &mut Transaction<'_>,
        paths: &Paths,
        key: &JobKey,
    ) {
        if let Some((namesake, version)) = &self.namesake {
            let path = paths.job(Shelf::Trash, namesake);
            transaction.delete(Step::Namesake, path, *version);
        }
        self.set(transaction, (None, Some(key)));
    }

    /// Adds that the job comes back to the board.
    pub(super) fn move_to_board(&self, transaction: &mut Transaction<'_>, key: &JobKey) {
        self.set(transaction, (Some(key), None));
    }

    fn set(&self, transaction: &mut Transaction<'_>, places: (Option<&JobKey>, Option<&JobKey>)) {
        let record = record(places.0, places.1);
        transaction.set(Step::Marker, self.path.clone(), &record, self.version);
    }
}

/// Returns what a marker says of a job in these places.
pub(super) fn record(job: Option<&JobKey>, trashed: Option<&JobKey>) -> Vec<u8> {
    Whereabouts {
        v: 1,
        job: job.map(JobKey::to_string),
        trashed: trashed.map(JobKey::to_string),
    }
    .write()
}

impl Target<'_> {
    /// Returns the marker of a job; most have none.
    pub(super) async fn mark_of(self, record: &Record) -> Result<Option<Mark>> {
        let Ok(posting) = json::decode(&record.posting.data, Detail::Brief) else {
            return Ok(None);
        };
        if posting.uuid.is_empty() || posting.uuid.contains(['/', '\0']) {
            return Ok(None);
        }
        let path = self.paths.marker(&posting.uuid);
        let found = nodes::read(self.session, std::slice::from_ref(&path)).await?;
        let Some(node) = found.into_iter().flatten().next() else {
            return Ok(None);
        };
        let whereabouts = Whereabouts::read(&node);
        let others = [Shelf::Board, Shelf::Trash].map(|shelf| {
            let other = whereabouts.on(shelf)?;
            (other != record.key).then_some((shelf, other))
        });
        let wanted: Vec<_> = others
            .iter()
            .flatten()
            .map(|(shelf, key)| self.paths.job(*shelf, key))
            .collect();
        let mut found = nodes::read(self.session, &wanted).await?.into_iter();
        let [on_board, in_trash] = others.map(|other| {
            let (_, key) = other?;
            Some((key, found.next()??.stat.version))
        });
        Ok(Some(Mark {
            path,
            version: node.stat.version,
            namesake: in_trash,
            is_on_board: on_board.is_some(),
        }))
    }
}
