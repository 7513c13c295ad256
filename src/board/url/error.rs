//! What can be wrong with the URL of a board, and what would be right.

use thiserror::Error;

use crate::duration::InvalidDuration;

#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum InvalidUrl {
    #[error("a board's URL begins with its scheme; a file on this machine is sqlite:PATH")]
    NoScheme,
    #[error("`{address}` has no scheme: write {url}")]
    Address { address: String, url: String },
    #[error("`file:` is not the scheme of a board; a file on this machine is sqlite:PATH")]
    File,
    #[error(
        "unknown scheme `{0}`: it is one of sqlite, redis, rediss, redis+unix, redis-sentinel, \
         rediss-sentinel, zk, zks, octavia"
    )]
    UnknownScheme(String),
    /// The scripts of TaskFlow are what keeps its Redis boards from working there.
    #[error(
        "a board cannot live on Redis Cluster: TaskFlow's scripts use several keys at once, and a \
         cluster keeps those in different slots; use one server, or Sentinel"
    )]
    Cluster,
    #[error("behind `{scheme}:` comes {form}")]
    Form {
        scheme: &'static str,
        form: &'static str,
    },
    /// What stands before the `@` is perhaps a password that the URL syntax cuts in pieces.
    #[error(
        "there is an `@` behind the host: in a user, a password and all that follows, write %40 \
         for `@`, %2F for `/`, %3F for `?` and %23 for `#`"
    )]
    MisplacedAt,
    #[error("a board's URL has no fragment: write %23 for `#`")]
    Fragment,
    #[error("{part} has a `%` that does not begin an escape of UTF-8 text: write %25 for `%`")]
    Escape { part: &'static str },
    #[error("the host is missing: {form}")]
    NoHost { form: &'static str },
    #[error("`{0}` is not the name of a host, nor an address")]
    Host(String),
    #[error("the part in brackets is not an IPv6 address: write one such as [::1]")]
    Ipv6,
    #[error("an IPv6 address stands in brackets, as in [::1]:6379")]
    NoBrackets,
    /// The port is not repeated: it is a password in `redis://user:password`.
    #[error("the port of `{host}` is not a number from 1 to 65535")]
    Port { host: String },
    #[error("a `{scheme}` board has one host; several are for redis-sentinel:// and zk://")]
    SeveralHosts { scheme: &'static str },
    #[error("`{0}` is not the number of a database: write one such as redis://HOST/0")]
    Database(String),
    #[error("the path of the socket is missing: write redis+unix:///PATH")]
    NoSocket,
    #[error("the name of the master is missing: write redis-sentinel://HOST,HOST/MASTER")]
    NoMaster,
    #[error("unknown key `{key}` behind the `?`: known are {known}")]
    UnknownKey { key: String, known: String },
    #[error(
        "a URL has no `{0}` key, as it is shown in lists of processes: use --password-file, or \
         password_file or password_command in config.toml"
    )]
    PasswordKey(String),
    #[error("the key `{key}` is there twice: known, each at most once, are {known}")]
    RepeatedKey { key: String, known: String },
    #[error("the key `{0}` has no value: write {0}=VALUE")]
    NoValue(String),
    #[error("`{key}={value}` is not understood: {wanted}")]
    Value {
        key: &'static str,
        value: String,
        wanted: &'static str,
    },
    #[error("`{key}` is not understood")]
    Duration {
        key: &'static str,
        source: InvalidDuration,
    },
    #[error("`namespace` and `bare` exclude each other: a bare board has no namespace")]
    BareNamespace,
    #[error("`{0}` is for TLS, which this is without: use rediss://, rediss-sentinel:// or zks://")]
    NoTls(String),
    #[error("`{given}` needs `{missing}` as well: a certificate and its private key")]
    HalfIdentity {
        given: &'static str,
        missing: &'static str,
    },
    #[error("the path of the file is missing: write sqlite:PATH")]
    NoFile,
    #[error("`//` does not begin the path of a file: write sqlite:PATH, as in sqlite:/srv/jobs.db")]
    FileWithHost,
    #[error("a board in memory would be gone with this command: write sqlite:PATH")]
    InMemory,
    #[error("`~` is not replaced in a URL: write the whole path, as in sqlite:/home/ada/jobs.db")]
    Tilde,
    #[error("the path `{path}` {problem}: write one such as /taskflow/jobs")]
    NodePath { path: String, problem: &'static str },
    #[error("a password is no use to ZooKeeper without a user: write zk://USER@HOST")]
    PasswordWithoutUser,
    #[error("`acl=creator` needs a creator: a user (zk://USER@HOST), or a certificate")]
    NoCreator,
}
