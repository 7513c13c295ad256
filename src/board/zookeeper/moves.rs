//! Move records: one node each.

use futures_util::future::try_join_all;
use zookeeper_client::{CreateMode, Error};

use super::{
    link::{nodes, transaction::WRITING},
    paths::unescape,
    target::Target,
};
use crate::{
    board::Result,
    job::{MOST_RECORDS, MoveRecord},
};

impl Target<'_> {
    pub(super) async fn begin_move(self, record: &MoveRecord) -> Result<()> {
        self.make_folder(&self.paths.moves()).await?;
        let (path, value) = (self.paths.move_record(&record.key()), record.value());
        let options = CreateMode::Persistent.with_acls(self.client.acls());
        let created = (self.session.client()).create(&path, value.as_bytes(), &options);
        match self.session.ask(WRITING, created).await? {
            Ok(_) => Ok(()),
            Err(Error::NodeExists) => {
                let set = self
                    .session
                    .client()
                    .set_data(&path, value.as_bytes(), None);
                let set = self.session.ask(WRITING, set).await?;
                set.map(drop)
                    .map_err(|error| self.session.refusal(WRITING, &error))
            }
            Err(error) => Err(self.session.refusal(WRITING, &error)),
        }
    }

    pub(super) async fn moves(self) -> Result<Vec<MoveRecord>> {
        let folder = self.paths.moves();
        let mut children = nodes::children(self.session, &folder).await?;
        children.truncate(MOST_RECORDS);
        let paths: Vec<_> = (children.iter())
            .map(|child| format!("{folder}/{child}"))
            .collect();
        let found = nodes::read(self.session, &paths).await?;
        let records = children.iter().zip(found).filter_map(|(child, node)| {
            let value = node?.data;
            MoveRecord::read(&unescape(child), &String::from_utf8_lossy(&value))
        });
        Ok(records.collect())
    }

    pub(super) async fn end_moves(self, records: &[MoveRecord]) -> Result<()> {
        let deleted = records.iter().map(async |record| {
            let path = self.paths.move_record(&record.key());
            let delete = self.session.client().delete(&path, None);
            match self.session.ask(WRITING, delete).await? {
                Ok(()) | Err(Error::NoNode) => Ok(()),
                Err(error) => Err(self.session.refusal(WRITING, &error)),
            }
        });
        try_join_all(deleted).await.map(drop)
    }
}
