//! TLS to a server: whom we trust, who we are, and what an alert means. Always verified.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{net::TcpStream, time};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        AlertDescription, CertificateError, ClientConfig, Error, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    },
};

use super::failure::reason;
use crate::{
    board::url::{Identity, Server},
    reading::regular_file,
};

/// How long a server that speaks TLS may take to show it.
const TEST: Duration = Duration::from_millis(500);

/// A file that does not hold what it should, and why.
#[derive(Debug)]
pub(in crate::board) struct Unusable {
    pub(in crate::board) path: PathBuf,
    pub(in crate::board) why: String,
}

impl Unusable {
    pub(in crate::board) fn new(path: &Path, why: impl ToString) -> Self {
        Self {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}

/// What one side has against the other, once they speak TLS.
#[derive(Debug)]
pub(in crate::board) enum Objection {
    /// We do not accept the certificate of the server; reads on after "a certificate".
    Certificate(String),
    NoCertificate,
    RefusedCertificate(String),
    NoEntry(String),
}

/// Returns whom to trust: those in a file, or else those whom the system trusts; perhaps nobody.
pub(in crate::board) fn authorities(ca: Option<&Path>) -> Result<RootCertStore, Unusable> {
    let mut trusted = RootCertStore::empty();
    match ca {
        Some(path) => {
            for certificate in certificates(path)? {
                let added = trusted.add(certificate);
                added.map_err(|error| Unusable::new(path, error))?;
            }
        }
        None => {
            // Some of what a system has lying about may be unreadable; the rest still counts.
            trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(trusted)
}

/// Returns how we speak TLS with a server.
pub(in crate::board) fn config(
    trusted: RootCertStore,
    identity: Option<&Identity>,
) -> Result<ClientConfig, Unusable> {
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has ciphers for each version")
        .with_root_certificates(trusted);
    let Some(Identity { cert, key }) = identity else {
        return Ok(config.with_no_client_auth());
    };
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|_| Unusable::new(key, "it holds no key"))?;
    config
        .with_client_auth_cert(certificates(cert)?, secret)
        .map_err(|error| Unusable::new(cert, error))
}

/// Reads a file of certificates or keys.
pub(in crate::board) fn read(path: &Path) -> Result<Vec<u8>, Unusable> {
    regular_file(path).map_err(|error| Unusable::new(path, reason(&error)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&read(path)?)
        .collect::<Result<_, _>>()
        .map_err(|_| Unusable::new(path, "it is not in PEM form"))?;
    if certificates.is_empty() {
        return Err(Unusable::new(path, "it holds no certificate"));
    }
    Ok(certificates)
}

/// Puts TLS around a connection that was just made.
pub(in crate::board) async fn handshake(
    stream: TcpStream,
    server: &Server,
    config: Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let name = name(server)?;
    TlsConnector::from(config).connect(name, stream).await
}

/// Returns the name that the certificate of a server has to be for.
pub(in crate::board) fn name(server: &Server) -> io::Result<ServerName<'static>> {
    ServerName::try_from(server.host.clone()).map_err(io::Error::other)
}

/// Finds out whether a server that does not answer plain text speaks TLS instead.
pub(in crate::board) async fn is_spoken(stream: TcpStream, server: &Server) -> bool {
    // Trusting nobody: the handshake gets as far as the certificate, and never further.
    let Ok(config) = config(RootCertStore::empty(), None) else {
        return false;
    };
    let shaken = time::timeout(TEST, handshake(stream, server, Arc::new(config))).await;
    // One that does not may take what we say for the beginning of a line, and wait for its end.
    shaken.is_ok_and(|result| !result.is_err_and(|error| objection(&error, false).is_none()))
}

/// Returns what TLS has against the connection; `None` if this is no error of TLS at all.
pub(in crate::board) fn objection(error: &io::Error, has_identity: bool) -> Option<Objection> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(error) => Objection::Certificate(flaw(error)),
        // Servers differ in what they say to somebody who shows no certificate.
        Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::HandshakeFailure
            | AlertDescription::BadCertificate,
        ) if !has_identity => Objection::NoCertificate,
        Error::AlertReceived(alert) if has_identity => {
            Objection::RefusedCertificate(format!("{alert:?}"))
        }
        Error::AlertReceived(alert) => Objection::NoEntry(format!("TLS alert {alert:?}")),
        Error::PeerIncompatible(why) => Objection::NoEntry(format!("TLS: {why:?}")),
        _ => return None,
    })
}

/// Takes a name out of the way in which the library writes it: `DnsName("example.org")`.
fn bare(name: &str) -> &str {
    let inner = name
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

/// Says what is wrong with a certificate; reads on after "a certificate".
fn flaw(error: &CertificateError) -> String {
    match error {
        // The latter is what an authority gets that bears the name of one that is trusted.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "from an authority that is not trusted here".into()
        }
        CertificateError::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            let names: Vec<_> = presented.iter().map(|name| bare(name)).collect();
            format!("for other names: {}", names.join(", "))
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "for other names".into()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "that has expired".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "that is not valid yet".into()
        }
        error => format!("that is not accepted: {error}"),
    }
}
