//! Why a server is unusable: its name, the cause and the resulting error.

use std::{error::Error, fmt, io, time::Duration};

use super::failure::reason;
use crate::{
    board::{BoardError, error::Cause},
    duration,
};

#[derive(Debug, thiserror::Error)]
#[error("{whom} {cause}")]
pub(crate) struct Problem<C> {
    /// Servers, as `host:port` or the path of a socket; a name; a file.
    whom: String,
    cause: C,
}

/// Problems of one kind of server, to follow its name.
pub(crate) trait Reason: Error + From<Obstacle> + Send + Sync + 'static {
    fn kind(&self) -> Kind;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Unreachable,
    Misdirected,
    Denied,
    Failed,
    Unsupported {
        board: &'static str,
        operation: &'static str,
        hint: &'static str,
    },
}

/// Problems of any server or network, to follow its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Obstacle {
    #[error("refused the connection")]
    RefusedConnection,
    #[error("did not reply within {}", duration::exact(*.0))]
    Silent(Duration),
    #[error("did not complete the TLS handshake within {}; perhaps the server does not use TLS", duration::exact(*.0))]
    SilentInTls(Duration),
    #[error("is unreachable: {0}")]
    NoWay(String),
    #[error("closed the connection before it replied")]
    BrokenOff,

    #[error("does not resolve: {0}")]
    Unresolved(String),
    #[error("requires TLS; use rediss:// or zks://")]
    WantsTls,
    #[error("does not use TLS; use redis:// or zk://")]
    NotTls,

    #[error("denies access ({0})")]
    NoEntry(String),
    #[error("has a certificate {0}")]
    Certificate(String),
    #[error("requires a client certificate; add cert=FILE&key=FILE to the URL")]
    NoCertificate,
    #[error("rejects the client certificate ({0})")]
    RefusedCertificate(String),

    #[error("is not usable: {0}")]
    File(String),
    #[error(
        "cannot be verified: this system trusts no certificate authority; add ca=FILE to the URL"
    )]
    NoAuthorities,
}

impl<C: Reason> Problem<C> {
    pub(crate) fn new(whom: impl fmt::Display, cause: impl Into<C>) -> Self {
        Self {
            whom: whom.to_string(),
            cause: cause.into(),
        }
    }

    pub(crate) fn cause(&self) -> &C {
        &self.cause
    }

    pub(crate) fn map(self, more: impl FnOnce(C) -> C) -> Self {
        Self {
            cause: more(self.cause),
            ..self
        }
    }

    pub(crate) fn into_error(self, doing: &'static str, board: &str) -> BoardError {
        self.cause.kind().error(doing, board, self.into())
    }
}

impl Kind {
    /// Creates the error from the operation, the board and the cause.
    pub(crate) fn error(self, doing: &'static str, board: &str, source: Cause) -> BoardError {
        let board = board.to_owned();
        match self {
            Self::Unreachable => BoardError::Unreachable { board, source },
            Self::Misdirected => BoardError::Misdirected { board, source },
            Self::Denied => BoardError::Denied { board, source },
            Self::Failed => BoardError::Failed {
                doing,
                board,
                source,
            },
            Self::Unsupported {
                board,
                operation,
                hint,
            } => BoardError::Unsupported {
                board,
                operation,
                hint: Some(hint),
            },
        }
    }
}

impl Obstacle {
    pub(crate) fn kind(&self) -> Kind {
        use Obstacle::*;
        match self {
            RefusedConnection | Silent(_) | SilentInTls(_) | NoWay(_) | BrokenOff => {
                Kind::Unreachable
            }
            Unresolved(_) | WantsTls | NotTls => Kind::Misdirected,
            NoEntry(_) | Certificate(_) | NoCertificate | RefusedCertificate(_) => Kind::Denied,
            File(_) | NoAuthorities => Kind::Failed,
        }
    }
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::RefusedConnection,
            _ => Self::NoWay(reason(&error)),
        }
    }
}
