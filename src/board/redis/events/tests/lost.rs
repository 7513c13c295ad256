//! What is told when not all was heard.

use std::{pin::Pin, sync::atomic::Ordering};

use super::*;

/// Enough jobs for several pages.
const JOBS: usize = 2000;

/// Drives a start until some of the board was read, and more is asked for.
async fn until_within<F: Future>(start: &mut Pin<&mut F>, server: &Server) {
    let end = Instant::now() + PATIENCE;
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
async fn a_flush_while_the_board_is_read_is_no_consumption() {
    let Some((board, server)) = open(&[]) else {
        return;
    };
    fill(&board, JOBS).await;
    let mut events = {
        let mut start = std::pin::pin!(events(&board));
        until_within(&mut start, &server).await;
        server.run::<()>(&["FLUSHALL"]);
        in_time(start).await.unwrap()
    };
    assert_eq!(next(&mut events).await.kind, EventKind::Resync);
    let marker = mark(&board).await;
    let mut told = until(&mut events, EventKind::Posted).await;
    server.run::<()>(&["HDEL", "taskflow:listings", marker.as_str()]);
    told.extend(until(&mut events, EventKind::Consumed).await);
    let marked = |kind| (kind, "marker".to_owned());
    assert_eq!(
        told,
        [marked(EventKind::Posted), marked(EventKind::Consumed)]
    );
}

#[tokio::test]
async fn what_is_lost_while_the_board_is_read_is_admitted() {
    let Some((board, server)) = open(&[]) else {
        return;
    };
    fill(&board, JOBS).await;
    let ears = Ears::open(&board).await.unwrap();
    let loss = ears.listener.as_ref().unwrap().loss();
    let mut watcher = Watcher::new(&board, ears);
    {
        let mut start = std::pin::pin!(watcher.start());
        until_within(&mut start, &server).await;
        let flood =
            "for i = 1, 25000 do redis.call('PUBLISH', 'taskflow:events', string.char(144)) end";
        server.run::<()>(&["EVAL", flood, "0"]);
        until_so("something is lost", || loss.load(Ordering::Relaxed)).await;
        in_time(start).await.unwrap();
    }
    let told = in_time(watcher.next()).await.unwrap();
    assert_eq!(told.kind, EventKind::Resync);
    mark(&board).await;
    let told = in_time(watcher.next()).await.unwrap();
    assert_eq!(told.kind, EventKind::Posted);
}
