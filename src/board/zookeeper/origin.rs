//! The board of origin of trashed jobs: sibling boards share one trash.
//!
//! Trashing a job writes the sidecar in the same step, so both nodes carry the number of one transaction. A peer
//! leaves no sidecar; but without sibling boards the origin is clear.

use futures_util::future::join_all;

use super::{
    AT_ONCE,
    link::{
        nodes::{self, Node, READING, Room},
        session::Session,
    },
    paths::Paths,
    read::record::Record,
};
use crate::{
    board::{BoardError, Result},
    job::{JobKey, Origin, Shelf},
};

/// A trash node, and the transaction that created it.
type Trashed = (JobKey, i64);

pub(super) async fn judge(
    session: &Session,
    paths: &Paths,
    records: impl IntoIterator<Item = &mut Record>,
) -> Result<()> {
    let records = records.into_iter();
    let records: Vec<_> = records
        .filter(|record| record.shelf == Shelf::Trash)
        .collect();
    let trashed = records.iter();
    let trashed: Vec<_> = trashed
        .map(|record| (record.key.clone(), record.posting.stat.czxid))
        .collect();
    let origins = origins(session, paths, &trashed).await?;
    for (record, origin) in records.into_iter().zip(origins) {
        if let Origin::Beside(_) = origin {
            // The sidecar under its number here belongs to another job.
            record.side = None;
        }
        record.origin = origin;
    }
    Ok(())
}

/// Counts the trashed jobs: those possibly of this board, and those of sibling boards.
pub(super) async fn count(session: &Session, paths: &Paths) -> Result<(u64, u64)> {
    let children = nodes::children(session, &paths.folder(Shelf::Trash)).await?;
    let keys = children.iter();
    let keys: Vec<_> = keys
        .filter_map(|child| paths.key_of(Shelf::Trash, child))
        .collect();
    if keys.is_empty() || neighbours(session, paths).await?.is_none() {
        return Ok((keys.len() as u64, 0));
    }
    let (mut here, mut beside) = (0, 0);
    for keys in keys.chunks(AT_ONCE) {
        let stats = keys.iter().map(|key| {
            let path = paths.job(Shelf::Trash, key);
            let stat = session.client().check_stat(&path);
            async move { session.ask(READING, stat).await }
        });
        let mut trashed = Vec::with_capacity(keys.len());
        for (key, stat) in keys.iter().zip(join_all(stats).await) {
            let stat = stat?.map_err(|error| session.refusal(READING, &error))?;
            trashed.extend(stat.map(|stat| (key.clone(), stat.czxid)));
        }
        for origin in origins(session, paths, &trashed).await? {
            match origin {
                Origin::Beside(_) => beside += 1,
                Origin::Here | Origin::Unknown => here += 1,
            }
        }
    }
    Ok((here, beside))
}

async fn origins(session: &Session, paths: &Paths, trashed: &[Trashed]) -> Result<Vec<Origin>> {
    if trashed.is_empty() {
        return Ok(Vec::new());
    }
    let Some(others) = neighbours(session, paths).await? else {
        return Ok(vec![Origin::Here; trashed.len()]);
    };
    let boards: Vec<_> = std::iter::once(paths).chain(&others).collect();
    let wanted = trashed
        .iter()
        .flat_map(|(key, _)| boards.iter().map(|board| board.side(key)));
    let (wanted, mzxid) = (wanted.collect::<Vec<_>>(), |_: &str, side: Option<Node>| {
        side.map(|side| side.stat.mzxid)
    });
    let sides = nodes::read_as(session, &wanted, &mut Room::default(), mzxid).await?;
    let origins = trashed.iter().zip(sides.chunks(boards.len()));
    let origins = origins.map(|((_, czxid), sides)| {
        let is_of = |side: &Option<i64>| *side == Some(*czxid);
        match sides.iter().position(is_of) {
            Some(0) => Origin::Here,
            Some(place) => Origin::Beside(boards[place].board().to_owned()),
            None => Origin::Unknown,
        }
    });
    Ok(origins.collect())
}

/// Returns the sibling boards with nodes of ours; `None` without siblings.
async fn neighbours(session: &Session, paths: &Paths) -> Result<Option<Vec<Paths>>> {
    let sharing = async |folder: &str| {
        let children = match nodes::children(session, folder).await {
            Ok(children) => children,
            // Without read permission, siblings remain possible.
            Err(BoardError::Denied { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let boards = children.iter().filter_map(|child| paths.beside(child));
        Ok(Some(boards.collect::<Vec<_>>()))
    };
    let (nodes, known) = tokio::try_join!(sharing(paths.parent()), sharing(paths.all_of_ours()))?;
    let is_alone =
        nodes.is_some_and(|it| it.is_empty()) && known.as_ref().is_some_and(Vec::is_empty);
    Ok((!is_alone).then(|| known.unwrap_or_default()))
}
