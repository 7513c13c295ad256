//! Exchanges before a connection is in use, and the meaning of missing replies.

use std::io;

use redis::{Pipeline, Value};
use tokio::io::AsyncWriteExt;

use super::{
    bounded::Deaf,
    connect::{Endpoint, Place, Talk},
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

impl Endpoint {
    /// Returns the replies so far if the server hangs up early.
    pub(crate) async fn exchange(
        &self,
        talk: &mut Talk,
        commands: &Pipeline,
        deadline: Deadline,
    ) -> Result<Vec<Value>, Problem> {
        let late = |limit| self.problem(Obstacle::Silent(limit));
        let answers = answers(talk, commands);
        let answers = deadline.bound(late, async { Ok(answers.await) }).await?;
        match answers {
            Ok(answers) => Ok(answers),
            Err(Deaf::HungUp(error)) => Err(self.explain(error.as_ref(), deadline).await),
            // An alert: a TLS server's reply to plain text.
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

async fn answers(talk: &mut Talk, commands: &Pipeline) -> Result<Vec<Value>, Deaf> {
    // A server that refuses clients hangs up without reading; its reason is still readable.
    let sent = talk.writer.write_all(&commands.get_packed_pipeline()).await;
    let sent = match sent {
        Ok(()) => talk.writer.flush().await,
        failed => failed,
    };
    let mut answers = Vec::new();
    while answers.len() < commands.len() {
        match talk.replies.next().await {
            Ok(answer) => answers.push(answer),
            Err(Deaf::HungUp(_)) if !answers.is_empty() => break,
            Err(Deaf::HungUp(None)) => return Err(Deaf::HungUp(sent.err())),
            Err(deaf) => return Err(deaf),
        }
    }
    Ok(answers)
}

/// Detects whether a server that hangs up on plain text speaks TLS.
async fn speaks_tls(server: &Server, deadline: Deadline) -> bool {
    let attempt = async {
        let stream = connect(server, deadline).await?;
        Ok(tls::is_spoken(stream, server).await)
    };
    let late = |limit| Problem::new(server, Obstacle::SilentInTls(limit));
    deadline.bound(late, attempt).await.unwrap_or(false)
}
