//! Having a session opened: straight on, and where that fails or takes too long by way of those servers that are well.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use tokio::time;
use zookeeper_client::{Connector, Error};

use super::{
    Client, PATIENCE,
    probe::examine,
    problem::{Cause, Problem, of_all},
    session::Session,
    tls::Tls,
};
use crate::{
    board::{BoardError, net::connect::Deadline, url::Server},
    secret::Secret,
};

/// How long the client may try by itself before we ask each server what is the matter.
const HEAD_START: Duration = Duration::from_millis(500);

/// How often a server without others stands in the list of those that the client tries.
///
/// After each round through its list the client waits twice as long as before, until the session
/// is over: a server that is back would be left alone for many seconds. Within a round it waits
/// 50 ms longer for each place, so that this is a round of 40 s with pauses of two at most.
const ROUND: usize = 40;

impl Client {
    /// Opens a session with the servers that are well. Without a timeout it only finds out why there is no
    /// session.
    pub(super) async fn detour(
        &self,
        tls: Option<&Tls>,
        asked: Option<Duration>,
        deadline: Deadline,
    ) -> Result<Session, Problem> {
        let (well, mut problems) = examine(&self.url.servers, tls, deadline).await;
        if !well.is_empty() {
            let attempt = async {
                match asked {
                    Some(asked) => self.connect(&well, tls, asked).await,
                    None => std::future::pending().await,
                }
            };
            let cause = match time::timeout_at(deadline.at, attempt).await {
                Ok(Ok(session)) => return Ok(session),
                Ok(Err(Error::AuthFailed)) => Cause::NoEntry,
                Ok(Err(_)) | Err(_) => Cause::NoSession,
            };
            problems.extend(well.iter().map(|one| Problem::new(one, cause.clone())));
        }
        let all = of_all(problems);
        Err(all.unwrap_or_else(|| self.problem(Cause::Closed)))
    }

    /// Has the servers take a session over another connection, which is dropped at once: what was under
    /// way on the one before has no answer.
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
        let moved = async {
            match &tls {
                None => connector.connect(&servers.join(",")).await,
                Some(tls) => {
                    let connector = connector.with_tls(tls.options()?);
                    connector.secure_connect(&servers.join(",")).await
                }
            }
        };
        match moved.await {
            // The one before has connected again, and taken it back.
            Ok(_) | Err(Error::NoHosts | Error::ConnectionLoss) => Ok(()),
            Err(error) => Err(session.refusal(doing, &error)),
        }
    }

    fn connector(&self, timeout: Duration) -> Connector {
        let connector = zookeeper_client::Client::connector()
            .with_session_timeout(timeout)
            // A server that starts may take a connection and never look at it. By itself the client waits
            // for it as long as for one in a session's life: two fifths of that.
            .with_connection_timeout(PATIENCE.min(timeout * 2 / 5))
            .with_fail_eagerly();
        let Some(user) = &self.url.user else {
            return connector;
        };
        let password = self.url.password.as_ref().map_or("", Secret::expose);
        let proof = format!("{user}:{password}");
        connector.with_auth("digest", proof.as_bytes())
    }

    /// Has the client open a session; it tells nothing of why it could not.
    pub(super) async fn connect(
        &self,
        servers: &[Server],
        tls: Option<&Tls>,
        timeout: Duration,
    ) -> Result<Session, Error> {
        let connector = self.connector(timeout);
        let mut servers: Vec<_> = servers.iter().map(Server::to_string).collect();
        // Of several, one that is silent must not be tried twice while others would answer.
        if let ([server], Some(_)) = (servers.as_slice(), self.term.get()) {
            servers = vec![server.clone(); ROUND];
        }
        let servers = servers.join(",");
        let client = match tls {
            None => connector.connect(&servers).await?,
            Some(tls) => {
                let connector = connector.with_tls(tls.options()?);
                connector.secure_connect(&servers).await?
            }
        };
        let session = Session::new(client, Arc::clone(&self.about));
        session.ok_or(Error::BadArguments(&"invalid chroot"))
    }
}

/// Tries the detour as well once the direct way fails or takes too long. `None` if no server can say why it
/// failed.
pub(super) async fn first_of(
    straight: impl Future<Output = Result<Session, Error>>,
    detour: impl Future<Output = Result<Session, Problem>>,
) -> Result<Option<Session>, Problem> {
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
