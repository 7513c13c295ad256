//! A ZooKeeper session. Every operation uses one; ephemeral nodes live as long as it does.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use tokio::time;
use zookeeper_client::{
    Acls, CreateMode, Error, SessionId, SessionInfo, SessionState, StateWatcher,
};

use crate::{
    board::{
        BoardError,
        error::NodeConflict,
        net::{
            cause::{ServerCause, ServerProblem},
            failure::RequestFailure,
        },
    },
    suggest::Hint,
};

#[derive(Debug)]
pub(crate) struct SessionContext {
    pub(crate) board: String,
    pub(crate) servers: String,
    pub(crate) user: Option<String>,
    pub(crate) path: String,
    pub(crate) chroot: Option<String>,
    pub(crate) acls: Acls<'static>,
    pub(crate) op_timeout: Duration,
}

/// Ends with its last clone, or when the servers miss its heartbeats.
///
/// If the process ends before [`ZooKeeperClient::close`](super::ZooKeeperClient::close) completes, the servers keep the
/// session and its ephemeral nodes until the timeout.
#[derive(Clone)]
pub(crate) struct Session {
    root: zookeeper_client::Client,
    /// It sends when a method is called, not when the future is awaited. While it reconnects, it queues requests.
    pub(crate) client: zookeeper_client::Client,
    about: Arc<SessionContext>,
    shared: Arc<()>,
}

impl Session {
    /// Takes a client connected without the chroot; `None` if the chroot is no valid path.
    pub(crate) fn new(root: zookeeper_client::Client, about: Arc<SessionContext>) -> Option<Self> {
        let client = match &about.chroot {
            Some(chroot) => root.clone().chroot(chroot.clone()).ok()?,
            None => root.clone(),
        };
        let shared = Arc::new(());
        Some(Self {
            root,
            client,
            about,
            shared,
        })
    }

    /// Returns the client without the chroot, and the path with it.
    pub(crate) fn on_server(&self, path: &str) -> (&zookeeper_client::Client, String) {
        let chroot = self.about.chroot.as_deref().unwrap_or_default();
        (&self.root, format!("{chroot}{path}"))
    }

    pub(crate) fn depth(&self) -> usize {
        self.about.chroot.as_ref().map_or(0, String::len)
    }

    pub(crate) fn id(&self) -> SessionId {
        self.client.session_id()
    }

    /// Returns the state with which another connection resumes the session.
    pub(crate) fn info(&self) -> SessionInfo {
        self.root.session().clone()
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.client.session_timeout()
    }

    /// The inner error is the server's answer about nodes, for the caller to judge. The outer error means no answer
    /// or no permission.
    pub(crate) async fn ask<T, E: Clone + Into<Error>>(
        &self,
        doing: &'static str,
        operation: impl Future<Output = Result<T, E>>,
    ) -> Result<Result<T, E>, RequestFailure> {
        let limit = self.about.op_timeout;
        let Ok(answer) = time::timeout(limit, operation).await else {
            return Err(RequestFailure::Lost(
                self.error(doing, ServerCause::Silent(limit)),
            ));
        };
        let Err(refusal) = answer else {
            return Ok(answer);
        };
        match refusal.clone().into() {
            // The loss may precede or follow the server's read of the request.
            Error::ConnectionLoss | Error::Custom(_) => Err(RequestFailure::Lost(
                self.error(doing, ServerCause::ConnectionLost),
            )),
            cause @ (Error::UnmarshalError { .. } | Error::UnexpectedError(_) | Error::Timeout) => {
                Err(RequestFailure::Lost(self.refusal(doing, &cause)))
            }
            cause if is_about_nodes(&cause) => Ok(Err(refusal)),
            cause => Err(RequestFailure::NotSent(self.refusal(doing, &cause))),
        }
    }

