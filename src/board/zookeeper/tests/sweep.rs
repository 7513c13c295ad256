//! The cleanup by a starting conductor, and its limits.

use std::cell::Cell;

use super::*;
use crate::{board::conformance::ended, job::Conductor};

fn conductor(name: &str) -> Conductor {
    Conductor::named(name)
}

#[tokio::test]
async fn exactly_the_stray_nodes_are_swept() {
    need!(site = Site::new());
    let (board, nodes) = (site.board(), site.nodes().await);
    let (kept, gone) = (Uuid::new_v4(), Uuid::new_v4());
    let in_trash = trashed(&board, chosen("trashed", kept)).await;
    let claimed = post(&board, chosen("claimed", Uuid::new_v4())).await;
    claim_one(&board, &claimed, &ada()).await.unwrap();
    // A peer consumes it and leaves our nodes.
    let consumed = post(&board, chosen("consumed", gone)).await;
    claim_one(&board, &consumed, &bob()).await.unwrap();
    for path in [site.paths.lock(&consumed), site.job(&consumed)] {
        nodes.0.delete(&path, None).await.unwrap();
    }
    let marker = |uuid: &str| site.paths.node(NodeKind::Marker, uuid);
    nodes.put(&marker("garbage"), "garbage").await;
    nodes
        .put(&marker("later"), r#"{"v":2,"elsewhere":"job7"}"#)
        .await;
    nodes
        .put(&site.paths.side(&JobKey::new("other")), "{}")
        .await;
    // An operator created a node below it.
    let stuck = site.paths.side(&JobKey::new("job0000000999"));
    nodes.put(&format!("{stuck}/child"), "").await;
    board.register(&conductor("worker")).await.unwrap();
    let left = nodes.below(&site.paths.directory(NodeKind::Sidecar)).await;
    let left: HashSet<_> = left.into_keys().collect();
    let expected = [
        site.paths.directory(NodeKind::Sidecar),
        site.paths.side(&in_trash),
        site.paths.side(&claimed),
        format!("{stuck}/child"),
        stuck,
    ];
    assert_eq!(left, expected.into());
    assert!(nodes.has(&marker(&kept.to_string())).await);
    assert!(nodes.has(&marker("later")).await);
    assert!(!nodes.has(&marker(&gone.to_string())).await);
    assert_eq!(
        nodes
            .below(&site.paths.directory(NodeKind::Marker))
            .await
            .len(),
        4
    );
}

#[tokio::test]
async fn nodes_in_use_are_never_swept() {
    need!(site = Site::new());
    let board = site.board();
    let (moves, sweeps) = (Cell::new(0), Cell::new(0));
    let end = tokio::time::Instant::now() + Duration::from_secs(1);
    // On a slow machine they take their time.
    let goes_on = || tokio::time::Instant::now() < end || moves.get() <= 3 || sweeps.get() <= 3;
    let moving = async {
        let (mover, uuid) = (site.board(), Uuid::new_v4());
        let key = trashed(&mover, chosen("moving", uuid)).await;
        while goes_on() {
            restore(&mover, &key).await.unwrap();
            mover.claim_one(&key, &ada(), ATTEMPT).await.unwrap();
            // The sweep would delete it with the sidecar.
            assert_eq!(on_board(&mover, &key).await.attempts.count, 1);
            settled(&mover, &key, trash(), by_name("ada")).await;
            let taken = get(&mover, Location::Trash, &key).await.unwrap();
            assert_eq!(taken.attempts.count, 1);
            assert!(
                site.nodes()
                    .await
                    .has(&site.paths.node(NodeKind::Marker, uuid))
                    .await
            );
            moves.set(moves.get() + 1);
        }
    };
    let posting = async {
        let poster = site.board();
        while goes_on() {
            let uuid = Uuid::new_v4();
            let posted = poster
                .post(&[chosen("posted", uuid)], Some(&bob()))
                .await
                .unwrap();
            let key = &posted[0].as_ref().unwrap().key;
            assert_eq!(on_board(&poster, key).await.attempts.count, 1);
            let again = poster.post(&[chosen("again", uuid)], None).await.unwrap();
            assert!(matches!(again[0], Err(BoardError::Exists { .. })));
            settled(&poster, key, Decision::Consume, by_name("bob")).await;
        }
    };
    let sweeping = async {
        while goes_on() {
            board
                .register(&conductor(&format!("worker-{}", sweeps.get())))
                .await
                .unwrap();
            sweeps.set(sweeps.get() + 1);
        }
    };
    let all = async { tokio::join!(moving, posting, sweeping) };
    let in_time = tokio::time::timeout(Duration::from_secs(60), all).await;
    assert!(in_time.is_ok(), "{moves:?} moves, {sweeps:?} sweeps");
}

#[tokio::test]
async fn old_history_entries_are_swept() {
    need!(site = Site::new());
    let url = zookeeper_url(&format!(
        "zk://127.0.0.1:{}{}",
        site.port, &site.paths.board
    ));
    let board: Subject = Arc::new(ZooKeeper::new(&url, None, OP_TIMEOUT, ended::FEW));
    ended::history_is_limited_to_the_configured_length(&board).await;
    board.register(&conductor("worker")).await.unwrap();
    let kept = site
        .nodes()
        .await
        .below(&site.paths.directory(NodeKind::History))
        .await;
    // The parent node is one of them.
    assert_eq!(kept.len(), ended::FEW as usize + 1);
}
