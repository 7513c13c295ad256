//! Detecting a peer's posts, which send no message.

use super::*;

/// Posts as a peer does: takes a number and stores a posting, copied from another job.
const POST: &str = "redis.call('INCR', 'taskflow:sequence') \
                    local posting = redis.call('HGET', 'taskflow:listings', ARGV[1]) \
                    redis.call('HSET', 'taskflow:listings', 'new', posting)";

async fn asked(events: &mut Events<'_>, server: &Server, before: u32) {
    let is_asked = until_so("it is asked", || calls(server, "hlen") >= before + 2);
    tokio::select! {
        event = next(events) => panic!("{event:?}"),
        () = is_asked => {}
    }
}

async fn compared(events: &mut Events<'_>, server: &Server, before: u32) {
    asked(events, server, before).await;
    // This message follows the reply.
    let conductor = format!("taskflow:conductor.{before}");
    server.run::<()>(&["SET", &conductor, "{}"]);
    server.run::<()>(&["DEL", &conductor]);
    assert_eq!(next(events).await.kind, EventKind::ConductorLeft);
}

async fn post(board: &Arc<Redis>, events: &mut Events<'_>) {
    fill(board, 10).await;
    for _ in 0..10 {
        assert_eq!(next(events).await.kind, EventKind::Posted);
    }
}

#[tokio::test]
async fn post_of_a_peer_takes_two_requests_to_find() {
    need!((board, server) = open(&[]));
    let keys = fill(&board, 100).await;
    let mut events = events(&board).await.unwrap();
    compared(&mut events, &server, calls(&server, "hlen")).await;
    let (before, counted) = (calls(&server, "hmget"), calls(&server, "hlen"));
    server.run::<()>(&["EVAL", POST, "0", &keys[50].text()]);
    let posted = next(&mut events).await;
    assert_eq!(posted.kind, EventKind::Posted);
    assert_eq!(posted.subject.unwrap().key, JobKey::new("new"));
    // The names with the counts, and the posting.
    assert_eq!(
        (calls(&server, "hkeys"), calls(&server, "hlen")),
        (1, counted + 2)
    );
    assert_eq!(calls(&server, "hmget") - before, 1);
}

#[tokio::test]
async fn own_post_needs_no_request_for_names() {
    need!((board, server) = open(&[]));
    let mut events = events(&board).await.unwrap();
    compared(&mut events, &server, calls(&server, "hlen")).await;
    for _ in 0..3 {
        let before = calls(&server, "hlen");
        post(&board, &mut events).await;
        compared(&mut events, &server, before).await;
    }
    assert_eq!(calls(&server, "hkeys"), 0);
}

#[tokio::test]
async fn own_post_during_a_request_is_not_taken_for_a_peer() {
    need!((board, server) = open(&[]));
    let mut events = events(&board).await.unwrap();
    asked(&mut events, &server, calls(&server, "hlen")).await;
    for _ in 0..3 {
        // Posted after the query, and announced before its reply is read.
        post(&board, &mut events).await;
        let before = calls(&server, "hlen");
        asked(&mut events, &server, before).await;
    }
    assert_eq!(calls(&server, "hkeys"), 0);
    // Once the board is quiet, an unannounced job is missing.
    let fields: Vec<String> = server.run(&["HKEYS", "taskflow:listings"]);
    server.run::<()>(&["HDEL", "taskflow:listings", &fields[0]]);
    let gone = until(&mut events, EventKind::Resync).await;
    assert!(
        gone.iter().any(|(kind, _)| *kind == EventKind::Consumed),
        "{gone:?}"
    );
}
