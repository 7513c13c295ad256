//! The connection to a Redis server: opened on demand, and again after a failure.
//!
//! Commands that may change the board are never sent twice here. The caller learns whether an error means that
//! nothing was sent or that the reply was lost.

use std::{future::Future, sync::Arc, time::Duration};

use redis::{Cmd, FromRedisValue, Pipeline, ServerError, Value};
use tokio::{sync::Mutex, task};

pub(super) use self::listener::{Listener, Pusher};
use self::{
    connect::{Endpoint, Place},
    connection::Connection,
    listener::pushes,
    problem::{Cause, Problem},
    refusal::{meaning, meaning_in_script},
};
pub(super) use crate::board::net::failure::Failure;
use crate::{
    board::{
        BoardError, Examined,
        net::{connect::Deadline, expiry, problem::Obstacle},
        url::redis::{Address, RedisUrl, Sentinel},
        wire::posting::Limit,
    },
    secret::Secret,
};

pub(super) mod bounded;
mod cli;
pub(super) mod connect;
pub(super) mod connection;
pub(super) mod exchange;
pub(super) mod greet;
mod listener;
pub(super) mod problem;
pub(super) mod refusal;
pub(super) mod sentinel;

#[cfg(test)]
mod tests;

/// Time limit for connecting, or for Sentinels to name the server.
const PATIENCE: Duration = Duration::from_secs(3);

const READ: &str = "read";

/// Noticing a hang-up takes one turn of the runtime and one of the connection.
const TURNS_TO_LOOK: usize = 2;

pub(super) struct Client {
    name: String,
    pub(super) url: RedisUrl,
    op_timeout: Duration,
    pub(super) limit: Limit,
    connection: Mutex<Option<Arc<Connection>>>,
}

