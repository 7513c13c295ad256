//! Logbooks in PostgreSQL.

use std::{sync::Arc, time::Duration};

use tokio::task::{self, AbortHandle};
use tokio_postgres::{
    Client, Config, Error, NoTls, config::SslMode, error::SqlState, types::ToSql,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{Access, LogbookError, LogbookResult, TextRow, url::DatabaseServer};
use crate::board::net::tls;

pub(super) struct Postgres {
    client: Client,
    carrier: AbortHandle,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.carrier.abort();
    }
}

impl Postgres {
    pub(super) async fn open(
        server: &DatabaseServer,
        op_timeout: Duration,
        access: Access,
    ) -> LogbookResult<Self> {
        let mut config = Config::new();
        match &server.socket {
            Some(directory) => config.host_path(directory),
            None => config.host(&server.host),
        };
        if let Some(user) = &server.user {
            config.user(user);
        }
        if let Some(password) = &server.password {
            config.password(password.expose());
        }
        config
            .port(server.port)
            .dbname(&server.database)
            .application_name("jobboard")
            .connect_timeout(op_timeout)
            .options(format!(
                "-c default_transaction_read_only={} -c statement_timeout={}",
                if access == Access::Read { "on" } else { "off" },
                op_timeout.as_millis()
            ));
        let Some(tls) = &server.tls else {
            config.ssl_mode(SslMode::Disable);
            let (client, connection) = config.connect(NoTls).await.map_err(problem)?;
            let carrier = task::spawn(connection).abort_handle();
            return Ok(Self { client, carrier });
        };
        config.ssl_mode(SslMode::Require);
        let settings = tls::config(tls, &server.host);
        let settings =
            settings.map_err(|problem| LogbookError::Unreachable(problem.to_string()))?;
        let settings = Arc::unwrap_or_clone(settings);
        let connected = config.connect(MakeRustlsConnect::new(settings)).await;
        let (client, connection) = connected.map_err(problem)?;
        let carrier = task::spawn(connection).abort_handle();
        Ok(Self { client, carrier })
    }

    pub(super) async fn rows(
        &self,
        question: &str,
        values: &[&str],
    ) -> LogbookResult<Vec<TextRow>> {
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|it| it as _).collect();
        let rows = self.client.query(&numbered(question), &values).await;
        let texts = |row: &tokio_postgres::Row| {
            let texts = (0..row.len()).map(|at| row.try_get(at));
            texts.collect::<Result<_, _>>().map_err(problem)
        };
        rows.map_err(problem)?.iter().map(texts).collect()
    }
}

fn numbered(question: &str) -> String {
    let mut parts = question.split('?');
    let first = parts.next().unwrap_or_default().to_owned();
    let numbers = parts
        .enumerate()
        .map(|(at, part)| format!("${}{part}", at + 1));
    [first].into_iter().chain(numbers).collect()
}

fn problem(error: Error) -> LogbookError {
    let Some(reply) = error.as_db_error() else {
        let mut text = error.to_string();
        if let Some(cause) = std::error::Error::source(&error) {
            text = format!("{text}: {cause}");
        }
        return LogbookError::Unreachable(text);
    };
    let (text, code) = (reply.message().to_owned(), reply.code());
    let denied = [
        &SqlState::INSUFFICIENT_PRIVILEGE,
        &SqlState::INVALID_PASSWORD,
        &SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
    ];
    let schema = [
        &SqlState::UNDEFINED_TABLE,
        &SqlState::UNDEFINED_COLUMN,
        &SqlState::INVALID_CATALOG_NAME,
    ];
    match code {
        code if denied.contains(&code) => LogbookError::Denied(text),
        code if schema.contains(&code) => LogbookError::Schema(text),
        _ => LogbookError::Refused(text),
    }
}
