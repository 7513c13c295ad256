//! What is told of what somebody does to the keys of a board by hand.

use super::*;

#[tokio::test]
async fn a_claim_without_a_name_that_is_touched_is_still_there() {
    let Some((board, server)) = open(&[]) else {
        return;
    };
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
    assert!(
        matches!(freed.kind, EventKind::Abandoned | EventKind::Expired),
        "{freed:?}"
    );
    assert_eq!(freed.subject.unwrap().key, keys[0]);
}
