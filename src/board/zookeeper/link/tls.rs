//! TLS to ZooKeeper: its error messages and the client's configuration.

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

use crate::board::{
    net::{
        cause::{ServerCause, ServerProblem},
        tls,
    },
    url::{Server, TlsFiles},
};

pub(crate) struct Tls {
    /// The client takes only PEM.
    authorities: String,
    certificate: Option<(String, String)>,
    config: Arc<ClientConfig>,
}

impl Tls {
    pub(crate) fn load(files: &TlsFiles, servers: &[Server]) -> Result<Self, ServerProblem> {
        static PROVIDER: Once = Once::new();
        // The client uses the process-wide provider; an earlier choice stays.
        PROVIDER.call_once(|| _ = aws_lc_rs::default_provider().install_default());
        for server in servers {
            // The client would panic.
            tls::name(server)
                .map_err(|_| ServerProblem::new(server, ServerCause::UncertifiableName))?;
        }
        let whom = servers.first().map(Server::to_string).unwrap_or_default();
        let config = tls::config(files, whom)?;
        Ok(Self {
            authorities: match &files.ca {
                Some(path) => read(path)?,
                None => system_authorities(),
            },
            certificate: match &files.identity {
                Some(own) => Some((read(&own.cert)?, read(&own.key)?)),
                None => None,
            },
            config,
        })
    }

    pub(crate) fn options(&self) -> Result<TlsOptions, zookeeper_client::Error> {
        let options = TlsOptions::new().with_pem_ca(&self.authorities)?;
        match &self.certificate {
            Some((certificate, key)) => options.with_pem_identity(certificate, key),
            None => Ok(options),
        }
    }

    pub(crate) async fn secure(
        &self,
        stream: TcpStream,
        server: &Server,
    ) -> Result<TlsStream<TcpStream>, ServerProblem> {
        tls::secure(stream, server, Arc::clone(&self.config)).await
    }

    pub(crate) fn alert(&self, error: &io::Error) -> Option<ServerCause> {
        tls::objection(error, self.certificate.is_some())
    }
}

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

fn read(path: &Path) -> Result<String, ServerProblem> {
    let text = String::from_utf8(tls::read(path)?);
    text.map_err(|_| tls::unusable(path, "the file is not in PEM format"))
}
