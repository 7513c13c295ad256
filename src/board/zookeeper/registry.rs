//! The conductors of a board: ephemeral nodes. The entry of this process is created again after each session.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use tokio::{task::JoinSet, time};
use zookeeper_client::{CreateMode, Error, StateWatcher};

use super::{
    board_session::{BoardSession, Root},
    link::{
        nodes::{Node, ReadLimit},
        transaction::WRITING,
    },
    paths::{NodeKind, conductor_of},
};
use crate::{
    board::{
        BoardError, Result,
        examine::Examined,
        own_entry::{MAX_CONDUCTORS, UNREADABLE, crowded},
        wire::json::Entity,
    },
    job::{Conductor, ConductorReport, MAX_TEXT_BYTES, Owner},
    problem::Code,
};

pub(super) const SWEEP: Duration = Duration::from_secs(3600);

const REENTRY_PAUSE: Duration = Duration::from_secs(1);

/// The entry of this process. Once dropped, it ends with its session.
pub(super) struct HeldEntry {
    pub(super) entry: Arc<ZooKeeperEntry>,
    _keeper: JoinSet<()>,
}

impl HeldEntry {
    pub(super) async fn enter(root: Root, conductor: Conductor, sweep: Duration) -> Result<Self> {
        let entry = Arc::new(ZooKeeperEntry {
            root,
            report: Mutex::new(conductor.report.clone()),
            conductor,
        });
        let states = entry.enter().await?;
        let _keeper = JoinSet::from_iter([Arc::clone(&entry).stay(states, sweep)]);
        Ok(Self { entry, _keeper })
    }
}

pub(super) struct ZooKeeperEntry {
    root: Root,
    pub(super) conductor: Conductor,
    report: Mutex<ConductorReport>,
}

impl ZooKeeperEntry {
    pub(super) async fn publish(&self, report: &ConductorReport) -> Result<()> {
        *self.report.lock() = report.clone();
        let board = self.root.writing().await?;
        // If our session was lost, the name may belong to another process. The next session registers again.
        if !self.is_ours(&board).await? {
            return Ok(());
        }
        let (session, data) = (&board.session, report.write());
        let path = board
            .paths
            .node(NodeKind::ConductorName, &self.conductor.name);
        let set = session.client.set_data(&path, data.as_bytes(), None);
        match session.ask(WRITING, set).await? {
            Ok(_) | Err(Error::NoNode) => Ok(()),
            Err(error) => Err(session.refusal(WRITING, &error)),
        }
    }

    async fn enter(&self) -> Result<StateWatcher> {
        let session = self.root.client.session_for_nodes(WRITING, None);
        let board = self.root.with(session.await?);
        // Watch before creating the entry, so that no session end is missed.
        let states = board.session.client.state_watcher();
        let conductor = Conductor {
            report: self.report.lock().clone(),
            ..self.conductor.clone()
        };
        match board.register(&conductor).await {
            // An entry whose creation got no reply is still ours.
            Err(error @ BoardError::NameTaken { .. }) if !self.is_ours(&board).await? => Err(error),
            Ok(()) | Err(BoardError::NameTaken { .. }) => Ok(states),
            Err(error) => Err(error),
        }
    }

    async fn is_ours(&self, board: &BoardSession<'_>) -> Result<bool> {
        let name = board
            .paths
            .node(NodeKind::ConductorName, &self.conductor.name);
        let stat = board.session.stat(&name).await?;
        Ok(stat.is_some_and(|stat| stat.ephemeral_owner == board.session.id().0))
    }

    async fn stay(self: Arc<Self>, mut states: StateWatcher, sweep: Duration) {
        let mut sweeps = time::interval_at(time::Instant::now() + sweep, sweep);
        loop {
            tokio::select! {
                state = states.changed() => {
                    if state.is_terminated() {
                        states = self.enter_again().await;
                    }
                }
                _ = sweeps.tick() => self.sweep().await,
            }
        }
    }

    /// Creates the entry once the servers answer and the old session's entry is gone.
    async fn enter_again(&self) -> StateWatcher {
        loop {
            if let Ok(states) = self.enter().await {
                return states;
            }
            time::sleep(REENTRY_PAUSE).await;
        }
    }

    async fn sweep(&self) {
        // A later sweep deletes the rest.
        if let Ok(board) = self.root.writing().await {
            let _ = board.sweep().await;
        }
    }
}

