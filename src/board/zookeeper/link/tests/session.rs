//! How long sessions last, and what ends with them.

use super::*;
use crate::board::zookeeper::testing::{Server, free_port};

#[tokio::test]
async fn the_session_is_kept_and_bears_what_others_see() {
    let Some(server) = Server::shared() else {
        return;
    };
    let (ours, others) = [(); 2]
        .map(|()| Link::new(&server.url(""), None, OP_TIMEOUT))
        .into();
    let first = ping(&ours).await;
    assert_eq!(ping(&ours).await.id(), first.id());
    assert_eq!(first.timeout(), USUAL);
    assert_eq!(ours.software("read").await.unwrap(), "ZooKeeper 3.8.0");
    let ephemeral = create(&first, CreateMode::Ephemeral).await;
    let persistent = create(&first, CreateMode::Persistent).await;
    drop(first);
    assert!(is_there(&others, &ephemeral).await);
    ours.close().await;
    assert!(!is_there(&others, &ephemeral).await);
    assert!(is_there(&others, &persistent).await);
    ping(&ours).await;
}

#[tokio::test]
async fn a_dead_host_is_passed_over() {
    let Some(server) = Server::shared() else {
        return;
    };
    let (dead, host) = (free_port(), server.host());
    for _ in 0..5 {
        ping(&link(&format!("zk://127.0.0.1:{dead},{host}"))).await;
    }
}
