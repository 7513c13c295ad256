//! Why a server gives us no session: the client does not report it, so we probe each server.

use std::{io, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::{self, Instant},
};

use super::tls::Tls;
use crate::board::{
    net::{
        cause::{BoardErrorKind, ServerCause, ServerProblem},
        connect::{Deadline, connect},
        tls::is_spoken,
    },
    url::Server,
};

/// How long to wait for a reply before probing further.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// How long to collect more working servers after the first.
const GATHERING: Duration = Duration::from_millis(100);

pub(crate) async fn examine(
    servers: &[Server],
    tls: Option<&Tls>,
    deadline: Deadline,
) -> (Vec<Server>, Vec<ServerProblem>) {
    let probes = servers.iter().enumerate();
    let mut probes: FuturesUnordered<_> = probes
        .map(|(place, server)| async move { (place, server, probe(server, tls, deadline).await) })
        .collect();
    let (mut well, mut problems) = (Vec::new(), Vec::new());
    let mut end = deadline.at + GATHERING;
    while let Ok(Some((place, server, result))) = time::timeout_at(end, probes.next()).await {
        match result {
            Ok(()) => {
                well.push(server.clone());
                end = end.min(Instant::now() + GATHERING);
            }
            Err(problem) => problems.push((place, problem)),
        }
    }
    problems.sort_by_key(|(place, _)| *place);
    let problems = problems.into_iter().map(|(_, problem)| problem);
    (well, problems.collect())
}

pub(crate) async fn probe(
    server: &Server,
    tls: Option<&Tls>,
    deadline: Deadline,
) -> Result<(), ServerProblem> {
    let late = |limit| match tls {
        Some(_) => ServerProblem::new(server, ServerCause::SilentInTls(limit)),
        None => ServerProblem::new(server, ServerCause::Silent(limit)),
    };
    deadline.bound(late, ask(server, tls, deadline)).await
}

async fn ask(server: &Server, tls: Option<&Tls>, deadline: Deadline) -> Result<(), ServerProblem> {
    let stream = connect(server, deadline).await?;
    let answer = match tls {
        None => converse(stream).await,
        Some(tls) => converse(tls.secure(stream, server).await?).await,
    };
    let answer = answer.map_err(|error| {
        let alert = tls.and_then(|tls| tls.alert(&error));
        ServerProblem::new(server, alert.unwrap_or(ServerCause::ConnectionLost))
    })?;
    let known = understand(&answer);
    if known.is_err() && tls.is_none() && is_spoken(connect(server, deadline).await?, server).await
    {
        return Err(ServerProblem::new(server, ServerCause::RequiresTls));
    }
    known.map_err(|cause| ServerProblem::new(server, cause))
}

/// Other protocols wait for the end of a line; send one after ZooKeeper's time to reply.
async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    stream.write_all(&request()).await?;
    stream.flush().await?;
    let mut reading = (&mut stream).take(REPLY_BYTES as u64);
    let Ok(read) = time::timeout(REPLY_TIMEOUT, reading.read_to_end(&mut answer)).await else {
        if answer.is_empty() {
            stream.write_all(b"\r\n\r\n").await?;
            stream.flush().await?;
            let mut bytes = [0; REPLY_BYTES];
            let length = stream.read(&mut bytes).await?;
            answer.extend_from_slice(&bytes[..length]);
        }
        return Ok(answer);
    };
    match read {
        // Only TLS reports more than a closed connection.
        Err(error) if error.get_ref().is_some() && answer.is_empty() => Err(error),
        Ok(_) | Err(_) => Ok(answer),
    }
}

/// Bytes of a reply that suffice to recognise ZooKeeper.
const REPLY_BYTES: usize = 40;

const PASSWORD: i32 = 16;

fn request() -> Vec<u8> {
    const CLOSE_SESSION: i32 = -11;
    let bytes = |numbers: &[i32]| numbers.iter().flat_map(|it| it.to_be_bytes()).collect();
    // Length, version 0, last transaction, a timeout in milliseconds, a new session and its password. The last byte
    // accepts a read-only server.
    let mut open: Vec<u8> = bytes(&[45, 0, 0, 0, 1000, 0, 0, PASSWORD, 0, 0, 0, 0]);
    open.push(0);
    // Length, request number and opcode.
    [open, bytes(&[8, 1, CLOSE_SESSION])].concat()
}

fn understand(answer: &[u8]) -> Result<(), ServerCause> {
    if answer.is_empty() {
        return Err(ServerCause::SessionRefused);
    }
    let number = |at: usize| {
        let bytes = answer.get(at..at + 4)?.try_into().ok()?;
        Some(i32::from_be_bytes(bytes))
    };
    let (Some(length), Some(version), Some(timeout)) = (number(0), number(4), number(8)) else {
        return Err(ServerCause::NotZooKeeper);
    };
    let is_session = (36..=37).contains(&length) && version == 0 && timeout > 0;
    match is_session && number(20) == Some(PASSWORD) {
        true => Ok(()),
        false => Err(ServerCause::NotZooKeeper),
    }
}

/// A server's refusal outweighs another server's absence.
pub(crate) fn most_informative(mut problems: Vec<ServerProblem>) -> Option<ServerProblem> {
    let heaviest = problems.iter().map(weight).max()?;
    let place = problems.iter().position(|one| weight(one) == heaviest)?;
    if problems.len() == 1 || heaviest > 0 {
        return Some(problems.swap_remove(place));
    }
    let each: Vec<_> = problems.iter().map(ServerProblem::to_string).collect();
    let cause = ServerCause::Unreachable(each.join(", "));
    Some(ServerProblem::new("the ensemble", cause))
}

/// How much a cause reveals about servers that should all be alike.
fn weight(problem: &ServerProblem) -> u8 {
    match (problem.cause(), problem.cause().kind()) {
        (_, BoardErrorKind::Denied | BoardErrorKind::Failed) => 2,
        (ServerCause::NoSession, _) => 1,
        _ => 0,
    }
}
