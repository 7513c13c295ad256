//! TLS trust, client certificates and mismatched peers.

use std::path::Path;

use tokio::net::TcpListener;

use super::*;
use crate::board::redis::testing::{Authority, Identity, Server};

fn secured(server: &Server, ca: &Path, identity: Option<&Identity>) -> RedisClient {
    let identity = identity.map_or_else(String::new, |identity| {
        let (cert, key) = (identity.cert.display(), identity.key.display());
        format!("&cert={cert}&key={key}")
    });
    client(&format!(
        "rediss://127.0.0.1:{}?ca={}{identity}",
        server.port(),
        ca.display()
    ))
}

#[tokio::test]
async fn certificate_of_the_authority_is_trusted() {
    need!(authority = Authority::new());
    let ca = authority.ca();
    let identity = authority.issue("IP:127.0.0.1,DNS:localhost", 2);
    let trust = ["--tls-auth-clients", "no", "--tls-ca-cert-file"];
    let arguments: Vec<_> = trust.into_iter().chain(ca.to_str()).collect();
    need!(server = Server::start_tls(&identity, &arguments));
    ping(&secured(&server, &ca, None)).await;
    let port = server.port();
    ping(&client(&format!(
        "rediss://localhost:{port}?ca={}",
        ca.display()
    )))
    .await;
    let stranger = Authority::new().unwrap();
    let unknown = format!("denied: 127.0.0.1:{port} has a certificate from an untrusted authority");
    assert_eq!(
        failure(&secured(&server, &stranger.ca(), None)).await,
        unknown
    );
    // The system does not know our authority either, if it knows any.
    let message = failure(&client(&format!("rediss://127.0.0.1:{port}"))).await;
    let none = format!(
        "failed: 127.0.0.1:{port} cannot be verified: this system trusts no certificate \
         authority; add ca=FILE to the URL"
    );
    assert!(message == unknown || message == none, "{message}");
    assert_eq!(
        failure(&client(&format!("redis://127.0.0.1:{port}"))).await,
        format!("unreachable: 127.0.0.1:{port} requires TLS; use rediss:// or zks://")
    );
}

#[tokio::test]
async fn certificate_with_wrong_names_or_dates_is_refused() {
    need!(authority = Authority::new());
    let ca = authority.ca();
    let cases = [
        (
            "DNS:elsewhere.example",
            2,
            "for other host names: elsewhere.example",
        ),
        ("IP:127.0.0.1", -1, "that has expired"),
    ];
    for (names, days, expected) in cases {
        let identity = authority.issue(names, days);
        let trust = ["--tls-auth-clients", "no", "--tls-ca-cert-file"];
        let arguments: Vec<_> = trust.into_iter().chain(ca.to_str()).collect();
        need!(server = Server::start_tls(&identity, &arguments));
        let message = failure(&secured(&server, &ca, None)).await;
        let port = server.port();
        let expected = format!("denied: 127.0.0.1:{port} has a certificate {expected}");
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[tokio::test]
async fn client_certificate_is_sent_on_request() {
    need!(authority = Authority::new());
    let ca = authority.ca();
    let identity = authority.issue("IP:127.0.0.1", 2);
    let arguments: Vec<_> = ["--tls-ca-cert-file"]
        .into_iter()
        .chain(ca.to_str())
        .collect();
    for protocols in ["TLSv1.2", "TLSv1.3"] {
        let arguments: Vec<_> = arguments
            .iter()
            .copied()
            .chain(["--tls-protocols", protocols])
            .collect();
        need!(server = Server::start_tls(&identity, &arguments));
        let peer = server.host();
        let us = authority.issue("DNS:us", 2);
        ping(&secured(&server, &ca, Some(&us))).await;
        assert_eq!(
            failure(&secured(&server, &ca, None)).await,
            format!(
                "denied: {peer} requires a client certificate; add cert=FILE&key=FILE to the URL"
            )
        );
        let others = Authority::new().unwrap();
        let stranger = others.issue("DNS:us", 2);
        let message = failure(&secured(&server, &ca, Some(&stranger))).await;
        let expected = format!("denied: {peer} rejects the client certificate (");
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[tokio::test]
async fn plain_server_behind_tls_url_is_recognised() {
    need!(authority = Authority::new());
    let ca = authority.ca();
    need!(server = Server::start(&[]));
    // Whether Redis answers depends on whether there is a newline among the random bytes.
    let message = failure(&secured(&server, &ca, None)).await;
    let peer = server.host();
    let answers = [
        format!("unreachable: {peer} does not use TLS; use redis:// or zk://"),
        format!(
            "unreachable: {peer} did not complete the TLS handshake within 3s; perhaps the \
             server does not use TLS"
        ),
    ];
    assert!(answers.contains(&message), "{message}");
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = silent.local_addr().unwrap().to_string();
    assert_eq!(
        failure(&client(&format!("rediss://{peer}?ca={}", ca.display()))).await,
        format!(
            "unreachable: {peer} did not complete the TLS handshake within 3s; perhaps the \
             server does not use TLS"
        )
    );
}

#[tokio::test]
async fn unusable_files_are_named() {
    need!(server = Server::start(&[]));
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("empty"), "").unwrap();
    let cases = [
        ("absent", "no such file or directory"),
        ("empty", "the file contains no certificate"),
    ];
    for (name, cause) in cases {
        let message = failure(&secured(&server, &path(name), None)).await;
        let path = path(name).display().to_string();
        assert_eq!(message, format!("failed: {path} cannot be used: {cause}"));
    }
}
