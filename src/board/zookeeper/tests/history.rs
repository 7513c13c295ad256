//! Clients without write access to the history.

use zookeeper_client::{Acl, AuthId, Permission};

use super::*;
use crate::board::{
    Part,
    conformance::ended::{ENDED, forgotten, history_truncates_long_texts as of_long_texts},
};

#[tokio::test]
async fn history_truncates_long_texts() {
    if let Some((board, _site)) = open() {
        of_long_texts(&board).await;
    }
}

#[tokio::test]
async fn denied_history_does_not_block_settling() {
    need!(site = Site::new());
    let (board, nodes) = (site.board(), site.nodes().await);
    let history = site.paths.directory(NodeKind::History);
    let (directory, _) = history.rsplit_once('/').unwrap();
    let somebody = AuthId::new("digest", "ada:+7K83PhyQ3ijGj0ADmljf0quVwQ=");
    // All parents of the history exist already.
    let key = post_one(&board, "resize").await;
    board.claim_one(&key, &ada(), ATTEMPT).await.unwrap();
    settled(&board, &key, release(), by_name("ada")).await;
    for path in [directory, &history] {
        let closed = [
            Acl::new(Permission::ALL, somebody.clone()),
            Acl::new(Permission::READ | Permission::ADMIN, AuthId::anyone()),
        ];
        nodes.0.set_acl(path, &closed, None).await.unwrap();
        for why in forgotten(&board).await {
            let why = why.unwrap();
            assert!(
                why.contains("does not allow anonymous clients to write to"),
                "{why}"
            );
        }
        assert_eq!(list(&board, ENDED).await, []);
        let before = nodes.below(&history).await;
        let tried = board.examine(Part::History).await;
        // Without a parent node there is no ACL for it yet.
        assert_eq!(tried.is_err(), path == history, "{tried:?}");
        assert_eq!(nodes.below(&history).await, before);
        let anybody = [Acl::new(Permission::ALL, AuthId::anyone())];
        nodes.0.set_acl(path, &anybody, None).await.unwrap();
        if path == directory {
            assert_eq!(forgotten(&board).await, [None, None]);
            nodes
                .0
                .delete(&format!("{history}/0000000000"), None)
                .await
                .unwrap();
            nodes
                .0
                .delete(&format!("{history}/0000000001"), None)
                .await
                .unwrap();
        }
    }
    board.examine(Part::History).await.unwrap();
    assert_eq!(list(&board, ENDED).await, []);
    assert_eq!(forgotten(&board).await, [None, None]);
    assert_eq!(list(&board, ENDED).await.len(), 2);
    // Denies reading, too.
    let closed = [
        Acl::new(Permission::ALL, somebody),
        Acl::new(Permission::WRITE | Permission::CREATE, AuthId::anyone()),
    ];
    nodes.0.set_acl(&history, &closed, None).await.unwrap();
    let tried = board.examine(Part::History).await;
    assert_matches!(tried, Err(BoardError::Denied { .. }));
}
