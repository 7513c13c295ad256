//! The cells of the matrix: a kind of board, and a kind of fault that strikes whoever works on it.

use std::fmt;

use crate::{conduct::Stage, support::proxy::Mood};

/// A kind of board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Board {
    Embedded,
    Redis,
    ZooKeeper,
}

/// Which processes of a worker a signal reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Conductor,
    Guard,
    Both,
}

/// A request whose answer nobody gets, though the server does what it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Any,
    Claim,
    Consume,
}

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// None, to know what the rest is to be compared with.
    Nothing,
    Kill(Part),
    /// They are stopped for a part of a lease, or somewhat longer than one.
    Stop(Part),
    /// Connections end.
    Cut,
    /// The network keeps something back for as long.
    Stall(Mood),
    /// Each answer takes its time, as from a server whose disk is slow.
    Slow,
    /// The network keeps all back for longer than any lease, and sessions are lost.
    Away,
    Swallow(Request),
    /// The server dies, and starts again with all that it acknowledged.
    Restart,
    /// The server hangs up on everybody.
    HungUp,
    /// Somebody else has the file of the board locked.
    Locked,
}

/// A kind of fault on a kind of board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) board: Board,
    pub(super) fault: Fault,
}

/// What may happen anywhere.
const PROCESSES: [Fault; 7] = [
    Fault::Nothing,
    Fault::Kill(Part::Conductor),
    Fault::Kill(Part::Guard),
    Fault::Kill(Part::Both),
    Fault::Stop(Part::Conductor),
    Fault::Stop(Part::Guard),
    Fault::Stop(Part::Both),
];

/// What may happen to a server, or on the way to it.
const NETWORK: [Fault; 10] = [
    Fault::Cut,
    Fault::Stall(Mood::StallRequests),
    Fault::Stall(Mood::Stall),
    Fault::Stall(Mood::Halt),
    Fault::Slow,
    Fault::Away,
    Fault::Swallow(Request::Any),
    Fault::Swallow(Request::Claim),
    Fault::Swallow(Request::Consume),
    Fault::Restart,
];

impl Cell {
    /// Returns all that there are.
    pub(super) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for (board, own) in [
            (Board::Embedded, &[Fault::Locked][..]),
            (Board::Redis, &[Fault::HungUp]),
            (Board::ZooKeeper, &[]),
        ] {
            let network: &[_] = if board == Board::Embedded {
                &[]
            } else {
                &NETWORK
            };
            let faults = PROCESSES.iter().chain(network).chain(own);
            all.extend(faults.map(|&fault| Self { board, fault }));
        }
        all
    }

    /// Prepares a board of this kind; `None` where the server for it is missing.
    pub(super) fn stage(self) -> Option<Stage> {
        match (self.board, self.fault) {
            (Board::Embedded, _) => Stage::embedded(),
            (Board::Redis, _) => Stage::redis_keeping_data(),
            (Board::ZooKeeper, Fault::Restart) => Stage::own_zookeeper(),
            (Board::ZooKeeper, _) => Stage::zookeeper(),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let board = match self.board {
            Board::Embedded => "embedded",
            Board::Redis => "redis",
            Board::ZooKeeper => "zookeeper",
        };
        write!(f, "{board}/{}", self.fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Kill(part) => write!(f, "kill-{part}"),
            Self::Stop(part) => write!(f, "stop-{part}"),
            Self::Cut => f.write_str("cut"),
            Self::Stall(Mood::StallRequests) => f.write_str("stall-requests"),
            Self::Stall(Mood::Stall) => f.write_str("stall-answers"),
            Self::Stall(_) => f.write_str("stall-both"),
            Self::Slow => f.write_str("slow"),
            Self::Away => f.write_str("away"),
            Self::Swallow(Request::Any) => f.write_str("swallow-any"),
            Self::Swallow(Request::Claim) => f.write_str("swallow-claim"),
            Self::Swallow(Request::Consume) => f.write_str("swallow-consume"),
            Self::Restart => f.write_str("restart"),
            Self::HungUp => f.write_str("hung-up"),
            Self::Locked => f.write_str("locked"),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conductor => "conductor",
            Self::Guard => "guard",
            Self::Both => "both",
        })
    }
}
