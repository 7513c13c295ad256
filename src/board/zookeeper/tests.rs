//! Tests of the ZooKeeper board alone.

mod claim;
mod faults;
mod foreign_data;
mod history;
mod loss;
mod numbering;
mod outages;
mod reading;
mod sessions;
mod sweep;
mod trash;
mod unique_uuid;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use uuid::Uuid;
use zookeeper_client::{Acls, CreateMode, Error, Stat};

use super::{
    ZooKeeper,
    paths::{NodeKind, Paths},
    testing::{Proxy, ProxyMode, Server, zookeeper_url},
};
use crate::{
    board::{
        BoardError, BoardExt, JobRef, Result,
        conformance::{
            ATTEMPT, BY_HAND, Subject, WHOLE_BOARD, ada, bob, by_name, claim_one, claimant, draft,
            get, keeps_its_promises, list, on_board, owner, post, post_claimed, post_one, release,
            settled,
            stored::{Record, SPOILED, Storage},
            trash::{purge, restore},
        },
    },
    job::{
        Aftermath, Authority, Claim, Decision, Draft, Entry, ExpectedState, Fence, HISTORY, Job,
        JobKey, Location, Settlement, Term,
    },
};

const OP_TIMEOUT: Duration = Duration::from_secs(5);

fn open() -> Option<(Subject, Site)> {
    let site = Site::new()?;
    Some((site.board(), site))
}

fn board_at(port: u16, path: &str) -> Subject {
    let url = zookeeper_url(&format!("zk://127.0.0.1:{port}{path}"));
    Arc::new(ZooKeeper::new(&url, None, OP_TIMEOUT, HISTORY))
}

keeps_its_promises!(open, Site::board);

struct Site {
    port: u16,
    path: String,
    paths: Paths,
}

impl Site {
    fn new() -> Option<Self> {
        Some(Self::on(Server::shared()?))
    }

    fn on(server: &Server) -> Self {
        // Deep enough that no two tests share a trash.
        Self::at(server.port(), format!("/{}/jobs", Uuid::new_v4()))
    }

    fn at(port: u16, path: String) -> Self {
        let paths = Paths::of(&path);
        Self { port, path, paths }
    }

    fn board(&self) -> Subject {
        board_at(self.port, &self.path)
    }

    fn board_behind(&self, proxy: &Proxy) -> Subject {
        board_at(proxy.port, &self.path)
    }

    fn job(&self, key: &JobKey) -> String {
        self.paths.job(Location::Board, key)
    }

    fn trashed(&self, key: &JobKey) -> String {
        self.paths.job(Location::Trash, key)
    }

    async fn nodes(&self) -> Nodes {
        let server = format!("127.0.0.1:{}", self.port);
        Nodes(zookeeper_client::Client::connect(&server).await.unwrap())
    }
}

impl Storage for Site {
    async fn spoil(&self, record: Record<'_>) {
        let path = match record {
            Record::Posting(key) => self.job(key),
            Record::Sidecar(key) => self.paths.node(NodeKind::Sidecar, key),
            Record::Pause(names) => self.paths.node(NodeKind::Pause, names),
            Record::Move(key) => self.paths.node(NodeKind::Move, key),
        };
        self.nodes().await.put(&path, SPOILED).await;
    }

    async fn expire_registration(&self, name: &str) {
        let nodes = self.nodes().await;
        for kind in [NodeKind::ConductorName, NodeKind::Entity] {
            let mut below = nodes.below(&self.paths.directory(kind)).await;
            below.retain(|path, _| path.contains(name));
            for path in below.keys() {
                nodes.0.delete(path, None).await.unwrap();
            }
        }
    }

    fn again(&self) -> Subject {
        self.board()
    }

    async fn all(&self) -> Vec<String> {
        let (parent, _) = self.path.rsplit_once('/').unwrap();
        let all = self.nodes().await.below(parent).await.into_iter();
        all.map(|node| format!("{node:?}")).collect()
    }
}

struct Nodes(zookeeper_client::Client);

impl Nodes {
    async fn put(&self, path: &str, data: impl AsRef<[u8]>) {
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let (directory, _) = path.rsplit_once('/').unwrap();
        match self.0.mkdir(directory, &options).await {
            Ok(()) | Err(Error::NodeExists) => {}
            Err(error) => panic!("{directory}: {error}"),
        }
        match self.0.create(path, data.as_ref(), &options).await {
            Ok(_) => {}
            Err(Error::NodeExists) => {
                self.0.set_data(path, data.as_ref(), None).await.unwrap();
            }
            Err(error) => panic!("{path}: {error}"),
        }
    }

    async fn get(&self, path: &str) -> Option<(Vec<u8>, Stat)> {
        match self.0.get_data(path).await {
            Ok(found) => Some(found),
            Err(Error::NoNode) => None,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    async fn has(&self, path: &str) -> bool {
        self.get(path).await.is_some()
    }

    async fn below(&self, path: &str) -> BTreeMap<String, (Vec<u8>, Stat)> {
        let mut found = BTreeMap::new();
        let mut directories = vec![path.to_owned()];
        while let Some(directory) = directories.pop() {
            let Some(node) = self.get(&directory).await else {
                continue;
            };
            for child in self.0.list_children(&directory).await.unwrap() {
                directories.push(format!("{}/{child}", directory.trim_end_matches('/')));
            }
            found.insert(directory, node);
        }
        found
    }
}

fn chosen(name: &str, uuid: Uuid) -> Draft {
    Draft {
        uuid,
        chosen: true,
        ..draft(name)
    }
}

fn posting(uuid: &str, name: &str) -> String {
    json!({"uuid": uuid, "name": name, "priority": "NORMAL", "details": {}}).to_string()
}

fn trash() -> Decision {
    Decision::Trash(Aftermath::None)
}

async fn trashed(board: &Subject, draft: Draft) -> JobKey {
    let key = post(board, draft).await;
    claim_one(board, &key, &ada()).await.unwrap();
    settled(board, &key, trash(), by_name("ada")).await;
    key
}

async fn register_worker(board: &Subject) {
    let worker = crate::job::Conductor::named("worker");
    board.register(&worker).await.unwrap();
}
