//! Reading nodes, many in one exchange.

use futures_util::future::try_join_all;
use zookeeper_client::{Error, MultiReadResult, Stat};

use super::session::Session;
use crate::board::Result;

/// What readers were doing when they failed.
pub(super) const READING: &str = "read";

/// How many nodes one exchange may have: more of them would keep others from being served.
pub(super) const MOST: usize = 1000;

/// A node as it was read.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) data: Vec<u8>,
    pub(super) stat: Stat,
}

impl Node {
    /// Returns a node as we have just written it, of which nothing but the data matters.
    pub(super) fn written(data: Vec<u8>) -> Self {
        Self {
            data,
            stat: Stat {
                czxid: 0,
                mzxid: 0,
                pzxid: 0,
                ctime: 0,
                mtime: 0,
                version: 0,
                cversion: 0,
                aversion: 0,
                ephemeral_owner: 0,
                data_length: 0,
                num_children: 0,
            },
        }
    }
}

/// Reads nodes; those that are not there are none.
pub(super) async fn read(session: &Session, paths: &[String]) -> Result<Vec<Option<Node>>> {
    let exchanges = paths.chunks(MOST).map(|paths| read_at_once(session, paths));
    let nodes = try_join_all(exchanges).await?;
    Ok(nodes.into_iter().flatten().collect())
}

async fn read_at_once(session: &Session, paths: &[String]) -> Result<Vec<Option<Node>>> {
    let mut reader = session.client().new_multi_reader();
    for path in paths {
        if let Err(error) = reader.add_get_data(path) {
            return Err(session.refusal(READING, &error));
        }
    }
    let read = session.ask(READING, reader.commit()).await?;
    let read = read.map_err(|error| session.refusal(READING, &error))?;
    let nodes = paths.iter().zip(read).map(|(_, read)| match read {
        MultiReadResult::Data { data, stat } => Ok(Some(Node { data, stat })),
        MultiReadResult::Error { err: Error::NoNode } => Ok(None),
        MultiReadResult::Error { err } => Err(session.refusal(READING, &err)),
        // Data was asked for.
        _ => Ok(None),
    });
    nodes.collect()
}

/// Returns the names of a node's children; those of a node that is not there are none.
pub(super) async fn children(session: &Session, path: &str) -> Result<Vec<String>> {
    match session
        .ask(READING, session.client().list_children(path))
        .await?
    {
        Ok(children) => Ok(children),
        Err(Error::NoNode) => Ok(Vec::new()),
        Err(error) => Err(session.refusal(READING, &error)),
    }
}
