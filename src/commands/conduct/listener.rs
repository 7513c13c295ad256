//! Serves a conductor's health and metrics over HTTP; no request costs much.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};

const MAX_CLIENTS: usize = 16;

const MAX_REQUEST_BYTES: usize = 8 * 1024;

const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

const MAX_LOOK: Duration = Duration::from_secs(60);

const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) enum MetricsListener {
    Tcp(TcpListener),
    Unix(UnixListener, Socket),
}

#[derive(Debug)]
pub(super) struct Socket(PathBuf, Option<OwnedFileIdentity>);

/// Includes the time: the inode number of a deleted file may be reused.
pub(super) type OwnedFileIdentity = (u64, u64, i64, i64);

/// Returns the identity, which a replacement at the same path does not share.
pub(super) fn identity(path: &Path) -> Option<OwnedFileIdentity> {
    fs::symlink_metadata(path).ok().map(identity_of)
}

pub(super) fn identity_of(facts: fs::Metadata) -> OwnedFileIdentity {
    (facts.dev(), facts.ino(), facts.ctime(), facts.ctime_nsec())
}

impl Drop for Socket {
    fn drop(&mut self) {
        if identity(&self.0) == self.1 {
            // A leftover socket does no harm: the next conductor replaces it.
            let _ = fs::remove_file(&self.0);
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct HttpAnswer {
    pub(super) status: &'static str,
    pub(super) text: String,
}

impl HttpAnswer {
    fn refusal(status: &'static str) -> Self {
        Self {
            status,
            text: format!("{status}\n"),
        }
    }
}

pub(super) trait Site: Send + Sync + 'static {
    fn answer(&self, path: &str) -> impl Future<Output = Option<HttpAnswer>> + Send;
}

impl MetricsListener {
    pub(super) async fn at_address(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).await.map(Self::Tcp)
    }

    /// Creates a socket, also in place of one without a listener.
    pub(super) fn at_path(path: &Path) -> io::Result<Self> {
        let is_socket = fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
        let is_refused = |it: io::Error| it.kind() == io::ErrorKind::ConnectionRefused;
        let client = || std::os::unix::net::UnixStream::connect(path);
        if is_socket && client().err().is_some_and(is_refused) {
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        let socket = Socket(path.to_owned(), identity(path));
        Ok(Self::Unix(listener, socket))
    }

    pub(super) fn address(&self) -> String {
        match self {
            Self::Tcp(listener) => listener
                .local_addr()
                .map(|it| it.to_string())
                .unwrap_or_default(),
            Self::Unix(_, Socket(path, _)) => format!("unix:{}", path.display()),
        }
    }

    /// Serves requests forever. Beyond a few clients the rest wait, and the oldest silent client is dropped.
    pub(super) async fn serve(&self, site: Arc<impl Site>) {
        let (mut clients, mut there) =
            (JoinSet::new(), Vec::<(AbortHandle, Arc<AtomicBool>)>::new());
        loop {
            let accepted = match self {
                Self::Tcp(listener) => listener.accept().await.map(|(it, _)| HttpClient::Tcp(it)),
                Self::Unix(listener, _) => {
                    listener.accept().await.map(|(it, _)| HttpClient::Unix(it))
                }
            };
            while clients.try_join_next().is_some() {}
            there.retain(|(client, _)| !client.is_finished());
            if clients.len() >= MAX_CLIENTS {
                let mut idle = there.iter().filter(|(_, is_busy)| !is_busy.load(Relaxed));
                idle.next().inspect(|(client, _)| client.abort());
                clients.join_next().await;
            }
            match accepted {
                Ok(client) => {
                    let (site, is_busy) = (Arc::clone(&site), Arc::<AtomicBool>::default());
                    let busy = Arc::clone(&is_busy);
                    let client = clients.spawn(async move {
                        // A client that leaves or is too slow gets no answer.
                        let _ = match client {
                            HttpClient::Tcp(client) => attend(client, &*site, &busy).await,
                            HttpClient::Unix(client) => attend(client, &*site, &busy).await,
                        };
                    });
                    there.push((client, is_busy));
                }
                // File descriptors may be exhausted for a while.
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
        }
    }
}

enum HttpClient {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Answers one request; the flag shows whether an answer is due.
async fn attend<C: AsyncRead + AsyncWrite + Unpin>(
    mut client: C,
    site: &impl Site,
    is_busy: &AtomicBool,
) -> io::Result<()> {
    let asked = timeout(CLIENT_TIMEOUT, request(&mut client)).await;
    is_busy.store(true, Relaxed);
    let (answer, wants_text) = match asked {
        Err(_) => (HttpAnswer::refusal("408 Request Timeout"), true),
        Ok(Err(answer)) => (answer, true),
        Ok(Ok(HttpRequest { path, wants_text })) => {
            let answer = timeout(MAX_LOOK, site.answer(&path)).await;
            let late = |_| Some(HttpAnswer::refusal("503 Service Unavailable"));
            let answer = answer.unwrap_or_else(late);
            let answer = answer.unwrap_or_else(|| HttpAnswer::refusal("404 Not Found"));
            (answer, wants_text)
        }
    };
    let HttpAnswer { status, text } = answer;
    let (length, text) = (text.len(), if wants_text { &*text } else { "" });
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
        Allow: GET, HEAD\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
    timeout(CLIENT_TIMEOUT, async {
        client.write_all(answer.as_bytes()).await?;
        client.shutdown().await?;
        is_busy.store(false, Relaxed);
        // Unread input would reset the connection and lose the answer.
        let mut rest = [0; 4096];
        for _ in 0..MAX_REQUEST_BYTES {
            if client.read(&mut rest).await? == 0 {
                break;
            }
        }
        Ok(())
    })
    .await?
}

struct HttpRequest {
    path: String,
    /// `false` for HEAD.
    wants_text: bool,
}

async fn request(client: &mut (impl AsyncRead + Unpin)) -> Result<HttpRequest, HttpAnswer> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut piece = [0; 1024];
        match client.read(&mut piece).await {
            Ok(0) | Err(_) => return Err(HttpAnswer::refusal("400 Bad Request")),
            Ok(length) => request.extend(&piece[..length]),
        }
        if request.len() > MAX_REQUEST_BYTES {
            return Err(HttpAnswer::refusal("431 Request Header Fields Too Large"));
        }
    }
    let line = String::from_utf8_lossy(&request);
    let mut words = line.lines().next().unwrap_or_default().split(' ');
    match (words.next(), words.next(), words.next()) {
        (Some(method @ ("GET" | "HEAD")), Some(target), Some(version))
            if version.starts_with("HTTP/1.") =>
        {
            Ok(HttpRequest {
                path: path_of(target).to_owned(),
                wants_text: method == "GET",
            })
        }
        (Some(_), Some(_), Some(version)) if version.starts_with("HTTP/1.") => {
            Err(HttpAnswer::refusal("405 Method Not Allowed"))
        }
        _ => Err(HttpAnswer::refusal("400 Bad Request")),
    }
}

/// Returns the path of a target, which is a whole address behind a proxy.
fn path_of(target: &str) -> &str {
    let target = target.split('?').next().unwrap_or_default();
    match target.split_once("://") {
        Some((scheme, address)) if !scheme.contains('/') => {
            address.find('/').map_or("/", |start| &address[start..])
        }
        _ => target,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::untrusted::{Answer as Became, Bounds, Corpus, refused, same};

    struct Nothing;

    impl Site for Nothing {
        async fn answer(&self, path: &str) -> Option<HttpAnswer> {
            (path == "/metrics").then(|| HttpAnswer::refusal("200 OK"))
        }
    }

    #[tokio::test]
    async fn invalid_requests_get_the_matching_status() {
        for (request, status) in [
            ("GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n", "200"),
            ("GET /metrics?x=y HTTP/1.0\r\n\r\n", "200"),
            (
                "GET http://h:9/metrics HTTP/1.1\r\nHost: h:9\r\n\r\n",
                "200",
            ),
            ("GET HTTP://h/metrics?x=y://z/ HTTP/1.1\r\n\r\n", "200"),
            ("GET /metrics?x=y://z/ HTTP/1.1\r\n\r\n", "200"),
            ("GET http://h HTTP/1.1\r\n\r\n", "404"),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", "200"),
            ("HEAD /else HTTP/1.1\r\n\r\n", "404"),
            ("GET /else HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("\0\u{1b}[2J\r\n\r\n", "400"),
            ("GET /metrics SPDY/3\r\n\r\n", "400"),
            ("GET /met", "400"),
            (&"x".repeat(3 * MAX_REQUEST_BYTES), "431"),
        ] {
            let (mut here, there) = tokio::io::duplex(4 * MAX_REQUEST_BYTES);
            let attending =
                tokio::spawn(async move { attend(there, &Nothing, &AtomicBool::default()).await });
            here.write_all(request.as_bytes()).await.unwrap();
            here.shutdown().await.unwrap();
            let mut answer = String::new();
            here.read_to_string(&mut answer).await.unwrap();
            let beginning = format!("HTTP/1.1 {status} ");
            assert!(answer.starts_with(&beginning), "{request:?}: {answer}");
            let (head, text) = answer.split_once("\r\n\r\n").unwrap();
            // The length of the body, also where the body is not sent.
            assert!(!head.contains("Content-Length: 0"), "{request:?}: {answer}");
            assert_eq!(text.is_empty(), request.starts_with("HEAD"), "{request:?}");
            attending.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn request_is_answered_despite_many_idle_connections() {
        let listener = MetricsListener::at_address("127.0.0.1:0".parse().unwrap())
            .await
            .unwrap();
        let address = listener.address();
        let idle = async |sent: &'static [u8]| {
            let mut idle = TcpStream::connect(&address).await.unwrap();
            idle.write_all(sent).await.unwrap();
            idle
        };
        let asking = async {
            let mut all = Vec::new();
            for _ in 0..4 * MAX_CLIENTS {
                all.push(idle(b"").await);
                all.push(idle(b"GET /met").await);
                all.push(idle(b"GET /metrics HTTP/1.1\r\n\r\n").await);
            }
            let mut answer = String::new();
            let mut client = idle(b"GET /metrics HTTP/1.1\r\n\r\n").await;
            client.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let serving = listener.serve(Arc::new(Nothing));
        let asked = timeout(CLIENT_TIMEOUT / 2, asking);
        let answer = tokio::select! {
            () = serving => unreachable!(),
            answer = asked => answer.expect("nobody has to wait for those who ask nothing"),
        };
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }

    #[test]
    fn untrusted_requests_name_a_path_or_get_a_status() {
        let requests = [
            "GET /metrics?x=y HTTP/1.1\r\nHost: h\r\n\r\n",
            "HEAD http://h:9/healthz HTTP/1.0\r\n\r\n",
            "POST /metrics HTTP/1.1\r\n\r\n",
        ];
        Corpus::of(Bounds::STORED, requests).hold(|input| {
            let read = request(&mut &*input).now_or_never();
            match read.ok_or("it waits for more than there is")? {
                Ok(HttpRequest { path, .. }) => {
                    same(
                        "its path is one word",
                        &path.contains(['?', ' ', '\n']),
                        &false,
                    )?;
                    Ok(Became::Read)
                }
                Err(answer) => refused(answer.status),
            }
        });
    }
}
