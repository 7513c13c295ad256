//! Nodes that belong to no job.

use std::collections::HashSet;

use super::{
    board_session::BoardSession,
    link::nodes::Node,
    paths::{NodeKind, locked_by},
};
use crate::{
    board::{Result, wire::marker::MarkerRecord},
    job::{JobKey, Location},
};

pub(super) struct Strays {
    pub(super) locks: Vec<String>,
    /// Sidecars and markers, as read before the jobs; sidecars that were only listed have no node.
    pub(super) records: Vec<(String, Option<Node>)>,
}

#[derive(Clone, Copy)]
pub(super) enum SidecarRead {
    /// Lists the names, in one request.
    Names,
    /// Reads every sidecar, so that a delete can require its version.
    Versions,
}

impl BoardSession<'_> {
    pub(super) async fn strays(&self, sidecars: SidecarRead) -> Result<Strays> {
        let sides = self.paths.directory(NodeKind::Sidecar);
        let markers = self.paths.directory(NodeKind::Marker);
        // Read the versions first: a later move or claim changes them, and a later job is not included.
        let read = |child: &str, node: Node| Some((child.to_owned(), Some(node.brief())));
        let recorded = match sidecars {
            SidecarRead::Versions => {
                self.read_below(NodeKind::Sidecar, usize::MAX, read)
                    .await?
                    .0
            }
            SidecarRead::Names => {
                let names = self.children(NodeKind::Sidecar).await?.into_iter();
                names.map(|name| (name, None)).collect()
            }
        };
        let (marked, _) = self.read_below(NodeKind::Marker, usize::MAX, read).await?;
        let (mut known, mut locks) = (HashSet::new(), Vec::new());
        for location in Location::LIVE {
            let children = self.children(location.into()).await?;
            let keys = children.iter();
            known.extend(keys.filter_map(|child| self.paths.key_of(location, child)));
            if location == Location::Board {
                locks.extend(children.iter().filter_map(|child| locked_by(child)));
            }
        }
        let locks = locks.iter().filter(|key| !known.contains(*key));
        let is_stray = |name: &String| !known.contains(&JobKey::new(name.as_str()));
        let recorded = recorded.into_iter().filter(|(name, _)| is_stray(name));
        let recorded = recorded.map(|(name, node)| (format!("{sides}/{name}"), node));
        let is_void =
            |node: &Node| !node.is_denied() && MarkerRecord::read(&node.data).is_void(&known);
        let marked = marked.into_iter();
        let marked = marked.filter(|(_, node)| node.as_ref().is_some_and(is_void));
        let marked = marked.map(|(name, node)| (format!("{markers}/{name}"), node));
        Ok(Strays {
            locks: locks.map(|key| self.paths.lock(key)).collect(),
            records: recorded.chain(marked).collect(),
        })
    }

    pub(super) async fn sweep(&self) -> Result<()> {
        let strays = self
            .strays(SidecarRead::Versions)
            .await?
            .records
            .into_iter();
        let read = strays.filter_map(|(path, node)| Some((path, node?)));
        let readable = read.filter(|(_, node)| !node.is_denied());
        let unused = readable.map(|(path, node)| (path, Some(node.stat.version)));
        self.delete_unused(&unused.collect::<Vec<_>>()).await?;
        self.trim_history().await
    }
}