    /// Like [`ask`](Self::ask), for a caller to whom every refusal is an error.
    pub(crate) async fn get<T>(
        &self,
        doing: &'static str,
        operation: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, RequestFailure> {
        let answer = self.ask(doing, operation).await?;
        answer.map_err(|error| RequestFailure::NotSent(self.refusal(doing, &error)))
    }

    pub(crate) fn refusal(&self, doing: &'static str, error: &Error) -> BoardError {
        let cause = match error {
            Error::NoAuth => self.forbidden(doing),
            Error::InvalidAcl => ServerCause::UnknownCreator,
            Error::AuthFailed => ServerCause::AccessDenied,
            Error::SessionExpired | Error::SessionMoved | Error::ClientClosed => {
                ServerCause::SessionEnded
            }
            Error::Throttled => ServerCause::Throttled,
            Error::NotReadOnly => ServerCause::ReadOnly,
            Error::QuotaExceeded => ServerCause::Quota,
            Error::Unimplemented => ServerCause::unusable(
                "a ZooKeeper server older than 3.6 cannot store a board",
                "use ZooKeeper 3.6 or later",
            ),
            Error::ConnectionLoss | Error::Custom(_) => ServerCause::ConnectionLost,
            error => ServerCause::Message(error.to_string()),
        };
        self.error(doing, cause)
    }

    pub(crate) fn occupied(&self, path: &str, mut below: Vec<String>) -> BoardError {
        below.sort_unstable();
        // Use the full path: other programs do not know our chroot.
        let node = format!("{}{path}", self.about.chroot.as_deref().unwrap_or_default());
        let first = below.first().map_or("", String::as_str);
        let first = format!("{node}/{first}");
        let text = match (&self.about.user, below.len()) {
            (None, 1) => "run `zkCli.sh -server {} deleteall {}`, then try again",
            (None, _) => {
                "run `zkCli.sh -server {} deleteall {}` for the first node, likewise for the \
                 others, then try again"
            }
            (Some(_), 1) => {
                "in `zkCli.sh -server {}`, enter `addauth digest USER:PASSWORD`, then \
                 `deleteall` {}; then try again"
            }
            (Some(_), _) => {
                "in `zkCli.sh -server {}`, enter `addauth digest USER:PASSWORD`, then \
                 `deleteall` {} for the first node, likewise for the others; then try again"
            }
        };
        let conflict = NodeConflict::Children {
            below: named(&below),
            remedy: Box::new(Hint::new(text, [&[&self.about.servers], &[&first]])),
            node,
        };
        conflict.into()
    }

    pub(crate) async fn ensure_chroot(&self, doing: &'static str) -> Result<(), RequestFailure> {
        let Some(chroot) = &self.about.chroot else {
            return Ok(());
        };
        let options = CreateMode::Persistent.with_acls(self.about.acls);
        self.get(doing, self.root.mkdir(chroot, &options)).await
    }

    pub(crate) fn state(&self) -> SessionState {
        self.client.state()
    }

    pub(crate) async fn connected(self) -> Result<Self, Error> {
        let mut states = self.client.state_watcher();
        let mut state = self.state();
        loop {
            match state {
                SessionState::SyncConnected | SessionState::ConnectedReadOnly => return Ok(self),
                SessionState::Disconnected => state = states.changed().await,
                _ => return Err(Error::SessionExpired),
            }
        }
    }

    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }

    pub(crate) async fn end(self, patience: Duration) {
        let mut states: StateWatcher = self.client.state_watcher();
        if self.state().is_terminated() {
            return;
        }
        drop(self);
        let ended = async { while !states.changed().await.is_terminated() {} };
        let _ = time::timeout(patience, ended).await;
    }

    fn forbidden(&self, doing: &'static str) -> ServerCause {
        let (user, hint) = match &self.about.user {
            Some(user) => (
                format!("the user {user}"),
                ": the password is wrong, or another user owns the nodes",
            ),
            None => (
                "anonymous clients".to_owned(),
                ": the board URL names no user",
            ),
        };
        ServerCause::ForbiddenNodes {
            user,
            doing,
            path: self.about.path.clone(),
            hint,
        }
    }

    fn error(&self, doing: &'static str, cause: ServerCause) -> BoardError {
        ServerProblem::new(&self.about.servers, cause).into_error(doing, &self.about.board)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&self.id()).finish()
    }
}

const MAX_NAMED_NODES: usize = 5;

fn named(nodes: &[String]) -> String {
    let first = nodes[..nodes.len().min(MAX_NAMED_NODES)].join(", ");
    match nodes.len().saturating_sub(MAX_NAMED_NODES) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn is_about_nodes(error: &Error) -> bool {
    matches!(
        error,
        Error::NoNode
            | Error::NodeExists
            | Error::BadVersion
            | Error::NotEmpty
            | Error::NoChildrenForEphemerals
            | Error::RuntimeInconsistent
            | Error::UnexpectedErrorCode(_)
            | Error::BadArguments(_)
    )
}
