//! `zk://` and `zks://`: a board on ZooKeeper.

use std::{fmt, time::Duration};

use super::{
    BoardUrl, Server, TlsFiles,
    error::InvalidUrl,
    parts::{UrlParts, authority, decode, encode},
    query::{QueryText, TLS_KEYS, UrlQuery, tls_keys},
};
use crate::{duration, secret::Secret};

const PORT: u16 = 2181;

const PATH: &str = "/taskflow/jobs";

const KEYS: [&str; 3] = ["chroot", "session", "acl"];

/// ZooKeeper counts the milliseconds of a session in 31 bits.
const MAX_SESSION: Duration = Duration::from_millis(i32::MAX as u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ZooKeeperUrl {
    pub(crate) servers: Vec<Server>,
    pub(crate) path: String,
    /// The node that replaces `/`.
    pub(crate) chroot: Option<String>,
    pub(crate) session: Option<Duration>,
    pub(crate) acl: Acl,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) tls: Option<TlsFiles>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Acl {
    /// Everyone has all rights, as in TaskFlow.
    #[default]
    World,
    Creator,
}

pub(super) fn parse(scheme: &'static str, rest: &str) -> Result<BoardUrl, InvalidUrl> {
    let parts = UrlParts::parse(scheme, "write //HOST,HOST/PATH", rest)?;
    let servers = parts.servers(PORT)?;
    let path = node_path(decode(parts.path, "the path")?)?;
    if let Some(path) = path.as_ref().filter(|path| path.ends_with("/.trash")) {
        let (path, problem) = (path.clone(), "is the trash of other boards");
        return Err(InvalidUrl::NodePath { path, problem });
    }
    let has_tls = scheme == "zks";
    let mut query = UrlQuery::parse(parts.query, &[&KEYS, tls_keys(has_tls)].concat())?;
    let tls = has_tls.then(|| query.tls_files(TLS_KEYS)).transpose()?;
    let chroot = query.take("chroot").map_or(Ok(None), node_path)?;
    let url = ZooKeeperUrl {
        servers,
        path: path.unwrap_or_else(|| PATH.to_owned()),
        chroot,
        session: query.take("session").map(session).transpose()?,
        acl: acl(&mut query)?,
        user: parts.user,
        password: parts.password,
        tls,
    };
    url.check_user()?;
    Ok(BoardUrl::ZooKeeper(Box::new(url)))
}

fn node_path(path: String) -> Result<Option<String>, InvalidUrl> {
    if path.is_empty() || path == "/" {
        return Ok(None);
    }
    let is_dots = |part: &str| part == "." || part == "..";
    let problem = if !path.starts_with('/') {
        "does not begin with `/`"
    } else if path.ends_with('/') {
        "ends with `/`"
    } else if path.contains("//") {
        "has an empty part between two `/`"
    } else if path.split('/').any(is_dots) {
        "contains `.` or `..`"
    } else if path.contains(is_forbidden) {
        "contains a character that ZooKeeper forbids"
    } else {
        return Ok(Some(path));
    };
    Err(InvalidUrl::NodePath { path, problem })
}

pub(crate) fn is_forbidden(char: char) -> bool {
    char.is_control() || matches!(char, '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}')
}

fn session(text: String) -> Result<Duration, InvalidUrl> {
    let key = "session";
    let length = duration::parse(&text).map_err(|source| InvalidUrl::Duration { key, source })?;
    if length.is_zero() || length > MAX_SESSION {
        return Err(InvalidUrl::Value {
            key,
            value: text,
            wanted: "use a duration from 1ms to 24d",
        });
    }
    Ok(length)
}

fn acl(query: &mut UrlQuery) -> Result<Acl, InvalidUrl> {
    let choices = [("world", Acl::World), ("creator", Acl::Creator)];
    let acl = query.choice("acl", "use world or creator", &choices)?;
    Ok(acl.unwrap_or_default())
}

impl ZooKeeperUrl {
    fn check_user(&self) -> Result<(), InvalidUrl> {
        let identity = self.tls.as_ref().and_then(|tls| tls.identity.as_ref());
        let has_creator = self.acl == Acl::World || identity.is_some();
        match (&self.user, &self.password) {
            (Some(_), _) => Ok(()),
            (None, Some(_)) => Err(InvalidUrl::PasswordWithoutUser),
            (None, None) if has_creator => Ok(()),
            (None, None) => Err(InvalidUrl::NoCreator),
        }
    }
}

impl fmt::Display for ZooKeeperUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.tls.is_some() { "s" } else { "" };
        let servers = authority(self.user.as_deref(), &self.servers);
        write!(f, "zk{s}://{servers}{}", encode(&self.path, ""))?;
        let mut query = QueryText::new();
        query.push("chroot", self.chroot.as_ref());
        query.push("session", self.session.map(duration::exact));
        query.push("acl", (self.acl == Acl::Creator).then_some("creator"));
        query.push_tls(TLS_KEYS, self.tls.as_ref());
        query.fmt(f)
    }
}
