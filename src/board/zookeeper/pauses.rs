//! Pauses: a node for each glob.

use zookeeper_client::{CreateMode, Error};

use super::{
    link::{nodes, transaction::WRITING},
    target::Target,
};
use crate::{
    board::{Result, wire::as_json},
    job::{MOST_PAUSES, Pause, from_json},
};

impl Target<'_> {
    pub(super) async fn pause(self, pause: &Pause) -> Result<()> {
        self.make_folder(&self.paths.pauses()).await?;
        let (path, data) = (self.paths.pause(&pause.names), as_json(pause));
        let options = CreateMode::Persistent.with_acls(self.client.acls());
        let created = self
            .session
            .client()
            .create(&path, data.as_bytes(), &options);
        match self.session.ask(WRITING, created).await? {
            Ok(_) => return Ok(()),
            Err(Error::NodeExists) => {}
            Err(error) => return Err(self.session.refusal(WRITING, &error)),
        }
        let set = self.session.client().set_data(&path, data.as_bytes(), None);
        let set = self.session.ask(WRITING, set).await?;
        set.map(drop)
            .map_err(|error| self.session.refusal(WRITING, &error))
    }

    pub(super) async fn resume(self, names: &str) -> Result<bool> {
        let path = self.paths.pause(names);
        let delete = self.session.client().delete(&path, None);
        match self.session.ask(WRITING, delete).await? {
            Ok(()) => Ok(true),
            Err(Error::NoNode) => Ok(false),
            Err(error) => Err(self.session.refusal(WRITING, &error)),
        }
    }

    pub(super) async fn pauses(self) -> Result<Vec<Pause>> {
        let folder = self.paths.pauses();
        let children = nodes::children(self.session, &folder).await?;
        let first = children.iter().take(MOST_PAUSES);
        let paths: Vec<_> = first.map(|child| format!("{folder}/{child}")).collect();
        let read = |_: &str, node: Option<nodes::Node>| from_json(&node?.data).ok();
        let found = nodes::read_as(self.session, &paths, &mut nodes::Room::default(), read).await?;
        let found = found.into_iter().flatten().collect();
        Ok(Pause::bounded(found, children.len()))
    }
}
