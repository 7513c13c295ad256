//! What is special about a board on ZooKeeper.

use std::{sync::Arc, time::Duration};

use uuid::Uuid;

use super::{
    ZooKeeper,
    testing::{Server, zookeeper_url},
};
use crate::board::conformance::{Subject, keeps_its_promises};

const PATIENCE: Duration = Duration::from_secs(5);

fn open() -> Option<(Subject, ())> {
    let server = Server::shared()?;
    // Deep enough that no two tests share a trash.
    let path = format!("/{}/jobs", Uuid::new_v4());
    Some((board_at(server, &path), ()))
}

/// Returns a board with a session of its own.
fn board_at(server: &Server, path: &str) -> Subject {
    let url = zookeeper_url(&format!("zk://127.0.0.1:{}{path}", server.port()));
    Arc::new(ZooKeeper::new(&url, None, PATIENCE))
}

keeps_its_promises!(open);
