//! Logbooks in MySQL or MariaDB.

use std::time::Duration;

use mysql_async::{
    ClientIdentity, Conn, Error, IoError, OptsBuilder, Params, SslOpts, Value, prelude::Queryable,
};
use tokio::sync::Mutex;
use tokio_rustls::rustls::{RootCertStore, pki_types::CertificateDer};

use super::{Access, LogbookError, LogbookResult, TextRow, url::DatabaseServer};
use crate::board::{
    net::{cause::ServerCause, tls::system_roots},
    url::TlsFiles,
};

pub(super) struct Mysql(Mutex<Conn>);

impl Mysql {
    pub(super) async fn open(
        server: &DatabaseServer,
        op_timeout: Duration,
        access: Access,
    ) -> LogbookResult<Self> {
        let socket = server.socket.as_ref().map(|it| it.display().to_string());
        let password = server.password.as_ref().map(|it| it.expose().to_owned());
        let ssl = server.tls.as_ref();
        let ssl = ssl.map(|files| tls(server, files)).transpose()?;
        let options = OptsBuilder::default()
            .ip_or_hostname(&server.host)
            .tcp_port(server.port)
            .prefer_socket(false)
            .socket(socket)
            .user(server.user.as_ref())
            .pass(password)
            .db_name(Some(&server.database))
            .ssl_opts(ssl);
        let mut connection = Conn::new(options).await.map_err(problem)?;
        if access == Access::Read {
            connection
                .query_drop("SET SESSION TRANSACTION READ ONLY")
                .await
                .map_err(problem)?;
        }
        // MySQL and MariaDB each know one of these settings; we enforce the timeout anyway.
        let milliseconds = op_timeout.as_millis();
        let mysql = format!("SET SESSION max_execution_time = {milliseconds}");
        if connection.query_drop(mysql).await.is_err() {
            let mariadb = format!(
                "SET SESSION max_statement_time = {}",
                op_timeout.as_secs_f64()
            );
            let _ = connection.query_drop(mariadb).await;
        }
        Ok(Self(Mutex::new(connection)))
    }

    pub(super) async fn rows(
        &self,
        question: &str,
        values: &[&str],
    ) -> LogbookResult<Vec<TextRow>> {
        let values = values.iter().map(|value| Value::from(*value)).collect();
        let mut connection = self.0.lock().await;
        let rows = connection.exec(question, Params::Positional(values)).await;
        let rows: Vec<mysql_async::Row> = rows.map_err(problem)?;
        Ok(rows.into_iter().map(texts).collect())
    }
}

fn texts(row: mysql_async::Row) -> TextRow {
    let text = |value| match value {
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        _ => None,
    };
    row.unwrap().into_iter().map(text).collect()
}

/// Applies the TLS files of the URL. The server's certificate is always verified.
fn tls(server: &DatabaseServer, files: &TlsFiles) -> LogbookResult<SslOpts> {
    let identity = files.identity.as_ref();
    let identity =
        identity.map(|it| ClientIdentity::new(it.cert.clone().into(), it.key.clone().into()));
    let is_readable = |it: &CertificateDer<'_>| RootCertStore::empty().add(it.to_owned()).is_ok();
    let trusted: Vec<_> = match &files.ca {
        Some(ca) => vec![ca.clone().into()],
        None => {
            let roots = system_roots().into_iter().filter(is_readable);
            roots.map(|it| it.to_vec().into()).collect()
        }
    };
    if trusted.is_empty() {
        let problem = format!("{} {}", server.host, ServerCause::NoAuthorities);
        return Err(LogbookError::Unreachable(problem));
    }
    let options = SslOpts::default().with_client_identity(identity);
    Ok(options
        .with_root_certs(trusted)
        .with_disable_built_in_roots(true))
}

fn problem(error: Error) -> LogbookError {
    match error {
        Error::Server(error) => match error.code {
            // The user, the database, a table, a column, a privilege.
            1044 | 1045 | 1142 | 1143 | 1227 | 1698 => LogbookError::Denied(error.message),
            1049 | 1054 | 1146 => LogbookError::Schema(error.message),
            _ => LogbookError::Refused(error.message),
        },
        Error::Io(IoError::Io(error)) => LogbookError::Unreachable(error.to_string()),
        other => LogbookError::Unreachable(other.to_string()),
    }
}
