//! Opens the board at a URL; the only file that names the backends.

use std::{sync::Arc, time::Duration};

use super::{
    Result,
    embedded::{Embedded, FileOptions},
    redis::Redis,
    scratch::Testable,
    url::BoardUrl,
    wire::posting::Limit,
    zookeeper::ZooKeeper,
};
use crate::secret::Secret;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Size limit for details; ZooKeeper cannot store much more than the default.
    pub(crate) max_details: u64,
    pub(crate) history: u32,
}

/// Returns the board at a URL; embedded ones are opened on first use.
pub(crate) fn open(
    url: &BoardUrl,
    op_timeout: Duration,
    password: Option<Secret>,
    bounds: Bounds,
) -> Result<Arc<dyn Testable>> {
    let limit = Limit::of(bounds.max_details);
    match url {
        BoardUrl::Embedded(url) => Ok(Arc::new(Embedded::new(FileOptions {
            path: url.path.clone(),
            makes_directory: url.makes_directory,
            sync_full: url.sync_full,
            op_timeout,
            limit,
            history: bounds.history,
        }))),
        BoardUrl::Redis(url) => Ok(Arc::new(Redis::new(
            url,
            password,
            op_timeout,
            limit,
            bounds.history,
        ))),
        BoardUrl::ZooKeeper(url) => {
            let board = ZooKeeper::new(url, password, op_timeout, bounds.history);
            Ok(Arc::new(board.with_limit(limit)))
        }
    }
}
