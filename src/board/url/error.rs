//! Board URL errors, with corrections.

use thiserror::Error;

use crate::duration::InvalidDuration;

#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum InvalidUrl {
    #[error("the scheme is missing; for a local file, use sqlite:PATH")]
    NoScheme,
    #[error("`{address}` has no scheme; use {url}")]
    Address { address: String, url: String },
    #[error("`file:` is not a board scheme; for a local file, use sqlite:PATH")]
    File,
    #[error(
        "unknown scheme `{0}`; use one of sqlite, redis, rediss, redis+unix, redis-sentinel, \
         rediss-sentinel, zk, zks, octavia"
    )]
    UnknownScheme(String),
    /// TaskFlow's scripts keep its Redis boards from working there.
    #[error(
        "Redis Cluster cannot store a board, because TaskFlow's scripts use keys in several \
         slots; use a single server or Sentinel"
    )]
    Cluster,
    #[error("the address after `{scheme}:` is invalid; {form}")]
    Form {
        scheme: &'static str,
        form: &'static str,
    },
    /// The part before the `@` may be a password that the URL syntax cuts in pieces.
    #[error(
        "unexpected `@` after the host; in users, passwords and paths write %40 for `@`, %2F for \
         `/`, %3F for `?` and %23 for `#`"
    )]
    MisplacedAt,
    #[error("a board URL has no fragment; write %23 for `#`")]
    Fragment,
    #[error("{part} contains an invalid `%` escape; write %25 for `%`")]
    Escape { part: &'static str },
    #[error("the host is missing; {form}")]
    NoHost { form: &'static str },
    #[error("`{0}` is neither a host name nor an address")]
    Host(String),
    #[error("the part in brackets is not an IPv6 address; write [::1], for example")]
    Ipv6,
    #[error("an IPv6 address needs brackets, for example [::1]:6379")]
    NoBrackets,
    /// The port is not repeated: it is a password in `redis://user:password`.
    #[error("the port of `{host}` is not a number from 1 to 65535")]
    Port { host: String },
    #[error("a `{scheme}` board takes one host; only redis-sentinel:// and zk:// take several")]
    SeveralHosts { scheme: &'static str },
    #[error("`{0}` is not a database number; write redis://HOST/0, for example")]
    Database(String),
    #[error("the path of the socket is missing; use redis+unix:///PATH")]
    NoSocket,
    #[error("the name of the master is missing; use redis-sentinel://HOST,HOST/MASTER")]
    NoMaster,
    #[error("unknown parameter `{key}` (valid: {known})")]
    UnknownKey { key: String, known: String },
    #[error(
        "`{0}` is not allowed in a URL, because process lists show it; use --password-file, or \
         password_file or password_command in config.toml"
    )]
    PasswordKey(String),
    #[error("the parameter `{key}` is given twice; use each of {known} at most once")]
    RepeatedKey { key: String, known: String },
    #[error("the key `{0}` has no value; write {0}=VALUE")]
    NoValue(String),
    #[error("`{key}={value}` is invalid; {wanted}")]
    Value {
        key: &'static str,
        value: String,
        wanted: &'static str,
    },
    #[error("`{key}` is invalid")]
    Duration {
        key: &'static str,
        source: InvalidDuration,
    },
    #[error("`namespace` and `bare` cannot be used together: a bare board has no namespace")]
    BareNamespace,
    #[error("`{0}` needs TLS; use rediss://, rediss-sentinel:// or zks://")]
    NoTls(String),
    #[error("`{given}` also needs `{missing}`; give a certificate and its private key")]
    HalfIdentity {
        given: &'static str,
        missing: &'static str,
    },
    #[error("the file path is missing; use sqlite:PATH")]
    NoFile,
    #[error(
        "a file path must not begin with `//`; use sqlite:PATH, for example sqlite:/srv/jobs.db"
    )]
    FileWithHost,
    #[error("a board in memory would vanish when this command ends; use sqlite:PATH")]
    InMemory,
    #[error("a URL does not expand `~`; use the full path, for example sqlite:/home/ada/jobs.db")]
    Tilde,
    #[error("the path `{path}` {problem}; write /taskflow/jobs, for example")]
    NodePath { path: String, problem: &'static str },
    #[error("ZooKeeper needs a user with the password; use zk://USER@HOST")]
    PasswordWithoutUser,
    #[error("`acl=creator` needs a user (zk://USER@HOST) or a certificate")]
    NoCreator,
}