impl BoardSession<'_> {
    pub(super) async fn register(&self, conductor: &Conductor) -> Result<()> {
        let taken = || BoardError::NameTaken {
            name: conductor.name.clone(),
        };
        let known = match self.registered().await {
            Err(BoardError::Crowded { known, .. }) => known,
            known => known?.0,
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
            self.make_directory(kind).await?;
        }
        let mut transaction = self.transaction();
        // Two processes of the same name may come at the same time.
        let (name, report) = (&conductor.name, conductor.report.write());
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

    /// Returns the conductors, and the problems of registrations that cannot be read.
    pub(super) async fn registered(&self) -> Result<(Vec<Conductor>, Examined)> {
        let directory = self.paths.directory(NodeKind::Entity);
        let (mut unreadable, mut denied) = (Vec::new(), 0);
        let read = |child: &str, node: Node| {
            let found = conductor(&node);
            match node.is_denied() {
                true => denied += 1,
                false if found.is_none() => unreadable.push(format!("{directory}/{child}")),
                false => {}
            }
            found
        };
        let entities = self.read_below(NodeKind::Entity, MAX_CONDUCTORS, read);
        // The names are read first, so each has an entity unless its conductor leaves between the two reads.
        let (taken, found) = tokio::join!(self.children(NodeKind::ConductorName), entities);
        let (mut conductors, all) = found?;
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
        let room = &mut ReadLimit::default();
        let report = self.session.read_as(&names, room, read).await?;
        for (conductor, report) in conductors.iter_mut().zip(report) {
            (conductor.report, conductor.silence) = report.unwrap_or_default();
        }
        let (conductors, mut seen) = (crowded(conductors, all)?, Examined::default());
        match denied {
            0 => unreadable.extend(self.without_entity(taken, &names).await?),
            // Any of them may have the entity.
            _ => seen.unseen(
                format!("registrations without read permission: {denied}"),
                None,
            ),
        }
        self.report_nodes(Code::UnreadableEntry, UNREADABLE, &unreadable, &mut seen);
        Ok((conductors, seen))
    }

    /// Returns the nodes of names that no conductor has, but that no other conductor can use either.
    async fn without_entity(
        &self,
        taken: Result<Vec<String>>,
        known: &[String],
    ) -> Result<Vec<String>> {
        let directory = self.paths.directory(NodeKind::ConductorName);
        let taken = match taken {
            Err(BoardError::Denied { .. }) => return Ok(Vec::new()),
            taken => taken?.into_iter(),
        };
        let taken = taken.map(|child| format!("{directory}/{child}"));
        let taken: Vec<_> = taken.filter(|path| !known.contains(path)).collect();
        let is_there = |path: &str, node: Option<Node>| node.map(|_| path.to_owned());
        let room = &mut ReadLimit::default();
        let taken = self.session.read_as(&taken, room, is_there).await?;
        Ok(taken.into_iter().flatten().collect())
    }
}

fn conductor(entry: &Node) -> Option<Conductor> {
    if entry.data.len() > 64 * MAX_TEXT_BYTES {
        return None;
    }
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

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use zookeeper_client::Acls;

    use super::*;
    use crate::{
        board::{
            wire::posting::Limit,
            zookeeper::{link::ZooKeeperClient, paths::Paths, testing::Server},
        },
        job::{HISTORY, JobKey},
    };

    fn root(server: &Server, paths: &Paths) -> Root {
        Root {
            client: Arc::new(ZooKeeperClient::new(
                &server.url(""),
                None,
                Duration::from_secs(5),
            )),
            paths: paths.clone(),
            history: HISTORY,
            limit: Limit::USUAL,
        }
    }

    fn conductor(name: &str) -> Conductor {
        Conductor::named(name)
    }

    #[tokio::test]
    async fn registration_sweeps_unowned_nodes() {
        let Some(server) = Server::shared() else {
            return;
        };
        let paths = Paths::of(&format!("/{}/jobs", Uuid::new_v4()));
        let root = root(server, &paths);
        let soon = Duration::from_millis(20);
        let entry = HeldEntry::enter(root.clone(), conductor("night"), soon);
        let _entered = entry.await.unwrap();
        let session = root.reading().await.unwrap().session;
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let stray = paths.side(&JobKey::new("job0000000042"));
        session.client.mkdir(&stray, &options).await.unwrap();
        let end = time::Instant::now() + Duration::from_secs(20);
        while session.client.check_stat(&stray).await.unwrap().is_some() {
            assert!(time::Instant::now() < end, "it stays");
            time::sleep(soon).await;
        }
    }

    #[tokio::test]
    async fn unconfirmed_registration_is_found() {
        let Some(server) = Server::shared() else {
            return;
        };
        let paths = Paths::of(&format!("/{}/jobs", Uuid::new_v4()));
        let enter = |root: &Root| HeldEntry::enter(root.clone(), conductor("night"), SWEEP);
        let ours = root(server, &paths);
        drop(enter(&ours).await.unwrap());
        let _entered = enter(&ours).await.unwrap();
        let refused = enter(&root(server, &paths)).await;
        assert!(matches!(refused, Err(BoardError::NameTaken { .. })));
    }
}
