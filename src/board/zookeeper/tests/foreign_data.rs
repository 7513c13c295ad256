//! Malformed nodes, and how to fix them.

use super::*;
use crate::board::{ClaimRules, error::NodeConflict};

#[tokio::test]
async fn unowned_lock_can_be_forced() {
    need!(site = Site::new());
    let (board, nodes) = (site.board(), site.nodes().await);
    for lock in [
        "",
        "{",
        "{}",
        r#"{"owner": 5}"#,
        r#"{"owner": ""}"#,
        "\u{1}",
        r#"{"owner": null}"#,
    ] {
        for decision in [release(), Decision::Consume, trash()] {
            let key = post_one(&board, "odd").await;
            nodes.put(&site.paths.lock(&key), lock).await;
            let job = on_board(&board, &key).await;
            assert!(job.problem.is_some(), "{lock}");
            assert!(
                job.holding
                    .as_ref()
                    .is_none_or(|holding| holding.owner.is_none())
            );
            let refused = claim_one(&board, &key, &bob()).await;
            assert_matches!(
                refused,
                Err(BoardError::AlreadyClaimed { owner: None }),
                "{lock}"
            );
            let refused = board
                .settle_one(&key, decision.clone(), by_name("bob"))
                .await;
            assert!(refused.is_err(), "{lock}");
            let seen = ExpectedState::of(&Entry::Job(Box::new(job)));
            settled(&board, &key, decision.clone(), Authority::Force(seen)).await;
            assert!(!nodes.has(&site.paths.lock(&key)).await);
            if matches!(decision, Decision::Abandon(_)) {
                claim_one(&board, &key, &bob()).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn empty_sidecar_node_is_unreadable() {
    need!(site = Site::new());
    let (board, nodes) = (site.board(), site.nodes().await);
    let key = post_one(&board, "odd").await;
    nodes.put(&site.paths.side(&key), "").await;
    let odd = on_board(&board, &key).await;
    assert!(odd.is_unfit && odd.problem.is_some(), "{odd:?}");
}

#[tokio::test]
async fn foreign_child_of_a_job_is_reported_and_kept() {
    need!(site = Site::new());
    let (board, nodes) = (site.board(), site.nodes().await);
    let key = post_one(&board, "parent").await;
    let child = format!("{}/child", site.job(&key));
    nodes.put(&child, "precious").await;
    claim_one(&board, &key, &ada()).await.unwrap();
    for decision in [Decision::Consume, trash()] {
        let refused = board.settle_one(&key, decision, by_name("ada")).await;
        match refused {
            Err(BoardError::NodeConflict(NodeConflict::Children { node, below, .. })) => {
                assert_eq!((node, below.as_str()), (site.job(&key), "child"));
            }
            other => panic!("{other:?}"),
        }
    }
    settled(&board, &key, release(), by_name("ada")).await;
    assert!(nodes.has(&child).await);
}

#[tokio::test]
async fn invalid_job_names_are_not_found() {
    need!(site = Site::new());
    let board = site.board();
    let good = post_one(&board, "good").await;
    let long = format!("job{}", "9".repeat(5000));
    for name in [
        "",
        "job/../x",
        "job/x",
        "..",
        "job\0",
        "job\u{1}",
        "job\u{e000}",
        &long,
        "job.lock",
    ] {
        let key = JobKey::new(name);
        let refused = claim_one(&board, &key, &ada()).await;
        assert_matches!(refused, Err(BoardError::NoSuchJob), "{name:?}");
        let refused = board
            .settle_one(&key, Decision::Consume, by_name("ada"))
            .await;
        assert_matches!(refused, Err(BoardError::NoSuchJob), "{name:?}");
        for refused in [restore(&board, &key).await, purge(&board, &key).await] {
            assert_matches!(refused, Err(BoardError::NoSuchJob), "{name:?}");
        }
        let answers = board
            .claim(&[key, good.clone()], &ada(), 1, BY_HAND)
            .await
            .unwrap();
        assert!(answers[1].is_ok());
        settled(&board, &good, release(), by_name("ada")).await;
    }
}

#[tokio::test]
async fn unknown_sidecar_members_survive_every_operation() {
    need!(site = Site::new());
    let (board, nodes) = (site.board(), site.nodes().await);
    let key = post_one(&board, "resize").await;
    let beside = site.paths.side(&key);
    nodes
        .put(
            &beside,
            r#"{"v":1,"attempts":4294967295,"colour":{"of":"it"}}"#,
        )
        .await;
    let kept = async || {
        let (data, _) = nodes.get(&beside).await.unwrap();
        let side: serde_json::Value = serde_json::from_slice(&data).unwrap();
        assert_eq!(side["colour"], json!({"of": "it"}), "{side}");
        side["attempts"].clone()
    };
    let rules = ClaimRules {
        is_attempt: true,
        ..BY_HAND
    };
    board.claim_one(&key, &ada(), rules).await.unwrap();
    assert_eq!(kept().await, json!(u32::MAX));
    settled(&board, &key, trash(), by_name("ada")).await;
    assert_eq!(kept().await, json!(u32::MAX));
    restore(&board, &key).await.unwrap();
    assert_eq!(kept().await, json!(null));
}
