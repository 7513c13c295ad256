//! TLS to ZooKeeper, in the words of its troubles, and in the form in which its client takes it.

use std::{
    fmt::Write as _,
    io,
    path::Path,
    sync::{Arc, Once},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tokio::net::TcpStream;
use tokio_rustls::{
    client::TlsStream,
    rustls::{ClientConfig, crypto::aws_lc_rs},
};
use zookeeper_client::TlsOptions;

use super::problem::{Cause, Problem};
use crate::board::{
    net::tls::{self, Objection, Unusable},
    url::{Identity, Server, TlsFiles},
};

pub(in crate::board::zookeeper) use crate::board::net::tls::is_spoken;

/// Whom we trust and who we are, read and checked.
pub(in crate::board::zookeeper) struct Tls {
    /// In PEM form, in which alone the client takes them.
    authorities: String,
    certificate: Option<(String, String)>,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Reads the files that a URL names, or else whom the system trusts.
    pub(in crate::board::zookeeper) fn load(
        files: &TlsFiles,
        servers: &[Server],
    ) -> Result<Self, Problem> {
        set_provider();
        for server in servers {
            // The client would panic.
            tls::name(server).map_err(|_| Problem::new(server, Cause::NoName))?;
        }
        let trusted = tls::authorities(files.ca.as_deref())?;
        if trusted.is_empty() {
            let whom = servers.first().map(Server::to_string).unwrap_or_default();
            return Err(Problem::new(whom, Cause::NoAuthorities));
        }
        let config = tls::config(trusted, files.identity.as_ref())?;
        Ok(Self {
            authorities: match &files.ca {
                Some(path) => read(path)?,
                None => system_authorities(),
            },
            certificate: files.identity.as_ref().map(read_identity).transpose()?,
            config: Arc::new(config),
        })
    }

    /// Returns the same for the client that keeps the session; it verifies names, too.
    pub(in crate::board::zookeeper) fn options(
        &self,
    ) -> Result<TlsOptions, zookeeper_client::Error> {
        let options = TlsOptions::new().with_pem_ca(&self.authorities)?;
        match &self.certificate {
            Some((certificate, key)) => options.with_pem_identity(certificate, key),
            None => Ok(options),
        }
    }

    /// Puts TLS around a connection that was just made.
    pub(in crate::board::zookeeper) async fn secure(
        &self,
        stream: TcpStream,
        server: &Server,
    ) -> Result<TlsStream<TcpStream>, Cause> {
        let secured = tls::handshake(stream, server, Arc::clone(&self.config)).await;
        secured.map_err(|error| self.alert(&error).unwrap_or(Cause::NotTls))
    }

    /// Returns what TLS has against the connection; `None` if this is no error of TLS at all.
    pub(in crate::board::zookeeper) fn alert(&self, error: &io::Error) -> Option<Cause> {
        Some(match tls::objection(error, self.certificate.is_some())? {
            Objection::Certificate(flaw) => Cause::Certificate(flaw),
            Objection::NoCertificate => Cause::NoCertificate,
            Objection::RefusedCertificate(alert) => Cause::RefusedCertificate(alert),
            Objection::NoEntry(why) => Cause::NoEntryBecause(why),
        })
    }
}

/// The client takes its cryptography from the process; who set another one before has his way.
fn set_provider() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let _ = aws_lc_rs::default_provider().install_default();
    });
}

fn read_identity(files: &Identity) -> Result<(String, String), Unusable> {
    Ok((read(&files.cert)?, read(&files.key)?))
}

/// Returns those whom the system trusts.
fn system_authorities() -> String {
    let mut pem = String::new();
    for certificate in rustls_native_certs::load_native_certs().certs {
        let text = STANDARD.encode(&certificate);
        writeln!(
            pem,
            "-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----"
        )
        .expect("a String takes everything");
    }
    pem
}

fn read(path: &Path) -> Result<String, Unusable> {
    let text = String::from_utf8(tls::read(path)?);
    text.map_err(|_| Unusable::new(path, "it is not in PEM form"))
}

impl From<Unusable> for Problem {
    fn from(file: Unusable) -> Self {
        Self::new(file.path.display(), Cause::File(file.why))
    }
}
