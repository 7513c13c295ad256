//! Real ZooKeeper servers for tests.
//!
//! Where ZooKeeper is missing, a test gets `None` and ends early; in CI it fails.

mod process;

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

pub(crate) use self::process::{Ensemble, Process as Server, free_port};
use crate::board::testing::needs;
pub(super) use crate::board::testing::{
    Authority, Identity, Proxy, ProxyMode, impostor, wait_until,
};
use crate::board::url::{BoardUrl, zookeeper::ZooKeeperUrl};

pub(super) fn zookeeper_url(text: &str) -> ZooKeeperUrl {
    match text.parse() {
        Ok(BoardUrl::ZooKeeper(url)) => *url,
        other => panic!("{text}: {other:?}"),
    }
}

impl Server {
    pub(super) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    pub(super) fn start_tls(identity: &Identity, ca: &Path, lines: &[&str]) -> Option<(Self, u16)> {
        let [cert, key] = [&identity.cert, &identity.key].map(|path| fs::read(path).unwrap());
        let both = identity.cert.with_extension("both.pem");
        fs::write(&both, [cert, key].concat()).unwrap();
        let port = free_port();
        let secure = [
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory".to_owned(),
            format!("secureClientPort={port}"),
            "secureClientPortAddress=127.0.0.1".to_owned(),
            format!("ssl.keyStore.location={}", both.display()),
            format!("ssl.trustStore.location={}", ca.display()),
        ];
        let lines: Vec<_> = secure
            .iter()
            .map(String::as_str)
            .chain(lines.iter().copied())
            .collect();
        let server = Self::start(&lines)?;
        // The first connection takes by far the longest.
        wait_until("it speaks TLS", || {
            let mut client = Command::new("openssl");
            client.args(["s_client", "-connect", &format!("127.0.0.1:{port}")]);
            let shown = client.stdin(Stdio::null()).output().unwrap().stdout;
            String::from_utf8_lossy(&shown).contains("BEGIN CERTIFICATE")
        });
        Some((server, port))
    }

    pub(super) fn url(&self, tail: &str) -> ZooKeeperUrl {
        zookeeper_url(&format!("zk://{}{tail}", self.host()))
    }
}
