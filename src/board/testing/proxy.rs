//! What stands between a link and a server, or in the place of one.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// Something that is no such server: gives each of these answers when it has read something.
///
/// It hangs up behind the last one.
pub(in crate::board) async fn impostor(answers: &'static [&'static str]) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            for answer in answers {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    };
    (port, tokio::spawn(serve))
}

/// What a [`Proxy`] does with the answers of the server behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::board) enum Mood {
    /// Passes them on.
    PassOn,
    /// Swallows them.
    Silent,
    /// Swallows the next one and hangs up.
    HangUp,
}

/// Stands between a link and a server, and passes on whatever is asked.
pub(in crate::board) struct Proxy {
    pub(in crate::board) port: u16,
    pub(in crate::board) mood: watch::Sender<Mood>,
    serving: JoinHandle<()>,
}

impl Proxy {
    /// Starts before a server that listens on this port.
    pub(in crate::board) async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mood, moods) = watch::channel(Mood::PassOn);
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                tokio::spawn(pass_on(client, server, moods.clone()));
            }
        });
        Self {
            port,
            mood,
            serving,
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn pass_on(client: TcpStream, server: TcpStream, moods: watch::Receiver<Mood>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asking = copy(&mut from_client, &mut to_server);
    let answering = async {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = from_server.read(&mut bytes).await {
            let mood = *moods.borrow();
            match mood {
                Mood::PassOn => to_client.write_all(&bytes[..length]).await.unwrap(),
                Mood::Silent => {}
                Mood::HangUp => return,
            }
        }
    };
    tokio::select! {
        _ = asking => {}
        () = answering => {}
    }
}
