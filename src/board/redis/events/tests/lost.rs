//! Events after lost messages.

use std::pin::Pin;

use super::*;

const JOBS: usize = 2000;

/// Drives a start until part of the board was read and more is requested.
async fn until_within<F: Future>(start: &mut Pin<&mut F>, server: &Server) {
    let end = Instant::now() + EVENT_TIMEOUT;
    while calls(server, "hscan") < 2 {
        assert!(Instant::now() < end, "no page is asked for");
        tokio::select! {
            biased;
            _ = start.as_mut() => panic!("it has read all of the board"),
            () = tokio::task::yield_now() => {}
        }
    }
}

#[tokio::test]
async fn flush_during_a_read_is_no_consumption() {
    need!((board, server) = open(&[]));
    fill(&board, JOBS).await;
    let mut events = {
        let mut start = std::pin::pin!(events(&board));
        until_within(&mut start, &server).await;
        server.run::<()>(&["FLUSHALL"]);
        in_time(start).await.unwrap()
    };
    assert_eq!(next(&mut events).await.kind, EventKind::Resync);
    let marker = mark(&board).await;
    let mut seen = until(&mut events, EventKind::Posted).await;
    server.run::<()>(&["HDEL", "taskflow:listings", &marker.text()]);
    seen.extend(until(&mut events, EventKind::Consumed).await);
    let marked = |kind| (kind, "marker".to_owned());
    assert_eq!(
        seen,
        [marked(EventKind::Posted), marked(EventKind::Consumed)]
    );
}

#[tokio::test]
async fn board_deleted_just_after_a_post_is_no_consumption() {
    need!((board, server) = open(&[]));
    let mut events = events(&board).await.unwrap();
    mark(&board).await;
    server.run::<()>(&["DEL", "taskflow:listings", "taskflow:sequence"]);
    let marked = (EventKind::Posted, "marker".to_owned());
    let lost = (EventKind::Resync, String::new());
    assert_eq!(until(&mut events, EventKind::Resync).await, [marked, lost]);
}

#[tokio::test]
async fn number_above_a_lost_counter_is_no_loss() {
    need!((board, server) = open(&[]));
    fill(&board, 3).await;
    let numbered = mark(&board).await;
    server.run::<()>(&["DEL", "taskflow:sequence"]);
    let mut events = events(&board).await.unwrap();
    // The claim is announced with the number of its job.
    claim_one(&(Arc::clone(&board) as Subject), &numbered, &ada())
        .await
        .unwrap();
    let removed = mark(&board).await;
    server.run::<()>(&["HDEL", "taskflow:listings", &removed.text()]);
    let seen = until(&mut events, EventKind::Consumed).await;
    let kinds: Vec<_> = seen.into_iter().map(|(kind, _)| kind).collect();
    use EventKind::{Claimed, Consumed, Posted};
    assert_eq!(kinds, [Claimed, Posted, Consumed]);
}

#[tokio::test]
async fn loss_during_a_read_is_a_resync() {
    need!((board, server) = open(&[]));
    fill(&board, JOBS).await;
    let subscription = Subscription::open(&board).await.unwrap();
    let loss = subscription.listener.as_ref().unwrap().pushed.loss();
    let mut watcher = RedisWatcher::new(&board, subscription);
    {
        let mut start = std::pin::pin!(watcher.start(None));
        until_within(&mut start, &server).await;
        let flood =
            "for i = 1, 25000 do redis.call('PUBLISH', 'taskflow:events', string.char(144)) end";
        server.run::<()>(&["EVAL", flood, "0"]);
        until_so("something is lost", loss).await;
        in_time(start).await.unwrap();
    }
    let event = in_time(watcher.next()).await.unwrap();
    assert_eq!(event.kind, EventKind::Resync);
    mark(&board).await;
    let event = in_time(watcher.next()).await.unwrap();
    assert_eq!(event.kind, EventKind::Posted);
}

fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096 / 1024 / 1024
}

#[tokio::test]
async fn slow_listener_uses_little_memory() {
    // The server must not be the first to give up.
    let limit = ["--client-output-buffer-limit", "pubsub 0 0 0"];
    need!((board, server) = open(&limit));
    let mut events = events(&board).await.unwrap();
    let before = memory();
    // As many events in one message as a bulk post has, and more than the queue holds: 400 MiB.
    let flood = "local text = string.char(145) .. string.rep('x', 200000) \
                 for i = 1, 40 do redis.call('PUBLISH', 'taskflow:events', text) end";
    let is_heard = || {
        let clients: String = server.run(&["CLIENT", "LIST", "TYPE", "pubsub"]);
        clients.contains(" omem=0 ")
    };
    for _ in 0..50 {
        server.run::<()>(&["EVAL", flood, "0"]);
        until_so("all is heard", is_heard).await;
    }
    let grown = memory().saturating_sub(before);
    assert!(grown < 200, "{grown} MiB");
    assert_eq!(next(&mut events).await.kind, EventKind::Resync);
    mark(&board).await;
    until(&mut events, EventKind::Posted).await;
}
