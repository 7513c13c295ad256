//! Servers that come and go while a board is read.

use std::collections::BTreeSet;

use super::*;
use crate::board::Order;

async fn many(board: &Subject) -> BTreeSet<String> {
    let drafts: Vec<_> = (0..3000).map(|_| draft("resize")).collect();
    let posted = board.post(&drafts, None).await.unwrap();
    let keys = posted.into_iter().map(|job| job.unwrap().key.to_string());
    keys.collect()
}

/// Lists a board, disturbs the server after the first jobs, and requires each job once.
async fn assert_complete_listing(
    board: &Subject,
    expected: &BTreeSet<String>,
    order: Order,
    happen: impl FnOnce(),
) {
    let mut entries = board.entries(Query {
        order,
        ..WHOLE_BOARD
    });
    let mut listed = Vec::new();
    for _ in 0..10 {
        listed.push(entries.try_next().await.unwrap().unwrap().key().to_string());
    }
    happen();
    while let Some(entry) = entries.try_next().await.unwrap() {
        listed.push(entry.key().to_string());
    }
    assert_eq!(listed.len(), expected.len());
    assert_eq!(&listed.into_iter().collect::<BTreeSet<_>>(), expected);
}

#[tokio::test]
async fn listing_is_complete_across_a_restart() {
    need!(mut server = Server::start(&[]));
    let board = board_of(&server, None);
    let expected = many(&board).await;
    for order in [Order::Any, Order::Rank] {
        // With the data, but in another order.
        assert_complete_listing(&board, &expected, order, || {
            server.run::<()>(&["SAVE"]);
            server.kill();
            server.start_again();
        })
        .await;
    }
}

#[tokio::test]
async fn listing_is_complete_across_a_cut_connection() {
    need!((board, server) = open());
    let expected = many(&board).await;
    for order in [Order::Any, Order::Rank] {
        assert_complete_listing(&board, &expected, order, || {
            let killed: u32 = server.run(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
            assert!(killed > 0);
        })
        .await;
    }
}
