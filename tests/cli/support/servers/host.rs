//! What the tests ask of servers of all kinds.

use serde_json::{Value, json};

use super::{Peer, Server};

/// A board on a server, which a test has for itself.
pub(crate) trait Host: Sized {
    /// What the server is called.
    const KIND: &str;

    /// The order in which TaskFlow lists ten jobs, numbered from 0, which were posted with the
    /// priorities very low, normal, high, low and very high, and these once more.
    const TASKFLOWS_ORDER: [usize; 10];

    /// Starts the server if it is to be started.
    fn start() -> Option<Self>;

    /// Returns the URL of the board.
    fn board(&self) -> String;

    /// Returns how TaskFlow is told of the same board.
    fn conf(&self) -> Value;

    /// Returns all that is stored, byte by byte.
    fn everything(&self, peer: &mut Peer) -> Value;

    /// Returns whether TaskFlow makes the second posting of the first one by trashing it.
    fn is_as_trashed(before: &str, trashed: &str) -> bool;

    /// Returns the posting of a job as it is stored.
    fn posting(&self, peer: &mut Peer, shelf: Shelf, job: &str) -> String;
}

/// Where a job is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shelf {
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

    fn posting(&self, _: &mut Peer, shelf: Shelf, job: &str) -> String {
        let key = match shelf {
            Shelf::Board => "taskflow:listings",
            Shelf::Trash => "taskflow:trash",
        };
        self.run(&["HGET", key, job])
    }
}
