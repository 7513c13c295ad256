//! The connection to a Redis server: opened on demand, and again after a failure.
//!
//! Commands that may change the board are never sent twice here. The caller learns whether an error means that
//! nothing was sent or that the reply was lost.

use std::{future::Future, sync::Arc, time::Duration};

use redis::{Cmd, FromRedisValue, Pipeline, ServerError, Value};
use tokio::{sync::Mutex, task};

pub(super) use self::listener::PushListener;
use self::{
    connection::Connection,
    endpoint::{Endpoint, ServerPlace},
    pushes::{Pusher, pushes},
    refusal::{meaning, meaning_in_script},
};
pub(super) use crate::board::net::failure::RequestFailure;
use crate::{
    board::{
        BoardError, Examined,
        net::{
            cause::{ServerCause, ServerProblem},
            certificate,
            connect::{CONNECT_TIMEOUT, Deadline},
        },
        url::redis::{Address, RedisUrl, Sentinel},
        wire::posting::Limit,
    },
    secret::Secret,
    suggest::Suggestion,
};

pub(super) mod bounded;
pub(super) mod connection;
pub(super) mod endpoint;
pub(super) mod greet;
mod listener;
mod pushes;
pub(super) mod refusal;
pub(super) mod sentinel;

#[cfg(test)]
mod tests;

/// The verb of a request in error messages. A request with the verb `READ` is sent again if its reply is lost.
pub(super) const READ: &str = "read";
pub(super) const WRITE: &str = "write to";

pub(super) type CommandReply = Result<Value, ServerError>;

/// Noticing a hang-up takes one turn of the runtime and one of the connection.
const TURNS_TO_LOOK: usize = 2;

pub(super) struct RedisClient {
    name: String,
    pub(super) url: RedisUrl,
    op_timeout: Duration,
    pub(super) limit: Limit,
    connection: Mutex<Option<Arc<Connection>>>,
}

impl RedisClient {
    /// Connects on first use. `password` takes precedence over the one in the URL; `op_timeout` bounds each exchange.
    pub(super) fn new(url: &RedisUrl, password: Option<Secret>, op_timeout: Duration) -> Self {
        let mut url = url.clone();
        url.password = password.or(url.password);
        Self {
            name: url.to_string(),
            url,
            op_timeout,
            limit: Limit::USUAL,
            connection: Mutex::new(None),
        }
    }

