//! The connection to ZooKeeper: one session, opened on demand and again after its end.
//!
//! Nothing is sent twice here. A caller that changes the board learns whether nothing happened or the reply was lost.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{
    sync::{Mutex, MutexGuard},
    task,
};
use zookeeper_client::{Acls, SessionState};

pub(super) use self::session::Session;
use self::{open::first_of, probe::examine, session::SessionContext, tls::Tls};
use crate::{
    board::{
        BoardError, Examined,
        net::{
            cause::{ServerCause, ServerProblem},
            certificate,
            connect::{CONNECT_TIMEOUT, Deadline},
        },
        url::{
            Server,
            zookeeper::{Acl, ZooKeeperUrl},
        },
    },
    secret::Secret,
};

pub(super) mod nodes;
mod open;
pub(super) mod probe;
pub(super) mod session;
#[cfg(test)]
mod tests;
pub(super) mod tls;
pub(super) mod transaction;

const FAREWELL: Duration = Duration::from_secs(2);

/// The session timeout to request while no claim depends on it.
const USUAL_SESSION: Duration = Duration::from_secs(10);

pub(super) struct ZooKeeperClient {
    url: ZooKeeperUrl,
    pub(super) about: Arc<SessionContext>,
    kept: Mutex<Option<OpenSession>>,
    /// The timeout requested when a claim or registration first depended on it.
    term: OnceLock<Duration>,
}

struct OpenSession {
    session: Session,
    asked: Duration,
    /// Whether ephemeral nodes may depend on it.
    has_dependents: bool,
}

impl ZooKeeperClient {
    /// Connects on first use. `password` takes precedence over the one in the URL; `op_timeout` bounds each
    /// operation.
    pub(super) fn new(url: &ZooKeeperUrl, password: Option<Secret>, op_timeout: Duration) -> Self {
        let mut url = url.clone();
        url.password = password.or(url.password);
        let servers: Vec<_> = url.servers.iter().map(Server::to_string).collect();
        let about = SessionContext {
            board: url.to_string(),
            servers: servers.join(","),
            user: url.user.clone(),
            path: url.path.clone(),
            chroot: url.chroot.clone(),
            acls: match url.acl {
                Acl::World => Acls::anyone_all(),
                Acl::Creator => Acls::creator_all(),
            },
            op_timeout,
        };
        Self {
            url,
            about: Arc::new(about),
            kept: Mutex::new(None),
            term: OnceLock::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.about.board
    }

    pub(super) fn servers(&self) -> String {
        let chroot = self.about.chroot.as_deref().unwrap_or_default();
        format!("{}{chroot}", self.about.servers)
    }

    pub(super) async fn look_at_certificates(&self, seen: &mut Examined) {
        if let Some(files) = &self.url.tls {
            certificate::examine(&self.url.servers, files, self.deadline(), seen).await;
        }
    }

    pub(super) async fn problems(&self) -> Vec<ServerProblem> {
        if self.url.servers.len() < 2 {
            return Vec::new();
        }
        let Ok(tls) = self.tls() else {
            return Vec::new();
        };
        let (_, problems) = examine(&self.url.servers, tls.as_ref(), self.deadline()).await;
        problems
    }

    pub(super) fn acls(&self) -> Acls<'static> {
        self.about.acls
    }

    pub(super) async fn session(&self, doing: &'static str) -> Result<Session, BoardError> {
        let deadline = self.deadline();
        let found = async {
            let mut kept = self.lock(deadline).await?;
            self.current(&mut kept, self.timeout(), deadline).await
        };
        let found: Result<_, ServerProblem> = found.await;
        found.map_err(|problem| problem.into_error(doing, self.name()))
    }

    /// Requests this timeout unless the URL states one. Replaces a session with another timeout unless it bears
    /// claims. Without a timeout any session will do.
    pub(super) async fn session_for_nodes(
        &self,
        doing: &'static str,
        timeout: Option<Duration>,
    ) -> Result<Session, BoardError> {
        let deadline = self.deadline();
        if let Some(timeout) = timeout {
            self.term.get_or_init(|| timeout);
        }
        let wanted = timeout.map(|timeout| self.url.session.unwrap_or(timeout));
        let found = async {
            let mut kept = self.lock(deadline).await?;
            let is_other = |kept: &OpenSession| wanted.is_some_and(|wanted| kept.asked != wanted);
            if let Some(old) = kept.take_if(|kept| is_other(kept) && !kept.has_dependents) {
                // The remaining users end it when they finish.
                let patience = if old.session.is_shared() {
                    Duration::ZERO
                } else {
                    FAREWELL
                };
                old.session.end(patience).await;
            }
            let wanted = wanted.unwrap_or_else(|| self.timeout());
            let session = self.current(&mut kept, wanted, deadline).await?;
            if let Some(kept) = kept.as_mut() {
                kept.has_dependents = true;
            }
            Ok(session)
        };
        let found: Result<_, ServerProblem> = found.await;
        found.map_err(|problem| problem.into_error(doing, self.name()))
    }

