//! What a Redis board remembers, and who may have it remembered.

use super::*;
use crate::{board::conformance::past, job::Identity};

/// Ends a job so that it is remembered, and returns why it is not.
async fn end(board: &Subject) -> Option<String> {
    let key = post_one(board, "resize").await;
    claim_one(board, &key, &ada()).await.unwrap();
    let job = get(board, Shelf::Board, &key).await.unwrap();
    let settlement = Settlement {
        job: Some(Identity::from(&job)),
        ..Settlement::of(key.clone(), Outcome::Consume, by_name("ada"))
    };
    let settled = board.settle(&[settlement]).await.unwrap().remove(0);
    assert_eq!(get(board, Shelf::Board, &key).await, None);
    settled.unwrap().forgotten
}

#[tokio::test]
async fn what_is_remembered_for_too_long_is_dropped() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let url = server.url("");
    let board: Subject = Arc::new(Redis::new(&url, None, PATIENCE, Limit::USUAL, past::FEW));
    past::no_more_is_remembered_than_is_wanted(&board).await;
}

#[tokio::test]
async fn who_may_not_have_jobs_remembered_settles_them_all_the_same() {
    let Some((board, server)) = open() else {
        return;
    };
    let keys = [
        "~taskflow:listings",
        "~taskflow:sequence",
        "~taskflow:trash",
        "~taskflow:fence",
        "~taskflow:*.*",
    ];
    for rights in [&["allkeys", "-xadd"][..], &keys] {
        let mut user = vec![
            "ACL",
            "SETUSER",
            "eve",
            "reset",
            "on",
            "nopass",
            "+@all",
            "allchannels",
        ];
        user.extend(rights);
        server.run::<()>(&user);
        let why = end(&board_of(&server, Some("eve"))).await.unwrap();
        assert!(why.contains("can't"), "{why}");
    }
    assert_eq!(end(&board).await, None);
}

#[tokio::test]
async fn a_past_of_another_kind_is_in_nobodys_way() {
    let Some((board, server)) = open() else {
        return;
    };
    server.run::<()>(&["SET", "taskflow:past", "x"]);
    let why = end(&board).await.unwrap();
    assert!(why.contains("WRONGTYPE"), "{why}");
    server.run::<()>(&["DEL", "taskflow:past"]);
    assert_eq!(end(&board).await, None);
}
