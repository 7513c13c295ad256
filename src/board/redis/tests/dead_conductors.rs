//! Conductors that ended without notice.

use super::*;
use crate::board::conformance::registry;

fn remaining(server: &Server) -> Vec<String> {
    server.run(&["KEYS", "*night*"])
}

#[tokio::test]
async fn record_of_a_conductor_outlives_its_lease() {
    need!((board, server) = open());
    registry::register_with_lease(&board, "night").await;
    for (key, seconds) in [("conductor", 30), ("conductor-seen", 3630), ("told", 3630)] {
        let left = server.run::<i64>(&["TTL", &format!("taskflow:{key}.night")]);
        assert!((seconds - 20..=seconds).contains(&left), "{key}: {left}");
    }
    server.run::<()>(&["DEL", "taskflow:conductor.night"]);
    // A conductor that leaves late removes the rest.
    board.close().await;
    assert!(remaining(&server).is_empty());
}

#[tokio::test]
async fn conductor_of_0_2_0_is_listed_until_its_entry_expires() {
    need!((board, server) = open());
    registry::register_with_lease(&board, "night").await;
    server.run::<()>(&["DEL", "taskflow:conductor-seen.night"]);
    let [seen] = board.conductors().await.unwrap().try_into().unwrap();
    assert!(!seen.has_left && seen.silence.is_some(), "{seen:?}");
    server.run::<()>(&["DEL", "taskflow:conductor.night"]);
    assert_eq!(board.conductors().await.unwrap(), []);
}
