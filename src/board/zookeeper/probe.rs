//! Why a server gives us no session: the client only says that none did, and so we ask each.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, lookup_host},
    time::{self, Instant},
};

use super::{
    tls::{self, Tls, reason},
    trouble::{Problem, Trouble},
};
use crate::board::url::Server;

/// How long a server that speaks ZooKeeper may think about a word of four letters.
const PAUSE: Duration = Duration::from_secs(1);

/// How long something may take altogether.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    pub(super) length: Duration,
}

impl Deadline {
    /// Begins to count.
    pub(super) fn after(length: Duration) -> Self {
        Self {
            at: Instant::now() + length,
            length,
        }
    }
}

/// A server that speaks ZooKeeper and would serve us.
#[derive(Debug)]
pub(super) struct Healthy {
    pub(super) server: Server,
    /// Its version, if it tells: `3.8.0`.
    pub(super) version: Option<String>,
}

/// Asks a server how it is, without a session.
pub(super) async fn probe(
    server: &Server,
    tls: Option<&Tls>,
    deadline: Deadline,
) -> Result<Healthy, Trouble> {
    let late = match tls {
        Some(_) => Problem::SilentInTls(deadline.length),
        None => Problem::Silent(deadline.length),
    };
    let asked = time::timeout_at(deadline.at, ask(server, tls));
    let version = asked
        .await
        .unwrap_or_else(|_| Err(Trouble::new(server, late)))?;
    Ok(Healthy {
        server: server.clone(),
        version,
    })
}

async fn ask(server: &Server, tls: Option<&Tls>) -> Result<Option<String>, Trouble> {
    let trouble = |problem| Trouble::new(server, problem);
    let stream = connect(server).await?;
    let answer = match tls {
        None => converse(stream).await,
        Some(tls) => {
            let stream = tls.secure(stream, server).await.map_err(trouble)?;
            converse(stream).await
        }
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let alert = tls.and_then(|tls| tls.alert(&error));
            return Err(trouble(alert.unwrap_or(Problem::BrokenOff)));
        }
    };
    let known = understand(&answer);
    if known.is_err() && tls.is_none() && tls::is_spoken(connect(server).await?, server).await {
        return Err(trouble(Problem::WantsTls));
    }
    known.map_err(trouble)
}

/// Connects to a server by any of its addresses.
async fn connect(server: &Server) -> Result<TcpStream, Trouble> {
    let unresolved = |reason: &str| {
        let reason = reason.trim_start_matches("failed to lookup address information: ");
        let problem = Problem::Unresolved(reason.to_owned());
        Trouble::new(format!("the name {}", server.host), problem)
    };
    let addresses = lookup_host((server.host.as_str(), server.port))
        .await
        .map_err(|error| unresolved(&error.to_string()))?;
    let mut last = unresolved("it has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                last = Trouble::new(server, Problem::RefusedConnection);
            }
            Err(error) => last = Trouble::new(server, Problem::NoWay(reason(&error))),
        }
    }
    Err(last)
}

/// Asks for the state of the server, and returns the beginning of what it says.
///
/// Others who wait for the end of a line get one, once ZooKeeper would have answered.
async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    stream.write_all(b"srvr").await?;
    stream.flush().await?;
    let mut reading = (&mut stream).take(4096);
    let Ok(read) = time::timeout(PAUSE, reading.read_to_end(&mut answer)).await else {
        if answer.is_empty() {
            stream.write_all(b"\r\n\r\n").await?;
            stream.flush().await?;
            let mut bytes = [0; 64];
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

/// Makes sense of an answer.
fn understand(answer: &[u8]) -> Result<Option<String>, Problem> {
    let text = String::from_utf8_lossy(answer);
    if text.is_empty() {
        return Err(Problem::Closed);
    }
    if text.contains("not currently serving requests") {
        return Err(Problem::NotServing);
    }
    if text.contains("is not executed because it is not in the whitelist") {
        return Ok(None);
    }
    let Some(version) = text.strip_prefix("Zookeeper version: ") else {
        return Err(Problem::NotZooKeeper);
    };
    let end = version.find(['-', ',', '\n']).unwrap_or(version.len());
    let version = &version[..end];
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let numbers: [u32; 2] = [(); 2].map(|()| numbers.next().unwrap_or(0));
    if numbers < [3, 6] {
        return Err(Problem::Old);
    }
    Ok(Some(version.to_owned()))
}
