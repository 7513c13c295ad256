//! Session timeouts, and the end of ephemeral nodes.

use std::time::Instant;

use super::*;
use crate::board::zookeeper::testing::{Ensemble, Server, wait_until};

/// A session timeout that a test can wait for.
const SHORT: Duration = Duration::from_secs(2);

/// Waits until the servers remove an ephemeral node.
async fn is_let_go(client: &ZooKeeperClient, path: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    while is_there(client, path).await {
        assert!(Instant::now() < end, "it does not go");
        time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn ephemeral_node_is_removed_when_the_session_closes() {
    need!(server = Server::shared());
    let [ours, others] = [(); 2].map(|()| ZooKeeperClient::new(&server.url(""), None, OP_TIMEOUT));
    let first = ping(&ours).await;
    assert_eq!(ping(&ours).await.id(), first.id());
    let ephemeral = create(&first, CreateMode::Ephemeral).await;
    let persistent = create(&first, CreateMode::Persistent).await;
    drop(first);
    assert!(is_there(&others, &ephemeral).await);
    ours.close().await;
    assert!(!is_there(&others, &ephemeral).await);
    assert!(is_there(&others, &persistent).await);
    ping(&ours).await;
    // A dropped link closes its session too, but does not wait for it.
    let left = create(&ping(&ours).await, CreateMode::Ephemeral).await;
    drop(ours);
    is_let_go(&others, &left).await;
}

#[test]
fn ephemeral_node_outlives_a_process_that_does_not_close() {
    need!(server = Server::shared());
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    };
    let ours = ZooKeeperClient::new(&server.url("?session=2s"), None, OP_TIMEOUT);
    let first = runtime();
    let left = first.block_on(async { create(&ping(&ours).await, CreateMode::Ephemeral).await });
    drop(first);
    drop(ours);
    runtime().block_on(async {
        let others = ZooKeeperClient::new(&server.url(""), None, OP_TIMEOUT);
        assert!(is_there(&others, &left).await);
        is_let_go(&others, &left).await;
    });
}

#[tokio::test]
async fn session_timeout_comes_from_the_url_or_the_claims() {
    need!(server = Server::shared());
    let free = ZooKeeperClient::new(&server.url(""), None, OP_TIMEOUT);
    let usual = ping(&free).await;
    assert_eq!(usual.timeout(), USUAL_SESSION);
    let old = usual.id();
    drop(usual);
    let session_for_nodes = free
        .session_for_nodes("write to", Some(SHORT))
        .await
        .unwrap();
    assert_eq!(session_for_nodes.timeout(), SHORT);
    assert_ne!(session_for_nodes.id(), old);
    assert_eq!(ping(&free).await.id(), session_for_nodes.id());
    // Claims in the session must survive requests for another timeout.
    let again = free
        .session_for_nodes("write to", Some(SHORT * 2))
        .await
        .unwrap();
    assert_eq!(again.id(), session_for_nodes.id());

    let bound = ZooKeeperClient::new(&server.url("?session=3s"), None, OP_TIMEOUT);
    let usual = ping(&bound).await;
    assert_eq!(usual.timeout(), Duration::from_secs(3));
    let session_for_nodes = bound
        .session_for_nodes("write to", Some(SHORT))
        .await
        .unwrap();
    assert_eq!(session_for_nodes.id(), usual.id());

    // The servers limit the timeout.
    let long = ZooKeeperClient::new(&server.url("?session=1h"), None, OP_TIMEOUT);
    assert_eq!(ping(&long).await.timeout(), Duration::from_secs(60));
}

#[tokio::test]
async fn session_survives_a_server_restart() {
    need!(mut server = Server::start(&[]));
    let client = ZooKeeperClient::new(&server.url(""), None, OP_TIMEOUT);
    let session = client
        .session_for_nodes("write to", Some(USUAL_SESSION))
        .await
        .unwrap();
    let ephemeral = create(&session, CreateMode::Ephemeral).await;
    server.stop();
    let peer = server.host();
    wait_for(&session, SessionState::Disconnected).await;
    let failed = time::timeout(4 * OP_TIMEOUT, failure(&client)).await;
    assert_eq!(
        failed.expect("the request has a time limit"),
        format!("unreachable: {peer} refused the connection")
    );
    server.start_again();
    let again = lasting(&client).await;
    assert_eq!(again.id(), session.id());
    assert!(is_there(&client, &ephemeral).await);
}

async fn lasting(client: &ZooKeeperClient) -> Session {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match client.session("read").await {
            Ok(session) => return session,
            Err(error) => {
                assert!(error.is_retryable(), "{error:?}");
                assert!(Instant::now() < end, "{error:?}");
            }
        }
    }
}

async fn wait_for(session: &Session, state: SessionState) {
    let mut states = session.client.state_watcher();
    let reached = async {
        while session.state() != state {
            states.changed().await;
        }
    };
    let waited = time::timeout(Duration::from_secs(20), reached);
    waited.await.expect("it gets there");
}

#[tokio::test]
async fn session_without_claims_is_replaced_once_the_server_returns() {
    need!(mut server = Server::start(&[]));
    let client = ZooKeeperClient::new(&server.url(""), None, OP_TIMEOUT);
    let session = ping(&client).await;
    server.stop();
    wait_for(&session, SessionState::Disconnected).await;
    failure(&client).await;
    server.start_again();
    ping(&client).await;
}

#[tokio::test]
async fn expired_session_is_replaced() {
    need!(mut server = Server::start(&[]));
    let client = ZooKeeperClient::new(&server.url(""), None, OP_TIMEOUT);
    let session = client
        .session_for_nodes("write to", Some(SHORT / 2))
        .await
        .unwrap();
    let ephemeral = create(&session, CreateMode::Ephemeral).await;
    server.stop();
    wait_for(&session, SessionState::Expired).await;
    let looked = session.ask("read", session.client.check_stat(&ephemeral));
    let Err(RequestFailure::NotSent(error)) = looked.await else {
        panic!("it is not over");
    };
    let peer = server.host();
    assert_eq!(
        summary(error),
        format!("unreachable: {peer} ended the session")
    );
    server.start_again();
    assert_ne!(lasting(&client).await.id(), session.id());
    is_let_go(&client, &ephemeral).await;
}

#[tokio::test]
async fn session_moves_on_when_the_leader_dies() {
    need!(mut ensemble = Ensemble::start());
    let hosts = ensemble.hosts();
    let client = client(&format!("zk://{hosts}?session=20s"));
    let session = client
        .session_for_nodes("write to", Some(SHORT))
        .await
        .unwrap();
    let ephemeral = create(&session, CreateMode::Ephemeral).await;
    ensemble.leader().unwrap().stop();
    wait_until("a new leader is elected", || ensemble.leader().is_some());
    let again = lasting(&client).await;
    assert_eq!(again.id(), session.id());
    assert!(is_there(&client, &ephemeral).await);
    create(&again, CreateMode::Ephemeral).await;
}
