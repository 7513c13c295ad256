//! The registry entry of this process, created again after each session.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{task::JoinSet, time};
use zookeeper_client::StateWatcher;

use super::{
    board_session::{BoardSession, Root},
    link::transaction::WRITING,
    paths::NodeKind,
};
use crate::{
    board::{BoardError, Result},
    job::{Conductor, ConductorReport},
};

pub(super) const SWEEP: Duration = Duration::from_secs(3600);

const PAUSE: Duration = Duration::from_secs(1);

/// The entry of this process. Once dropped, it ends with its session.
pub(super) struct StayingRegistration {
    entrant: Arc<ConductorEntry>,
    _stay: JoinSet<()>,
}

impl StayingRegistration {
    pub(super) async fn enter(root: Root, conductor: Conductor, sweep: Duration) -> Result<Self> {
        let entrant = Arc::new(ConductorEntry {
            root,
            report: Mutex::new(conductor.report.clone()),
            conductor,
        });
        let states = entrant.enter().await?;
        let _stay = JoinSet::from_iter([Arc::clone(&entrant).stay(states, sweep)]);
        Ok(Self { entrant, _stay })
    }

    pub(super) fn entrant(&self) -> Arc<ConductorEntry> {
        Arc::clone(&self.entrant)
    }
}

pub(super) struct ConductorEntry {
    root: Root,
    conductor: Conductor,
    report: Mutex<ConductorReport>,
}

impl ConductorEntry {
    pub(super) fn name(&self) -> &str {
        &self.conductor.name
    }

    pub(super) async fn publish(&self, report: &ConductorReport) -> Result<()> {
        *self.report.lock() = report.clone();
        let board = self.root.writing().await?;
        board.publish(self.name(), report).await
    }

    async fn enter(&self) -> Result<StateWatcher> {
        let board = self
            .root
            .with(self.root.client.bearing(WRITING, None).await?);
        // Watch before creating the entry, so that no session end is missed.
        let states = board.session.client().state_watcher();
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
        let name = board.paths.node(NodeKind::ConductorName, self.name());
        let stat = board.session.stat(&name).await?;
        Ok(stat.is_some_and(|stat| stat.ephemeral_owner == board.session.id().0))
    }

    async fn stay(self: Arc<Self>, mut states: StateWatcher, sweep: Duration) {
        let mut sweeps = time::interval_at(time::Instant::now() + sweep, sweep);
        loop {
            tokio::select! {
                () = ended(&mut states) => states = self.enter_again().await,
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
            time::sleep(PAUSE).await;
        }
    }

    async fn sweep(&self) {
        // A later sweep deletes the rest.
        if let Ok(board) = self.root.writing().await {
            let _ = board.sweep().await;
        }
    }
}

async fn ended(states: &mut StateWatcher) {
    while !states.changed().await.is_terminated() {}
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chrono::Utc;
    use uuid::Uuid;
    use zookeeper_client::{Acls, CreateMode};

    use super::*;
    use crate::{
        board::zookeeper::{link::ZooKeeperClient, paths::Paths, testing::Server},
        job::{HISTORY, JobKey, Owner},
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
        }
    }

    fn conductor(name: &str) -> Conductor {
        Conductor {
            name: name.to_owned(),
            host: "h1".to_owned(),
            pid: 42,
            since: Utc::now(),
            owner: Owner::new(name).unwrap(),
            silence: None,
            has_left: false,
            report: crate::job::ConductorReport::default(),
        }
    }

    #[tokio::test]
    async fn registration_sweeps_unowned_nodes() {
        let Some(server) = Server::shared() else {
            return;
        };
        let paths = Paths::of(&format!("/{}/jobs", Uuid::new_v4()));
        let root = root(server, &paths);
        let soon = Duration::from_millis(20);
        let entered = StayingRegistration::enter(root.clone(), conductor("night"), soon);
        let _entered = entered.await.unwrap();
        let session = root.reading().await.unwrap().session;
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let stray = paths.side(&JobKey::new("job0000000042"));
        session.client().mkdir(&stray, &options).await.unwrap();
        let end = time::Instant::now() + Duration::from_secs(20);
        while session.client().check_stat(&stray).await.unwrap().is_some() {
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
        let enter =
            |root: &Root| StayingRegistration::enter(root.clone(), conductor("night"), SWEEP);
        let ours = root(server, &paths);
        drop(enter(&ours).await.unwrap());
        let _entered = enter(&ours).await.unwrap();
        let refused = enter(&root(server, &paths)).await;
        assert!(matches!(refused, Err(BoardError::NameTaken { .. })));
    }
}
