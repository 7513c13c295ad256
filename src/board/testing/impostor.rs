//! A fake server for tests.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};

/// Not a real server: sends one of these replies after each read, then hangs up.
pub(crate) async fn impostor(answers: &'static [&'static str]) -> (u16, JoinHandle<()>) {
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
