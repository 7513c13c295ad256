//! Servers that go away during reads and subscriptions.

use futures_util::{StreamExt, TryStreamExt};

use super::*;
use crate::board::{Event, EventKind, Order, Query};

const EVENT_TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn listing_survives_a_server_restart_or_reports_it() {
    need!(mut server = Server::start(&[]));
    let site = Site::on(&server);
    let board = site.board();
    let drafts: Vec<_> = (0..600).map(|_| draft("many")).collect();
    board.post(&drafts, None).await.unwrap();
    let query = Query {
        order: Order::Any,
        ..WHOLE_BOARD
    };
    let mut entries = board.entries(query);
    let mut seen = HashSet::new();
    for _ in 0..10 {
        seen.insert(entries.next().await.unwrap().unwrap().key().clone());
    }
    server.stop();
    let outcome = loop {
        match entries.next().await {
            Some(Ok(entry)) => assert!(seen.insert(entry.key().clone()), "it is listed twice"),
            Some(Err(error)) => break error,
            None => panic!("a listing without its server is not whole"),
        }
    };
    assert!(outcome.is_retryable(), "{outcome:?}");
    drop(entries);
    server.start_again();
    let all = loop {
        match board.entries(query).try_collect::<Vec<_>>().await {
            Ok(all) => break all,
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
    };
    assert_eq!(all.len(), 600);
}

#[tokio::test]
async fn listener_gets_a_resync_and_then_the_current_state() {
    need!(mut server = Server::start(&[]));
    let site = Site::on(&server);
    let (board, others) = (site.board(), site.board());
    let missed = post_one(&others, "missed").await;
    let mut events = board.events().await.unwrap().stream;
    others.close().await;
    server.stop();
    server.start_again();
    let mut next = async || {
        let next = tokio::time::timeout(EVENT_TIMEOUT, events.next()).await;
        next.expect("an event").unwrap().unwrap()
    };
    assert_eq!(next().await.kind, EventKind::Resync);
    let others = site.board();
    claim_one(&others, &missed, &ada()).await.unwrap();
    let kind_and_key = |event: Event| (event.kind, event.subject.map(|subject| subject.key));
    assert_eq!(
        kind_and_key(next().await),
        (EventKind::Claimed, Some(missed.clone()))
    );
    settled(&others, &missed, trash(), by_name("ada")).await;
    assert_eq!(
        kind_and_key(next().await),
        (EventKind::Trashed, Some(missed))
    );
    let key = post_one(&others, "later").await;
    assert_eq!(kind_and_key(next().await), (EventKind::Posted, Some(key)));
}

#[tokio::test]
async fn session_replaced_between_two_pages_does_not_break_a_listing() {
    need!(site = Site::new());
    let proxy = Proxy::start(site.port);
    let url = format!("zk://127.0.0.1:{}{}?session=3s", proxy.port, site.path);
    let board: Subject = Arc::new(ZooKeeper::new(
        &zookeeper_url(&url),
        None,
        OP_TIMEOUT,
        crate::job::HISTORY,
    ));
    let drafts: Vec<_> = (0..600).map(|_| draft("many")).collect();
    board.post(&drafts, None).await.unwrap();
    let key = list(&board, WHOLE_BOARD).await.remove(0).key;
    let kept = claimant("keeper", Term::Lease(Duration::from_secs(3)));
    claim_one(&board, &key, &kept).await.unwrap();
    let mut entries = board.entries(WHOLE_BOARD);
    let first = entries.next().await.unwrap().unwrap();
    proxy.set(ProxyMode::HangUp);
    crate::board::conformance::until_free(&site.board(), &key).await;
    proxy.set(ProxyMode::PassOn);
    let rest: Vec<_> = entries.try_collect().await.unwrap();
    let keys: HashSet<_> = rest.iter().chain([&first]).map(Entry::key).collect();
    assert_eq!((keys.len(), rest.len()), (600, 599));
}
