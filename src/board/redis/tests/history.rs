//! The history of a Redis board, and the rights that it needs.

use super::{permission::let_in, *};
use crate::board::{
    Part,
    conformance::{
        ended::{self, forgotten},
        list,
    },
};

#[tokio::test]
async fn old_history_entries_are_deleted() {
    need!(server = Server::start(&[]));
    let url = server.url("");
    let board: Subject = Arc::new(Redis::new(&url, None, OP_TIMEOUT, Limit::USUAL, ended::FEW));
    ended::history_is_limited_to_the_configured_length(&board).await;
}

#[tokio::test]
async fn denied_history_does_not_block_settling() {
    need!((board, server) = open());
    for rights in [
        "allkeys -xadd",
        "~taskflow:listings ~taskflow:sequence ~taskflow:trash ~taskflow:fence ~taskflow:*.*",
    ] {
        let rights = ["+@all", "allchannels"]
            .into_iter()
            .chain(rights.split(' '));
        let_in(&server, &rights.collect::<Vec<_>>());
        let board = board_of(&server, Some("eve"));
        let tried = board.examine(Part::History).await;
        assert_matches!(tried, Err(BoardError::Denied { .. }));
        for why in forgotten(&board).await {
            assert!(why.as_ref().unwrap().contains("can't"), "{why:?}");
        }
    }
    board.examine(Part::History).await.unwrap();
    assert_eq!(server.run::<u32>(&["EXISTS", "taskflow:past"]), 0);
    assert_eq!(forgotten(&board).await, [None, None]);
}

#[tokio::test]
async fn history_key_of_another_type_blocks_nothing() {
    need!((board, server) = open());
    server.run::<()>(&["SET", "taskflow:past", "x"]);
    assert!(board.examine(Part::History).await.is_err());
    for why in forgotten(&board).await {
        assert!(why.as_ref().unwrap().contains("WRONGTYPE"), "{why:?}");
    }
    server.run::<()>(&["DEL", "taskflow:past"]);
    assert_eq!(forgotten(&board).await, [None, None]);
}

#[tokio::test]
async fn history_truncates_long_texts() {
    need!((board, _server) = open());
    ended::history_truncates_long_texts(&board).await;
}

#[tokio::test]
async fn oversized_sidecar_makes_no_oversized_history_entry() {
    need!((board, server) = open());
    let key = post_claimed(&board, "resize").await;
    let name = format!("taskflow:{key}.jobboard");
    server.run::<u32>(&["SETRANGE", &name, "1000000", "x"]);
    ended::end(&board, &key, Decision::Consume, None).await;
    let remembered = list(&board, ended::ENDED).await;
    assert_eq!((remembered.len(), &*remembered[0].name), (1, "resize"));
    let room = server.run::<u32>(&["MEMORY", "USAGE", "taskflow:past"]);
    assert!(room < 10_000, "{room}");
}
