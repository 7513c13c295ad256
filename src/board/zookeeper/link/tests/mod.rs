//! The link, against real servers and impostors.

mod access;
mod hostile;
mod loss;
mod reach;
mod session;
mod tls;

use std::time::Duration;

use tokio::time;
use zookeeper_client::{CreateMode, Error, MultiWriteError};

use super::*;
use crate::board::{
    net::failure::RequestFailure, testing::summary, zookeeper::testing::zookeeper_url,
};

const OP_TIMEOUT: Duration = Duration::from_secs(5);

fn client(url: &str) -> ZooKeeperClient {
    ZooKeeperClient::new(&zookeeper_url(url), None, OP_TIMEOUT)
}

async fn failure(client: &ZooKeeperClient) -> String {
    summary(client.session("read").await.unwrap_err())
}

async fn ping(client: &ZooKeeperClient) -> Session {
    let session = client.session("read").await.unwrap();
    let looked = session.ask("read", session.client.check_stat("/zookeeper"));
    looked.await.unwrap().unwrap();
    session
}

async fn create(session: &Session, mode: CreateMode) -> String {
    let path = format!("/{}", uuid::Uuid::new_v4());
    let options = mode.with_acls(Acls::anyone_all());
    let created = session.client.create(&path, b"", &options);
    session.ask("write to", created).await.unwrap().unwrap();
    path
}

async fn is_there(client: &ZooKeeperClient, path: &str) -> bool {
    let session = client.session("read").await.unwrap();
    let looked = session.ask("read", session.client.check_stat(path));
    looked.await.unwrap().unwrap().is_some()
}

fn is_send<T: Send>(_: &T) {}

#[test]
fn requests_are_send() {
    let client = client("zk://localhost");
    is_send(&client.session("read"));
    is_send(&client.session_for_nodes("read", Some(Duration::from_secs(1))));
    is_send(&client.close());
}
