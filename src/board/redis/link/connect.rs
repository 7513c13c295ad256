//! A stream to one server: by its name, by its socket, in TLS, and never longer than is allowed.

use std::{fmt, io, net::SocketAddr, path::PathBuf, time::Duration};

use rustix::net::sockopt;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream, lookup_host},
    time,
};

use super::{
    deadline::Deadline,
    problem::{Cause, Problem},
    tls,
};
use crate::{
    board::{
        net::failure::reason,
        url::{Server, TlsFiles},
    },
    secret::Secret,
};

/// What bytes go through, whatever carries them.
pub(in crate::board::redis) trait Stream:
    AsyncRead + AsyncWrite + Unpin + Send
{
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A server, and what gets us in.
#[derive(Debug, Clone)]
pub(in crate::board::redis) struct Endpoint {
    pub(in crate::board::redis) place: Place,
    /// `None` goes without TLS.
    pub(in crate::board::redis) tls: Option<TlsFiles>,
    pub(in crate::board::redis) user: Option<String>,
    pub(in crate::board::redis) password: Option<Secret>,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::board::redis) enum Place {
    Tcp(Server),
    Unix(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(server) => server.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl Endpoint {
    /// Opens a stream to the server, in TLS if that is wanted.
    pub(in crate::board::redis) async fn connect(
        &self,
        deadline: Deadline,
    ) -> Result<Box<dyn Stream>, Problem> {
        match &self.place {
            Place::Tcp(server) => {
                let stream = connect_tcp(server, deadline).await?;
                match &self.tls {
                    None => Ok(Box::new(stream)),
                    Some(files) => {
                        let late = |limit| Problem::new(server, Cause::SilentInTls(limit));
                        let secured = tls::secure(stream, server, files);
                        Ok(Box::new(deadline.bound(late, secured).await?))
                    }
                }
            }
            Place::Unix(path) => match UnixStream::connect(path).await {
                Ok(stream) => Ok(Box::new(stream)),
                Err(error) => Err(self.problem(explain(&error))),
            },
        }
    }

    /// Puts a problem down to this server.
    pub(in crate::board::redis) fn problem(&self, cause: Cause) -> Problem {
        Problem::new(&self.place, cause)
    }
}

/// Connects to a server by any of its addresses.
pub(in crate::board::redis) async fn connect_tcp(
    server: &Server,
    deadline: Deadline,
) -> Result<TcpStream, Problem> {
    let late = |limit| Problem::new(server, Cause::Silent(limit));
    deadline.bound(late, try_all(server, deadline)).await
}

async fn try_all(server: &Server, deadline: Deadline) -> Result<TcpStream, Problem> {
    let unresolved = |reason: &str| {
        let reason = reason.trim_start_matches("failed to lookup address information: ");
        let cause = Cause::Unresolved(reason.to_owned());
        Problem::new(format!("the name {}", server.host), cause)
    };
    let addresses: Vec<_> = lookup_host((server.host.as_str(), server.port))
        .await
        .map_err(|error| unresolved(&error.to_string()))?
        .collect();
    let mut last = unresolved("it has no address");
    for (tried, address) in addresses.iter().enumerate() {
        let patience = deadline.share(addresses.len() - tried);
        let cause = match time::timeout(patience, try_one(*address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => explain(&error),
            Err(_) => Cause::Silent(deadline.length),
        };
        last = Problem::new(server, cause);
    }
    Err(last)
}

async fn try_one(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    // Whoever only listens would otherwise never learn that the machine at the other end is gone.
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, Duration::from_secs(10))?;
    sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepcnt(&stream, 3)?;
    Ok(stream)
}

fn explain(error: &io::Error) -> Cause {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Cause::RefusedConnection,
        io::ErrorKind::NotFound => Cause::NoSocket,
        io::ErrorKind::PermissionDenied => Cause::ForbiddenSocket,
        _ => Cause::NoWay(reason(error)),
    }
}
