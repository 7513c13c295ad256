//! Events for manual changes of a board's keys.

use super::*;

#[tokio::test]
async fn unnamed_claim_that_is_touched_still_exists() {
    need!((board, server) = open(&[]));
    let keys = fill(&board, 2).await;
    let owners = [0, 1].map(|job: usize| format!("taskflow:{}.owned", keys[job]));
    server.run::<()>(&["LPUSH", &owners[0], "ada"]);
    let mut events = events(&board).await.unwrap();
    server.run::<()>(&["LPUSH", &owners[0], "bob"]);
    server.run::<()>(&["LPUSH", &owners[1], "ada"]);
    let claimed = next(&mut events).await;
    assert_eq!((claimed.kind, &claimed.owner), (EventKind::Claimed, &None));
    assert_eq!(claimed.subject.unwrap().key, keys[1]);
    server.run::<()>(&["DEL", &owners[0]]);
    let freed = next(&mut events).await;
    assert_matches!(freed.kind, EventKind::Abandoned | EventKind::Expired);
    assert_eq!(freed.subject.unwrap().key, keys[0]);
}

#[tokio::test]
async fn returning_conductor_has_joined() {
    use EventKind::{ConductorJoined, ConductorLeft, Posted};
    need!((board, server) = open(&[]));
    let mut events = events(&board).await.unwrap();
    let entry = "taskflow:conductor.night";
    for round in 0..3 {
        server.run::<()>(&["SET", entry, "{}"]);
        if round > 0 {
            assert_eq!(next(&mut events).await.kind, ConductorJoined);
        }
        server.run::<()>(&["DEL", entry]);
        assert_eq!(next(&mut events).await.kind, ConductorLeft);
    }
    // A conductor that announces itself joins once.
    let night = crate::job::Conductor::named("night");
    board.register(&night).await.unwrap();
    mark(&board).await;
    let received = until(&mut events, Posted).await;
    let kinds: Vec<_> = received.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [ConductorJoined, Posted]);
    board.close().await;
    assert_eq!(next(&mut events).await.kind, ConductorLeft);
}
