//! The cells of the matrix: a kind of board, and a kind of fault.

use std::fmt;

use crate::{conduct::Stage, support::ProxyMode};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Board {
    Embedded,
    Redis,
    ZooKeeper,
}

/// The processes of a worker that a signal reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Conductor,
    Guard,
    Both,
}

/// A request that the server performs without a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Any,
    Claim,
    Consume,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// No fault, for comparison.
    Nothing,
    Kill(Part),
    /// Suspends them for a part of a lease, or slightly longer than one.
    Stop(Part),
    Cut,
    /// The network delays data for as long.
    Stall(ProxyMode),
    /// Each reply is slow, as from a slow disk.
    Slow,
    /// The network is silent for longer than any lease, and sessions expire.
    Away,
    Swallow(Request),
    /// The server dies, and restarts with all acknowledged data.
    Restart,
    /// The server closes all connections.
    HungUp,
    /// Another process locks the board file.
    Locked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) board: Board,
    pub(super) fault: Fault,
}

/// Faults on any board.
const PROCESSES: [Fault; 7] = [
    Fault::Nothing,
    Fault::Kill(Part::Conductor),
    Fault::Kill(Part::Guard),
    Fault::Kill(Part::Both),
    Fault::Stop(Part::Conductor),
    Fault::Stop(Part::Guard),
    Fault::Stop(Part::Both),
];

/// Faults of servers and networks.
const NETWORK: [Fault; 10] = [
    Fault::Cut,
    Fault::Stall(ProxyMode::StallRequests),
    Fault::Stall(ProxyMode::Stall),
    Fault::Stall(ProxyMode::Halt),
    Fault::Slow,
    Fault::Away,
    Fault::Swallow(Request::Any),
    Fault::Swallow(Request::Claim),
    Fault::Swallow(Request::Consume),
    Fault::Restart,
];

impl Cell {
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

    /// Prepares a board of this kind; `None` without its server.
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
            Self::Stall(ProxyMode::StallRequests) => f.write_str("stall-requests"),
            Self::Stall(ProxyMode::Stall) => f.write_str("stall-answers"),
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
