//! What is special about a board on Redis.

use std::{sync::Arc, time::Duration};

use super::{Redis, testing::Server};
use crate::board::conformance::{Subject, keeps_its_promises};

const PATIENCE: Duration = Duration::from_secs(5);

fn open() -> Option<(Subject, Server)> {
    let server = Server::start(&[])?;
    let url = super::testing::redis_url(&format!("redis://127.0.0.1:{}", server.port()));
    Some((Arc::new(Redis::new(&url, None, PATIENCE)), server))
}

keeps_its_promises!(open);
