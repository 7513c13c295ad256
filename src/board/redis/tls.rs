//! TLS to a Redis server: whom we trust, who we are, and what an alert means. Always verified.

use std::{io, path::Path, sync::Arc};

use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        AlertDescription, CertificateError, ClientConfig, Error, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    },
};

use super::{
    connect::{Deadline, connect_tcp, reason},
    trouble::{Problem, Trouble},
};
use crate::board::url::{Identity, Server, TlsFiles};

/// Puts TLS around a connection that was just made.
pub(super) async fn secure(
    stream: TcpStream,
    server: &Server,
    files: &TlsFiles,
) -> Result<TlsStream<TcpStream>, Trouble> {
    let config = config(authorities(server, files)?, files.identity.as_ref())?;
    handshake(stream, server, config).await.map_err(|error| {
        let problem = alert(&error, files.identity.is_some()).unwrap_or(Problem::NotTls);
        Trouble::new(server, problem)
    })
}

/// Finds out whether a server that hangs up on plain text speaks TLS instead.
pub(super) async fn is_spoken(server: &Server, deadline: Deadline) -> bool {
    let attempt = async {
        let stream = connect_tcp(server, deadline).await?;
        // Trusting nobody: the handshake gets as far as the certificate, and never further.
        let config = config(RootCertStore::empty(), None)?;
        let result = handshake(stream, server, config).await;
        Ok(!result.is_err_and(|error| alert(&error, false).is_none()))
    };
    let late = |limit| Trouble::new(server, Problem::SilentInTls(limit));
    deadline.bound(late, attempt).await.unwrap_or(false)
}

async fn handshake(
    stream: TcpStream,
    server: &Server,
    config: ClientConfig,
) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(server.host.clone()).map_err(io::Error::other)?;
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

fn config(trusted: RootCertStore, identity: Option<&Identity>) -> Result<ClientConfig, Trouble> {
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has ciphers for each version")
        .with_root_certificates(trusted);
    let Some(Identity { cert, key }) = identity else {
        return Ok(config.with_no_client_auth());
    };
    let secret =
        PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| unusable(key, "it holds no key"))?;
    config
        .with_client_auth_cert(certificates(cert)?, secret)
        .map_err(|error| unusable(cert, error))
}

fn unusable(path: &Path, why: impl ToString) -> Trouble {
    Trouble::new(path.display(), Problem::File(why.to_string()))
}

/// Returns whom to trust: those in the file that was given, or else those whom the system trusts.
fn authorities(server: &Server, files: &TlsFiles) -> Result<RootCertStore, Trouble> {
    let mut trusted = RootCertStore::empty();
    match &files.ca {
        Some(path) => {
            for certificate in certificates(path)? {
                trusted
                    .add(certificate)
                    .map_err(|error| unusable(path, error))?;
            }
        }
        None => {
            // Some of what a system has lying about may be unreadable; the rest still counts.
            trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if trusted.is_empty() {
                return Err(Trouble::new(server, Problem::NoAuthorities));
            }
        }
    }
    Ok(trusted)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Trouble> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&read(path)?)
        .collect::<Result<_, _>>()
        .map_err(|_| unusable(path, "it is not in PEM form"))?;
    if certificates.is_empty() {
        return Err(unusable(path, "it holds no certificate"));
    }
    Ok(certificates)
}

fn read(path: &Path) -> Result<Vec<u8>, Trouble> {
    std::fs::read(path).map_err(|error| unusable(path, reason(&error)))
}

/// Returns what TLS has against the connection; `None` if this is no error of TLS at all.
pub(super) fn alert(error: &io::Error, has_identity: bool) -> Option<Problem> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(error) => Problem::Certificate(objection(error)),
        // Servers differ in what they say to somebody who shows no certificate.
        Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::HandshakeFailure
            | AlertDescription::BadCertificate,
        ) if !has_identity => Problem::NoCertificate,
        Error::AlertReceived(alert) if has_identity => {
            Problem::RefusedCertificate(format!("{alert:?}"))
        }
        Error::AlertReceived(alert) => Problem::NoEntry(format!("TLS alert {alert:?}")),
        Error::PeerIncompatible(why) => Problem::NoEntry(format!("TLS: {why:?}")),
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
fn objection(error: &CertificateError) -> String {
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
