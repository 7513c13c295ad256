//! Questions and answers before a connection is handed over, and what it means if none come.

use std::io;

use redis::{ErrorKind, Parser, Pipeline, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{
    connect::{Endpoint, Place, Stream},
    problem::{Cause, Problem},
};
use crate::board::{
    net::{
        connect::{Deadline, connect},
        problem::Obstacle,
        tls,
    },
    url::Server,
};

/// How long all answers may be.
const LONGEST: usize = 1 << 20;

impl Endpoint {
    /// Sends commands over a stream that is not in use otherwise, and returns what comes back.
    ///
    /// A server that hangs up after some of its answers is not waited for; those are returned.
    pub(crate) async fn exchange(
        &self,
        stream: &mut Box<dyn Stream>,
        commands: &Pipeline,
        deadline: Deadline,
    ) -> Result<Vec<Value>, Problem> {
        let late = |limit| self.problem(Obstacle::Silent(limit));
        let talk = talk(stream, commands);
        let answers = deadline.bound(late, async { Ok(talk.await) }).await?;
        match answers {
            Ok(answers) => Ok(answers),
            Err(Deaf::HungUp(error)) => Err(self.explain(error.as_ref(), deadline).await),
            // An alert, which is what a TLS server answers to plain text.
            Err(Deaf::Gibberish(0x15)) if self.tls.is_none() => {
                Err(self.problem(Obstacle::WantsTls))
            }
            Err(Deaf::Gibberish(_)) => Err(self.problem(Cause::NotRedis)),
        }
    }

    async fn explain(&self, error: Option<&io::Error>, deadline: Deadline) -> Problem {
        let has_identity = self.tls.as_ref().is_some_and(|tls| tls.identity.is_some());
        if let Some(cause) = error.and_then(|error| tls::objection(error, has_identity)) {
            return self.problem(cause);
        }
        match &self.place {
            Place::Tcp(server) if self.tls.is_none() && speaks_tls(server, deadline).await => {
                self.problem(Obstacle::WantsTls)
            }
            _ => self.problem(Cause::Closed),
        }
    }
}

enum Deaf {
    HungUp(Option<io::Error>),
    /// What came is not an answer; its first byte.
    Gibberish(u8),
}

async fn talk(stream: &mut Box<dyn Stream>, commands: &Pipeline) -> Result<Vec<Value>, Deaf> {
    // A server that refuses clients hangs up without reading; why is still there to be read.
    let sent = stream.write_all(&commands.get_packed_pipeline()).await;
    let sent = match sent {
        Ok(()) => stream.flush().await,
        failed => failed,
    };
    let mut bytes = Vec::new();
    loop {
        let read = stream.read_buf(&mut bytes).await;
        let answers = parse(&bytes)?;
        match read {
            _ if answers.len() >= commands.len() => return Ok(answers),
            // Nothing that is asked here has a longer answer.
            Ok(1..) if bytes.len() <= LONGEST => {}
            _ if !answers.is_empty() => return Ok(answers),
            Ok(_) => return Err(Deaf::HungUp(sent.err())),
            Err(error) => return Err(Deaf::HungUp(Some(error))),
        }
    }
}

/// Reads the answers that are complete.
fn parse(bytes: &[u8]) -> Result<Vec<Value>, Deaf> {
    let mut parser = Parser::new();
    let mut reader = bytes;
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        match parser.parse_value(&mut reader) {
            Ok(answer) => answers.push(answer),
            Err(error) if error.kind() == ErrorKind::Io => break,
            Err(_) => return Err(Deaf::Gibberish(bytes[0])),
        }
    }
    Ok(answers)
}

/// Finds out whether a server that hangs up on plain text speaks TLS instead.
async fn speaks_tls(server: &Server, deadline: Deadline) -> bool {
    let attempt = async {
        let stream = connect(server, deadline).await?;
        Ok(tls::is_spoken(stream, server).await)
    };
    let late = |limit| Problem::new(server, Obstacle::SilentInTls(limit));
    deadline.bound(late, attempt).await.unwrap_or(false)
}
