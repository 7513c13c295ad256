//! TLS to a server: trust, client identity and the meaning of alerts. Always verified.

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

use super::cause::{ServerCause, ServerProblem};
use crate::{
    board::{
        error::reason,
        url::{Server, TlsFiles, TlsIdentity},
    },
    bounded_read::regular_file,
};

/// How long a TLS server may take to show itself.
const TEST: Duration = Duration::from_millis(500);

/// Trusts the authorities of a file, or else those of the system.
pub(crate) fn config(
    files: &TlsFiles,
    whom: impl fmt::Display,
) -> Result<Arc<ClientConfig>, ServerProblem> {
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
        return Err(ServerProblem::new(whom, ServerCause::NoAuthorities));
    }
    let config = config_of(trusted);
    let Some(TlsIdentity { cert, key }) = &files.identity else {
        return Ok(Arc::new(config.with_no_client_auth()));
    };
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|_| unusable(key, "the file contains no key"))?;
    let config = config.with_client_auth_cert(certificates(cert)?, secret);
    config.map(Arc::new).map_err(|error| unusable(cert, error))
}

pub(crate) fn system_roots() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}

fn config_of(trusted: RootCertStore) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has ciphers for each version")
        .with_root_certificates(trusted)
}

pub(crate) fn unusable(path: &Path, why: impl ToString) -> ServerProblem {
    ServerProblem::new(path.display(), ServerCause::File(why.to_string()))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ServerProblem> {
    regular_file(path).map_err(|error| unusable(path, reason(&error)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServerProblem> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&read(path)?)
        .collect::<Result<_, _>>()
        .map_err(|_| unusable(path, "the file is not in PEM format"))?;
    if certificates.is_empty() {
        return Err(unusable(path, "the file contains no certificate"));
    }
    Ok(certificates)
}

pub(crate) async fn secure(
    stream: TcpStream,
    server: &Server,
    config: Arc<ClientConfig>,
) -> Result<TlsStream<TcpStream>, ServerProblem> {
    let has_identity = config.client_auth_cert_resolver.has_certs();
    let secured = handshake(stream, server, config).await;
    secured.map_err(|error| {
        let obstacle = objection(&error, has_identity).unwrap_or(ServerCause::NoTls);
        ServerProblem::new(server, obstacle)
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

/// Detects whether a server that ignores plain text speaks TLS.
pub(crate) async fn is_spoken(stream: TcpStream, server: &Server) -> bool {
    // With no trusted authority, the handshake ends at the certificate.
    let config = Arc::new(config_of(RootCertStore::empty()).with_no_client_auth());
    let shaken = time::timeout(TEST, handshake(stream, server, config)).await;
    match shaken {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => objection(&error, false).is_some(),
        // A server without TLS may read our bytes as an unfinished line, and wait.
        Err(_) => false,
    }
}

/// Returns the TLS problem of a connection; `None` if TLS did not cause the error.
pub(crate) fn objection(error: &io::Error, has_identity: bool) -> Option<ServerCause> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(error) => ServerCause::Certificate(flaw(error)),
        // Servers send different alerts if the client certificate is missing.
        Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::HandshakeFailure
            | AlertDescription::BadCertificate,
        ) if !has_identity => ServerCause::NoClientCertificate,
        Error::AlertReceived(alert) if has_identity => {
            ServerCause::ClientCertificate(format!("{alert:?}"))
        }
        Error::AlertReceived(alert) => {
            ServerCause::AccessDeniedBecause(format!("TLS alert {alert:?}"))
        }
        Error::PeerIncompatible(why) => ServerCause::AccessDeniedBecause(format!("TLS: {why:?}")),
        _ => return None,
    })
}

/// Extracts the name from the library's format: `DnsName("example.org")`.
fn bare(name: &str) -> &str {
    let inner = name
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

fn flaw(error: &CertificateError) -> String {
    match error {
        // An authority with the name of a trusted one causes the latter.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "from an untrusted authority".into()
        }
        CertificateError::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            let names: Vec<_> = presented.iter().map(|name| bare(name)).collect();
            format!("for other host names: {}", names.join(", "))
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "for other host names".into()
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
