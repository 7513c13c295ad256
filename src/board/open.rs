//! From the URL of a board to the board; the only file that names the backends.

use std::{sync::Arc, time::Duration};

use super::{
    Board, BoardError, Result,
    embedded::{Durability, Embedded, Options},
    redis::Redis,
    url::BoardUrl,
};
use crate::secret::Secret;

/// Returns the board at a URL; embedded ones are opened when they are first needed.
///
/// `patience` is how long one operation may take.
pub(crate) fn open(
    url: &BoardUrl,
    patience: Duration,
    password: Option<Secret>,
) -> Result<Arc<dyn Board>> {
    match url {
        BoardUrl::Embedded(url) => Ok(Arc::new(Embedded::new(Options {
            path: url.path.clone(),
            durability: if url.sync_full {
                Durability::Power
            } else {
                Durability::Process
            },
            patience,
        }))),
        BoardUrl::Redis(url) => Ok(Arc::new(Redis::new(url, password, patience))),
        BoardUrl::ZooKeeper(_) => Err(unsupported("ZooKeeper")),
    }
}

fn unsupported(board: &'static str) -> BoardError {
    BoardError::Unsupported {
        board,
        operation: "be reached by this release of jobboard",
        hint: Some("use a board on Redis, or an embedded one: sqlite:PATH"),
    }
}
