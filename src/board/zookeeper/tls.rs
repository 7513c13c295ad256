//! TLS to ZooKeeper: whom we trust, who we are, and what an alert means. Always verified.

use std::{
    fmt::Write as _,
    io,
    path::Path,
    sync::{Arc, Once},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
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
use zookeeper_client::TlsOptions;

use super::trouble::{Problem, Trouble};
use crate::board::url::{Identity, Server, TlsFiles};

/// Whom we trust and who we are, read and checked.
pub(super) struct Tls {
    /// In PEM form, in which alone the client takes them.
    authorities: String,
    certificate: Option<(String, String)>,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Reads the files that a URL names, or else whom the system trusts.
    pub(super) fn load(files: &TlsFiles, servers: &[Server]) -> Result<Self, Trouble> {
        set_provider();
        for server in servers {
            // The client would panic.
            name(server).map_err(|_| Trouble::new(server, Problem::NoName))?;
        }
        let authorities = match &files.ca {
            Some(path) => read(path)?,
            None => system_authorities(),
        };
        let mut trusted = RootCertStore::empty();
        match &files.ca {
            Some(path) => {
                for certificate in certificates(path, &authorities)? {
                    let added = trusted.add(certificate);
                    added.map_err(|error| unusable(path, error))?;
                }
            }
            None => {
                let all = CertificateDer::pem_slice_iter(authorities.as_bytes());
                trusted.add_parsable_certificates(all.flatten());
            }
        }
        if trusted.is_empty() {
            let whom = servers.first().map(Server::to_string).unwrap_or_default();
            return Err(Trouble::new(whom, Problem::NoAuthorities));
        }
        let certificate = files.identity.as_ref().map(read_identity).transpose()?;
        let config = config(trusted, files.identity.as_ref(), certificate.as_ref())?;
        Ok(Self {
            authorities,
            certificate,
            config: Arc::new(config),
        })
    }

    /// Returns the same for the client that keeps the session; it verifies names, too.
    pub(super) fn options(&self) -> Result<TlsOptions, zookeeper_client::Error> {
        let options = TlsOptions::new().with_pem_ca(&self.authorities)?;
        match &self.certificate {
            Some((certificate, key)) => options.with_pem_identity(certificate, key),
            None => Ok(options),
        }
    }

    /// Puts TLS around a connection that was just made.
    pub(super) async fn secure(
        &self,
        stream: TcpStream,
        server: &Server,
    ) -> Result<TlsStream<TcpStream>, Problem> {
        let secured = handshake(stream, server, Arc::clone(&self.config)).await;
        secured.map_err(|error| self.alert(&error).unwrap_or(Problem::NotTls))
    }

    /// Returns what TLS has against the connection; `None` if this is no error of TLS at all.
    pub(super) fn alert(&self, error: &io::Error) -> Option<Problem> {
        alert(error, self.certificate.is_some())
    }
}

/// Finds out whether a server that does not answer plain text speaks TLS instead.
pub(super) async fn is_spoken(stream: TcpStream, server: &Server) -> bool {
    // Trusting nobody: the handshake gets as far as the certificate, and never further.
    let Ok(config) = config(RootCertStore::empty(), None, None) else {
        return false;
    };
    let result = handshake(stream, server, Arc::new(config)).await;
    !result.is_err_and(|error| alert(&error, false).is_none())
}

/// The client takes its cryptography from the process; who set another one before has his way.
fn set_provider() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let _ = aws_lc_rs::default_provider().install_default();
    });
}

fn name(server: &Server) -> io::Result<ServerName<'static>> {
    ServerName::try_from(server.host.clone()).map_err(io::Error::other)
}

async fn handshake(
    stream: TcpStream,
    server: &Server,
    config: Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let name = name(server)?;
    TlsConnector::from(config).connect(name, stream).await
}

fn config(
    trusted: RootCertStore,
    files: Option<&Identity>,
    identity: Option<&(String, String)>,
) -> Result<ClientConfig, Trouble> {
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has ciphers for each version")
        .with_root_certificates(trusted);
    let (Some(files), Some((certificate, key))) = (files, identity) else {
        return Ok(config.with_no_client_auth());
    };
    let secret = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|_| unusable(&files.key, "it holds no key"))?;
    config
        .with_client_auth_cert(certificates(&files.cert, certificate)?, secret)
        .map_err(|error| unusable(&files.cert, error))
}

fn read_identity(files: &Identity) -> Result<(String, String), Trouble> {
    Ok((read(&files.cert)?, read(&files.key)?))
}

/// Returns those whom the system trusts; some of what lies about there may be unreadable.
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

fn certificates(path: &Path, pem: &str) -> Result<Vec<CertificateDer<'static>>, Trouble> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|_| unusable(path, "it is not in PEM form"))?;
    if certificates.is_empty() {
        return Err(unusable(path, "it holds no certificate"));
    }
    Ok(certificates)
}

fn read(path: &Path) -> Result<String, Trouble> {
    let bytes = std::fs::read(path).map_err(|error| unusable(path, reason(&error)))?;
    String::from_utf8(bytes).map_err(|_| unusable(path, "it is not in PEM form"))
}

fn unusable(path: &Path, why: impl ToString) -> Trouble {
    Trouble::new(path.display(), Problem::File(why.to_string()))
}

/// Returns what the system says, without its number for it.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

fn alert(error: &io::Error, has_identity: bool) -> Option<Problem> {
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
        Error::AlertReceived(alert) => Problem::NoEntryBecause(format!("TLS alert {alert:?}")),
        Error::PeerIncompatible(why) => Problem::NoEntryBecause(format!("TLS: {why:?}")),
        _ => return None,
    })
}

/// Says what is wrong with a certificate; reads on after "a certificate".
fn objection(error: &CertificateError) -> String {
    match error {
        // The latter is what an authority gets that bears the name of one that is trusted.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "from an authority that is not trusted here".into()
        }
        CertificateError::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            format!("for other names: {}", presented.join(", "))
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
