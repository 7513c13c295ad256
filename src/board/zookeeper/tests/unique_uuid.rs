//! Markers keep chosen uuids unique, even damaged ones.

use super::*;

#[tokio::test]
async fn marker_without_its_job_is_ignored() {
    need!(site = Site::new());
    let (board, nodes) = (site.board(), site.nodes().await);
    let other = post_one(&board, "other").await;
    let marks = [
        "".to_owned(),
        "no JSON \u{1}".to_owned(),
        "{}".to_owned(),
        r#"{"v":1,"job":"job0000009999"}"#.to_owned(),
        r#"{"v":1,"job":"../../x"}"#.to_owned(),
        r#"{"v":1,"job":"job/..","trashed":"job\u0001"}"#.to_owned(),
        // The board was recreated, and another job has that number.
        format!(r#"{{"v":1,"job":"{other}","trashed":"{other}"}}"#),
        r#"{"v":7,"job":12}"#.to_owned(),
    ];
    for mark in marks {
        let uuid = Uuid::new_v4();
        nodes
            .put(&site.paths.node(NodeKind::Marker, uuid), &mark)
            .await;
        let key = post(&board, chosen("first", uuid)).await;
        let again = board.post(&[chosen("again", uuid)], None).await.unwrap();
        assert!(matches!(again[0], Err(BoardError::Exists { .. })), "{mark}");
        claim_one(&board, &key, &ada()).await.unwrap();
        settled(&board, &key, trash(), by_name("ada")).await;
        restore(&board, &key).await.unwrap();
        let again = board.post(&[chosen("again", uuid)], None).await.unwrap();
        assert!(matches!(again[0], Err(BoardError::Exists { .. })), "{mark}");
    }
    assert_eq!(on_board(&board, &other).await.name, "other");
}

#[tokio::test]
async fn unmarked_job_does_not_hide_a_marked_one_of_the_same_uuid() {
    need!(site = Site::new());
    let board = site.board();
    let uuid = Uuid::new_v4();
    let kept = post(&board, chosen("chosen", uuid)).await;
    // As a peer would post it.
    let plain = Draft {
        uuid,
        ..draft("plain")
    };
    let key = trashed(&board, plain).await;
    let again = board.post(&[chosen("again", uuid)], None).await.unwrap();
    assert!(matches!(again[0], Err(BoardError::Exists { .. })));
    let back = restore(&board, &key).await;
    assert_matches!(back, Err(BoardError::Exists { .. }));
    // In the other direction it replaces its namesake completely.
    claim_one(&board, &kept, &ada()).await.unwrap();
    settled(&board, &kept, trash(), by_name("ada")).await;
    assert!(get(&board, Location::Trash, &key).await.is_none());
    assert!(!site.nodes().await.has(&site.paths.side(&key)).await);
}

#[tokio::test]
async fn invalid_uuid_does_not_block_trashing() {
    need!(site = Site::new());
    let (board, nodes) = (site.board(), site.nodes().await);
    post_one(&board, "first").await;
    let long = "x".repeat(10_000);
    let hostile = [
        "", "/", "a/../b", "..", ".", "\u{1}", "\u{e000}", "nul\0", "é", &long,
    ];
    for (number, uuid) in hostile.into_iter().enumerate() {
        let key = JobKey::new(format!("job{}", 500 + number));
        nodes.put(&site.job(&key), posting(uuid, "hostile")).await;
        claim_one(&board, &key, &ada()).await.unwrap();
        settled(&board, &key, trash(), by_name("ada")).await;
        restore(&board, &key).await.unwrap();
        claim_one(&board, &key, &ada()).await.unwrap();
        settled(&board, &key, trash(), by_name("ada")).await;
        purge(&board, &key).await.unwrap();
        assert!(!nodes.has(&site.paths.side(&key)).await);
    }
}
