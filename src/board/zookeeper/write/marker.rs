//! Markers: nodes that keep chosen uuids unique, since the server does not.

use std::collections::HashSet;

use uuid::Uuid;
use zookeeper_client::Error;

use crate::{
    board::{
        Detail, Result,
        wire::{json, marker::MarkerRecord, posting::Limit},
        zookeeper::{
            board_session::BoardSession,
            link::{
                nodes::{Node, READING},
                transaction::Transaction,
            },
            paths::{NodeKind, is_job},
            read::record::JobNodes,
        },
    },
    job::{JobKey, Location},
};

impl MarkerRecord {
    pub(crate) fn on(&self, location: Location) -> Option<JobKey> {
        let name = match location {
            Location::Board => &self.job,
            Location::Trash => &self.trashed,
            Location::History => &None,
        };
        let name = name.as_ref().filter(|name| is_job(name));
        name.map(JobKey::new)
    }

    /// Whether it names none of these jobs; a newer version may contain more.
    pub(crate) fn is_void(&self, jobs: &HashSet<JobKey>) -> bool {
        let mut named = Location::LIVE
            .into_iter()
            .filter_map(|location| self.on(location));
        self.is_of_known_version() && !named.any(|key| jobs.contains(&key))
    }
}

#[derive(Debug)]
pub(crate) struct Mark {
    uuid: Uuid,
    version: i32,
    pub(crate) on_board: Option<Namesake>,
    pub(crate) in_trash: Option<Namesake>,
}

#[derive(Debug)]
pub(crate) struct Namesake {
    key: JobKey,
    version: i32,
    side: Option<i32>,
}

impl Mark {
    pub(crate) fn move_to_trash(&self, transaction: &mut Transaction<'_>, key: &JobKey) {
        if let Some(namesake) = &self.in_trash {
            transaction.delete(NodeKind::TrashedJob, &namesake.key, namesake.version);
            if let Some(version) = namesake.side {
                transaction.delete(NodeKind::Sidecar, &namesake.key, version);
            }
        }
        let on_board = self.on_board.as_ref().map(|namesake| &namesake.key);
        self.set(transaction, (on_board, Some(key)));
    }

    pub(crate) fn move_to_board(&self, transaction: &mut Transaction<'_>, key: &JobKey) {
        let in_trash = self.in_trash.as_ref().map(|namesake| &namesake.key);
        self.set(transaction, (Some(key), in_trash));
    }

    fn set(&self, transaction: &mut Transaction<'_>, places: (Option<&JobKey>, Option<&JobKey>)) {
        let record = MarkerRecord::of(places.0, places.1).write();
        transaction.set(NodeKind::Marker, self.uuid, &record, self.version);
    }
}

pub(crate) fn uuid_of(posting: &Node) -> Option<Uuid> {
    let posting = json::decode(&posting.data, Detail::Brief, Limit::USUAL).ok()?;
    Uuid::try_parse(&posting.uuid).ok()
}

impl BoardSession<'_> {
    pub(crate) async fn mark_of(&self, record: &JobNodes) -> Result<Option<Mark>> {
        // A peer's uuid may be any text; only real uuids have markers.
        let Some(uuid) = uuid_of(&record.posting) else {
            return Ok(None);
        };
        let path = self.paths.node(NodeKind::Marker, uuid);
        let Some(node) = self.session.read_one(&path).await? else {
            return Ok(None);
        };
        if node.is_denied() {
            return Err(self.session.refusal(READING, &Error::NoAuth));
        }
        let locations = MarkerRecord::read(&node.data);
        let namesake = async |location| match locations.on(location) {
            Some(key) if key != record.key => self.job_with_uuid(location, &key, uuid).await,
            Some(_) | None => Ok(None),
        };
        Ok(Some(Mark {
            uuid,
            version: node.stat.version,
            on_board: namesake(Location::Board).await?,
            in_trash: namesake(Location::Trash).await?,
        }))
    }

    /// Sibling boards share the trash and use the same numbers, so the key may be another job's.
    async fn job_with_uuid(
        &self,
        location: Location,
        key: &JobKey,
        uuid: Uuid,
    ) -> Result<Option<Namesake>> {
        let found = self.record(location, key).await?;
        let found = found.filter(|found| uuid_of(&found.posting) == Some(uuid));
        Ok(found.map(|found| Namesake {
            key: found.key,
            version: found.posting.stat.version,
            side: found.side.map(|side| side.stat.version),
        }))
    }
}
