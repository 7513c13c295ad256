//! Board URLs, validated whole before anything is opened.
//!
//! `parts` and `query` hold the common syntax; each kind of board has its own file. No message repeats a
//! part of a URL that may contain a password.

pub(crate) mod embedded;
pub(crate) mod error;
pub(crate) mod redis;
pub(crate) mod zookeeper;

mod parts;
mod query;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod untrusted;

use std::{
    fmt,
    net::ToSocketAddrs as _,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

use self::{
    embedded::EmbeddedUrl,
    error::InvalidUrl,
    redis::{Address, RedisUrl},
    zookeeper::ZooKeeperUrl,
};
use crate::{names::named, secret::Secret};

/// The address of a board and how to reach it.
///
/// Its text form parses again but lacks the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BoardUrl {
    Embedded(EmbeddedUrl),
    Redis(Box<RedisUrl>),
    ZooKeeper(Box<ZooKeeperUrl>),
}

named! {
    /// The kind of server, which decides how jobs are stored.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub(crate) enum BoardKind ("kind of board", str::eq) {
        Embedded => "embedded",
        Redis => "redis",
        ZooKeeper => "zookeeper",
    }
}

impl BoardUrl {
    pub(crate) fn kind(&self) -> BoardKind {
        match self {
            Self::Embedded(_) => BoardKind::Embedded,
            Self::Redis(_) => BoardKind::Redis,
            Self::ZooKeeper(_) => BoardKind::ZooKeeper,
        }
    }

    pub(crate) fn of_file(path: PathBuf) -> Self {
        Self::Embedded(EmbeddedUrl::new(path))
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Embedded(url) => Some(&url.path),
            Self::Redis(_) | Self::ZooKeeper(_) => None,
        }
    }

    /// Allows the first post to create the directory of a board file.
    pub(crate) fn allow_directory(&mut self) {
        if let Self::Embedded(url) = self {
            url.makes_directory = true;
        }
    }

    pub(crate) fn resolved(&self) -> Self {
        let mut url = self.clone();
        if let Self::Embedded(url) = &mut url
            && url.path.is_symlink()
            && let Ok(path) = url.path.canonicalize()
        {
            url.path = path;
        }
        url
    }

    /// Returns the address in a form that is valid in every directory of this machine.
    pub(crate) fn absolute(&self) -> String {
        let mut url = self.clone();
        if let Self::Embedded(url) = &mut url
            && let Ok(path) = std::path::absolute(&url.path)
        {
            url.path = path;
        }
        url.to_string()
    }

    /// Whether both addresses lead to one board, as far as known without asking a server. Connection settings may
    /// differ.
    pub(crate) fn is_same_board(&self, other: &Self) -> bool {
        let (one, other) = (self.place(), other.place());
        one.1 == other.1 && one.0.iter().any(|server| other.0.contains(server))
    }

    /// Returns the equivalent servers of the board, and its name there.
    fn place(&self) -> (Vec<String>, String) {
        let names = |servers: &[Server]| servers.iter().map(Server::place).collect();
        match self {
            Self::Embedded(url) => (
                vec![place_of(&url.path).display().to_string()],
                String::new(),
            ),
            Self::Redis(url) => {
                let (servers, master) = match &url.address {
                    Address::Tcp(server) => (vec![server.place()], ""),
                    Address::Unix(path) => (vec![path.display().to_string()], ""),
                    Address::Sentinel(it) => (names(&it.servers), &*it.master),
                };
                (
                    servers,
                    format!("redis {master} {} {:?}", url.db, url.namespace),
                )
            }
            Self::ZooKeeper(url) => {
                let chroot = url.chroot.as_deref().unwrap_or_default();
                (
                    names(&url.servers),
                    format!("zookeeper {chroot}{}", url.path),
                )
            }
        }
    }

    /// Returns a separate board beside this one, with the same access rights.
    ///
    /// On a server all its names begin with this board's name or its parent node. An embedded board's file is in the
    /// same directory.
    pub(crate) fn sibling(&self, name: &str) -> Self {
        let mut url = self.clone();
        match &mut url {
            Self::Embedded(url) => {
                let mut path = url.path.as_os_str().to_owned();
                path.push(format!(".{name}"));
                url.path = path.into();
            }
            Self::Redis(url) => {
                let before = url.namespace.iter().map(|it| format!("{it}:"));
                url.namespace = Some(before.collect::<String>() + name);
            }
            Self::ZooKeeper(url) => {
                let (parent, _) = url.path.rsplit_once('/').unwrap_or_default();
                // The last part occurs nowhere else: TaskFlow derives its names by replacing it.
                let last = name.rsplit('-').next().unwrap_or_default();
                url.path = format!("{parent}/.{name}/of-{last}");
            }
        }
        url
    }

    /// Whether users of other machines may be able to post there.
    pub(crate) fn is_network(&self) -> bool {
        !matches!(self, Self::Embedded(_))
    }

    pub(crate) fn has_password(&self) -> bool {
        self.password().is_some()
    }

    /// Whether it holds a password, or names the file of one.
    pub(crate) fn has_secret(&self) -> bool {
        let has_password_file = match self {
            Self::Redis(url) => match &url.address {
                Address::Sentinel(sentinels) => sentinels.password_file.is_some(),
                Address::Tcp(_) | Address::Unix(_) => false,
            },
            Self::Embedded(_) | Self::ZooKeeper(_) => false,
        };
        has_password_file || self.has_password()
    }

    /// Whether connecting reads a file that the URL names, such as a key.
    pub(crate) fn names_files(&self) -> bool {
        !matches!(self, Self::Embedded(_)) && !self.clone().files_mut().is_empty()
    }

    pub(crate) fn password(&self) -> Option<&Secret> {
        match self {
            Self::Embedded(_) => None,
            Self::Redis(url) => url.password.as_ref(),
            Self::ZooKeeper(url) => url.password.as_ref(),
        }
    }

    pub(crate) fn relative_to(mut self, directory: &Path) -> Self {
        for path in self.files_mut() {
            *path = directory.join(&*path);
        }
        self
    }

    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Self::Embedded(url) => vec![&mut url.path],
            Self::Redis(url) => url.files_mut(),
            Self::ZooKeeper(url) => url.tls.iter_mut().flat_map(TlsFiles::files_mut).collect(),
        }
    }
}

