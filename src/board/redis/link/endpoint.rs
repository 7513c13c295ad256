//! A stream to one server, in TLS or not, and the first exchanges on it.

use std::{fmt, io, path::PathBuf};

use redis::{Pipeline, Value};
use tokio::{
    io::{AsyncWriteExt, WriteHalf, split},
    net::UnixStream,
};

use super::bounded::{ByteStream, Disconnect, Replies};
use crate::{
    board::{
        net::{
            cause::{ServerCause, ServerProblem},
            connect::{Deadline, connect},
            tls,
        },
        url::{Server, TlsFiles},
    },
    secret::Secret,
};

pub(crate) struct RawConnection {
    pub(crate) writer: WriteHalf<Box<dyn ByteStream>>,
    pub(crate) replies: Replies,
}

#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) place: ServerPlace,
    /// `None` connects without TLS.
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) most: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerPlace {
    Tcp(Server),
    Unix(PathBuf),
}

impl fmt::Display for ServerPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(server) => server.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl Endpoint {
    pub(crate) async fn connect(&self, deadline: Deadline) -> Result<RawConnection, ServerProblem> {
        let stream: Box<dyn ByteStream> = match &self.place {
            ServerPlace::Tcp(server) => {
                let stream = connect(server, deadline).await?;
                match &self.tls {
                    None => Box::new(stream),
                    Some(files) => {
                        let late =
                            |limit| ServerProblem::new(server, ServerCause::SilentInTls(limit));
                        let config = tls::config(files, server)?;
                        let secured = tls::secure(stream, server, config);
                        Box::new(deadline.bound(late, secured).await?)
                    }
                }
            }
            ServerPlace::Unix(path) => match UnixStream::connect(path).await {
                Ok(stream) => Box::new(stream),
                Err(error) => {
                    return Err(self.problem(match error.kind() {
                        io::ErrorKind::NotFound => ServerCause::NoSocket,
                        io::ErrorKind::PermissionDenied => ServerCause::ForbiddenSocket,
                        _ => ServerCause::from(error),
                    }));
                }
            },
        };
        let (reader, writer) = split(stream);
        let replies = Replies::new(reader, self.most);
        Ok(RawConnection { writer, replies })
    }

    pub(crate) fn problem(&self, cause: ServerCause) -> ServerProblem {
        ServerProblem::new(&self.place, cause)
    }

    /// Returns the replies so far if the server hangs up early.
    pub(crate) async fn exchange(
        &self,
        stream: &mut RawConnection,
        commands: &Pipeline,
        deadline: Deadline,
    ) -> Result<Vec<Value>, ServerProblem> {
        let late = |limit| self.problem(ServerCause::Silent(limit));
        let answers = answers(stream, commands);
        let answers = deadline.bound(late, async { Ok(answers.await) }).await?;
        match answers {
            Ok(answers) => Ok(answers),
            Err(Disconnect::Closed(error)) => Err(self.explain(error.as_ref(), deadline).await),
            // An alert: a TLS server's reply to plain text.
            Err(Disconnect::InvalidByte(0x15)) if self.tls.is_none() => {
                Err(self.problem(ServerCause::RequiresTls))
            }
            Err(Disconnect::InvalidByte(_)) => Err(self.problem(ServerCause::NotRedis)),
        }
    }

    async fn explain(&self, error: Option<&io::Error>, deadline: Deadline) -> ServerProblem {
        let has_identity = self.tls.as_ref().is_some_and(|tls| tls.identity.is_some());
        if let Some(cause) = error.and_then(|error| tls::objection(error, has_identity)) {
            return self.problem(cause);
        }
        match &self.place {
            ServerPlace::Tcp(server)
                if self.tls.is_none() && speaks_tls(server, deadline).await =>
            {
                self.problem(ServerCause::RequiresTls)
            }
            _ => self.problem(ServerCause::ClosedWithoutReply),
        }
    }
}

async fn answers(
    stream: &mut RawConnection,
    commands: &Pipeline,
) -> Result<Vec<Value>, Disconnect> {
    // A server that refuses clients hangs up without reading; its reason is still readable.
    let sent = stream
        .writer
        .write_all(&commands.get_packed_pipeline())
        .await;
    let sent = match sent {
        Ok(()) => stream.writer.flush().await,
        failed => failed,
    };
    let mut answers = Vec::new();
    while answers.len() < commands.len() {
        match stream.replies.next().await {
            Ok(answer) => answers.push(answer),
            Err(Disconnect::Closed(_)) if !answers.is_empty() => break,
            Err(Disconnect::Closed(None)) => return Err(Disconnect::Closed(sent.err())),
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
    let late = |limit| ServerProblem::new(server, ServerCause::SilentInTls(limit));
    deadline.bound(late, attempt).await.unwrap_or(false)
}
