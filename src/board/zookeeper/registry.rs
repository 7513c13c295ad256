//! The conductors of a board: nodes that go with the session of whoever created them.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use zookeeper_client::{CreateMode, Error};

use super::{
    Target,
    marker::Whereabouts,
    nodes::{self, Node},
    transaction::{Step, WRITING},
};
use crate::{
    board::{BoardError, Result, wire::json::Entity},
    job::{Conductor, JobKey, Owner, Shelf},
};

impl Target<'_> {
    /// Enters a conductor, as TaskFlow's conductors enter themselves.
    pub(super) async fn register(self, conductor: &Conductor) -> Result<()> {
        let taken = || BoardError::NameTaken {
            name: conductor.name.clone(),
        };
        let known = self.conductors().await?;
        if known.iter().any(|known| known.name == conductor.name) {
            return Err(taken());
        }
        let entity = Entity {
            name: format!("{}@{}:{}", conductor.name, conductor.host, conductor.pid),
            host: conductor.host.clone(),
            pid: conductor.pid,
        };
        for folder in [self.paths.entities(), self.paths.names()] {
            self.make_folder(&folder).await?;
        }
        let mut transaction = self.transaction();
        // Two of the same name may come at the same time, from different processes.
        let name = self.paths.name(&conductor.name);
        transaction.create(Step::Name, name, b"", CreateMode::Ephemeral);
        let path = self.paths.entity(&entity.name);
        transaction.create(Step::Entity, path, &entity.encode(), CreateMode::Ephemeral);
        match transaction
            .commit()
            .await
            .map_err(|failure| self.unknown(failure))?
        {
            Ok(_) => self.sweep().await,
            Err(refused) if refused.error == Error::NodeExists => Err(taken()),
            Err(refused) => Err(self.refusal(refused)),
        }
    }

    /// Returns the conductors that are alive; an entry that cannot be read is none.
    pub(super) async fn conductors(self) -> Result<Vec<Conductor>> {
        let folder = self.paths.entities();
        let children = nodes::children(self.session, &folder).await?;
        let paths: Vec<_> = children
            .iter()
            .map(|child| format!("{folder}/{child}"))
            .collect();
        let entries = nodes::read(self.session, &paths).await?;
        let mut conductors: Vec<_> = entries.iter().flatten().filter_map(conductor).collect();
        conductors.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(conductors)
    }

    /// Removes what is kept of jobs that are neither on the board nor in the trash any more.
    async fn sweep(self) -> Result<()> {
        let (sides, markers) = (self.paths.sides(), self.paths.markers());
        // The records first: what is posted behind that look is not missed in the later ones.
        let recorded = nodes::children(self.session, &sides).await?;
        let marked = nodes::children(self.session, &markers).await?;
        let marks: Vec<_> = marked.iter().map(|uuid| self.paths.marker(uuid)).collect();
        let marks: Vec<_> = marks
            .iter()
            .cloned()
            .zip(nodes::read(self.session, &marks).await?)
            .collect();
        let mut known = HashSet::new();
        for shelf in [Shelf::Board, Shelf::Trash] {
            let children = nodes::children(self.session, &self.paths.folder(shelf)).await?;
            known.extend(
                children
                    .iter()
                    .filter_map(|child| self.paths.key_of(shelf, child)),
            );
        }
        let is_void = |node: &Node| {
            let whereabouts = Whereabouts::read(node);
            let places = [Shelf::Board, Shelf::Trash].map(|shelf| whereabouts.on(shelf));
            places.iter().flatten().all(|key| !known.contains(key))
        };
        let void = marks.into_iter().filter_map(|(path, node)| {
            let node = node.filter(is_void)?;
            Some((path, Some(node.stat.version)))
        });
        let stray = recorded.into_iter().map(JobKey::new);
        let stray = stray.filter(|key| !known.contains(key));
        let stray = stray.map(|key| (self.paths.side(&key), None));
        for (path, version) in void.chain(stray) {
            // One that is in use again by now is not what was seen, and stays.
            let delete = self.session.client().delete(&path, version);
            match self.session.ask(WRITING, delete).await? {
                Ok(()) | Err(Error::NoNode | Error::BadVersion) => {}
                Err(error) => return Err(self.session.refusal(WRITING, &error)),
            }
        }
        Ok(())
    }
}

fn conductor(entry: &Node) -> Option<Conductor> {
    let entity = Entity::decode(&entry.data).ok()?;
    // Behind the name are the host and the process; a name may have an `@` of its own.
    let (name, _) = entity.name.rsplit_once('@').unwrap_or((&entity.name, ""));
    Some(Conductor {
        name: name.to_owned(),
        host: entity.host,
        pid: entity.pid,
        since: DateTime::<Utc>::from_timestamp_millis(entry.stat.ctime)?,
        owner: Owner::from_stored(name),
    })
}
