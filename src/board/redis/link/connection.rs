//! One open connection, on which many exchanges may be under way at once.

use std::{
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, FromRedisValue, Pipeline, ProtocolVersion,
    RedisConnectionInfo, RedisError, RedisResult, ServerError, Value, aio::MultiplexedConnection,
    from_redis_value,
};
use tokio::{task::JoinHandle, time::timeout};

use super::{
    Pusher,
    connect::{Endpoint, Place},
    greet::Server,
    problem::{Cause, Problem},
    refusal::meaning,
};
use crate::board::net::{connect::Deadline, problem::Obstacle};

/// In how many parts the time for an answer passes.
const PARTS: u32 = 10;

/// A connection to a server that was found fit; closed when dropped.
pub(crate) struct Connection {
    endpoint: Endpoint,
    server: Server,
    op_timeout: Duration,
    connection: MultiplexedConnection,
    driver: JoinHandle<()>,
    is_spent: AtomicBool,
}

impl Connection {
    /// Connects; with a sender in RESP3, so that the server can push messages into it.
    pub(crate) async fn open(
        endpoint: Endpoint,
        db: u32,
        op_timeout: Duration,
        pushes: Option<Pusher>,
        deadline: Deadline,
    ) -> Result<Self, Problem> {
        let (stream, server) = endpoint.enter(db, deadline).await?;
        let mut config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        // All that the library would say first has been said.
        let mut settings = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(sender) = pushes {
            config = config.set_push_sender(sender);
            settings = settings.set_protocol(ProtocolVersion::RESP3);
        }
        let late = |limit| endpoint.problem(Obstacle::Silent(limit));
        let begin = async {
            MultiplexedConnection::new_with_config(&settings, stream, config)
                .await
                .map_err(|error| cannot_push(&endpoint, error))
        };
        let (connection, driver) = deadline.bound(late, begin).await?;
        Ok(Self {
            endpoint,
            server,
            op_timeout,
            connection,
            driver: tokio::spawn(driver),
            is_spent: AtomicBool::new(false),
        })
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.is_spent.load(Ordering::Relaxed) && !self.driver.is_finished()
    }

    /// Breaks off, whatever is under way.
    pub(crate) fn cut(&self) {
        self.is_spent.store(true, Ordering::Relaxed);
        self.driver.abort();
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn place(&self) -> &Place {
        &self.endpoint.place
    }

    pub(crate) fn problem(&self, cause: impl Into<Cause>) -> Problem {
        self.endpoint.problem(cause)
    }

    pub(crate) fn meaning(&self, refusal: &ServerError) -> Problem {
        self.endpoint.meaning(refusal)
    }

    /// Sends a command and returns its answer; in case of an error, that was lost.
    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Value, Problem> {
        let mut connection = self.connection.clone();
        self.in_time(connection.send_packed_command(command)).await
    }

    /// Sends commands and returns their answers; in case of an error, those were lost.
    pub(crate) async fn ask_all(&self, commands: &Pipeline) -> Result<Vec<Value>, Problem> {
        let mut connection = self.connection.clone();
        let answers = connection.send_packed_commands(commands, 0, commands.len());
        self.in_time(answers).await
    }

    /// Waits for an answer for as long as it may take.
    ///
    /// While this process itself stands still, as when nobody reads what it writes, only one part
    /// of the time can pass: what came meanwhile is not late.
    async fn in_time<T>(
        &self,
        exchange: impl Future<Output = RedisResult<T>>,
    ) -> Result<T, Problem> {
        let mut exchange = pin!(exchange);
        for _ in 0..PARTS {
            if let Ok(answer) = timeout(self.op_timeout / PARTS, &mut exchange).await {
                return answer.map_err(|error| self.lost(&error));
            }
        }
        Err(self.give_up(Obstacle::Silent(self.op_timeout)))
    }

    /// Tells what a server answered from what it refused.
    pub(crate) fn sort(&self, answer: Value) -> Result<Value, ServerError> {
        let Value::ServerError(error) = answer else {
            return Ok(answer);
        };
        // After a failover it is another server that takes writes.
        if matches!(meaning(&error, None), Cause::Replica | Cause::Orphaned) {
            self.is_spent.store(true, Ordering::Relaxed);
        }
        Err(error)
    }

    /// Tells in the same way what it answered to each of several commands.
    pub(crate) fn sort_all(&self, answers: Vec<Value>) -> Vec<Result<Value, ServerError>> {
        answers
            .into_iter()
            .map(|answer| self.sort(answer))
            .collect()
    }

    pub(crate) fn read<T: FromRedisValue>(&self, answer: Value) -> Result<T, Problem> {
        let answer = self.sort(answer).map_err(|error| self.meaning(&error))?;
        from_redis_value(answer).map_err(|_| self.problem(Cause::Strange))
    }

    /// Gives up a connection on which an answer was lost.
    fn lost(&self, error: &RedisError) -> Problem {
        self.give_up(match error.is_io_error() {
            true => Obstacle::BrokenOff.into(),
            false => Cause::NotRedis,
        })
    }

    fn give_up(&self, cause: impl Into<Cause>) -> Problem {
        self.is_spent.store(true, Ordering::Relaxed);
        self.problem(cause)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

fn cannot_push(endpoint: &Endpoint, error: RedisError) -> Problem {
    let has_no_resp3 = error.kind() == ErrorKind::RESP3NotSupported;
    let Ok(error) = ServerError::try_from(error) else {
        return endpoint.problem(if has_no_resp3 {
            Cause::NoPushes
        } else {
            Cause::Closed
        });
    };
    let problem = endpoint.meaning(&error);
    match problem.cause() {
        Cause::Said(_) => endpoint.problem(Cause::NoPushes),
        _ => problem,
    }
}
