//! A connection on which the server pushes messages.

use redis::{Cmd, FromRedisValue, Pipeline, Value};

use super::{RequestKind, connection::Connection, pushes::Pushed, single, transaction};
use crate::board::{BoardError, net::cause::ServerCause};

pub(crate) struct PushListener {
    name: String,
    connection: Connection,
    pub(crate) pushed: Pushed,
}

impl PushListener {
    pub(super) fn new(name: &str, connection: Connection, pushed: Pushed) -> Self {
        Self {
            name: name.to_owned(),
            connection,
            pushed,
        }
    }

    pub(crate) async fn ask<T: FromRedisValue>(
        &self,
        doing: RequestKind,
        command: &Cmd,
    ) -> Result<T, BoardError> {
        let answers = self.connection.exchange(&single(command)).await;
        let answer = answers.and_then(|mut answers| self.connection.only(answers.pop()));
        answer.map_err(|problem| problem.into_error(doing.text, &self.name))
    }

    /// By the time this returns, all messages pushed before the transaction are queued.
    pub(crate) async fn at_once(
        &self,
        doing: RequestKind,
        commands: &Pipeline,
    ) -> Result<Vec<Value>, BoardError> {
        let answers = self.connection.exchange(&transaction(commands)).await;
        let answers = answers.and_then(|answers| self.connection.executed(answers));
        answers.map_err(|problem| problem.into_error(doing.text, &self.name))
    }

    pub(crate) fn broken(&self, doing: RequestKind) -> BoardError {
        let problem = self.connection.problem(ServerCause::ConnectionLost);
        problem.into_error(doing.text, &self.name)
    }
}
