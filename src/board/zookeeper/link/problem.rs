//! Why ZooKeeper is unusable: messages and error kinds.

use thiserror::Error;

use crate::board::net::problem::{self, Kind, Obstacle, Reason};

pub(crate) type Problem = problem::Problem<Cause>;

/// Problems of a server or the network, to follow its name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Cause {
    #[error(transparent)]
    Any(#[from] Obstacle),
    #[error(
        "closed the connection instead of opening a session: it has lost its ensemble, has too \
         many connections, or is not a ZooKeeper server"
    )]
    Closed,
    #[error("is not a ZooKeeper server")]
    NotZooKeeper,
    #[error("replies, but opens no session")]
    NoSession,
    #[error("ended the session")]
    SessionEnded,
    #[error("is too busy")]
    Throttled,
    #[error("is unreachable: {0}")]
    All(String),

    #[error("does not allow {user} to {doing} the nodes of {path}{hint}")]
    Forbidden {
        user: String,
        doing: &'static str,
        path: String,
        hint: &'static str,
    },
    #[error("has no password, so any client could use that name")]
    NoPassword,
    #[error("does not know the user, but `acl=creator` requires one")]
    Nobody,
    #[error("denies access")]
    NoEntry,

    #[error("cannot be verified: a certificate cannot contain such a name")]
    NoName,
    #[error("accepts no writes")]
    ReadOnly,
    #[error("has reached the quota of these nodes")]
    Quota,
    #[error("replied: {0}")]
    Said(String),

    #[error("is older than ZooKeeper 3.6")]
    Old,
}

/// A server's refusal outweighs another server's absence.
pub(crate) fn of_all(mut problems: Vec<Problem>) -> Option<Problem> {
    let decides = |problem: &Problem| problem.cause().weight();
    let heaviest = problems.iter().map(decides).max()?;
    let place = problems.iter().position(|one| decides(one) == heaviest)?;
    if problems.len() == 1 || heaviest > 0 {
        return Some(problems.swap_remove(place));
    }
    let each: Vec<_> = problems.iter().map(Problem::to_string).collect();
    let cause = Cause::All(each.join(", "));
    Some(Problem::new("the ensemble", cause))
}

impl Reason for Cause {
    fn kind(&self) -> Kind {
        use Cause::*;
        match self {
            Any(obstacle) => obstacle.kind(),
            Closed | NoSession | SessionEnded | Throttled | All(_) => Kind::Unreachable,
            NotZooKeeper => Kind::Misdirected,
            Forbidden { .. } | NoPassword | Nobody | NoEntry => Kind::Denied,
            NoName | ReadOnly | Quota | Said(_) => Kind::Failed,
            Old => Kind::Unsupported {
                board: "a ZooKeeper server older than 3.6",
                operation: "store a board",
                hint: "use ZooKeeper 3.6 or later",
            },
        }
    }
}

impl Cause {
    /// How much it reveals about servers that should all be alike.
    fn weight(&self) -> u8 {
        match self {
            Self::Any(obstacle) if matches!(obstacle.kind(), Kind::Denied | Kind::Failed) => 2,
            Self::NoEntry | Self::NoName | Self::Old => 2,
            Self::NoSession => 1,
            _ => 0,
        }
    }
}