impl FromStr for BoardUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        if let Some(url) = likely(text) {
            let address = text.to_owned();
            return Err(InvalidUrl::Address { address, url });
        }
        let (scheme, rest) = text
            .split_once(':')
            .filter(|(scheme, _)| is_scheme(scheme))
            .ok_or(InvalidUrl::NoScheme)?;
        match scheme.to_ascii_lowercase().as_str() {
            "sqlite" => embedded::parse(rest).map(Self::Embedded),
            "redis" => redis::parse_tcp("redis", rest),
            "rediss" => redis::parse_tcp("rediss", rest),
            "redis+unix" => redis::parse_unix(rest),
            "redis-sentinel" => redis::parse_sentinel("redis-sentinel", rest),
            "rediss-sentinel" => redis::parse_sentinel("rediss-sentinel", rest),
            "zk" => zookeeper::parse("zk", rest),
            "zks" => zookeeper::parse("zks", rest),
            "redis-cluster" | "rediss-cluster" => Err(InvalidUrl::Cluster),
            "file" => Err(InvalidUrl::File),
            scheme => Err(InvalidUrl::UnknownScheme(scheme.to_owned())),
        }
    }
}

/// Guesses the URL of an address without a scheme: a file, or HOST:PORT and an optional path.
pub(crate) fn likely(text: &str) -> Option<String> {
    let Some((host, rest)) = text.split_once(':') else {
        let is_file = text.contains('/') || text.ends_with(".db") || text.ends_with(".sqlite");
        return is_file.then(|| format!("sqlite:{text}"));
    };
    let port = rest.split('/').next().unwrap_or_default();
    let is_host = |it: char| it.is_ascii_alphanumeric() || it == '.' || it == '-';
    if host.is_empty() || !host.chars().all(is_host) || port.parse::<u16>().is_err() {
        return None;
    }
    Some(match port {
        "2181" | "2281" => format!("zk://{text}"),
        "26379" => format!("redis-sentinel://{text}/MASTER"),
        _ => format!("redis://{text}"),
    })
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

impl fmt::Display for BoardUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded(url) => url.fmt(f),
            Self::Redis(url) => url.fmt(f),
            Self::ZooKeeper(url) => url.fmt(f),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// IPv6 without its brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Server {
    /// Returns one address for all names of this machine.
    fn place(&self) -> String {
        let host = self.host.to_ascii_lowercase();
        let last = host.rsplit('.').next().unwrap_or_default();
        let is_number = last.starts_with("0x") || last.parse::<u32>().is_ok();
        // Only the system reads number forms like `127.1`; a name needs a lookup.
        let is_ip = host.contains(':') || is_number;
        let ip = is_ip.then(|| (&*host, 0).to_socket_addrs().ok()?.next());
        let ip = ip.flatten().map(|it| it.ip().to_canonical());
        let host = match ip {
            // Connecting to `0.0.0.0` or `::` reaches this machine.
            Some(ip) if ip.is_loopback() || ip.is_unspecified() => "localhost".to_owned(),
            Some(ip) => ip.to_string(),
            None => host.trim_end_matches('.').to_owned(),
        };
        format!("{host}:{}", self.port)
    }
}

/// Resolves links and relative parts, also for a missing file.
fn place_of(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let in_directory = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize()
        .ok()
        .or_else(in_directory)
        .unwrap_or(path)
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) ca: Option<PathBuf>,
    pub(crate) identity: Option<TlsIdentity>,
}

impl TlsFiles {
    fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let identity = self.identity.as_mut();
        let identity = identity.map(|identity| [&mut identity.cert, &mut identity.key]);
        self.ca.iter_mut().chain(identity.into_iter().flatten())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsIdentity {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}
