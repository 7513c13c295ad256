//! `redis://` and its variants: a board on Redis.

use std::{fmt, path::PathBuf};

use super::{
    BoardUrl, Server, TlsFiles,
    error::InvalidUrl,
    parts::{UrlParts, authority, decode, encode, number},
    query::{QueryText, TLS_KEYS, UrlQuery, tls_keys},
};
use crate::secret::Secret;

pub(crate) const PORT: u16 = 6379;
pub(crate) const SENTINEL_PORT: u16 = 26379;

const NAMESPACE: &str = "taskflow";

const KEYS: [&str; 2] = ["namespace", "bare"];
const UNIX_KEYS: [&str; 3] = ["db", "namespace", "bare"];
const SENTINEL_KEYS: [&str; 3] = ["sentinel_user", "sentinel_password_file", "sentinel_tls"];

/// The TLS keys for Sentinel, where they differ from the master's.
const SENTINEL_TLS_KEYS: [&str; 3] = ["sentinel_ca", "sentinel_cert", "sentinel_key"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RedisUrl {
    pub(crate) address: Address,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) db: u32,
    /// The prefix of the board's keys, before a colon; `None` omits the colon, too.
    pub(crate) namespace: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(Server),
    Unix(PathBuf),
    Sentinel(Sentinel),
}

/// Sentinels name the master; user, password and TLS here apply only to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sentinel {
    pub(crate) servers: Vec<Server>,
    pub(crate) master: String,
    pub(crate) user: Option<String>,
    /// Read from `password_file` before the first connection.
    pub(crate) password: Option<Secret>,
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) tls: Option<TlsFiles>,
}

impl RedisUrl {
    pub(super) fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        let mut files: Vec<_> = self.tls.iter_mut().flat_map(TlsFiles::files_mut).collect();
        if let Address::Sentinel(sentinel) = &mut self.address {
            files.extend(sentinel.tls.iter_mut().flat_map(TlsFiles::files_mut));
            files.extend(&mut sentinel.password_file);
        }
        files
    }

    fn push_sentinel(&self, sentinel: &Sentinel, query: &mut QueryText) {
        let file = sentinel.password_file.as_ref();
        let has_tls = sentinel.tls.is_some();
        let differs = has_tls != self.tls.is_some();
        query.push("sentinel_user", sentinel.user.as_ref());
        query.push("sentinel_password_file", file.map(|path| path.display()));
        query.push("sentinel_tls", differs.then_some(has_tls));
        let own = sentinel.tls.as_ref().filter(|_| sentinel.tls != self.tls);
        match self.tls {
            None => query.push_tls(TLS_KEYS, own),
            Some(_) => query.push_tls(SENTINEL_TLS_KEYS, own),
        }
    }
}

pub(super) fn parse_tcp(scheme: &'static str, rest: &str) -> Result<BoardUrl, InvalidUrl> {
    let form = "write //HOST:PORT/DB";
    let parts = UrlParts::parse(scheme, form, rest)?;
    let mut servers = parts.servers(PORT)?;
    let (Some(server), true) = (servers.pop(), servers.is_empty()) else {
        return Err(InvalidUrl::SeveralHosts { scheme });
    };
    let db = database(parts.path.strip_prefix('/').unwrap_or_default())?;
    let has_tls = scheme == "rediss";
    let mut query = UrlQuery::parse(parts.query, &[&KEYS, tls_keys(has_tls)].concat())?;
    let tls = has_tls.then(|| query.tls_files(TLS_KEYS)).transpose()?;
    finish(Address::Tcp(server), tls, db, parts, query)
}

pub(super) fn parse_unix(rest: &str) -> Result<BoardUrl, InvalidUrl> {
    let (scheme, form) = ("redis+unix", "write ///PATH");
    let parts = UrlParts::parse(scheme, form, rest)?;
    if !parts.hosts.is_empty() {
        return Err(InvalidUrl::Form { scheme, form });
    }
    let path = decode(parts.path, "the path")?;
    if path.len() <= 1 {
        return Err(InvalidUrl::NoSocket);
    }
    let mut query = UrlQuery::parse(parts.query, &UNIX_KEYS)?;
    let db = database(&query.take("db").unwrap_or_default())?;
    finish(Address::Unix(path.into()), None, db, parts, query)
}

