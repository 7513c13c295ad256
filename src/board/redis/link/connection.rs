//! One open connection with many concurrent exchanges.

use std::{
    io,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures_util::future::select;
use redis::{
    Cmd, FromRedisValue, Pipeline, PushInfo, PushKind, ServerError, Value, from_redis_value,
};
use tokio::{
    io::AsyncWriteExt,
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use super::{
    Pusher,
    bounded::Deaf,
    connect::{Endpoint, Talk},
    greet::Server,
    problem::{Cause, Problem},
    refusal::meaning,
};
use crate::board::net::{connect::Deadline, problem::Obstacle};

/// Maximum requests sent together.
const AT_ONCE: usize = 64;

/// Number of steps in which the reply timeout elapses.
const PARTS: u32 = 10;

/// A connection to a verified server; closed when dropped.
pub(crate) struct Connection {
    pub(super) endpoint: Endpoint,
    pub(super) server: Server,
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
    ) -> Result<Self, Problem> {
        let (mut talk, server) = endpoint.enter(db, deadline).await?;
        if pushes.is_some() {
            let mut hello = Pipeline::new();
            hello.cmd("HELLO").arg(3);
            let mut answers = endpoint.exchange(&mut talk, &hello, deadline).await?;
            if let Some(Value::ServerError(error)) = answers.pop() {
                let problem = endpoint.meaning(&error);
                return Err(match problem.cause() {
                    Cause::Said(_) => endpoint.problem(Cause::NoPushes),
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
            driver: tokio::spawn(drive(talk, asked, pushes)),
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

    pub(crate) fn problem(&self, cause: impl Into<Cause>) -> Problem {
        self.endpoint.problem(cause)
    }

    pub(crate) fn meaning(&self, refusal: &ServerError) -> Problem {
        self.endpoint.meaning(refusal)
    }

    /// Sends a command and returns its reply; an error means that the reply was lost.
    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Value, Problem> {
        let answers = self.answers(command.get_packed_command(), 1).await?;
        let answer = answers.into_iter().next();
        answer.ok_or_else(|| self.problem(Cause::Strange))
    }

    /// Sends commands and returns their replies; an error means that they were lost.
    pub(crate) async fn ask_all(&self, commands: &Pipeline) -> Result<Vec<Value>, Problem> {
        self.answers(commands.get_packed_pipeline(), commands.len())
            .await
    }

    /// If this process is suspended, for example by a full pipe, only one step of the timeout elapses. A reply that
    /// arrived meanwhile is then not late.
    async fn answers(&self, commands: Vec<u8>, count: usize) -> Result<Vec<Value>, Problem> {
        let (asker, mut answers) = oneshot::channel();
        // If the driver is gone, `asker` goes as well.
        let _ = self.questions.send(Question {
            commands,
            count,
            answers: Vec::with_capacity(count),
            asker,
        });
        for _ in 0..PARTS {
            match timeout(self.op_timeout / PARTS, &mut answers).await {
                Ok(Ok(Ok(answers))) => return Ok(answers),
                Ok(Ok(Err(Deaf::Gibberish(_)))) => return Err(self.give_up(Cause::NotRedis)),
                Ok(_) => return Err(self.give_up(Obstacle::BrokenOff)),
                Err(_) => {}
            }
        }
        Err(self.give_up(Obstacle::Silent(self.op_timeout)))
    }

    pub(crate) fn sort(&self, answer: Value) -> Result<Value, ServerError> {
        let Value::ServerError(error) = answer else {
            return Ok(answer);
        };
        // After a failover another server takes writes.
        if matches!(meaning(&error, None), Cause::Replica | Cause::Orphaned) {
            self.is_spent.store(true, Ordering::Relaxed);
        }
        Err(error)
    }

    /// Interprets the replies to several commands in the same way.
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

    /// Closes a connection on which a reply was lost.
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

struct Question {
    commands: Vec<u8>,
    count: usize,
    answers: Vec<Value>,
    asker: oneshot::Sender<Result<Vec<Value>, Deaf>>,
}

async fn drive(
    mut talk: Talk,
    mut questions: mpsc::UnboundedReceiver<Question>,
    pushes: Option<Pusher>,
) {
    let (sent, mut asked) = mpsc::unbounded_channel();
    let send = async {
        let mut waiting = Vec::new();
        while questions.recv_many(&mut waiting, AT_ONCE).await > 0 {
            let mut bytes = Vec::new();
            for mut question in waiting.drain(..) {
                // A cancelled exchange is not sent any more.
                if !question.asker.is_closed() {
                    bytes.append(&mut question.commands);
                    let _ = sent.send(question);
                }
            }
            talk.writer.write_all(&bytes).await?;
            talk.writer.flush().await?;
        }
        io::Result::Ok(())
    };
    let receive = async {
        let mut first: Option<Question> = None;
        loop {
            let reply = match talk.replies.next().await {
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