    fn timeout(&self) -> Duration {
        let term = self.term.get().copied();
        self.url.session.or(term).unwrap_or(USUAL_SESSION)
    }

    /// Opens a separate session for a subscription; it ends with its last clone.
    pub(super) async fn another(&self, doing: &'static str) -> Result<Session, BoardError> {
        let asked = self.url.session.unwrap_or(USUAL_SESSION);
        let opened = self.open(&mut None, asked, self.deadline()).await;
        opened.map_err(|problem| problem.into_error(doing, self.name()))
    }

    /// Waits for the servers. The ephemeral nodes are then gone, unless a clone of the [`Session`] remains.
    pub(super) async fn close(&self) {
        if let Some(kept) = self.kept.lock().await.take() {
            kept.session.end(FAREWELL).await;
        }
    }

    fn deadline(&self) -> Deadline {
        Deadline::after(CONNECT_TIMEOUT.min(self.about.op_timeout))
    }

    async fn lock(
        &self,
        deadline: Deadline,
    ) -> Result<MutexGuard<'_, Option<OpenSession>>, ServerProblem> {
        // Noticing a hang-up takes one turn of the runtime and one of the session. An operation sent before would be
        // lost, with an unknown outcome.
        task::yield_now().await;
        task::yield_now().await;
        let late = |limit| self.problem(ServerCause::Silent(limit));
        deadline
            .bound(late, async { Ok(self.kept.lock().await) })
            .await
    }

    /// Returns the open session once it is connected; opens another one if it has ended.
    async fn current(
        &self,
        kept: &mut Option<OpenSession>,
        wanted: Duration,
        deadline: Deadline,
    ) -> Result<Session, ServerProblem> {
        let Some(old) = kept.as_ref() else {
            return self.open(kept, wanted, deadline).await;
        };
        let session = old.session.clone();
        match session.state() {
            SessionState::SyncConnected | SessionState::ConnectedReadOnly => return Ok(session),
            SessionState::Disconnected => {}
            _ => {
                *kept = None;
                return self.open(kept, wanted, deadline).await;
            }
        }
        let (asked, has_dependents) = (old.asked, old.has_dependents);
        let tls = self.tls()?;
        // The client pauses between attempts. If no ephemeral node depends on the session, open another one.
        let detour = self.detour(tls.as_ref(), (!has_dependents).then_some(asked), deadline);
        let id = session.id();
        match first_of(session.connected(), detour).await? {
            Some(session) if session.id() == id => Ok(session),
            Some(session) => {
                *kept = Some(OpenSession {
                    session: session.clone(),
                    asked,
                    has_dependents,
                });
                Ok(session)
            }
            None => {
                *kept = None;
                self.open(kept, wanted, deadline).await
            }
        }
    }

    async fn open(
        &self,
        kept: &mut Option<OpenSession>,
        asked: Duration,
        deadline: Deadline,
    ) -> Result<Session, ServerProblem> {
        if let (Some(user), None) = (&self.url.user, &self.url.password) {
            let whom = format!("the user {user}");
            return Err(ServerProblem::new(whom, ServerCause::UserWithoutPassword));
        }
        let tls = self.tls()?;
        let straight = self.connect(&self.url.servers, tls.as_ref(), asked);
        let detour = self.detour(tls.as_ref(), Some(asked), deadline);
        let session = first_of(straight, detour).await?;
        let session = session.ok_or_else(|| self.problem(ServerCause::AccessDenied))?;
        *kept = Some(OpenSession {
            session: session.clone(),
            asked,
            has_dependents: false,
        });
        Ok(session)
    }

    fn tls(&self) -> Result<Option<Tls>, ServerProblem> {
        let load = |files| Tls::load(files, &self.url.servers);
        self.url.tls.as_ref().map(load).transpose()
    }

    fn problem(&self, cause: ServerCause) -> ServerProblem {
        ServerProblem::new(&self.about.servers, cause)
    }
}

impl fmt::Debug for ZooKeeperClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ZooKeeperClient")
            .field(&self.name())
            .finish()
    }
}
