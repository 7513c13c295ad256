//! The conductors of a board: ephemeral nodes.

use chrono::{DateTime, Utc};
use zookeeper_client::{CreateMode, Error};

use super::{
    board_session::BoardSession,
    link::{
        nodes::{Node, Room},
        transaction::WRITING,
    },
    paths::{NodeKind, conductor_of},
};
use crate::{
    board::{
        BoardError, Result,
        registration::{MOST_CONDUCTORS, crowded},
        wire::{as_json, json::Entity},
    },
    job::{Conductor, ConductorReport, Owner},
};

impl BoardSession<'_> {
    pub(super) async fn register(&self, conductor: &Conductor) -> Result<()> {
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
        for kind in [NodeKind::Entity, NodeKind::ConductorName] {
            self.make_folder(&self.paths.folder(kind)).await?;
        }
        let mut transaction = self.transaction();
        // Two processes of the same name may come at the same time.
        let (name, report) = (&conductor.name, as_json(&conductor.report));
        let mode = CreateMode::Ephemeral;
        transaction.create_as(NodeKind::ConductorName, name, report.as_bytes(), mode);
        transaction.create_as(NodeKind::Entity, &entity.name, &entity.encode(), mode);
        match self.commit(transaction).await? {
            Ok(()) => {
                // The entry exists even if the cleanup fails.
                let _ = self.sweep().await;
                Ok(())
            }
            Err(refused) if refused.error == Error::NodeExists => Err(taken()),
            Err(refused) => Err(self.refusal(&refused)),
        }
    }

    pub(super) async fn publish(&self, name: &str, report: &ConductorReport) -> Result<()> {
        let path = self.paths.node(NodeKind::ConductorName, name);
        let data = as_json(report);
        let set = self.session.client().set_data(&path, data.as_bytes(), None);
        match self.session.ask(WRITING, set).await? {
            // A lost entry comes back with the next session.
            Ok(_) | Err(Error::NoNode) => Ok(()),
            Err(error) => Err(self.session.refusal(WRITING, &error)),
        }
    }

    pub(super) async fn conductors(&self) -> Result<Vec<Conductor>> {
        let folder = self.paths.folder(NodeKind::Entity);
        let read = |_: &str, node: Node| conductor(&node);
        let found = self
            .session
            .read_below(&folder, MOST_CONDUCTORS, read)
            .await?;
        let (mut conductors, all) = found;
        conductors.sort_by(|one, other| one.name.cmp(&other.name));
        let name = |known: &Conductor| self.paths.node(NodeKind::ConductorName, &known.name);
        let names: Vec<_> = conductors.iter().map(name).collect();
        let now = Utc::now();
        let read = |_: &str, name: Option<Node>| {
            let name = name.filter(|name| !name.is_denied())?;
            let refreshed = DateTime::<Utc>::from_timestamp_millis(name.stat.mtime);
            // Clocks may disagree: a future time counts as now.
            let silence = refreshed.map(|time| (now - time).to_std().unwrap_or_default());
            Some((ConductorReport::read(&name.data), silence))
        };
        let report = self
            .session
            .read_as(&names, &mut Room::default(), read)
            .await?;
        for (conductor, report) in conductors.iter_mut().zip(report) {
            (conductor.report, conductor.silence) = report.unwrap_or_default();
        }
        crowded(conductors, all)
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
        report: ConductorReport::default(),
    })
}
