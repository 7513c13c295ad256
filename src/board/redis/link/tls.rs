//! TLS to a Redis server, in the words of its troubles.

use std::{io, sync::Arc};

use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::{
    connect::{Deadline, connect_tcp},
    problem::{Problem, Trouble},
};
use crate::board::{
    net::tls::{self, Objection, Unusable},
    url::{Server, TlsFiles},
};

/// Puts TLS around a connection that was just made.
pub(in crate::board::redis) async fn secure(
    stream: TcpStream,
    server: &Server,
    files: &TlsFiles,
) -> Result<TlsStream<TcpStream>, Trouble> {
    let trusted = tls::authorities(files.ca.as_deref())?;
    if trusted.is_empty() {
        return Err(Trouble::new(server, Problem::NoAuthorities));
    }
    let config = tls::config(trusted, files.identity.as_ref())?;
    let secured = tls::handshake(stream, server, Arc::new(config)).await;
    secured.map_err(|error| {
        let problem = alert(&error, files.identity.is_some()).unwrap_or(Problem::NotTls);
        Trouble::new(server, problem)
    })
}

/// Finds out whether a server that hangs up on plain text speaks TLS instead.
pub(in crate::board::redis) async fn is_spoken(server: &Server, deadline: Deadline) -> bool {
    let attempt = async {
        let stream = connect_tcp(server, deadline).await?;
        Ok(tls::is_spoken(stream, server).await)
    };
    let late = |limit| Trouble::new(server, Problem::SilentInTls(limit));
    deadline.bound(late, attempt).await.unwrap_or(false)
}

/// Returns what TLS has against the connection; `None` if this is no error of TLS at all.
pub(in crate::board::redis) fn alert(error: &io::Error, has_identity: bool) -> Option<Problem> {
    Some(match tls::objection(error, has_identity)? {
        Objection::Certificate(flaw) => Problem::Certificate(flaw),
        Objection::NoCertificate => Problem::NoCertificate,
        Objection::RefusedCertificate(alert) => Problem::RefusedCertificate(alert),
        Objection::NoEntry(why) => Problem::NoEntry(why),
    })
}

impl From<Unusable> for Trouble {
    fn from(file: Unusable) -> Self {
        Self::new(file.path.display(), Problem::File(file.why))
    }
}
