//! Missing replies and server refusals.

use super::*;
use crate::board::zookeeper::testing::{Proxy, ProxyMode, Server};

#[tokio::test]
async fn swallowed_reply_is_lost_and_not_sent_again() {
    need!(server = Server::shared());
    let others = ZooKeeperClient::new(&server.url(""), None, OP_TIMEOUT);
    let proxy = Proxy::start(server.port());
    let peer = format!("127.0.0.1:{}", proxy.port);
    let cases = [
        (ProxyMode::Silent, "did not reply within 500ms"),
        (ProxyMode::HangUp, "closed the connection before it replied"),
    ];
    for (mode, expected) in cases {
        let url = zookeeper_url(&format!("zk://{peer}"));
        let client = ZooKeeperClient::new(&url, None, Duration::from_millis(500));
        let session = ping(&client).await;
        let path = create(&session, CreateMode::Persistent).await;
        proxy.set(mode);
        let set = session.ask("write to", session.client.set_data(&path, b"1", None));
        let Err(RequestFailure::Lost(error)) = set.await else {
            panic!("{mode:?}: it is not lost");
        };
        assert_eq!(summary(error), format!("unreachable: {peer} {expected}"));
        proxy.set(ProxyMode::PassOn);
        let other = ping(&others).await;
        let looked = other.ask("read", other.client.get_data(&path)).await;
        let (data, stat) = looked.unwrap().unwrap();
        assert_eq!((data.as_slice(), stat.version), (&b"1"[..], 1));
    }
}

#[tokio::test]
async fn idle_connection_is_checked_long_before_the_session_expires() {
    need!(server = Server::shared());
    let proxy = Proxy::start(server.port());
    let url = format!("zk://127.0.0.1:{}?session=60s", proxy.port);
    let client = ZooKeeperClient::new(&zookeeper_url(&url), None, OP_TIMEOUT);
    let session = ping(&client).await;
    proxy.cut();
    proxy.set_at("", ProxyMode::Silent);
    while !proxy.has_swallowed() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    proxy.set(ProxyMode::PassOn);
    let again = tokio::time::timeout(Duration::from_secs(15), session.connected());
    assert!(again.await.is_ok_and(|session| session.is_ok()));
}

#[tokio::test]
async fn multi_names_the_refused_operation() {
    need!(server = Server::shared());
    let session = ping(&ZooKeeperClient::new(&server.url(""), None, OP_TIMEOUT)).await;
    let path = create(&session, CreateMode::Persistent).await;
    let mut writer = session.client.new_multi_writer();
    writer.add_check_version(&path, 0).unwrap();
    writer.add_delete(&path, Some(7)).unwrap();
    let answer = session.ask("write to", writer.commit()).await.unwrap();
    assert_eq!(
        answer,
        Err(MultiWriteError::OperationFailed {
            index: 1,
            source: Error::BadVersion
        })
    );
}

#[tokio::test]
async fn refused_request_has_no_effect() {
    need!(server = Server::shared());
    let session = ping(&ZooKeeperClient::new(&server.url(""), None, OP_TIMEOUT)).await;
    let peer = server.host();
    let options = CreateMode::Persistent.with_acls(Acls::creator_all());
    let created = session.client.create("/ours", b"", &options);
    let Err(RequestFailure::NotSent(error)) = session.ask("write to", created).await else {
        panic!("no client created the node");
    };
    assert_eq!(
        summary(error),
        format!("denied: {peer} does not know the user, but `acl=creator` requires one")
    );
    let cases = [
        (
            Error::Unimplemented,
            "unsupported: a ZooKeeper server older than 3.6 cannot store a board",
        ),
        (Error::Throttled, "unreachable: PEER is too busy"),
        (
            Error::QuotaExceeded,
            "failed: PEER has reached the quota of these nodes",
        ),
    ];
    for (error, expected) in cases {
        let refused = std::future::ready(Err::<(), _>(error));
        let Err(RequestFailure::NotSent(error)) = session.ask("read", refused).await else {
            panic!("{expected}: it is not refused");
        };
        assert_eq!(summary(error), expected.replace("PEER", &peer));
    }
}

#[tokio::test]
async fn chroot_is_created_on_demand() {
    need!(server = Server::shared());
    let chroot = format!("/{}/inner", uuid::Uuid::new_v4());
    let client = ZooKeeperClient::new(&server.url(&format!("?chroot={chroot}")), None, OP_TIMEOUT);
    let session = client.session("write to").await.unwrap();
    let options = CreateMode::Persistent.with_acls(client.acls());
    let make = async || {
        let created = session.client.mkdir("/a/b", &options);
        session.ask("write to", created).await.unwrap()
    };
    assert_eq!(make().await, Err(Error::NoNode));
    session.ensure_chroot("write to").await.unwrap();
    session.ensure_chroot("write to").await.unwrap();
    assert_eq!(make().await, Ok(()));
    let others = ZooKeeperClient::new(&server.url(""), None, OP_TIMEOUT);
    assert!(is_there(&others, &format!("{chroot}/a/b")).await);
}
