//! Builds the board's URL from the options, as Octavia's drivers read them.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context as _, ensure};

use super::{Reader, oslo};
use crate::{
    board::url::{
        BoardUrl, Server, TlsFiles, TlsIdentity,
        redis::{Address, PORT, RedisUrl, SENTINEL_PORT, Sentinel},
        zookeeper::{Acl, ZooKeeperUrl},
    },
    config::Sourced,
    secret::Secret,
};

const HOSTS: &str = "jobboard_backend_hosts";
const REDIS_TLS: &str = "jobboard_redis_backend_ssl_options";
const SENTINEL_TLS: &str = "jobboard_redis_sentinel_ssl_options";
const ZOOKEEPER_TLS: &str = "jobboard_zookeeper_ssl_options";

impl Reader<'_> {
    pub(super) fn redis(&mut self) -> anyhow::Result<(BoardUrl, Option<Sourced<Secret>>)> {
        let master = self.given("jobboard_redis_sentinel")?;
        let mut servers = self.servers(master.is_some())?;
        let sentinel = master.map(|it| self.sentinel(it, servers.clone()));
        let sentinel = sentinel.transpose()?;
        if sentinel.is_none() && servers.len() > 1 {
            let first = servers.first().map(Server::to_string).unwrap_or_default();
            let problem = format!(
                "without jobboard_redis_sentinel, Octavia uses only the first host: {first}"
            );
            self.note(HOSTS, problem);
        }
        let namespace = self.required("jobboard_backend_namespace")?.text;
        let url = RedisUrl {
            tls: self.redis_tls(REDIS_TLS)?,
            user: self.given("jobboard_backend_username")?,
            password: None,
            db: self.number("jobboard_redis_backend_db")?,
            namespace: Some(namespace),
            address: match sentinel {
                Some(sentinel) => Address::Sentinel(sentinel),
                None => Address::Tcp(servers.swap_remove(0)),
            },
        };
        let url = BoardUrl::Redis(Box::new(url));
        check(&url)?;
        Ok((url, self.secret("jobboard_backend_password")?))
    }

    fn sentinel(&mut self, master: String, servers: Vec<Server>) -> anyhow::Result<Sentinel> {
        if servers.iter().any(|server| server.port == PORT) {
            let problem = format!(
                "{PORT} is the default port of Redis; the default port of Sentinel is \
                 {SENTINEL_PORT}"
            );
            self.note("jobboard_backend_port", problem);
        }
        let password = self.secret("jobboard_redis_sentinel_password")?;
        Ok(Sentinel {
            servers,
            master,
            user: self.given("jobboard_redis_sentinel_username")?,
            password: password.map(|password| password.value),
            password_file: None,
            tls: self.redis_tls(SENTINEL_TLS)?,
        })
    }

    fn redis_tls(&mut self, option: &'static str) -> anyhow::Result<Option<TlsFiles>> {
        let mut options = self.dict(option)?;
        if !options.remove("ssl").is_some_and(is_yes) {
            return Ok(None);
        }
        let verifies = options.remove("ssl_cert_reqs");
        if verifies.is_some_and(|it| !it.eq_ignore_ascii_case("required")) {
            self.note_verification(option);
        }
        let mut file = |key| options.remove(key).and_then(path);
        let (ca, cert, key) = (
            file("ssl_ca_certs"),
            file("ssl_certfile"),
            file("ssl_keyfile"),
        );
        if ca.is_none() {
            let problem = "without ssl_ca_certs, the certificate authorities of the system are \
                           trusted";
            self.note(option, problem);
        }
        Ok(Some(TlsFiles {
            ca,
            identity: identity(cert, key),
        }))
    }

    pub(super) fn zookeeper(&mut self) -> anyhow::Result<BoardUrl> {
        let servers = self.servers(true)?;
        if servers.iter().any(|server| server.host.contains(':')) {
            let problem = "Octavia appends the port to an IPv6 address without brackets, which \
                           its ZooKeeper client cannot parse; jobboard can";
            self.note(HOSTS, problem);
        }
        let namespace = self.required("jobboard_backend_namespace")?.text;
        let url = BoardUrl::ZooKeeper(Box::new(ZooKeeperUrl {
            servers,
            path: format!("/{namespace}"),
            chroot: None,
            session: None,
            acl: Acl::World,
            user: None,
            password: None,
            tls: self.zookeeper_tls()?,
        }));
        check(&url)?;
        Ok(url)
    }

    fn zookeeper_tls(&mut self) -> anyhow::Result<Option<TlsFiles>> {
        let mut options = self.dict(ZOOKEEPER_TLS)?;
        if !options.remove("use_ssl").is_some_and(is_yes) {
            return Ok(None);
        }
        if options.remove("verify_certs").is_some_and(|it| !is_yes(it)) {
            self.note_verification(ZOOKEEPER_TLS);
        }
        if options.remove("keyfile_password").and_then(path).is_some() {
            let problem = "jobboard cannot read a private key with a password";
            self.note(ZOOKEEPER_TLS, problem);
        }
        let mut file = |key| options.remove(key).and_then(path);
        let (cert, key) = (file("certfile"), file("keyfile"));
        Ok(Some(TlsFiles {
            ca: None,
            identity: identity(cert, key),
        }))
    }

    fn note_verification(&mut self, option: &'static str) {
        let problem = "Octavia does not verify the certificate of the server; jobboard does";
        self.note(option, problem);
    }

    /// Returns the servers, at least one: all of them, or only the first.
    fn servers(&self, are_all_used: bool) -> anyhow::Result<Vec<Server>> {
        let (hosts, port) = (self.required(HOSTS)?, self.number("jobboard_backend_port")?);
        let names = oslo::list(&hosts.text);
        let used = if are_all_used { names.len() } else { 1 };
        let is_named = !names.is_empty() && names.iter().take(used).all(|name| !name.is_empty());
        ensure!(
            is_named,
            "{}: {HOSTS} lists no host, or an empty name",
            hosts.place
        );
        Ok(names
            .into_iter()
            .map(|name| {
                let inside = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
                let host = inside.map(str::to_owned).unwrap_or(name);
                Server { host, port }
            })
            .collect())
    }

    fn dict(&self, option: &str) -> anyhow::Result<BTreeMap<String, String>> {
        let value = self.required(option)?;
        oslo::dict(&value.text).with_context(|| format!("{}: {option}", value.place))
    }

    fn given(&self, option: &str) -> anyhow::Result<Option<String>> {
        let value = self.text(option)?;
        Ok(value
            .map(|value| value.text)
            .filter(|text| !text.is_empty()))
    }
}

/// Whether a text means yes to OpenStack's libraries, where any other text means no.
pub(super) fn is_yes(text: String) -> bool {
    const YES: [&str; 6] = ["1", "t", "true", "on", "y", "yes"];
    YES.contains(&text.trim().to_lowercase().as_str())
}

fn path(text: String) -> Option<PathBuf> {
    let is_none = text.is_empty() || text.eq_ignore_ascii_case("none");
    (!is_none).then(|| text.into())
}

fn identity(cert: Option<PathBuf>, key: Option<PathBuf>) -> Option<TlsIdentity> {
    let cert = cert?;
    let key = key.unwrap_or_else(|| cert.clone());
    Some(TlsIdentity { cert, key })
}

fn check(url: &BoardUrl) -> anyhow::Result<()> {
    let read = url.to_string().parse::<BoardUrl>();
    read.map(drop)
        .with_context(|| format!("the options result in {url}, which is not a valid board URL"))
}
