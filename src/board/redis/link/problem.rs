//! Why a Redis server is of no use to us: each reason in words, and what kind of error it makes.

use thiserror::Error;

use crate::board::net::problem::{self, Kind, Obstacle, Reason};

pub(crate) type Problem = problem::Problem<Cause>;

/// What can be the matter with a server, or on the way to it; reads on after its name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Cause {
    #[error(transparent)]
    Any(#[from] Obstacle),
    #[error("is not there")]
    NoSocket,
    #[error("closed the connection without an answer")]
    Closed,
    #[error("breaks off the connection again and again")]
    Unsteady,
    #[error("does not speak Redis")]
    NotRedis,
    #[error("takes no more connections")]
    Full,
    #[error("is still loading its data")]
    Loading,
    #[error("is busy with a script that takes long")]
    Busy,
    #[error("is a replica that has lost its master")]
    Orphaned,
    #[error("belongs to a cluster that is down")]
    ClusterDown,
    #[error("has too few replicas to take writes")]
    TooFewReplicas,
    #[error("does not know a master named {0}")]
    UnknownMaster(String),
    #[error("is called the master by Sentinel, but is not (any more)")]
    NotMaster,

    #[error("wants a password")]
    NoPassword,
    #[error("refuses the password")]
    WrongPassword,
    #[error("refuses the user {0}: no such user, a wrong password, or switched off")]
    WrongUser(String),
    #[error("has no password, but one was given")]
    NeedlessPassword,
    #[error("is older than Redis 6 and knows no users")]
    NoUsers,
    #[error("is in protected mode and lets in only its own machine")]
    ProtectedMode,
    #[error("does not let the user {user} run `{command}`")]
    ForbiddenCommand { user: String, command: String },
    #[error("does not let the user {user} use the {what} of the board")]
    Forbidden { user: String, what: &'static str },
    #[error("cannot be used by us: permission denied")]
    ForbiddenSocket,

    #[error("has no database {0}")]
    NoDatabase(u32),
    #[error("is a Sentinel and not a server with data: write redis-sentinel://{0}/MASTER")]
    Sentinel(String),
    #[error("is not a Sentinel")]
    NotSentinel,
    #[error("is a replica and takes no writes")]
    Replica,
    #[error("has reached the limit of its memory")]
    OutOfMemory,
    #[error("cannot save its data to disk and takes no writes until it can")]
    CannotSave,
    #[error("has something else under {} than a board has there: rename that key or remove it", name_of(.0))]
    OtherType(String),
    #[error("has no count under {0}; put the highest number there that it ever gave out")]
    NoCount(String),
    #[error("counts only up to 2^53 under {0}; put the highest number there that it ever gave out")]
    TooMany(String),
    #[error("gave an answer of a kind that makes no sense here")]
    Strange,
    #[error("said: {0}")]
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
    /// Adds which key it is about, if it may be about one.
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
                "hold a board: TaskFlow's scripts touch keys of several slots",
                "use a Redis server that is not part of a cluster",
            ),
            Old(_) => unsupported(
                "a Redis server older than 5",
                "hold a board",
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
