//! Behaviour that is special to ZooKeeper.

mod claims;
mod hold;
mod nodes;
mod sharing;

use serde_json::Value;

use crate::{interop::shared::Shared, support::ZooKeeper};

fn on_board(shared: &mut Shared<ZooKeeper>) -> Vec<(String, Value)> {
    let directory = format!("{}/", shared.server.path());
    let nodes = shared.server.nodes(&mut shared.peer);
    let nodes = nodes.as_object().unwrap().iter();
    nodes
        .filter_map(|(path, node)| Some((path.strip_prefix(&directory)?.to_owned(), node.clone())))
        .collect()
}

fn node_of(shared: &mut Shared<ZooKeeper>, job: &str) -> String {
    let mut nodes = on_board(shared).into_iter();
    let found = nodes.find(|(_, node)| node["data"].as_str().unwrap().contains(job));
    found.unwrap().0
}

fn lock_of(shared: &mut Shared<ZooKeeper>, node: &str) -> Option<Value> {
    let lock = format!("{node}.lock");
    let mut nodes = on_board(shared).into_iter();
    nodes.find(|(name, _)| *name == lock).map(|(_, node)| node)
}
