//! One open connection with many concurrent exchanges.

use std::{
    io,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures_util::future::select;
use redis::{FromRedisValue, Pipeline, PushInfo, PushKind, Value, from_redis_value};
use tokio::{
    io::AsyncWriteExt,
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use super::{
    CommandReply,
    bounded::Disconnect,
    endpoint::{Endpoint, RawConnection},
    greet::ServerInfo,
    pushes::Pusher,
    refusal::meaning,
};
use crate::board::net::{
    cause::{ServerCause, ServerProblem},
    connect::Deadline,
};

const REQUESTS_PER_WRITE: usize = 64;

/// Number of steps in which the reply timeout elapses.
const PARTS: u32 = 10;

/// A connection to a verified server; closed when dropped.
pub(crate) struct Connection {
    pub(super) endpoint: Endpoint,
    pub(super) server: ServerInfo,
    op_timeout: Duration,
    questions: mpsc::UnboundedSender<Question>,
    driver: JoinHandle<()>,
    is_spent: AtomicBool,
}

impl Connection {
    /// A sender selects RESP3, so that the server can push messages into it.
    pub(crate) async fn open(
        endpoint: Endpoint,
        db: u32,
        op_timeout: Duration,
        pushes: Option<Pusher>,
        deadline: Deadline,
    ) -> Result<Self, ServerProblem> {
        let (mut stream, server) = endpoint.enter(db, deadline).await?;
        if pushes.is_some() {
            let mut hello = Pipeline::new();
            hello.cmd("HELLO").arg(3);
            let mut answers = endpoint.exchange(&mut stream, &hello, deadline).await?;
            if let Some(Value::ServerError(error)) = answers.pop() {
                let problem = endpoint.meaning(&error);
                return Err(match problem.cause() {
                    ServerCause::Message(_) => endpoint.problem(ServerCause::unusable(
                        "this Redis server cannot push messages",
                        "use Redis 6 or later",
                    )),
                    _ => problem,
                });
            }
        }
        let (questions, asked) = mpsc::unbounded_channel();
        Ok(Self {
            endpoint,
            server,
            op_timeout,
            questions,
            driver: tokio::spawn(drive(stream, asked, pushes)),
            is_spent: AtomicBool::new(false),
        })
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.is_spent.load(Ordering::Relaxed) && !self.driver.is_finished()
    }

    pub(crate) fn cut(&self) {
        self.is_spent.store(true, Ordering::Relaxed);
        self.driver.abort();
    }

    pub(crate) fn problem(&self, cause: ServerCause) -> ServerProblem {
        self.endpoint.problem(cause)
    }

    /// Sends commands and returns their replies; an error means that they were lost.
    pub(crate) async fn exchange(
        &self,
        commands: &Pipeline,
    ) -> Result<Vec<CommandReply>, ServerProblem> {
        let (asker, mut answers) = oneshot::channel();
        // With the replies to MULTI and EXEC.
        let count = commands.len() + if commands.is_transaction() { 2 } else { 0 };
        // If the driver is gone, `asker` goes as well.
        let _ = self.questions.send(Question {
            commands: commands.get_packed_pipeline(),
            count,
            answers: Vec::with_capacity(count),
            asker,
        });
        // If this process is suspended, for example by a full pipe, only one step of the timeout elapses. A reply that
        // arrived meanwhile is then not late.
        for _ in 0..PARTS {
            match timeout(self.op_timeout / PARTS, &mut answers).await {
                Ok(Ok(Ok(answers))) => {
                    return Ok(answers.into_iter().map(|it| self.reply(it)).collect());
                }
                Ok(Ok(Err(Disconnect::InvalidByte(_)))) => {
                    return Err(self.give_up(ServerCause::NotRedis));
                }
                Ok(_) => return Err(self.give_up(ServerCause::ConnectionLost)),
                Err(_) => {}
            }
        }
        Err(self.give_up(ServerCause::Silent(self.op_timeout)))
    }

    fn reply(&self, answer: Value) -> CommandReply {
        let Value::ServerError(error) = answer else {
            return Ok(answer);
        };
        // After a failover another server takes writes.
        if matches!(
            meaning(&error, None),
            ServerCause::Replica | ServerCause::LostMaster
        ) {
            self.is_spent.store(true, Ordering::Relaxed);
        }
        Err(error)
    }

    pub(crate) fn only<T: FromRedisValue>(
        &self,
        answer: Option<CommandReply>,
    ) -> Result<T, ServerProblem> {
        let answer = answer.transpose();
        let answer = answer.map_err(|error| self.endpoint.meaning(&error))?;
        let answer = answer.and_then(|answer| from_redis_value(answer).ok());
        answer.ok_or_else(|| self.problem(ServerCause::UnexpectedReply))
    }

    /// Returns the replies inside the final reply of a transaction.
    pub(crate) fn executed(&self, answers: Vec<CommandReply>) -> Result<Vec<Value>, ServerProblem> {
        let answers: Result<Vec<_>, _> = answers.into_iter().collect();
        let last = answers
            .map_err(|error| self.endpoint.meaning(&error))?
            .pop();
        match last {
            Some(Value::Array(answers)) => Ok(answers),
            _ => Err(self.problem(ServerCause::UnexpectedReply)),
        }
    }

    /// Closes a connection on which a reply was lost.
    fn give_up(&self, cause: ServerCause) -> ServerProblem {
        self.is_spent.store(true, Ordering::Relaxed);
        self.problem(cause)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

struct Question {
    commands: Vec<u8>,
    count: usize,
    answers: Vec<Value>,
    asker: oneshot::Sender<Result<Vec<Value>, Disconnect>>,
}

async fn drive(
    mut stream: RawConnection,
    mut questions: mpsc::UnboundedReceiver<Question>,
    pushes: Option<Pusher>,
) {
    let (sent, mut asked) = mpsc::unbounded_channel();
    let send = async {
        let mut waiting = Vec::new();
        while questions.recv_many(&mut waiting, REQUESTS_PER_WRITE).await > 0 {
            let mut bytes = Vec::new();
            for mut question in waiting.drain(..) {
                // A cancelled exchange is not sent any more.
                if !question.asker.is_closed() {
                    bytes.append(&mut question.commands);
                    let _ = sent.send(question);
                }
            }
            stream.writer.write_all(&bytes).await?;
            stream.writer.flush().await?;
        }
        io::Result::Ok(())
    };
    let receive = async {
        let mut first: Option<Question> = None;
        loop {
            let reply = match stream.replies.next().await {
                Ok(Value::Push { kind, data }) => {
                    let is_answer = kind == PushKind::Subscribe;
                    push(&pushes, kind, data);
                    if !is_answer {
                        continue;
                    }
                    Ok(Value::Okay)
                }
                reply => reply,
            };
            first = first.or_else(|| asked.try_recv().ok());
            match (reply, &mut first) {
                (Ok(answer), Some(question)) => question.answers.push(answer),
                (Ok(_), None) => {}
                (Err(deaf), _) => return first.map(|question| question.asker.send(Err(deaf))),
            }
            if let Some(question) = first.take_if(|it| it.answers.len() == it.count) {
                let _ = question.asker.send(Ok(question.answers));
            }
        }
    };
    select(pin!(send), pin!(receive)).await;
    push(&pushes, PushKind::Disconnection, Vec::new());
}

fn push(pushes: &Option<Pusher>, kind: PushKind, data: Vec<Value>) {
    if let Some(pushes) = pushes {
        pushes.send(PushInfo { kind, data });
    }
}
