//! A stream to one server: by its name, by its socket, in TLS.

use std::{fmt, io, path::PathBuf};

use tokio::{
    io::{AsyncRead, AsyncWrite, WriteHalf, split},
    net::UnixStream,
};

use super::{
    bounded::Replies,
    problem::{Cause, Problem},
};
use crate::{
    board::{
        net::{
            connect::{Deadline, connect},
            problem::Obstacle,
            tls,
        },
        url::{Server, TlsFiles},
    },
    secret::Secret,
};

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

pub(crate) struct Talk {
    pub(crate) writer: WriteHalf<Box<dyn Stream>>,
    pub(crate) replies: Replies,
}

#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) place: Place,
    /// `None` connects without TLS.
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    /// Maximum size of a value that is read.
    pub(crate) most: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp(Server),
    Unix(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(server) => server.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl Endpoint {
    pub(crate) async fn connect(&self, deadline: Deadline) -> Result<Talk, Problem> {
        let stream: Box<dyn Stream> = match &self.place {
            Place::Tcp(server) => {
                let stream = connect(server, deadline).await?;
                match &self.tls {
                    None => Box::new(stream),
                    Some(files) => {
                        let late = |limit| Problem::new(server, Obstacle::SilentInTls(limit));
                        let config = tls::config(files, server)?;
                        let secured = tls::secure(stream, server, config);
                        Box::new(deadline.bound(late, secured).await?)
                    }
                }
            }
            Place::Unix(path) => match UnixStream::connect(path).await {
                Ok(stream) => Box::new(stream),
                Err(error) => {
                    return Err(self.problem(match error.kind() {
                        io::ErrorKind::NotFound => Cause::NoSocket,
                        io::ErrorKind::PermissionDenied => Cause::ForbiddenSocket,
                        _ => Obstacle::from(error).into(),
                    }));
                }
            },
        };
        let (reader, writer) = split(stream);
        let replies = Replies::new(reader, self.most);
        Ok(Talk { writer, replies })
    }

    pub(crate) fn problem(&self, cause: impl Into<Cause>) -> Problem {
        Problem::new(&self.place, cause)
    }
}
