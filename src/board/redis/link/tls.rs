//! TLS to a Redis server, in the words of its troubles.

use std::{io, sync::Arc};

use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::problem::{Cause, Problem};
use crate::board::{
    net::tls::{self, Objection, Unusable},
    url::{Server, TlsFiles},
};

/// Puts TLS around a connection that was just made.
pub(in crate::board::redis) async fn secure(
    stream: TcpStream,
    server: &Server,
    files: &TlsFiles,
) -> Result<TlsStream<TcpStream>, Problem> {
    let trusted = tls::authorities(files.ca.as_deref())?;
    if trusted.is_empty() {
        return Err(Problem::new(server, Cause::NoAuthorities));
    }
    let config = tls::config(trusted, files.identity.as_ref())?;
    let secured = tls::handshake(stream, server, Arc::new(config)).await;
    secured.map_err(|error| {
        let cause = alert(&error, files.identity.is_some()).unwrap_or(Cause::NotTls);
        Problem::new(server, cause)
    })
}

/// Returns what TLS has against the connection; `None` if this is no error of TLS at all.
pub(in crate::board::redis) fn alert(error: &io::Error, has_identity: bool) -> Option<Cause> {
    Some(match tls::objection(error, has_identity)? {
        Objection::Certificate(flaw) => Cause::Certificate(flaw),
        Objection::NoCertificate => Cause::NoCertificate,
        Objection::RefusedCertificate(alert) => Cause::RefusedCertificate(alert),
        Objection::NoEntry(why) => Cause::NoEntry(why),
    })
}

impl From<Unusable> for Problem {
    fn from(file: Unusable) -> Self {
        Self::new(file.path.display(), Cause::File(file.why))
    }
}
