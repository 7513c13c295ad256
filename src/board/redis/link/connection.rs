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
    connect::{Deadline, Door},
    greet::Server,
    problem::{Problem, Trouble},
    refusal::meaning,
};

/// In how many parts the time for an answer passes.
const PARTS: u32 = 10;

/// A connection to a server that was found fit; closed when dropped.
pub(in crate::board::redis) struct Line {
    door: Door,
    server: Server,
    op_timeout: Duration,
    connection: MultiplexedConnection,
    driver: JoinHandle<()>,
    is_spent: AtomicBool,
}

impl Line {
    /// Connects; with a sender in RESP3, so that the server can push messages into it.
    pub(in crate::board::redis) async fn open(
        door: Door,
        db: u32,
        op_timeout: Duration,
        pushes: Option<Pusher>,
        deadline: Deadline,
    ) -> Result<Self, Trouble> {
        let (stream, server) = door.enter(db, deadline).await?;
        let mut config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        // All that the library would say first has been said.
        let mut settings = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(sender) = pushes {
            config = config.set_push_sender(sender);
            settings = settings.set_protocol(ProtocolVersion::RESP3);
        }
        let late = |limit| door.trouble(Problem::Silent(limit));
        let begin = async {
            MultiplexedConnection::new_with_config(&settings, stream, config)
                .await
                .map_err(|error| cannot_push(&door, error))
        };
        let (connection, driver) = deadline.bound(late, begin).await?;
        Ok(Self {
            door,
            server,
            op_timeout,
            connection,
            driver: tokio::spawn(driver),
            is_spent: AtomicBool::new(false),
        })
    }

    /// Whether another exchange may begin here.
    pub(in crate::board::redis) fn is_usable(&self) -> bool {
        !self.is_spent.load(Ordering::Relaxed) && !self.driver.is_finished()
    }

    /// Returns what is at the other end.
    pub(in crate::board::redis) fn server(&self) -> &Server {
        &self.server
    }

    /// Puts a problem down to the server.
    pub(in crate::board::redis) fn trouble(&self, problem: Problem) -> Trouble {
        self.door.trouble(problem)
    }

    /// Says what the server means by a refusal.
    pub(in crate::board::redis) fn meaning(&self, refusal: &ServerError) -> Trouble {
        self.door.meaning(refusal)
    }

    /// Sends a command and returns its answer; in case of an error, that was lost.
    pub(in crate::board::redis) async fn ask(&self, command: &Cmd) -> Result<Value, Trouble> {
        let mut connection = self.connection.clone();
        self.in_time(connection.send_packed_command(command)).await
    }

    /// Sends commands and returns their answers; in case of an error, those were lost.
    pub(in crate::board::redis) async fn ask_all(
        &self,
        commands: &Pipeline,
    ) -> Result<Vec<Value>, Trouble> {
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
    ) -> Result<T, Trouble> {
        let mut exchange = pin!(exchange);
        for _ in 0..PARTS {
            if let Ok(answer) = timeout(self.op_timeout / PARTS, &mut exchange).await {
                return answer.map_err(|error| self.lost(&error));
            }
        }
        Err(self.give_up(Problem::Silent(self.op_timeout)))
    }

    /// Tells what a server answered from what it refused.
    pub(in crate::board::redis) fn sort(&self, answer: Value) -> Result<Value, ServerError> {
        let Value::ServerError(error) = answer else {
            return Ok(answer);
        };
        // After a failover it is another server that takes writes.
        if matches!(meaning(&error, None), Problem::Replica | Problem::Orphaned) {
            self.is_spent.store(true, Ordering::Relaxed);
        }
        Err(error)
    }

    /// Tells in the same way what it answered to each of several commands.
    pub(in crate::board::redis) fn sort_all(
        &self,
        answers: Vec<Value>,
    ) -> Vec<Result<Value, ServerError>> {
        answers
            .into_iter()
            .map(|answer| self.sort(answer))
            .collect()
    }

    /// Reads the answer to one command.
    pub(in crate::board::redis) fn read<T: FromRedisValue>(
        &self,
        answer: Value,
    ) -> Result<T, Trouble> {
        let answer = self.sort(answer).map_err(|error| self.meaning(&error))?;
        from_redis_value(answer).map_err(|_| self.trouble(Problem::Strange))
    }

    /// Gives up a connection on which an answer was lost.
    fn lost(&self, error: &RedisError) -> Trouble {
        self.give_up(if error.is_io_error() {
            Problem::BrokenOff
        } else {
            Problem::NotRedis
        })
    }

    fn give_up(&self, problem: Problem) -> Trouble {
        self.is_spent.store(true, Ordering::Relaxed);
        self.trouble(problem)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

fn cannot_push(door: &Door, error: RedisError) -> Trouble {
    let has_no_resp3 = error.kind() == ErrorKind::RESP3NotSupported;
    let Ok(error) = ServerError::try_from(error) else {
        return door.trouble(if has_no_resp3 {
            Problem::NoPushes
        } else {
            Problem::Closed
        });
    };
    let trouble = door.meaning(&error);
    match trouble.problem() {
        Problem::Said(_) => door.trouble(Problem::NoPushes),
        _ => trouble,
    }
}
