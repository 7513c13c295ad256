//! The common interface of all test servers.

use serde_json::{Value, json};

use super::{Peer, Server};

/// A separate board on a server.
pub(crate) trait Host: Sized {
    const KIND: &str;

    /// TaskFlow's listing order of ten jobs, numbered from 0, posted with the priorities very low, normal, high, low
    /// and very high, twice.
    const TASKFLOWS_ORDER: [usize; 10];

    fn start() -> Option<Self>;

    fn board(&self) -> String;

    /// Returns TaskFlow's configuration for the board.
    fn conf(&self) -> Value;

    /// Returns all stored data, byte by byte.
    fn everything(&self, peer: &mut Peer) -> Value;

    /// Whether TaskFlow turns the first posting into the second by trashing it.
    fn is_as_trashed(before: &str, trashed: &str) -> bool;

    fn posting(&self, peer: &mut Peer, location: Location, job: &str) -> String;
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Location {
    Board,
    Trash,
}

impl Host for Server {
    const KIND: &str = "Redis";

    /// The most urgent first, the newest first among equals.
    const TASKFLOWS_ORDER: [usize; 10] = [9, 4, 7, 2, 6, 1, 8, 3, 5, 0];

    fn start() -> Option<Self> {
        Self::start()
    }

    fn board(&self) -> String {
        self.url("")
    }

    fn conf(&self) -> Value {
        self.conf("taskflow")
    }

    fn everything(&self, _: &mut Peer) -> Value {
        json!(self.everything())
    }

    fn is_as_trashed(before: &str, trashed: &str) -> bool {
        before == trashed
    }

    fn posting(&self, _: &mut Peer, location: Location, job: &str) -> String {
        let key = match location {
            Location::Board => "taskflow:listings",
            Location::Trash => "taskflow:trash",
        };
        self.run(&["HGET", key, job])
    }
}
