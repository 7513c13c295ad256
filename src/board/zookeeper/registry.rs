//! The conductors of a board: ephemeral nodes.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use zookeeper_client::{CreateMode, Error};

use super::{
    AT_ONCE,
    link::{
        nodes::{self, Node},
        transaction::{Step, WRITING},
    },
    paths::conductor_of,
    target::Target,
    write::marker::Whereabouts,
};
use crate::{
    board::{
        BoardError, Result,
        net::failure::Failure,
        registration::{MOST_CONDUCTORS, crowded},
        wire::{as_json, json::Entity},
    },
    job::{Conductor, JobKey, Owner, Shelf, Told},
};

impl Target<'_> {
    pub(super) async fn register(self, conductor: &Conductor) -> Result<()> {
        let taken = || BoardError::NameTaken {
            name: conductor.name.clone(),
        };
        let known = match self.conductors().await {
            Err(BoardError::Crowded { known, .. }) => known,
            known => known?,
        };
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
        // Two processes of the same name may come at the same time.
        let name = self.paths.name(&conductor.name);
        let told = as_json(&conductor.told);
        transaction.create(Step::Name, name, told.as_bytes(), CreateMode::Ephemeral);
        let path = self.paths.entity(&entity.name);
        transaction.create(Step::Entity, path, &entity.encode(), CreateMode::Ephemeral);
        match transaction
            .commit()
            .await
            .map_err(|failure| self.unknown(failure))?
        {
            Ok(_) => {
                // The entry exists even if the cleanup fails.
                let _ = self.sweep().await;
                Ok(())
            }
            Err(refused) if refused.error == Error::NodeExists => Err(taken()),
            Err(refused) => Err(self.refusal(refused)),
        }
    }

    /// Stores a conductor's status in the node that keeps its name unique.
    pub(super) async fn tell(self, name: &str, told: &Told) -> Result<()> {
        let (path, data) = (self.paths.name(name), as_json(told));
        let set = self.session.client().set_data(&path, data.as_bytes(), None);
        match self.session.ask(WRITING, set).await? {
            // A lost entry comes back with the next session.
            Ok(_) | Err(Error::NoNode) => Ok(()),
            Err(error) => Err(self.session.refusal(WRITING, &error)),
        }
    }

    pub(super) async fn conductors(self) -> Result<Vec<Conductor>> {
        let folder = self.paths.entities();
        let children = nodes::children(self.session, &folder).await?;
        let first = children.iter().take(MOST_CONDUCTORS);
        let paths: Vec<_> = first.map(|child| format!("{folder}/{child}")).collect();
        let read = |_: &str, node: Option<Node>| conductor(&node?);
        let entries =
            nodes::read_as(self.session, &paths, &mut nodes::Room::default(), read).await?;
        let mut conductors: Vec<_> = entries.into_iter().flatten().collect();
        conductors.sort_by(|one, other| one.name.cmp(&other.name));
        let names = conductors.iter().map(|known| self.paths.name(&known.name));
        let names: Vec<_> = names.collect();
        let now = Utc::now();
        let read = |_: &str, name: Option<Node>| {
            let name = name.filter(|name| !name.is_denied())?;
            let refreshed = DateTime::<Utc>::from_timestamp_millis(name.stat.mtime);
            // Clocks may disagree: a future time counts as now.
            let silence = refreshed.map(|time| (now - time).to_std().unwrap_or_default());
            Some((Told::read(&name.data), silence))
        };
        let told = nodes::read_as(self.session, &names, &mut nodes::Room::default(), read).await?;
        for (conductor, told) in conductors.iter_mut().zip(told) {
            (conductor.told, conductor.silence) = told.unwrap_or_default();
        }
        crowded(conductors, children.len())
    }

    /// Deletes sidecars of jobs that are neither on the board nor in the trash.
    pub(super) async fn sweep(self) -> Result<()> {
        let sides = self.paths.sides();
        let recorded = nodes::children(self.session, &sides).await?;
        let recorded = recorded.into_iter().map(|name| format!("{sides}/{name}"));
        let markers = self.paths.markers();
        let marked = nodes::children(self.session, &markers).await?;
        let marked = marked.into_iter().map(|name| format!("{markers}/{name}"));
        // Read the versions first: a later move or claim changes them.
        let recorded = self.read_all(recorded.collect()).await?;
        let marked = self.read_all(marked.collect()).await?;
        let mut known = HashSet::new();
        for shelf in [Shelf::Board, Shelf::Trash] {
            let children = nodes::children(self.session, &self.paths.folder(shelf)).await?;
            let keys = children
                .iter()
                .filter_map(|child| self.paths.key_of(shelf, child));
            known.extend(keys);
        }
        let is_stray = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or_default();
            !known.contains(&JobKey::new(name))
        };
        let is_void = |node: &Node| Whereabouts::read(node).is_void(&known);
        let stray = recorded.iter().filter(|(path, _)| is_stray(path));
        let void = marked.iter().filter(|(_, node)| is_void(node));
        let doomed: Vec<_> = stray.chain(void).collect();
        for doomed in doomed.chunks(AT_ONCE) {
            let gone = doomed.iter().map(|(path, node)| {
                // A node in use again has another version and stays.
                let delete = self.session.client().delete(path, Some(node.stat.version));
                self.session.ask(WRITING, delete)
            });
            // One failure must not stop the others.
            let gone: Result<Vec<_>, Failure> = join_all(gone).await.into_iter().collect();
            gone?;
        }
        self.forget().await
    }

    /// Reads the nodes that we may read.
    async fn read_all(self, paths: Vec<String>) -> Result<Vec<(String, Node)>> {
        let read = |path: &str, node: Option<Node>| {
            let node = node.filter(|node| !node.is_denied())?;
            Some((path.to_owned(), node.brief()))
        };
        let found = nodes::read_as(self.session, &paths, &mut nodes::Room::default(), read).await?;
        Ok(found.into_iter().flatten().collect())
    }
}

fn conductor(entry: &Node) -> Option<Conductor> {
    let entity = Entity::decode(&entry.data).ok()?;
    let name = conductor_of(&entity.name);
    Some(Conductor {
        name: name.to_owned(),
        host: entity.host,
        pid: entity.pid,
        since: DateTime::<Utc>::from_timestamp_millis(entry.stat.ctime)?,
        owner: Owner::from_stored(name),
        silence: None,
        has_left: false,
        told: Told::default(),
    })
}
