//! Opening a session: directly, and if that fails or takes too long, through the servers that answer.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use tokio::time;
use zookeeper_client::{Client, Connector, Error};

use super::{
    ZooKeeperClient,
    probe::{examine, most_informative},
    session::Session,
    tls::Tls,
};
use crate::{
    board::{
        BoardError,
        net::{
            cause::{ServerCause, ServerProblem},
            connect::{CONNECT_TIMEOUT, Deadline},
        },
        url::Server,
    },
    optional::or_never,
    secret::Secret,
};

/// How long the client tries alone before we probe each server.
const HEAD_START: Duration = Duration::from_millis(500);

/// How often a lone server is repeated in the client's list.
///
/// After each round through its list the client doubles its pause, until the session expires. A returning server
/// would go unnoticed for many seconds. Within a round it waits 50 ms longer for each place, so this is a round of 40
/// s with pauses of at most two.
const ROUND: usize = 40;

impl ZooKeeperClient {
    pub(super) async fn detour(
        &self,
        tls: Option<&Tls>,
        asked: Option<Duration>,
        deadline: Deadline,
    ) -> Result<Session, ServerProblem> {
        let (well, mut problems) = examine(&self.url.servers, tls, deadline).await;
        if !well.is_empty() {
            let attempt = or_never(asked.map(|asked| self.connect(&well, tls, asked)));
            let cause = match time::timeout_at(deadline.at, attempt).await {
                Ok(Ok(session)) => return Ok(session),
                Ok(Err(Error::AuthFailed)) => ServerCause::AccessDenied,
                Ok(Err(_)) | Err(_) => ServerCause::NoSession,
            };
            problems.extend(
                well.iter()
                    .map(|one| ServerProblem::new(one, cause.clone())),
            );
        }
        let all = most_informative(problems);
        Err(all.unwrap_or_else(|| self.problem(ServerCause::SessionRefused)))
    }

    /// Moves the session to another connection, which is dropped immediately: pending requests get no reply.
    pub(in crate::board::zookeeper) async fn move_session(
        &self,
        doing: &'static str,
    ) -> Result<(), BoardError> {
        let session = self.session(doing).await?;
        let connector = self.connector(session.timeout());
        let connector = connector.with_session(session.info()).with_detached();
        let servers: Vec<_> = self.url.servers.iter().map(Server::to_string).collect();
        let tls = self
            .tls()
            .map_err(|problem| problem.into_error(doing, self.name()))?;
        match dial(connector, &servers, tls.as_ref()).await {
            // The former connection has taken the session back.
            Ok(_) | Err(Error::NoHosts | Error::ConnectionLoss) => Ok(()),
            Err(error) => Err(session.refusal(doing, &error)),
        }
    }

    fn connector(&self, timeout: Duration) -> Connector {
        let connector = Client::connector()
            .with_session_timeout(timeout)
            // A starting server may accept a connection and never serve it. The client's own limit is two fifths of
            // the session timeout.
            .with_connection_timeout(CONNECT_TIMEOUT.min(timeout * 2 / 5))
            .with_fail_eagerly();
        let Some(user) = &self.url.user else {
            return connector;
        };
        let password = self.url.password.as_ref().map_or("", Secret::expose);
        let proof = format!("{user}:{password}");
        connector.with_auth("digest", proof.as_bytes())
    }

    pub(super) async fn connect(
        &self,
        servers: &[Server],
        tls: Option<&Tls>,
        timeout: Duration,
    ) -> Result<Session, Error> {
        let connector = self.connector(timeout);
        let mut servers: Vec<_> = servers.iter().map(Server::to_string).collect();
        // Among several servers, a silent one must not be tried twice while others would answer.
        if let ([server], Some(_)) = (servers.as_slice(), self.term.get()) {
            servers = vec![server.clone(); ROUND];
        }
        let client = dial(connector, &servers, tls).await?;
        let session = Session::new(client, Arc::clone(&self.about));
        session.ok_or(Error::BadArguments(&"invalid chroot"))
    }
}

async fn dial(
    connector: Connector,
    servers: &[String],
    tls: Option<&Tls>,
) -> Result<Client, Error> {
    let servers = servers.join(",");
    match tls {
        None => connector.connect(&servers).await,
        Some(tls) => {
            let connector = connector.with_tls(tls.options()?);
            connector.secure_connect(&servers).await
        }
    }
}

/// Also tries the detour once the direct way fails or takes too long. `None` if no server explains the failure.
pub(super) async fn first_of(
    straight: impl Future<Output = Result<Session, Error>>,
    detour: impl Future<Output = Result<Session, ServerProblem>>,
) -> Result<Option<Session>, ServerProblem> {
    let mut straight = pin!(straight);
    let mut detour = pin!(detour);
    let head_start = time::timeout(HEAD_START, &mut straight).await;
    let result = match head_start {
        Ok(result) => result,
        Err(_) => tokio::select! {
            result = straight => result,
            session = &mut detour => return session.map(Some),
        },
    };
    match result {
        Ok(session) => Ok(Some(session)),
        Err(Error::AuthFailed | Error::SessionExpired) => Ok(None),
        Err(_) => detour.await.map(Some),
    }
}
