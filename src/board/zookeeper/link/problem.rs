//! Why ZooKeeper is of no use to us: each reason in words, and what kind of error it makes.

use std::time::Duration;

use thiserror::Error;

use crate::{board::BoardError, duration};

/// What is the matter, and with whom.
#[derive(Debug, Error)]
#[error("{whom} {cause}")]
pub(in crate::board::zookeeper) struct Problem {
    /// Servers, as `host:port`; a name; a file.
    whom: String,
    cause: Cause,
}

/// What can be the matter with a server, or on the way to it; reads on after its name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(in crate::board::zookeeper) enum Cause {
    #[error("refused the connection")]
    RefusedConnection,
    #[error("does not resolve: {0}")]
    Unresolved(String),
    #[error("did not answer within {}", duration::exact(*.0))]
    Silent(Duration),
    #[error("did not answer in TLS within {}; perhaps it does not speak TLS", duration::exact(*.0))]
    SilentInTls(Duration),
    #[error("cannot be reached: {0}")]
    NoWay(String),
    #[error(
        "closed the connection when it was asked for a session: it is without its ensemble, has \
         too many connections, or is no ZooKeeper"
    )]
    Closed,
    #[error("broke off the connection before it answered")]
    BrokenOff,
    #[error("does not speak ZooKeeper")]
    NotZooKeeper,
    #[error("wants TLS")]
    WantsTls,
    #[error("does not speak TLS")]
    NotTls,
    #[error("answers, but gives us no session")]
    NoSession,
    #[error("ended the session")]
    SessionEnded,
    #[error("is too busy")]
    Throttled,
    /// Several servers, each with its own problem.
    #[error("cannot be reached: {0}")]
    All(String),

    #[error("does not let {user} {doing} the nodes of {path}{hint}")]
    Forbidden {
        user: String,
        doing: &'static str,
        path: String,
        hint: &'static str,
    },
    #[error("has no password: without one anybody could come in under that name")]
    NoPassword,
    #[error("does not know who we are, and `acl=creator` wants that it does")]
    Nobody,
    #[error("refuses to let us in")]
    NoEntry,
    #[error("refuses to let us in ({0})")]
    NoEntryBecause(String),
    #[error("has a certificate {0}")]
    Certificate(String),
    #[error("wants a certificate from us")]
    NoCertificate,
    #[error("refuses our certificate ({0})")]
    RefusedCertificate(String),

    #[error("cannot be used: {0}")]
    File(String),
    #[error("cannot be verified: this system trusts no certificate authority at all")]
    NoAuthorities,
    #[error("cannot be verified: no certificate can be for such a name")]
    NoName,
    #[error("takes no writes")]
    ReadOnly,
    #[error("has reached the quota that is set for these nodes")]
    Quota,
    #[error("said: {0}")]
    Said(String),

    #[error("is older than ZooKeeper 3.6")]
    Old,
}

impl Problem {
    /// Puts a problem down to somebody.
    pub(in crate::board::zookeeper) fn new(whom: impl ToString, cause: Cause) -> Self {
        Self {
            whom: whom.to_string(),
            cause,
        }
    }

    /// Makes one trouble of those that several servers have.
    ///
    /// What a server has against us weighs more than that another one is away.
    pub(in crate::board::zookeeper) fn of_all(mut problems: Vec<Self>) -> Option<Self> {
        let decides = |problem: &Self| problem.cause.weight();
        let heaviest = problems.iter().map(decides).max()?;
        let place = problems.iter().position(|one| decides(one) == heaviest)?;
        if problems.len() == 1 || heaviest > 0 {
            return Some(problems.swap_remove(place));
        }
        let each: Vec<_> = problems.iter().map(Self::to_string).collect();
        let cause = Cause::All(each.join(", "));
        Some(Self::new("the ensemble", cause))
    }

    /// Makes an error of it: what we were doing, and with which board.
    pub(in crate::board::zookeeper) fn into_error(
        self,
        doing: &'static str,
        board: &str,
    ) -> BoardError {
        use Cause::*;
        let board = board.to_owned();
        match &self.cause {
            RefusedConnection | Silent(_) | SilentInTls(_) | NoWay(_) | Closed | BrokenOff
            | NoSession | SessionEnded | Throttled | All(_) => BoardError::Unreachable {
                board,
                source: self.into(),
            },
            Unresolved(_) | NotZooKeeper | WantsTls | NotTls => BoardError::Misdirected {
                board,
                source: self.into(),
            },
            Forbidden { .. }
            | NoPassword
            | Nobody
            | NoEntry
            | NoEntryBecause(_)
            | Certificate(_)
            | NoCertificate
            | RefusedCertificate(_) => BoardError::Denied {
                board,
                source: self.into(),
            },
            File(_) | NoAuthorities | NoName | ReadOnly | Quota | Said(_) => BoardError::Failed {
                doing,
                board,
                source: self.into(),
            },
            Old => BoardError::Unsupported {
                board: "a ZooKeeper server older than 3.6",
                operation: "hold a board",
                hint: Some("use ZooKeeper 3.6 or later"),
            },
        }
    }
}

impl Cause {
    /// How much it decides about servers that should all be alike.
    fn weight(&self) -> u8 {
        use Cause::*;
        match self {
            Certificate(_)
            | NoCertificate
            | RefusedCertificate(_)
            | NoEntry
            | NoEntryBecause(_)
            | NoName
            | NoAuthorities
            | File(_)
            | Old => 2,
            NoSession => 1,
            _ => 0,
        }
    }
}
