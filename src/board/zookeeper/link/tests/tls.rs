//! TLS trust, client certificates and mismatched peers.

use std::path::Path;

use super::*;
use crate::board::zookeeper::testing::{Authority, Identity, Server};

fn secured(host: &str, port: u16, ca: &Path, identity: Option<&Identity>) -> ZooKeeperClient {
    let identity = identity.map_or_else(String::new, |identity| {
        let (cert, key) = (identity.cert.display(), identity.key.display());
        format!("&cert={cert}&key={key}")
    });
    client(&format!(
        "zks://{host}:{port}?ca={}{identity}",
        ca.display()
    ))
}

#[tokio::test]
async fn server_certificate_is_checked_for_authority_and_name() {
    need!(authority = Authority::new());
    let ca = authority.ca();
    let identity = authority.issue("IP:127.0.0.1", 2);
    need!((server, port) = Server::start_tls(&identity, &ca, &["ssl.clientAuth=none"]));
    let link_to = |host: &str| secured(host, port, &ca, None);
    let trusted = link_to("127.0.0.1");
    let path = create(&ping(&trusted).await, CreateMode::Ephemeral).await;
    let others = ZooKeeperClient::new(&server.url(""), None, OP_TIMEOUT);
    assert!(is_there(&others, &path).await);
    trusted.close().await;
    assert!(!is_there(&others, &path).await);

    let message = failure(&link_to("localhost")).await;
    let expected = format!("denied: localhost:{port} has a certificate for other host names: ");
    assert!(message.starts_with(&expected), "{message}");

    let stranger = Authority::new().unwrap();
    let unknown = format!("denied: 127.0.0.1:{port} has a certificate from an untrusted authority");
    let message = failure(&secured("127.0.0.1", port, &stranger.ca(), None)).await;
    assert_eq!(message, unknown);
    // The system does not know our authority either, if it knows any.
    let message = failure(&client(&format!("zks://127.0.0.1:{port}"))).await;
    let none = format!(
        "failed: 127.0.0.1:{port} cannot be verified: this system trusts no certificate \
         authority; add ca=FILE to the URL"
    );
    assert!(message == unknown || message == none, "{message}");

    assert_eq!(
        failure(&client(&format!("zk://127.0.0.1:{port}"))).await,
        format!("misdirected: 127.0.0.1:{port} requires TLS; use rediss:// or zks://")
    );
    let plain = server.port();
    assert_eq!(
        failure(&secured("127.0.0.1", plain, &ca, None)).await,
        format!("misdirected: 127.0.0.1:{plain} does not use TLS; use redis:// or zk://")
    );
}

#[tokio::test]
async fn client_certificate_is_sent_on_request() {
    need!(authority = Authority::new());
    let ca = authority.ca();
    let identity = authority.issue("IP:127.0.0.1", 2);
    need!((_server, port) = Server::start_tls(&identity, &ca, &[]));
    let link_as = |us: Option<&Identity>| secured("127.0.0.1", port, &ca, us);
    let us = authority.issue("DNS:us", 2);
    ping(&link_as(Some(&us))).await;
    assert_eq!(
        failure(&link_as(None)).await,
        format!(
            "denied: 127.0.0.1:{port} requires a client certificate; add cert=FILE&key=FILE to \
             the URL"
        )
    );
    let others = Authority::new().unwrap();
    let stranger = others.issue("DNS:us", 2);
    let message = failure(&link_as(Some(&stranger))).await;
    let expected = format!("denied: 127.0.0.1:{port} rejects the client certificate (");
    assert!(message.starts_with(&expected), "{message}");
}

#[tokio::test]
async fn invalid_certificate_name_is_reported() {
    assert_eq!(
        failure(&client("zks://a..b:1")).await,
        "failed: a..b:1 cannot be verified: a certificate cannot contain such a name"
    );
}

#[tokio::test]
async fn unusable_files_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("empty"), "").unwrap();
    let cases = [
        ("absent", "no such file or directory"),
        ("empty", "the file contains no certificate"),
    ];
    for (name, cause) in cases {
        let message = failure(&secured("127.0.0.1", 1, &path(name), None)).await;
        let path = path(name).display().to_string();
        assert_eq!(message, format!("failed: {path} cannot be used: {cause}"));
    }
}
