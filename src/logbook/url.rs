//! Logbook URLs, as TaskFlow's services use them for their databases.

use std::{fmt, path::PathBuf, str::FromStr};

use percent_encoding::percent_decode_str;
use thiserror::Error;

use crate::{
    board::url::{TlsFiles, TlsIdentity},
    secret::Secret,
};

/// A database, as SQLAlchemy's URLs name it.
///
/// Its text form lacks the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogbookUrl {
    Sqlite(PathBuf),
    Mysql(Box<DatabaseServer>),
    Postgres(Box<DatabaseServer>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabaseServer {
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) host: String,
    pub(super) port: u16,
    /// The path of a socket, which replaces the host.
    pub(super) socket: Option<PathBuf>,
    pub(super) database: String,
    /// The server's certificate is always verified: its issuer and its name.
    pub(super) tls: Option<TlsFiles>,
}

/// Why a text is no logbook URL. Repeats no part of it, since one may be a password.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum InvalidLogbookUrl {
    #[error("a logbook URL begins with mysql:, postgresql: or sqlite:")]
    Scheme,
    #[error("the form is {0}://USER:PASSWORD@HOST:PORT/DATABASE")]
    Form(&'static str),
    #[error("the form is sqlite:FILE or sqlite:///FILE")]
    Path,
    #[error("a `%` escape in the URL is not valid text")]
    Encoding,
    #[error("the port is not a number from 1 to 65535")]
    Port,
    #[error("the URL needs both a certificate and its key")]
    HalfIdentity,
    #[error("these logbooks stay in the memory of each process, so no other process can read them")]
    Memory,
}

impl FromStr for LogbookUrl {
    type Err = InvalidLogbookUrl;

    fn from_str(text: &str) -> Result<Self, InvalidLogbookUrl> {
        let (scheme, rest) = text.split_once(':').ok_or(InvalidLogbookUrl::Scheme)?;
        // The part after the plus is Python's driver.
        let (database, _) = scheme.split_once('+').unwrap_or((scheme, ""));
        match database.to_ascii_lowercase().as_str() {
            "sqlite" => sqlite(rest),
            "mysql" | "mariadb" => Ok(Self::Mysql(Box::new(server(&MYSQL, rest)?))),
            "postgresql" | "postgres" => Ok(Self::Postgres(Box::new(server(&POSTGRES, rest)?))),
            _ => Err(InvalidLogbookUrl::Scheme),
        }
    }
}

impl LogbookUrl {
    /// Returns a printable URL; for an invalid one, only that it is set.
    pub(crate) fn shown(text: &str) -> String {
        let url = text.parse::<Self>();
        url.map_or_else(|_| "set".to_owned(), |url| url.to_string())
    }
}

/// Reads `///RELATIVE`, `////ABSOLUTE`, or just a path.
fn sqlite(rest: &str) -> Result<LogbookUrl, InvalidLogbookUrl> {
    if rest.starts_with("//") && !rest.starts_with("///") {
        return match rest {
            "//" => Err(InvalidLogbookUrl::Memory),
            _ => Err(InvalidLogbookUrl::Path),
        };
    }
    let path = rest.strip_prefix("///").unwrap_or(rest);
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    match path {
        "" | ":memory:" => Err(InvalidLogbookUrl::Memory),
        path => Ok(LogbookUrl::Sqlite(path.into())),
    }
}

struct ServerKind {
    name: &'static str,
    port: u16,
    socket: &'static str,
    files: [&'static str; 3],
}

const MYSQL: ServerKind = ServerKind {
    name: "mysql",
    port: 3306,
    socket: "unix_socket",
    files: ["ssl_ca", "ssl_cert", "ssl_key"],
};

const POSTGRES: ServerKind = ServerKind {
    name: "postgresql",
    port: 5432,
    socket: "host",
    files: ["sslrootcert", "sslcert", "sslkey"],
};

/// Reads `//USER:PASSWORD@HOST:PORT/DATABASE?KEY=VALUE`. Ignores keys for Python.
fn server(kind: &ServerKind, rest: &str) -> Result<DatabaseServer, InvalidLogbookUrl> {
    let form = || InvalidLogbookUrl::Form(kind.name);
    let rest = rest.strip_prefix("//").ok_or_else(form)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.rsplit_once('/').ok_or_else(form)?;
    let (access, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = access.split_once(':').unwrap_or((access, ""));
    let (host, port) = match place.strip_prefix('[').and_then(|it| it.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':').unwrap_or(port)),
        None => place.split_once(':').unwrap_or((place, "")),
    };
    let keys = UrlKeys::read(query)?;
    let socket = keys.get(kind.socket).filter(|path| path.starts_with('/'));
    let port = match (port, port.parse()) {
        ("", _) => kind.port,
        (_, Ok(port @ 1..)) => port,
        _ => return Err(InvalidLogbookUrl::Port),
    };
    if database.is_empty() {
        return Err(form());
    }
    Ok(DatabaseServer {
        user: some(decoded(user)?),
        password: some(decoded(password)?).map(Secret::new),
        host: some(decoded(host)?).unwrap_or_else(|| "localhost".to_owned()),
        port,
        socket: socket.map(PathBuf::from),
        database: decoded(database)?,
        tls: keys.tls(kind)?,
    })
}

struct UrlKeys(Vec<(String, String)>);

impl UrlKeys {
    fn read(text: &str) -> Result<Self, InvalidLogbookUrl> {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        let pairs = pairs.map(|(key, value)| Ok((decoded(key)?, decoded(value)?)));
        Ok(Self(pairs.collect::<Result<_, _>>()?))
    }

