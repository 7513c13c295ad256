//! Reads many nodes in one exchange.

use futures_util::future::try_join_all;
use zookeeper_client::{Error, MultiReadResult, Stat};

use super::session::Session;
use crate::{
    board::{Result, pages::page_length},
    job::MAX_TEXT_BYTES,
};

pub(crate) const READING: &str = "read";

/// Maximum nodes per exchange: more would delay other clients.
pub(crate) const MAX_NODES_PER_EXCHANGE: usize = 1000;

/// Nodes of the first exchange, while their sizes are unknown.
const FIRST_NODES: usize = 16;

/// Maximum request size: the server hangs up at 1 MiB.
const MAX_REQUEST_BYTES: usize = 512 * 1024;

/// Bytes of a request beyond its path.
const OVERHEAD: usize = 16;

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) data: Vec<u8>,
    pub(crate) stat: Stat,
}

impl Node {
    pub(crate) fn denied() -> Self {
        Self {
            data: Vec::new(),
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

    /// Drops the data unless they are short, as those of a marker are.
    pub(crate) fn brief(mut self) -> Self {
        if self.data.len() > MAX_TEXT_BYTES {
            self.data = Vec::new();
        }
        self
    }

    pub(crate) fn is_denied(&self) -> bool {
        // Every real node has a transaction.
        self.stat.czxid == 0
    }
}

/// How much a reader loads in total and at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadLimit {
    bytes: usize,
    batch_size: usize,
}

impl ReadLimit {
    pub(crate) const PAGE: Self = Self {
        bytes: 2 << 20,
        batch_size: FIRST_NODES,
    };
}

impl Default for ReadLimit {
    fn default() -> Self {
        Self {
            bytes: usize::MAX,
            ..Self::PAGE
        }
    }
}

/// Nodes read even if they exceed the limit, so that each page makes progress: a lock and the two records beside it.
const MIN_NODES: usize = 3;

impl Session {
    /// Missing nodes are `None`. The server reads in this order, and one denied node does not fail the others.
    pub(crate) async fn read(&self, paths: &[String]) -> Result<Vec<Option<Node>>> {
        let room = &mut ReadLimit::default();
        self.read_as(paths, room, |_, node| node).await
    }

    pub(crate) async fn read_one(&self, path: &String) -> Result<Option<Node>> {
        let found = self.read(std::slice::from_ref(path)).await?;
        Ok(found.into_iter().flatten().next())
    }

    /// Reads as many nodes as fit into `room`. Servers do not report sizes in advance, so earlier replies determine
    /// the size of each request.
    pub(crate) async fn read_as<T>(
        &self,
        paths: &[String],
        room: &mut ReadLimit,
        mut of: impl FnMut(&str, Option<Node>) -> T,
    ) -> Result<Vec<T>> {
        let mut read = Vec::with_capacity(paths.len());
        let mut left = room.bytes;
        while read.len() < paths.len() && (left > 0 || read.len() < MIN_NODES) {
            let rest = &paths[read.len()..];
            let some = &rest[..room.batch_size.min(rest.len())];
            let exchanges = exchanges(some, self.depth()).into_iter();
            let nodes = try_join_all(exchanges.map(|paths| self.read_together(paths))).await?;
            let sizes = nodes.iter().flatten().flatten().map(|node| node.data.len());
            let bytes: usize = sizes.sum();
            let most = 8 * room.batch_size.max(FIRST_NODES);
            room.batch_size =
                page_length(some.len(), bytes, MAX_NODES_PER_EXCHANGE).clamp(MIN_NODES, most);
            left = left.saturating_sub(bytes);
            let nodes = some.iter().zip(nodes.into_iter().flatten());
            read.extend(nodes.map(|(path, node)| of(path, node)));
        }
        Ok(read)
    }

    async fn read_together(&self, paths: &[String]) -> Result<Vec<Option<Node>>> {
        let mut reader = self.client.new_multi_reader();
        for path in paths {
            if let Err(error) = reader.add_get_data(path) {
                return Err(self.refusal(READING, &error));
            }
        }
        let read = self.get(READING, reader.commit()).await?;
        let nodes = read.into_iter().map(|read| match read {
            MultiReadResult::Data { data, stat } => Ok(Some(Node { data, stat })),
            MultiReadResult::Error { err: Error::NoNode } => Ok(None),
            MultiReadResult::Error { err: Error::NoAuth } => Ok(Some(Node::denied())),
            MultiReadResult::Error { err } => Err(self.refusal(READING, &err)),
            // No other reply follows a request for data.
            _ => Ok(None),
        });
        nodes.collect()
    }

    pub(crate) async fn children(&self, path: &str) -> Result<Vec<String>> {
        let children = self.client.list_children(path);
        match self.ask(READING, children).await? {
            Ok(children) => Ok(children),
            Err(Error::NoNode) => Ok(Vec::new()),
            Err(error) => Err(self.refusal(READING, &error)),
        }
    }

    pub(crate) async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let stat = self.client.check_stat(path);
        Ok(self.get(READING, stat).await?)
    }

    /// Brings our server up to the state that any server had at the time of the call.
    pub(crate) fn catch_up(&self, path: &str) -> impl Future<Output = Result<()>> {
        // Sent now, so that reads sent later come after it.
        let sync = self.client.sync(path);
        async move { Ok(self.get(READING, sync).await?) }
    }
}

fn exchanges(paths: &[String], depth: usize) -> Vec<&[String]> {
    let mut exchanges = Vec::new();
    let mut rest = paths;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fitting = rest.iter().take(MAX_NODES_PER_EXCHANGE).take_while(|path| {
            bytes += path.len() + depth + OVERHEAD;
            bytes <= MAX_REQUEST_BYTES
        });
        let (exchange, others) = rest.split_at(fitting.count().max(1));
        exchanges.push(exchange);
        rest = others;
    }
    exchanges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_size_is_bounded() {
        let sizes = |length: usize, count: usize, depth| {
            let paths = vec!["x".repeat(length); count];
            let exchanges = exchanges(&paths, depth);
            exchanges
                .iter()
                .map(|paths| paths.len())
                .collect::<Vec<_>>()
        };
        assert_eq!(sizes(30, 2500, 0), [1000, 1000, 500]);
        assert_eq!(sizes(10_000, 120, 0), [52, 52, 16]);
        assert_eq!(sizes(10, 120, 9_990), [52, 52, 16]);
        assert_eq!(sizes(600_000, 2, 0), [1, 1]);
        assert!(sizes(30, 0, 0).is_empty());
    }
}
