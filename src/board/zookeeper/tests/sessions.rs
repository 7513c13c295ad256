//! Leases that live as long as their owner's session.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Mutex,
    thread,
};

use super::*;
use crate::board::zookeeper::link::ZooKeeperClient;

fn kept() -> crate::job::Claimant {
    claimant("keeper", Term::Lease(Duration::from_secs(2)))
}

fn claim(key: &JobKey, fence: Fence) -> Claim {
    Claim {
        key: key.clone(),
        owner: owner("keeper"),
        fence: Some(fence),
        term: Duration::from_secs(2),
    }
}

async fn renew(board: &Subject, claim: &Claim) -> Result<()> {
    board
        .renew(std::slice::from_ref(claim))
        .await?
        .pop()
        .unwrap()
}

#[tokio::test]
async fn kept_claim_ends_when_its_board_closes() {
    need!(site = Site::new());
    let (board, others) = (site.board(), site.board());
    let key = post_one(&board, "kept").await;
    claim_one(&board, &key, &kept()).await.unwrap();
    let lock = site.paths.lock(&key);
    let (_, stat) = site.nodes().await.get(&lock).await.unwrap();
    assert_ne!(stat.ephemeral_owner, 0);
    board.close().await;
    claim_one(&others, &key, &bob()).await.unwrap();
    let (_, stat) = site.nodes().await.get(&lock).await.unwrap();
    assert_eq!(stat.ephemeral_owner, 0);
}

#[tokio::test]
async fn kept_claim_ends_with_a_lost_session_and_is_not_renewed() {
    need!(site = Site::new());
    let proxy = Proxy::start(site.port);
    let (board, others) = (site.board_behind(&proxy), site.board());
    let key = post_one(&board, "kept").await;
    let fence = claim_one(&board, &key, &kept()).await.unwrap().fence;
    let claim = claim(&key, fence);
    renew(&board, &claim).await.unwrap();
    proxy.set(ProxyMode::HangUp);
    crate::board::conformance::until_free(&others, &key).await;
    proxy.set(ProxyMode::PassOn);
    let refused = loop {
        match renew(&board, &claim).await {
            Err(error) if error.is_retryable() => {}
            other => break other,
        }
    };
    assert_matches!(refused, Err(BoardError::NotClaimed));
}

#[tokio::test]
async fn registration_does_not_depend_on_the_lease_of_claims() {
    need!(site = Site::new());
    let board = site.board();
    register_worker(&board).await;
    board.lease_term(Duration::from_secs(2)).await.unwrap();
    let key = post_one(&board, "kept").await;
    claim_one(&board, &key, &kept()).await.unwrap();
    assert_eq!(site.board().conductors().await.unwrap().len(), 1);
}

/// Proxies one connection after the other, and records the requests.
fn listen_in(port: u16) -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (own, heard) = (listener.local_addr().unwrap().port(), Arc::default());
    let writing = Arc::clone(&heard);
    thread::spawn(move || {
        for client in listener.incoming().map_while(std::result::Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut answers, mut back) =
                (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut answers, &mut back));
            let heard: Arc<Mutex<Vec<u8>>> = Arc::clone(&writing);
            thread::spawn(move || {
                let (mut client, mut server, mut bytes) = (client, server, [0; 4096]);
                while let Ok(length @ 1..) = client.read(&mut bytes) {
                    heard.lock().unwrap().extend(&bytes[..length]);
                    server.write_all(&bytes[..length]).unwrap();
                }
            });
        }
    });
    (own, heard)
}

fn kinds(mut bytes: &[u8]) -> Vec<i32> {
    let number = |bytes: &[u8]| i32::from_be_bytes(bytes[..4].try_into().unwrap());
    let mut kinds = Vec::new();
    while !bytes.is_empty() {
        let (request, rest) = bytes[4..].split_at(usize::try_from(number(bytes)).unwrap());
        kinds.push(number(&request[4..]));
        bytes = rest;
    }
    kinds
}

#[tokio::test]
async fn renewal_and_lookup_sync_the_server_before_reading() {
    need!(site = Site::new());
    let (port, heard) = listen_in(site.port);
    let board = board_at(port, &site.path);
    let key = post_one(&board, "kept").await;
    board.lease_term(Duration::from_secs(2)).await.unwrap();
    let fence = claim_one(&board, &key, &kept()).await.unwrap().fence;
    let (sync, reads) = (9, 22);
    heard.lock().unwrap().clear();
    renew(&board, &claim(&key, fence)).await.unwrap();
    assert_eq!(kinds(&heard.lock().unwrap()), [sync, reads]);
    heard.lock().unwrap().clear();
    on_board(&board, &key).await;
    assert_eq!(kinds(&heard.lock().unwrap()), [sync, reads]);
}

/// Requires that one of ten closings ends with the last reply, not with the timeout. Load may delay the others.
async fn is_fast(mut closing: impl AsyncFnMut() -> Duration) {
    for _ in 0..10 {
        if closing().await < Duration::from_secs(1) {
            return;
        }
    }
    panic!("each closing is slow");
}

async fn time_of(closing: impl Future<Output = ()>) -> Duration {
    let start = std::time::Instant::now();
    closing.await;
    start.elapsed()
}

#[tokio::test]
async fn closing_is_fast() {
    need!(site = Site::new());
    let close_board = async |claims: bool| {
        let board = site.board();
        let key = post_one(&board, "left").await;
        if claims {
            claim_one(&board, &key, &kept()).await.unwrap();
        }
        let mut entries = board.entries(WHOLE_BOARD);
        futures_util::StreamExt::next(&mut entries)
            .await
            .unwrap()
            .unwrap();
        drop(entries);
        drop(board.events().await.unwrap());
        time_of(board.close()).await
    };
    is_fast(async || close_board(false).await).await;
    is_fast(async || close_board(true).await).await;
    let url = zookeeper_url(&format!("zk://127.0.0.1:{}", site.port));
    is_fast(async || {
        let client = ZooKeeperClient::new(&url, None, OP_TIMEOUT);
        client.session("read").await.unwrap();
        time_of(client.close()).await
    })
    .await;
}
