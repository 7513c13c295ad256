//! How all servers of a board are, asked at once.

use std::time::Duration;

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::{self, Instant};

use super::{probe::probe, problem::Problem, tls::Tls};
use crate::board::{net::connect::Deadline, url::Server};

/// How long to wait for more servers that are well, once one is.
const GATHERING: Duration = Duration::from_millis(100);

pub(crate) async fn examine(
    servers: &[Server],
    tls: Option<&Tls>,
    deadline: Deadline,
) -> (Vec<Server>, Vec<Problem>) {
    let probes = servers.iter().enumerate();
    let mut probes: FuturesUnordered<_> = probes
        .map(|(place, server)| async move { (place, server, probe(server, tls, deadline).await) })
        .collect();
    let (mut well, mut problems) = (Vec::new(), Vec::new());
    let mut end = deadline.at + GATHERING;
    while let Ok(Some((place, server, result))) = time::timeout_at(end, probes.next()).await {
        match result {
            Ok(()) => {
                well.push(server.clone());
                end = end.min(Instant::now() + GATHERING);
            }
            Err(problem) => problems.push((place, problem)),
        }
    }
    problems.sort_by_key(|(place, _)| *place);
    let problems = problems.into_iter().map(|(_, problem)| problem);
    (well, problems.collect())
}
