//! TLS to a server: whom we trust, who we are, and what an alert means. Always verified.

use std::{fmt, io, path::Path, sync::Arc, time::Duration};

use tokio::{net::TcpStream, time};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        AlertDescription, CertificateError, ClientConfig, ConfigBuilder, Error, RootCertStore,
        client::WantsClientCert,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    },
};

use super::{
    failure::reason,
    problem::{Obstacle, Problem, Reason},
};
use crate::{
    board::url::{Identity, Server, TlsFiles},
    reading::regular_file,
};

/// How long a server that speaks TLS may take to show it.
const TEST: Duration = Duration::from_millis(500);

/// Returns how we speak TLS with somebody.
///
/// We trust those in a file, or else those whom the system trusts.
pub(crate) fn config<C: Reason>(
    files: &TlsFiles,
    whom: impl fmt::Display,
) -> Result<Arc<ClientConfig>, Problem<C>> {
    let mut trusted = RootCertStore::empty();
    match &files.ca {
        Some(path) => {
            for certificate in certificates(path)? {
                let added = trusted.add(certificate);
                added.map_err(|error| unusable(path, error))?;
            }
        }
        None => {
            trusted.add_parsable_certificates(system_roots());
        }
    }
    if trusted.is_empty() {
        return Err(Problem::new(whom, Obstacle::NoAuthorities));
    }
    let config = config_of(trusted);
    let Some(Identity { cert, key }) = &files.identity else {
        return Ok(Arc::new(config.with_no_client_auth()));
    };
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|_| unusable(key, "the file contains no key"))?;
    let config = config.with_client_auth_cert(certificates(cert)?, secret);
    config.map(Arc::new).map_err(|error| unusable(cert, error))
}

/// Returns whom the system trusts; some of it may be unreadable, where the rest still counts.
pub(crate) fn system_roots() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}

fn config_of(trusted: RootCertStore) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has ciphers for each version")
        .with_root_certificates(trusted)
}

pub(crate) fn unusable<C: Reason>(path: &Path, why: impl ToString) -> Problem<C> {
    Problem::new(path.display(), Obstacle::File(why.to_string()))
}

pub(crate) fn read<C: Reason>(path: &Path) -> Result<Vec<u8>, Problem<C>> {
    regular_file(path).map_err(|error| unusable(path, reason(&error)))
}

fn certificates<C: Reason>(path: &Path) -> Result<Vec<CertificateDer<'static>>, Problem<C>> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&read(path)?)
        .collect::<Result<_, _>>()
        .map_err(|_| unusable(path, "the file is not in PEM format"))?;
    if certificates.is_empty() {
        return Err(unusable(path, "the file contains no certificate"));
    }
    Ok(certificates)
}

pub(crate) async fn secure<C: Reason>(
    stream: TcpStream,
    server: &Server,
    config: Arc<ClientConfig>,
) -> Result<TlsStream<TcpStream>, Problem<C>> {
    let has_identity = config.client_auth_cert_resolver.has_certs();
    let secured = handshake(stream, server, config).await;
    secured.map_err(|error| {
        let obstacle = objection(&error, has_identity).unwrap_or(Obstacle::NotTls);
        Problem::new(server, obstacle)
    })
}

async fn handshake(
    stream: TcpStream,
    server: &Server,
    config: Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let name = name(server)?;
    TlsConnector::from(config).connect(name, stream).await
}

pub(crate) fn name(server: &Server) -> io::Result<ServerName<'static>> {
    ServerName::try_from(server.host.clone()).map_err(io::Error::other)
}

/// Finds out whether a server that does not answer plain text speaks TLS instead.
pub(crate) async fn is_spoken(stream: TcpStream, server: &Server) -> bool {
    // Trusting nobody: the handshake gets as far as the certificate, and never further.
    let config = Arc::new(config_of(RootCertStore::empty()).with_no_client_auth());
    let shaken = time::timeout(TEST, handshake(stream, server, config)).await;
    // One that does not may take what we say for the beginning of a line, and wait for its end.
    shaken.is_ok_and(|result| !result.is_err_and(|error| objection(&error, false).is_none()))
}

/// Returns what TLS has against the connection; `None` if this is no error of TLS at all.
pub(crate) fn objection(error: &io::Error, has_identity: bool) -> Option<Obstacle> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(error) => Obstacle::Certificate(flaw(error)),
        // Servers differ in what they say to somebody who shows no certificate.
        Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::HandshakeFailure
            | AlertDescription::BadCertificate,
        ) if !has_identity => Obstacle::NoCertificate,
        Error::AlertReceived(alert) if has_identity => {
            Obstacle::RefusedCertificate(format!("{alert:?}"))
        }
        Error::AlertReceived(alert) => Obstacle::NoEntry(format!("TLS alert {alert:?}")),
        Error::PeerIncompatible(why) => Obstacle::NoEntry(format!("TLS: {why:?}")),
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
            "from an untrusted authority".into()
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
        error => format!("that is not acceptable: {error}"),
    }
}
