//! Pauses and move records: a node each.

use futures_util::future::try_join_all;

use super::{
    board_session::BoardSession,
    link::nodes::Node,
    paths::{NodeKind, escape, unescape},
};
use crate::{
    board::Result,
    job::{MAX_PAUSES, MAX_RECORDS, MoveRecord, Pause},
};

impl BoardSession<'_> {
    pub(super) async fn pause(&self, pause: &Pause) -> Result<()> {
        self.put(NodeKind::Pause, &pause.names, &pause.write())
            .await
    }

    pub(super) async fn resume(&self, names: &str) -> Result<bool> {
        if self
            .delete(&self.paths.node(NodeKind::Pause, names))
            .await?
        {
            return Ok(true);
        }
        // The name of an unreadable pause may differ from that of its node.
        let directory = self.paths.directory(NodeKind::Pause);
        let mut children = self.session.children(&directory).await?.into_iter();
        match children.find(|child| Pause::shown(unescape(child).as_bytes()) == names) {
            Some(child) => self.delete(&format!("{directory}/{child}")).await,
            None => Ok(false),
        }
    }

    pub(super) async fn pauses(&self) -> Result<Vec<Pause>> {
        let read = |child: &str, node: Node| {
            let names = unescape(child);
            let is_unreadable = escape(&names) != child;
            let pause = Pause::read(names.as_bytes(), &node.data);
            Some(Pause {
                is_unreadable: pause.is_unreadable || is_unreadable,
                ..pause
            })
        };
        let (found, all) = self.read_below(NodeKind::Pause, MAX_PAUSES, read).await?;
        Ok(Pause::bounded(found, all))
    }

    pub(super) async fn begin_move(&self, record: &MoveRecord) -> Result<()> {
        self.put(NodeKind::Move, &record.key(), &record.value())
            .await
    }

    pub(super) async fn moves(&self) -> Result<Vec<MoveRecord>> {
        let read = |child: &str, node: Node| {
            MoveRecord::read(&unescape(child), &String::from_utf8_lossy(&node.data))
        };
        Ok(self.read_below(NodeKind::Move, MAX_RECORDS, read).await?.0)
    }

    pub(super) async fn end_moves(&self, records: &[MoveRecord]) -> Result<()> {
        let deleted = records.iter().map(async |record| {
            let path = self.paths.node(NodeKind::Move, record.key());
            self.delete(&path).await
        });
        try_join_all(deleted).await.map(drop)
    }
}
