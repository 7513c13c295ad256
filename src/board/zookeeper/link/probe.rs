//! Why a server gives us no session: the client only says that none did, and so we ask each.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, lookup_host},
    time::{self, Instant},
};

use super::{
    problem::{Cause, Problem},
    tls::{self, Tls},
};
use crate::board::{net::failure::reason, url::Server};

/// How long to wait for an answer before others are given what they may be waiting for.
const PAUSE: Duration = Duration::from_secs(1);

/// How long something may take altogether.
#[derive(Debug, Clone, Copy)]
pub(in crate::board::zookeeper) struct Deadline {
    pub(in crate::board::zookeeper) at: Instant,
    pub(in crate::board::zookeeper) length: Duration,
}

impl Deadline {
    /// Begins to count.
    pub(in crate::board::zookeeper) fn after(length: Duration) -> Self {
        Self {
            at: Instant::now() + length,
            length,
        }
    }
}

/// Finds out whether a server would give us a session; one that does ends it at once.
pub(in crate::board::zookeeper) async fn probe(
    server: &Server,
    tls: Option<&Tls>,
    deadline: Deadline,
) -> Result<(), Problem> {
    let late = match tls {
        Some(_) => Cause::SilentInTls(deadline.length),
        None => Cause::Silent(deadline.length),
    };
    let asked = time::timeout_at(deadline.at, ask(server, tls)).await;
    asked.unwrap_or_else(|_| Err(Problem::new(server, late)))
}

async fn ask(server: &Server, tls: Option<&Tls>) -> Result<(), Problem> {
    let problem = |cause| Problem::new(server, cause);
    let stream = connect(server).await?;
    let answer = match tls {
        None => converse(stream).await,
        Some(tls) => {
            let stream = tls.secure(stream, server).await.map_err(problem)?;
            converse(stream).await
        }
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let alert = tls.and_then(|tls| tls.alert(&error));
            return Err(problem(alert.unwrap_or(Cause::BrokenOff)));
        }
    };
    let known = understand(&answer);
    if known.is_err() && tls.is_none() && tls::is_spoken(connect(server).await?, server).await {
        return Err(problem(Cause::WantsTls));
    }
    known.map_err(problem)
}

/// Connects to a server by any of its addresses.
async fn connect(server: &Server) -> Result<TcpStream, Problem> {
    let unresolved = |reason: &str| {
        let reason = reason.trim_start_matches("failed to lookup address information: ");
        let cause = Cause::Unresolved(reason.to_owned());
        Problem::new(format!("the name {}", server.host), cause)
    };
    let addresses = lookup_host((server.host.as_str(), server.port))
        .await
        .map_err(|error| unresolved(&error.to_string()))?;
    let mut last = unresolved("it has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                last = Problem::new(server, Cause::RefusedConnection);
            }
            Err(error) => last = Problem::new(server, Cause::NoWay(reason(&error))),
        }
    }
    Err(last)
}

/// Asks for a session and for its end in one breath, and returns the answer to the former.
///
/// Others who wait for the end of a line get one, once ZooKeeper would have answered.
async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    stream.write_all(&request()).await?;
    stream.flush().await?;
    let mut reading = (&mut stream).take(ANSWER as u64);
    let Ok(read) = time::timeout(PAUSE, reading.read_to_end(&mut answer)).await else {
        if answer.is_empty() {
            stream.write_all(b"\r\n\r\n").await?;
            stream.flush().await?;
            let mut bytes = [0; ANSWER];
            let length = stream.read(&mut bytes).await?;
            answer.extend_from_slice(&bytes[..length]);
        }
        return Ok(answer);
    };
    match read {
        // Only TLS says more than that the other side has hung up, however harshly.
        Err(error) if error.get_ref().is_some() && answer.is_empty() => Err(error),
        Ok(_) | Err(_) => Ok(answer),
    }
}

/// How long the answer to a request for a session is, without what later versions add to it.
const ANSWER: usize = 40;

/// What both sides send to name a session: so many bytes.
const PASSWORD: i32 = 16;

/// Returns the requests for a session, and for its end.
fn request() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(61);
    let mut numbers = |numbers: &[i32]| {
        bytes.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
    };
    // The length; version 0, nothing seen yet, a timeout in milliseconds, and no session to resume
    // with its password. The last byte is whether a server without its ensemble will do.
    numbers(&[45, 0, 0, 0, 1000, 0, 0, PASSWORD, 0, 0, 0, 0]);
    bytes.push(0);
    // The length, a number for the request, and what it is.
    let (first, close_session) = (1_i32, -11_i32);
    for number in [8, first, close_session] {
        bytes.extend(number.to_be_bytes());
    }
    bytes
}

/// Makes sense of an answer.
fn understand(answer: &[u8]) -> Result<(), Cause> {
    if answer.is_empty() {
        return Err(Cause::Closed);
    }
    let number = |at: usize| {
        let bytes = answer.get(at..at + 4)?.try_into().ok()?;
        Some(i32::from_be_bytes(bytes))
    };
    let (Some(length), Some(version), Some(timeout)) = (number(0), number(4), number(8)) else {
        return Err(Cause::NotZooKeeper);
    };
    let is_session = (36..=37).contains(&length) && version == 0 && timeout > 0;
    match is_session && number(20) == Some(PASSWORD) {
        true => Ok(()),
        false => Err(Cause::NotZooKeeper),
    }
}