    /// Returns the display name of the board, without its password.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) async fn look_at_certificate(&self, seen: &mut Examined) {
        if let (Address::Tcp(server), Some(files)) = (&self.url.address, &self.url.tls) {
            let deadline = Deadline::after(self.connect_timeout());
            certificate::examine(std::slice::from_ref(server), files, deadline, seen).await;
        }
    }

    pub(super) async fn ask<T: FromRedisValue>(
        &self,
        doing: &'static str,
        command: &Cmd,
    ) -> Result<T, BoardError> {
        Ok(self.ask_on(doing, command).await?.0)
    }

    pub(super) async fn read<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, BoardError> {
        self.ask(READ, command).await
    }

    pub(super) async fn ask_on<T: FromRedisValue>(
        &self,
        doing: &'static str,
        command: &Cmd,
    ) -> Result<(T, Arc<Connection>), BoardError> {
        let (mut answers, connection) = self.exchange_on(doing, &single(command)).await?;
        match connection.only(answers.pop()) {
            Ok(answer) => Ok((answer, connection)),
            Err(problem) => {
                let problem = problem.under(&key_of(command));
                Err(problem.into_error(doing, &self.name))
            }
        }
    }

    /// Uses no transaction: one refused command does not disturb the others. [`refusal`](Self::refusal) explains it.
    pub(super) async fn exchange(
        &self,
        doing: &'static str,
        commands: &Pipeline,
    ) -> Result<Vec<CommandReply>, RequestFailure> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.exchange_on(doing, commands).await?.0)
    }

    /// Resends read-only commands once if the connection breaks before the reply.
    async fn exchange_on(
        &self,
        doing: &'static str,
        commands: &Pipeline,
    ) -> Result<(Vec<CommandReply>, Arc<Connection>), RequestFailure> {
        let mut connection = self.connection(doing).await?;
        let mut answers = connection.exchange(commands).await;
        if let Err(problem) = &answers
            && doing == READ
            && *problem.cause() == ServerCause::ConnectionLost
        {
            connection = self.connection(doing).await?;
            answers = connection.exchange(commands).await;
        }
        match answers {
            Ok(answers) => Ok((answers, connection)),
            Err(problem) => Err(RequestFailure::Lost(problem.into_error(doing, &self.name))),
        }
    }

    pub(super) async fn in_transaction(
        &self,
        doing: &'static str,
        commands: &Pipeline,
    ) -> Result<Vec<Value>, BoardError> {
        let (answers, connection) = self.exchange_on(doing, &transaction(commands)).await?;
        let answers = connection.executed(answers);
        answers.map_err(|problem| problem.into_error(doing, &self.name))
    }

    pub(super) fn refusal(
        &self,
        doing: &'static str,
        error: &ServerError,
        key: Option<&str>,
    ) -> BoardError {
        let cause = meaning(error, self.url.user.as_deref());
        self.error(doing, cause.under(key.unwrap_or_default()))
    }

    pub(super) fn refusal_in_script(&self, text: &str) -> BoardError {
        self.error(WRITE, meaning_in_script(text, self.url.user.as_deref()))
    }

    pub(super) fn error(&self, doing: &'static str, cause: ServerCause) -> BoardError {
        ServerProblem::new(self.place(), cause).into_error(doing, &self.name)
    }

    pub(super) async fn software(&self) -> Result<String, BoardError> {
        Ok(self.connection(READ).await?.server.software.clone())
    }

    /// Servers older than 6 cannot push, which is `Unsupported`.
    pub(super) async fn listen(&self, doing: &'static str) -> Result<PushListener, RequestFailure> {
        let (pusher, pushes) = pushes();
        let connection = self.in_time(doing, |deadline| self.open(Some(pusher), deadline));
        Ok(PushListener {
            name: self.name.clone(),
            doing,
            connection: connection.await?,
            pushed: pushes,
        })
    }

    /// Drops the connection: exchanges in progress get no reply, and the next exchange reconnects.
    pub(super) async fn cut(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            connection.cut();
        }
    }

    pub(super) async fn close(&self) {
        self.connection.lock().await.take();
    }

    async fn connection(&self, doing: &'static str) -> Result<Arc<Connection>, RequestFailure> {
        // A command on a broken connection is lost, with an unknown outcome.
        turns(TURNS_TO_LOOK).await;
        self.in_time(doing, async |deadline| {
            let mut connection = self.connection.lock().await;
            if let Some(connection) = connection.as_ref().filter(|it| it.is_usable()) {
                return Ok(Arc::clone(connection));
            }
            // Hang up first: the old connection must not survive a failed attempt.
            *connection = None;
            let opened = self.open(None, deadline).await?;
            Ok(Arc::clone(connection.insert(Arc::new(opened))))
        })
        .await
    }

    async fn open(
        &self,
        pushes: Option<Pusher>,
        deadline: Deadline,
    ) -> Result<Connection, ServerProblem> {
        let place = match &self.url.address {
            Address::Tcp(server) => ServerPlace::Tcp(server.clone()),
            Address::Unix(path) => ServerPlace::Unix(path.clone()),
            Address::Sentinel(sentinel) => return self.open_master(sentinel, pushes).await,
        };
        let endpoint = self.endpoint(place);
        Connection::open(endpoint, self.url.db, self.op_timeout, pushes, deadline).await
    }

    async fn open_master(
        &self,
        sentinel: &Sentinel,
        pushes: Option<Pusher>,
    ) -> Result<Connection, ServerProblem> {
        let deadline = Deadline::after(self.connect_timeout());
        let mut tried = Vec::new();
        let mut last = None;
        // An isolated Sentinel may name a former master; ask the others.
        while let Some(server) = sentinel::master(sentinel, &tried, deadline).await? {
            let endpoint = self.endpoint(ServerPlace::Tcp(server.clone()));
            let deadline = Deadline::after(self.connect_timeout());
            let pushes = pushes.clone();
            match Connection::open(endpoint, self.url.db, self.op_timeout, pushes, deadline).await {
                Ok(connection) if !connection.server.is_replica => return Ok(connection),
                Ok(connection) => last = Some(connection.problem(ServerCause::NotMaster)),
                Err(problem) => last = Some(problem),
            }
            tried.push(server);
        }
        Err(last
            .unwrap_or_else(|| ServerProblem::new(self.place(), ServerCause::RefusedConnection)))
    }

    /// Bounds the time to get a connection, including the wait for other users.
    async fn in_time<T, F: Future<Output = Result<T, ServerProblem>>>(
        &self,
        doing: &'static str,
        attempt: impl FnOnce(Deadline) -> F,
    ) -> Result<T, RequestFailure> {
        let limit = match &self.url.address {
            Address::Tcp(_) | Address::Unix(_) => self.connect_timeout(),
            Address::Sentinel(_) => self.connect_timeout() * 2,
        };
        let deadline = Deadline::after(limit);
        let late = |limit| ServerProblem::new(self.place(), ServerCause::Silent(limit));
        let done = deadline.bound(late, attempt(deadline)).await;
        done.map_err(|problem| RequestFailure::NotSent(problem.into_error(doing, &self.name)))
    }

    pub(super) fn connect_timeout(&self) -> Duration {
        CONNECT_TIMEOUT.min(self.op_timeout)
    }

    fn endpoint(&self, place: ServerPlace) -> Endpoint {
        Endpoint {
            place,
            tls: self.url.tls.clone(),
            user: self.url.user.clone(),
            password: self.url.password.clone(),
            most: self.limit.stored(),
        }
    }

    /// Makes a command run by `redis-cli`, with the arguments that reach the server with the right user.
    pub(crate) fn cli(&self, command: Suggestion) -> Suggestion {
        let name = self.name.split('?').next().unwrap_or(&self.name);
        let url = match (name.split_once("://"), name.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
            _ => name.to_owned(),
        };
        let url = self.master().unwrap_or(url);
        let mut cli = match url.split_once("://") {
            Some(("redis+unix", path)) => Suggestion::of("redis-cli -s").with([path]),
            _ => Suggestion::of("redis-cli -u").with([url]),
        };
        if let Some(files) = &self.url.tls {
            let ours = files.identity.as_ref();
            for (option, file) in [
                ("--cacert", files.ca.as_ref()),
                ("--cert", ours.map(|it| &it.cert)),
                ("--key", ours.map(|it| &it.key)),
            ] {
                if let Some(file) = file {
                    cli = cli.with([option, &file.to_string_lossy()]);
                }
            }
        }
        command.on(&cli)
    }

    fn master(&self) -> Option<String> {
        let Address::Sentinel(_) = &self.url.address else {
            return None;
        };
        let connection = self.connection.try_lock().ok()?;
        let s = if self.url.tls.is_some() { "s" } else { "" };
        let place = &connection.as_ref()?.endpoint.place;
        Some(format!("redis{s}://{place}/{}", self.url.db))
    }

    fn place(&self) -> String {
        match &self.url.address {
            Address::Tcp(server) => server.to_string(),
            Address::Unix(path) => path.display().to_string(),
            Address::Sentinel(sentinel) => format!("the master {}", sentinel.master),
        }
    }
}

/// Lets other tasks send their commands before long work, so that the server is busy meanwhile.
pub(super) async fn yield_to_tasks() {
    turns(TURNS_TO_LOOK + 1).await;
}

async fn turns(count: usize) {
    for _ in 0..count {
        task::yield_now().await;
    }
}

fn key_of(command: &Cmd) -> String {
    match command.args_iter().nth(1) {
        Some(redis::Arg::Simple(key)) => String::from_utf8_lossy(key).into_owned(),
        _ => String::new(),
    }
}

fn transaction(commands: &Pipeline) -> Pipeline {
    let mut transaction = commands.clone();
    transaction.atomic();
    transaction
}

fn single(command: &Cmd) -> Pipeline {
    let mut commands = Pipeline::with_capacity(1);
    commands.add_command(command.clone());
    commands
}