pub(super) fn parse_sentinel(scheme: &'static str, rest: &str) -> Result<BoardUrl, InvalidUrl> {
    let parts = UrlParts::parse(scheme, "write //HOST,HOST/MASTER", rest)?;
    let servers = parts.servers(SENTINEL_PORT)?;
    let path = parts.path.strip_prefix('/').unwrap_or_default();
    let (master, db) = path.split_once('/').unwrap_or((path, ""));
    if master.is_empty() {
        return Err(InvalidUrl::NoMaster);
    }
    let master = decode(master, "the name of the master")?;
    let db = database(db)?;
    let known = [&KEYS[..], &SENTINEL_KEYS, &TLS_KEYS, &SENTINEL_TLS_KEYS].concat();
    let mut query = UrlQuery::parse(parts.query, &known)?;
    let has_tls = scheme == "rediss-sentinel";
    let has_sentinel_tls = query.is_true("sentinel_tls")?.unwrap_or(has_tls);
    let files = query.tls_files(TLS_KEYS)?;
    let own = query.tls_files(SENTINEL_TLS_KEYS)?;
    let none = TlsFiles::default();
    for (is_used, files, [ca, cert, _]) in [
        (has_tls || has_sentinel_tls, &files, TLS_KEYS),
        (has_sentinel_tls, &own, SENTINEL_TLS_KEYS),
    ] {
        if !is_used && *files != none {
            let key = if files.ca.is_some() { ca } else { cert };
            return Err(InvalidUrl::NoTls(key.to_owned()));
        }
    }
    let sentinel_files = if own == none { files.clone() } else { own };
    let sentinel = Sentinel {
        servers,
        master,
        user: query.take("sentinel_user").filter(|user| !user.is_empty()),
        password: None,
        password_file: query.file("sentinel_password_file")?,
        tls: has_sentinel_tls.then_some(sentinel_files),
    };
    let tls = has_tls.then_some(files);
    finish(Address::Sentinel(sentinel), tls, db, parts, query)
}

fn finish(
    address: Address,
    tls: Option<TlsFiles>,
    db: u32,
    parts: UrlParts<'_>,
    query: UrlQuery,
) -> Result<BoardUrl, InvalidUrl> {
    Ok(BoardUrl::Redis(Box::new(RedisUrl {
        address,
        tls,
        user: parts.user,
        password: parts.password,
        db,
        namespace: namespace(query)?,
    })))
}

fn database(text: &str) -> Result<u32, InvalidUrl> {
    match text {
        "" => Ok(0),
        text => number(text).ok_or_else(|| InvalidUrl::Database(text.to_owned())),
    }
}

fn namespace(mut query: UrlQuery) -> Result<Option<String>, InvalidUrl> {
    match (query.take("namespace"), query.is_true("bare")?) {
        (Some(_), Some(true)) => Err(InvalidUrl::BareNamespace),
        (None, Some(true)) => Ok(None),
        (stated, _) => Ok(Some(stated.unwrap_or_else(|| NAMESPACE.to_owned()))),
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_deref();
        let s = if self.tls.is_some() { "s" } else { "" };
        let mut query = QueryText::new();
        match &self.address {
            Address::Tcp(server) => {
                let server = authority(user, std::slice::from_ref(server));
                write!(f, "redis{s}://{server}/{}", self.db)?;
            }
            Address::Unix(path) => {
                let path = encode(&path.to_string_lossy(), "");
                write!(f, "redis+unix://{}{path}", authority(user, &[]))?;
                query.push("db", Some(self.db).filter(|db| *db != 0));
            }
            Address::Sentinel(sentinel) => {
                let servers = authority(user, &sentinel.servers);
                let master = encode(&sentinel.master, "/");
                write!(f, "redis{s}-sentinel://{servers}/{master}/{}", self.db)?;
                self.push_sentinel(sentinel, &mut query);
            }
        }
        let is_usual = self.namespace.as_deref() == Some(NAMESPACE);
        query.push("namespace", self.namespace.as_ref().filter(|_| !is_usual));
        query.push("bare", self.namespace.is_none().then_some(true));
        query.push_tls(TLS_KEYS, self.tls.as_ref());
        query.fmt(f)
    }
}
