//! The board of origin of trashed jobs: sibling boards share one trash.
//!
//! Trashing a job, or changing it in the trash, writes the sidecar in the same step, so both nodes carry the number of
//! one transaction. A peer leaves no sidecar; but without sibling boards the origin is clear.

use futures_util::future::join_all;

use super::{
    JOBS_PER_BATCH,
    board_session::BoardSession,
    link::nodes::{Node, ReadLimit},
    paths::{NodeKind, Paths},
    read::record::JobNodes,
};
use crate::{
    board::{BoardError, Result},
    job::{JobKey, Location, Origin},
};

/// A trash node, and the transaction that last wrote it.
type Trashed = (JobKey, i64);

impl BoardSession<'_> {
    pub(super) async fn find_origins(
        &self,
        records: impl IntoIterator<Item = &mut JobNodes>,
    ) -> Result<()> {
        let records = records.into_iter();
        let records: Vec<_> = records
            .filter(|record| record.location == Location::Trash)
            .collect();
        let trashed = records.iter();
        let trashed: Vec<_> = trashed
            .map(|record| (record.key.clone(), record.posting.stat.mzxid))
            .collect();
        let origins = self.origins(&trashed).await?;
        for (record, origin) in records.into_iter().zip(origins) {
            if let Origin::Beside(_) = origin {
                // The sidecar under its number here belongs to another job.
                record.side = None;
            }
            record.origin = origin;
        }
        Ok(())
    }

    pub(super) async fn count_trashed(&self) -> Result<(u64, u64)> {
        let children = self.children(NodeKind::TrashedJob).await?;
        let keys = children.iter();
        let keys: Vec<_> = keys
            .filter_map(|child| self.paths.key_of(Location::Trash, child))
            .collect();
        if keys.is_empty() || self.neighbours().await?.is_none() {
            return Ok((keys.len() as u64, 0));
        }
        let (mut here, mut siblings) = (0, 0);
        for keys in keys.chunks(JOBS_PER_BATCH) {
            let stats = keys.iter().map(async |key| {
                let path = self.paths.job(Location::Trash, key);
                self.session.stat(&path).await
            });
            let mut trashed = Vec::with_capacity(keys.len());
            for (key, stat) in keys.iter().zip(join_all(stats).await) {
                trashed.extend(stat?.map(|stat| (key.clone(), stat.mzxid)));
            }
            for origin in self.origins(&trashed).await? {
                match origin {
                    Origin::Beside(_) => siblings += 1,
                    Origin::Here | Origin::Unknown => here += 1,
                }
            }
        }
        Ok((here, siblings))
    }

    async fn origins(&self, trashed: &[Trashed]) -> Result<Vec<Origin>> {
        if trashed.is_empty() {
            return Ok(Vec::new());
        }
        let Some(others) = self.neighbours().await? else {
            return Ok(vec![Origin::Here; trashed.len()]);
        };
        let boards: Vec<_> = std::iter::once(&self.paths).chain(&others).collect();
        let wanted = trashed
            .iter()
            .flat_map(|(key, _)| boards.iter().map(|board| board.side(key)));
        let wanted: Vec<_> = wanted.collect();
        let mzxid = |_: &str, side: Option<Node>| Some(side?.stat.mzxid);
        let sides = self
            .session
            .read_as(&wanted, &mut ReadLimit::default(), mzxid)
            .await?;
        let origins = trashed.iter().zip(sides.chunks(boards.len()));
        let origins = origins.map(|((_, mzxid), sides)| {
            let is_of = |side: &Option<i64>| *side == Some(*mzxid);
            match sides.iter().position(is_of) {
                Some(0) => Origin::Here,
                Some(place) => Origin::Beside(boards[place].board.clone()),
                None => Origin::Unknown,
            }
        });
        Ok(origins.collect())
    }

    async fn neighbours(&self) -> Result<Option<Vec<Paths>>> {
        let sharing = async |directory: &str| {
            let children = match self.session.children(directory).await {
                Ok(children) => children,
                // Without read permission, siblings remain possible.
                Err(BoardError::Denied { .. }) => return Ok(None),
                Err(error) => return Err(error),
            };
            let boards = children
                .iter()
                .filter_map(|child| self.paths.sibling(child));
            Ok(Some(boards.collect::<Vec<_>>()))
        };
        let (nodes, known) =
            tokio::try_join!(sharing(self.paths.parent()), sharing(self.paths.our_root()))?;
        let is_alone =
            nodes.is_some_and(|it| it.is_empty()) && known.as_ref().is_some_and(Vec::is_empty);
        Ok((!is_alone).then(|| known.unwrap_or_default()))
    }
}
