//! Why a Redis server is unusable: messages and error kinds.

use thiserror::Error;

use crate::board::net::problem::{self, Kind, Obstacle, Reason};

pub(crate) type Problem = problem::Problem<Cause>;

/// Problems of a server or the network, to follow its name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Cause {
    #[error(transparent)]
    Any(#[from] Obstacle),
    #[error("does not exist")]
    NoSocket,
    #[error("closed the connection without a reply")]
    Closed,
    #[error("keeps closing the connection")]
    Unsteady,
    #[error("is not a Redis server")]
    NotRedis,
    #[error("accepts no more connections")]
    Full,
    #[error("is still loading its data")]
    Loading,
    #[error("is busy with a long-running script")]
    Busy,
    #[error("is a replica that has lost its master")]
    Orphaned,
    #[error("belongs to a cluster that is down")]
    ClusterDown,
    #[error("has too few replicas to accept writes")]
    TooFewReplicas,
    #[error("knows no master named {0}")]
    UnknownMaster(String),
    #[error("is no longer the master that Sentinel names")]
    NotMaster,

    #[error("requires a password; give --password-file FILE")]
    NoPassword,
    #[error("rejects the password")]
    WrongPassword,
    #[error("rejects the user {0}: unknown user, wrong password or disabled user")]
    WrongUser(String),
    #[error("needs no password, but one was given")]
    NeedlessPassword,
    #[error("is older than Redis 6 and does not support users")]
    NoUsers,
    #[error("is in protected mode and accepts only local connections")]
    ProtectedMode,
    #[error("does not allow the user {user} to run `{command}`")]
    ForbiddenCommand { user: String, command: String },
    #[error("does not allow the user {user} to use the {what} of the board")]
    Forbidden { user: String, what: &'static str },
    #[error("is not accessible: permission denied")]
    ForbiddenSocket,

    #[error("has no database {0}")]
    NoDatabase(u32),
    #[error("is a Sentinel, not a data server; use redis-sentinel://{0}/MASTER")]
    Sentinel(String),
    #[error("is not a Sentinel")]
    NotSentinel,
    #[error("is a read-only replica")]
    Replica,
    #[error("has reached its memory limit")]
    OutOfMemory,
    #[error("cannot save its data to disk and rejects writes until it can")]
    CannotSave,
    #[error("stores a value of the wrong type under {}; rename or delete that key", name_of(.0))]
    OtherType(String),
    #[error("has no counter under {0}; set the key to the highest number ever assigned")]
    NoCount(String),
    #[error("has a counter above 2^53 under {0}; set the key to the highest number ever assigned")]
    TooMany(String),
    #[error("sent a reply of an unexpected type")]
    Strange,
    #[error("replied: {0}")]
    Said(String),

    #[error("is part of a cluster")]
    Cluster,
    #[error("is Redis {0}")]
    Old(String),
    #[error("cannot push messages")]
    NoPushes,
}

fn name_of(key: &str) -> &str {
    if key.is_empty() { "a key" } else { key }
}

impl Cause {
    pub(crate) fn under(self, key: &str) -> Self {
        match self {
            Self::OtherType(_) => Self::OtherType(key.to_owned()),
            cause => cause,
        }
    }
}

impl Reason for Cause {
    fn kind(&self) -> Kind {
        use Cause::*;
        match self {
            Any(obstacle) => obstacle.kind(),
            NoSocket | Closed | Unsteady | Full | Loading | Busy | Orphaned | ClusterDown
            | TooFewReplicas | NotMaster => Kind::Unreachable,
            NotRedis | UnknownMaster(_) => Kind::Misdirected,
            NoPassword
            | WrongPassword
            | WrongUser(_)
            | NeedlessPassword
            | NoUsers
            | ProtectedMode
            | ForbiddenCommand { .. }
            | Forbidden { .. }
            | ForbiddenSocket => Kind::Denied,
            NoDatabase(_) | Sentinel(_) | NotSentinel | Replica | OutOfMemory | CannotSave
            | OtherType(_) | NoCount(_) | TooMany(_) | Strange | Said(_) => Kind::Failed,
            Cluster => unsupported(
                "Redis Cluster",
                "store a board: TaskFlow's scripts use keys of several slots",
                "use a Redis server that is not part of a cluster",
            ),
            Old(_) => unsupported(
                "a Redis server older than 5",
                "store a board",
                "use Redis 5 or later",
            ),
            NoPushes => unsupported("this Redis server", "push messages", "use Redis 6 or later"),
        }
    }
}

fn unsupported(board: &'static str, operation: &'static str, hint: &'static str) -> Kind {
    Kind::Unsupported {
        board,
        operation,
        hint,
    }
}
