//! Connecting to a server by any of its addresses, within a deadline.

use std::{future::Future, io, net::SocketAddr, time::Duration};

use rustix::net::sockopt;
use tokio::{
    net::{TcpStream, lookup_host},
    time::{self, Instant},
};

use super::cause::{ServerCause, ServerProblem};
use crate::board::url::Server;

/// Time limit for connecting, or for Sentinels to name the server.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) length: Duration,
}

impl Deadline {
    pub(crate) fn after(length: Duration) -> Self {
        Self {
            at: Instant::now() + length,
            length,
        }
    }

    /// Bounds a wait; `late` creates the timeout error.
    pub(crate) async fn bound<T, E>(
        self,
        late: impl FnOnce(Duration) -> E,
        future: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        time::timeout_at(self.at, future)
            .await
            .unwrap_or_else(|_| Err(late(self.length)))
    }

    /// Returns an equal part of the remaining time, for one of several attempts.
    fn share(self, parts: usize) -> Duration {
        let left = self.at.saturating_duration_since(Instant::now());
        left / u32::try_from(parts.max(1)).unwrap_or(u32::MAX)
    }
}

pub(crate) async fn connect(
    server: &Server,
    deadline: Deadline,
) -> Result<TcpStream, ServerProblem> {
    let late = |limit| ServerProblem::new(server, ServerCause::Silent(limit));
    deadline.bound(late, try_all(server, deadline)).await
}

async fn try_all(server: &Server, deadline: Deadline) -> Result<TcpStream, ServerProblem> {
    let unresolved = |reason: &str| {
        let reason = reason.trim_start_matches("failed to lookup address information: ");
        let cause = ServerCause::Unresolved(reason.to_owned());
        ServerProblem::new(format!("the name {}", server.host), cause)
    };
    let addresses: Vec<_> = lookup_host((server.host.as_str(), server.port))
        .await
        .map_err(|error| unresolved(&error.to_string()))?
        .collect();
    let mut last = unresolved("the name has no address");
    for (tried, address) in addresses.iter().enumerate() {
        let patience = deadline.share(addresses.len() - tried);
        let obstacle = match time::timeout(patience, try_one(*address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error.into(),
            Err(_) => ServerCause::Silent(deadline.length),
        };
        last = ServerProblem::new(server, obstacle);
    }
    Err(last)
}

async fn try_one(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    // A subscriber would otherwise never notice that the other machine is gone.
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, Duration::from_secs(10))?;
    sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepcnt(&stream, 3)?;
    Ok(stream)
}
