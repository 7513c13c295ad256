//! Why a server is unusable: its name, the cause and the resulting error.

use std::{fmt, io, time::Duration};

use crate::{
    board::{
        BoardError,
        error::{ErrorSource, Unsupported, reason},
    },
    duration::exact,
};

#[derive(Debug, thiserror::Error)]
#[error("{whom} {cause}")]
pub(crate) struct ServerProblem {
    /// Servers, as `host:port` or the path of a socket; a name; a file.
    whom: String,
    cause: ServerCause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoardErrorKind {
    Unreachable,
    Misdirected,
    Denied,
    Failed,
}

/// Declares the causes by the kind of their error, each with its message, and the values of the message in brackets.
macro_rules! causes {
    ($($kind:ident {$(
        $cause:ident $(($value:ident: $type:ty))? $({$($field:ident: $of:ty),*})? = $text:literal $([$shown:expr])?;
    )*})*) => {
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) enum ServerCause {
            $($($cause $(($type))? $({$($field: $of),*})?,)*)*
        }

        impl ServerCause {
            pub(crate) fn kind(&self) -> BoardErrorKind {
                match self {
                    $($(Self::$cause { .. })|* => BoardErrorKind::$kind,)*
                }
            }
        }

        impl fmt::Display for ServerCause {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($(Self::$cause $(($value))? $({$($field),*})? => write!(f, $text $(, $shown)?),)*)*
                }
            }
        }
    };
}

causes! {
    Unreachable {
        RefusedConnection = "refused the connection";
        Silent(limit: Duration) = "did not reply within {}" [exact(*limit)];
        SilentInTls(limit: Duration) = "did not complete the TLS handshake within {}; perhaps the server does not use TLS" [exact(*limit)];
        Unreachable(reason: String) = "is unreachable: {reason}";
        ConnectionLost = "closed the connection before it replied";
        NoSocket = "does not exist";
        ClosedWithoutReply = "closed the connection without a reply";
        KeepsClosing = "keeps closing the connection";
        TooManyClients = "accepts no more connections";
        Loading = "is still loading its data";
        Busy = "is busy with a long-running script";
        LostMaster = "is a replica that has lost its master";
        ClusterDown = "belongs to a cluster that is down";
        TooFewReplicas = "has too few replicas to accept writes";
        NotMaster = "is no longer the master that Sentinel names";
        SessionRefused = "closed the connection instead of opening a session: it has lost its ensemble, has too many connections, or is not a ZooKeeper server";
        NoSession = "replies, but opens no session";
        SessionEnded = "ended the session";
        Throttled = "is too busy";
    }
    Misdirected {
        Unresolved(reason: String) = "does not resolve: {reason}";
        RequiresTls = "requires TLS; use rediss:// or zks://";
        NoTls = "does not use TLS; use redis:// or zk://";
        NotRedis = "is not a Redis server";
        NotZooKeeper = "is not a ZooKeeper server";
        UnknownMaster(name: String) = "knows no master named {name}";
    }
    Denied {
        AccessDenied = "denies access";
        AccessDeniedBecause(reason: String) = "denies access ({reason})";
        Certificate(flaw: String) = "has a certificate {flaw}";
        NoClientCertificate = "requires a client certificate; add cert=FILE&key=FILE to the URL";
        ClientCertificate(alert: String) = "rejects the client certificate ({alert})";
        NoPassword = "requires a password; give --password-file FILE";
        WrongPassword = "rejects the password";
        WrongUser(user: String) = "rejects the user {user}: unknown user, wrong password or disabled user";
        NeedlessPassword = "needs no password, but one was given";
        NoUsers = "is older than Redis 6 and does not support users";
        ProtectedMode = "is in protected mode and accepts only local connections";
        ForbiddenCommand { user: String, command: String } = "does not allow the user {user} to run `{command}`";
        Forbidden { user: String, what: &'static str } = "does not allow the user {user} to use the {what} of the board";
        ForbiddenSocket = "is not accessible: permission denied";
        ForbiddenNodes { user: String, doing: &'static str, path: String, hint: &'static str } = "does not allow {user} to {doing} the nodes of {path}{hint}";
        UserWithoutPassword = "has no password, so any client could use that name";
        UnknownCreator = "does not know the user, but `acl=creator` requires one";
    }
    Failed {
        File(reason: String) = "cannot be used: {reason}";
        NoAuthorities = "cannot be verified: this system trusts no certificate authority; add ca=FILE to the URL";
        UncertifiableName = "cannot be verified: a certificate cannot contain such a name";
        NoDatabase(number: u32) = "has no database {number}";
        Sentinel(host: String) = "is a Sentinel, not a data server; use redis-sentinel://{host}/MASTER";
        NotSentinel = "is not a Sentinel";
        Replica = "is a read-only replica; use its master";
        OutOfMemory = "has reached its memory limit; raise `maxmemory` or remove data";
        CannotSave = "cannot save its data to disk and rejects writes until it can";
        WrongType(key: String) = "stores a value of the wrong type under {}; rename that key" [if key.is_empty() { "a key" } else { key }];
        NoCounter(key: String) = "has no number under {key}; rename that key, or set it to the highest number ever assigned";
        HighCounter(key: String) = "has a counter above 2^53 under {key}; set the key to the highest number ever assigned";
        EndlessScan = "does not finish listing the board";
        UnexpectedReply = "sent a reply of an unexpected type";
        ReadOnly = "accepts no writes";
        Quota = "has reached the quota of these nodes";
        Message(text: String) = "replied: {text}";
        Unsupported(lack: Unsupported) = "is unusable: {lack}";
    }
}

impl ServerCause {
    /// Returns the cause for a server that cannot store a board; the remedy names one that can.
    pub(crate) const fn unusable(problem: &'static str, remedy: &'static str) -> Self {
        Self::Unsupported(Unsupported::Server { problem, remedy })
    }

    pub(crate) fn under(self, key: &str) -> Self {
        match self {
            Self::WrongType(_) => Self::WrongType(key.to_owned()),
            cause => cause,
        }
    }
}

impl From<io::Error> for ServerCause {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::RefusedConnection,
            _ => Self::Unreachable(reason(&error)),
        }
    }
}

impl ServerProblem {
    pub(crate) fn new(whom: impl fmt::Display, cause: ServerCause) -> Self {
        Self {
            whom: whom.to_string(),
            cause,
        }
    }

    pub(crate) fn cause(&self) -> &ServerCause {
        &self.cause
    }

    pub(crate) fn under(self, key: &str) -> Self {
        Self {
            cause: self.cause.under(key),
            ..self
        }
    }

    pub(crate) fn into_error(self, doing: &'static str, board: &str) -> BoardError {
        match self.cause {
            ServerCause::Unsupported(lack) => lack.into(),
            _ => self.cause.kind().error(doing, board, self.into()),
        }
    }
}

impl BoardErrorKind {
    pub(crate) fn error(self, doing: &'static str, board: &str, source: ErrorSource) -> BoardError {
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
        }
    }
}
