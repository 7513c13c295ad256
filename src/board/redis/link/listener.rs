//! A connection on which the server pushes messages.

use redis::{Cmd, FromRedisValue, Pipeline, Value};

use super::{connection::Connection, pushes::Pushed, single, transaction};
use crate::board::{BoardError, net::cause::ServerCause};

pub(crate) struct PushListener {
    pub(super) name: String,
    pub(super) doing: &'static str,
    pub(super) connection: Connection,
    pub(crate) pushed: Pushed,
}

impl PushListener {
    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, BoardError> {
        let answers = self.connection.exchange(&single(command)).await;
        let answer = answers.and_then(|mut answers| self.connection.only(answers.pop()));
        answer.map_err(|problem| problem.into_error(self.doing, &self.name))
    }

    /// By the time this returns, all messages pushed before the transaction are queued.
    pub(crate) async fn in_transaction(
        &self,
        commands: &Pipeline,
    ) -> Result<Vec<Value>, BoardError> {
        let answers = self.connection.exchange(&transaction(commands)).await;
        let answers = answers.and_then(|answers| self.connection.executed(answers));
        answers.map_err(|problem| problem.into_error(self.doing, &self.name))
    }

    pub(crate) fn broken(&self) -> BoardError {
        let problem = self.connection.problem(ServerCause::ConnectionLost);
        problem.into_error(self.doing, &self.name)
    }
}