    fn get(&self, key: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        let found = pairs.find(|(name, value)| name == key && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    fn is_true(&self, key: &str) -> bool {
        let value = self.get(key).unwrap_or_default().to_ascii_lowercase();
        matches!(value.as_str(), "true" | "1" | "yes" | "on")
    }

    fn tls(&self, kind: &ServerKind) -> Result<Option<TlsFiles>, InvalidLogbookUrl> {
        let [ca, cert, key] = kind.files.map(|name| self.get(name).map(PathBuf::from));
        let mode = self.get("sslmode").unwrap_or_default();
        let is_asked_for = ca.is_some()
            || cert.is_some()
            || matches!(mode, "require" | "verify-ca" | "verify-full")
            || self.is_true("ssl_verify_cert")
            || self.is_true("ssl_verify_identity");
        if !is_asked_for || matches!(mode, "disable") || self.is_true("ssl_disabled") {
            return Ok(None);
        }
        let identity = match (cert, key) {
            (Some(cert), Some(key)) => Some(TlsIdentity { cert, key }),
            (None, None) => None,
            _ => return Err(InvalidLogbookUrl::HalfIdentity),
        };
        Ok(Some(TlsFiles { ca, identity }))
    }
}

fn decoded(text: &str) -> Result<String, InvalidLogbookUrl> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded
        .map(String::from)
        .map_err(|_| InvalidLogbookUrl::Encoding)
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

impl fmt::Display for LogbookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Mysql(server) => write!(f, "mysql://{server}"),
            Self::Postgres(server) => write!(f, "postgresql://{server}"),
        }
    }
}

impl fmt::Display for DatabaseServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match &self.socket {
            Some(path) => write!(f, "{}", path.display())?,
            None if self.host.contains(':') => write!(f, "[{}]:{}", self.host, self.port)?,
            None => write!(f, "{}:{}", self.host, self.port)?,
        }
        write!(f, "/{}", self.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused};

    const URLS: [&str; 7] = [
        "mysql+pymysql://octavia:hunter2@10.0.0.1:3306/octavia_persistence?charset=utf8",
        "mysql://o:hunter2@[fd00::1]/p?ssl_ca=/ca.pem&ssl_verify_identity=true",
        "mysql+mysqldb://o:hunter2@/p?unix_socket=/run/m.sock",
        "postgresql+psycopg2://o%40x:hunter2@db/p?sslmode=verify-full&sslrootcert=/ca",
        "postgresql:///p?host=/run/postgresql",
        "sqlite:////var/lib/books.db",
        "sqlite:books.db",
    ];

    fn server_of(text: &str) -> DatabaseServer {
        match text.parse().unwrap() {
            LogbookUrl::Mysql(server) | LogbookUrl::Postgres(server) => *server,
            LogbookUrl::Sqlite(path) => panic!("{}", path.display()),
        }
    }

    #[test]
    fn urls_have_the_meaning_of_sqlalchemy() {
        let shown = URLS.map(|url| url.parse::<LogbookUrl>().unwrap().to_string());
        assert_eq!(
            shown,
            [
                "mysql://octavia@10.0.0.1:3306/octavia_persistence",
                "mysql://o@[fd00::1]:3306/p",
                "mysql://o@/run/m.sock/p",
                "postgresql://o@x@db:5432/p",
                "postgresql:///run/postgresql/p",
                "sqlite:/var/lib/books.db",
                "sqlite:books.db",
            ]
        );
        assert_eq!(
            server_of("mysql://o:a%40b%2F@h/p")
                .password
                .unwrap()
                .expose(),
            "a@b/"
        );
        assert_eq!(server_of(URLS[0]).tls, None);
        let ca = server_of(URLS[1]).tls.unwrap().ca;
        assert_eq!(ca, Some(PathBuf::from("/ca.pem")));
        let tls = server_of("mysql://h/p?ssl_ca=/ca&ssl_cert=/c&ssl_key=/k")
            .tls
            .unwrap();
        assert!(tls.identity.is_some());
        assert_eq!(server_of("postgresql://h/p?sslmode=prefer").tls, None);
    }

    #[test]
    fn invalid_logbook_urls_are_refused() {
        use InvalidLogbookUrl::{Encoding, Form, HalfIdentity, Memory, Port, Scheme};
        for (text, error) in [
            ("", Scheme),
            ("redis://h", Scheme),
            ("sqlite://", Memory),
            ("sqlite:///:memory:", Memory),
            ("mysql:h/p", Form("mysql")),
            ("mysql://h", Form("mysql")),
            ("postgresql://h/", Form("postgresql")),
            ("mysql://h:0/p", Port),
            ("mysql://h:x/p", Port),
            ("mysql://%ff@h/p", Encoding),
            ("mysql://h/p?ssl_cert=c", HalfIdentity),
        ] {
            assert_eq!(text.parse::<LogbookUrl>().unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn untrusted_logbook_urls_never_reveal_a_password() {
        Corpus::of(Bounds::TYPED, URLS).hold_for_text(|text| match text.parse::<LogbookUrl>() {
            Err(error) => refused(&error),
            Ok(LogbookUrl::Sqlite(_)) => Ok(Answer::Read),
            Ok(url @ (LogbookUrl::Mysql(_) | LogbookUrl::Postgres(_))) => {
                let (LogbookUrl::Mysql(server) | LogbookUrl::Postgres(server)) = &url else {
                    return Ok(Answer::Read);
                };
                let password = server.password.as_ref().map(Secret::expose);
                let is_secret = password == Some("hunter2") && text.matches("hunter2").count() < 2;
                match is_secret && url.to_string().contains("hunter2") {
                    true => Err(format!("the password is shown: {url}")),
                    false => Ok(Answer::Read),
                }
            }
        });
    }
}