impl Client {
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
            let deadline = Deadline::after(self.patience());
            expiry::examine::<Cause>(std::slice::from_ref(server), files, deadline, seen).await;
        }
    }

    /// Sends one command; a server's refusal is an error.
    pub(super) async fn ask<T: FromRedisValue>(
        &self,
        doing: &'static str,
        command: &Cmd,
    ) -> Result<T, BoardError> {
        let connection = self.connection(doing).await?;
        let answer = connection.ask(command).await;
        self.answered(doing, command, &connection, answer)
    }

    fn answered<T: FromRedisValue>(
        &self,
        doing: &'static str,
        command: &Cmd,
        connection: &Connection,
        answer: Result<Value, Problem>,
    ) -> Result<T, BoardError> {
        let answer = answer.and_then(|answer| connection.read(answer));
        answer.map_err(|problem| {
            let problem = problem.map(|cause| cause.under(&key_of(command)));
            problem.into_error(doing, &self.name)
        })
    }

    /// Resends a read-only command once if the connection breaks before the reply.
    pub(super) async fn read<T: FromRedisValue>(
        &self,
        command: &Cmd,
    ) -> Result<(T, Arc<Connection>), BoardError> {
        let mut connection = self.connection(READ).await?;
        let mut answer = connection.ask(command).await;
        if broke_off(&answer) {
            connection = self.connection(READ).await?;
            answer = connection.ask(command).await;
        }
        let answer = self.answered(READ, command, &connection, answer)?;
        Ok((answer, connection))
    }

    /// Sends several read-only commands with the retry of [`read`](Self::read); returns the same as
    /// [`ask_all`](Self::ask_all).
    pub(super) async fn read_all(
        &self,
        commands: &Pipeline,
    ) -> Result<Vec<Result<Value, ServerError>>, BoardError> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let mut connection = self.connection(READ).await?;
        let mut answers = connection.ask_all(commands).await;
        if broke_off(&answers) {
            connection = self.connection(READ).await?;
            answers = connection.ask_all(commands).await;
        }
        let answers = answers.map_err(|problem| problem.into_error(READ, &self.name))?;
        Ok(connection.sort_all(answers))
    }

    /// Uses no transaction: one refused command does not disturb the others. [`refusal`](Self::refusal) explains it.
    pub(super) async fn ask_all(
        &self,
        doing: &'static str,
        commands: &Pipeline,
    ) -> Result<Vec<Result<Value, ServerError>>, Failure> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let connection = self.connection(doing).await?;
        let answers = connection
            .ask_all(commands)
            .await
            .map_err(|problem| Failure::Lost(problem.into_error(doing, &self.name)))?;
        Ok(connection.sort_all(answers))
    }

    pub(super) async fn ask_at_once(
        &self,
        doing: &'static str,
        commands: &Pipeline,
    ) -> Result<Vec<Value>, BoardError> {
        let answers = self.ask_all(doing, &transaction(commands)).await?;
        let mut last = None;
        for answer in answers {
            last = Some(answer.map_err(|error| self.refusal(doing, &error))?);
        }
        at_once(last).ok_or_else(|| self.error(doing, Cause::Strange))
    }

    pub(super) fn refusal(&self, doing: &'static str, error: &ServerError) -> BoardError {
        self.error(doing, meaning(error, self.url.user.as_deref()))
    }

    pub(super) fn refusal_of(
        &self,
        doing: &'static str,
        error: &ServerError,
        key: &str,
    ) -> BoardError {
        self.error(doing, meaning(error, self.url.user.as_deref()).under(key))
    }

    /// Converts a server message that did not end the script.
    pub(super) fn said(&self, doing: &'static str, text: &str) -> BoardError {
        self.error(doing, meaning_in_script(text, self.url.user.as_deref()))
    }

    pub(super) fn error(&self, doing: &'static str, cause: impl Into<Cause>) -> BoardError {
        Problem::new(self.place(), cause).into_error(doing, &self.name)
    }

    pub(super) async fn software(&self, doing: &'static str) -> Result<String, BoardError> {
        Ok(self.connection(doing).await?.server.software.clone())
    }

    /// Servers older than 6 cannot push, which is `Unsupported`.
    pub(super) async fn listen(&self, doing: &'static str) -> Result<Listener, Failure> {
        let (pusher, pushes) = pushes();
        let connection = self.in_time(|deadline| self.open(Some(pusher), deadline));
        match connection.await {
            Ok(connection) => Ok(Listener::new(&self.name, connection, pushes)),
            Err(problem) => Err(Failure::NotSent(problem.into_error(doing, &self.name))),
        }
    }

    /// Drops the connection: exchanges in progress get no reply, and the next exchange reconnects.
    pub(super) async fn cut(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            connection.cut();
        }
    }

    /// Hangs up; the next exchange reconnects.
    pub(super) async fn close(&self) {
        self.connection.lock().await.take();
    }

    async fn connection(&self, doing: &'static str) -> Result<Arc<Connection>, Failure> {
        // A command on a broken connection is lost, with an unknown outcome.
        turns(TURNS_TO_LOOK).await;
        let connection = self.in_time(async |deadline| {
            let mut connection = self.connection.lock().await;
            if let Some(connection) = connection
                .as_ref()
                .filter(|connection| connection.is_usable())
            {
                return Ok(Arc::clone(connection));
            }
            // Hang up first: the old connection must not survive a failed attempt.
            *connection = None;
            let opened = self.open(None, deadline).await?;
            Ok(Arc::clone(connection.insert(Arc::new(opened))))
        });
        connection
            .await
            .map_err(|problem| Failure::NotSent(problem.into_error(doing, &self.name)))
    }

    async fn open(
        &self,
        pushes: Option<Pusher>,
        deadline: Deadline,
    ) -> Result<Connection, Problem> {
        let place = match &self.url.address {
            Address::Tcp(server) => Place::Tcp(server.clone()),
            Address::Unix(path) => Place::Unix(path.clone()),
            Address::Sentinel(sentinel) => return self.open_master(sentinel, pushes).await,
        };
        let endpoint = self.endpoint(place);
        Connection::open(endpoint, self.url.db, self.op_timeout, pushes, deadline).await
    }

    async fn open_master(
        &self,
        sentinel: &Sentinel,
        pushes: Option<Pusher>,
    ) -> Result<Connection, Problem> {
        let deadline = Deadline::after(self.patience());
        let mut tried = Vec::new();
        let mut last = None;
        // An isolated Sentinel may name a former master; ask the others.
        while let Some(server) = sentinel::master(sentinel, &tried, deadline).await? {
            let endpoint = self.endpoint(Place::Tcp(server.clone()));
            let deadline = Deadline::after(self.patience());
            let pushes = pushes.clone();
            match Connection::open(endpoint, self.url.db, self.op_timeout, pushes, deadline).await {
                Ok(connection) if !connection.server.is_replica => return Ok(connection),
                Ok(connection) => last = Some(connection.problem(Cause::NotMaster)),
                Err(problem) => last = Some(problem),
            }
            tried.push(server);
        }
        Err(last.unwrap_or_else(|| Problem::new(self.place(), Obstacle::RefusedConnection)))
    }

    /// Bounds the time to get a connection, including the wait for other users.
    async fn in_time<T, F: Future<Output = Result<T, Problem>>>(
        &self,
        attempt: impl FnOnce(Deadline) -> F,
    ) -> Result<T, Problem> {
        let patience = match &self.url.address {
            Address::Tcp(_) | Address::Unix(_) => self.patience(),
            Address::Sentinel(_) => self.patience() * 2,
        };
        let deadline = Deadline::after(patience);
        let late = |limit| Problem::new(self.place(), Obstacle::Silent(limit));
        deadline.bound(late, attempt(deadline)).await
    }

    fn patience(&self) -> Duration {
        PATIENCE.min(self.op_timeout)
    }

    fn endpoint(&self, place: Place) -> Endpoint {
        Endpoint {
            place,
            tls: self.url.tls.clone(),
            user: self.url.user.clone(),
            password: self.url.password.clone(),
            most: self.limit.stored(),
        }
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
pub(super) async fn give_way() {
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

fn broke_off<T>(answer: &Result<T, Problem>) -> bool {
    let cause = answer.as_ref().err().map(Problem::cause);
    cause == Some(&Cause::Any(Obstacle::BrokenOff))
}

fn transaction(commands: &Pipeline) -> Pipeline {
    let mut all = Pipeline::with_capacity(commands.len() + 2);
    all.cmd("MULTI");
    for command in commands.cmd_iter() {
        all.add_command(command.clone());
    }
    all.cmd("EXEC");
    all
}

/// Returns the replies inside the final reply of a transaction.
fn at_once(last: Option<Value>) -> Option<Vec<Value>> {
    match last {
        Some(Value::Array(answers)) => Some(answers),
        _ => None,
    }
}
