//! Claims that are lost and won again while a client settles the earlier one.

use super::*;

/// A request that reads several nodes, the first of them as a whole.
const READS: &str = "\0\0\0\u{16}\0\0\0\u{4}\0";

async fn change_hands(authority: impl Fn(Fence) -> Authority, decision: Decision) {
    need!(site = Site::new());
    let proxy = Proxy::start(site.port);
    let (first, second) = (site.board_behind(&proxy), site.board());
    let key = post_one(&first, "resize").await;
    let fence = claim_one(&first, &key, &ada()).await.unwrap().fence;
    proxy.set_at(READS, ProxyMode::Stall);
    let authority = authority(fence.clone());
    let settling = {
        let (key, decision) = (key.clone(), decision.clone());
        tokio::spawn(async move { first.settle_one(&key, decision, authority).await })
    };
    while !proxy.has_sprung() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Long enough that the server has read the request.
    on_board(&second, &key).await;
    let seen = Authority::Force(ExpectedState::Claimed {
        owner: Some(owner("ada")),
        fence: Some(fence.clone()),
    });
    settled(&second, &key, release(), seen).await;
    let other = claim_one(&second, &key, &ada()).await.unwrap().fence;
    let before = site.nodes().await.below(&site.path).await;
    proxy.set(ProxyMode::PassOn);
    let refused = settling.await.unwrap();
    assert_matches!(refused, Err(BoardError::Changed), "{decision:?}");
    let nodes = site.nodes().await;
    assert_eq!(nodes.below(&site.path).await, before);
    assert_eq!(
        nodes
            .below(&site.paths.directory(Location::Trash))
            .await
            .len(),
        1
    );
    assert_ne!(fence, other);

    // Both locks have the same version, and so has the job.
    let mut blind = nodes.0.new_multi_writer();
    blind.add_delete(&site.paths.lock(&key), Some(0)).unwrap();
    blind.add_delete(&site.job(&key), Some(0)).unwrap();
    blind.commit().await.unwrap();
}

#[tokio::test]
async fn new_claim_of_the_same_name_is_not_settled_by_the_old_one() {
    for decision in [Decision::Consume, release(), trash()] {
        let by_fence = |fence| Authority::Claim(owner("ada"), fence);
        change_hands(by_fence, decision.clone()).await;
        change_hands(|_| by_name("ada"), decision.clone()).await;
        let as_seen = |fence| {
            Authority::Force(ExpectedState::Claimed {
                owner: Some(owner("ada")),
                fence: Some(fence),
            })
        };
        change_hands(as_seen, decision).await;
    }
}

#[tokio::test]
async fn claims_are_distinguished_despite_an_unreadable_sidecar() {
    need!(site = Site::new());
    let (board, nodes) = (site.board(), site.nodes().await);
    let key = post_one(&board, "resize").await;
    let side = site.paths.side(&key);
    let strange = br#"{"v": 9, "mood": "good"}"#;
    nodes.put(&side, strange).await;
    let before = nodes.get(&side).await.unwrap().1.version;
    claim_one(&board, &key, &ada()).await.unwrap();
    let (data, stat) = nodes.get(&side).await.unwrap();
    assert_eq!(data, strange);
    assert_ne!(stat.version, before);
    settled(&board, &key, trash(), by_name("ada")).await;
    restore(&board, &key).await.unwrap();
    assert_eq!(nodes.get(&side).await.unwrap().0, strange);
    assert!(
        on_board(&board, &key)
            .await
            .problem
            .unwrap()
            .contains("version 9")
    );
}

#[tokio::test]
async fn sidecar_of_an_earlier_job_with_the_same_number_is_ignored() {
    need!(site = Site::new());
    let (board, nodes) = (site.board(), site.nodes().await);
    let old = r#"{"v":1,"attempts":4,"not_before":"2100-01-01T00:00:00Z"}"#;
    for number in 0..4 {
        let key = super::super::paths::numbered(number);
        nodes.put(&site.paths.side(&key), old).await;
    }
    let key = post_one(&board, "resize").await;
    assert_eq!(on_board(&board, &key).await.attempts.count, 0);
    let claimed = board.claim_one(&key, &ada(), ATTEMPT).await.unwrap();
    assert_eq!(claimed.job.attempts.count, 1);
    assert_eq!(on_board(&board, &key).await.attempts.count, 1);
    let posted = board.post(&[draft("run")], Some(&bob())).await.unwrap();
    let key = &posted[0].as_ref().unwrap().key;
    assert_eq!(on_board(&board, key).await.attempts.count, 1);
}

#[tokio::test]
async fn job_named_twice_is_claimed_once() {
    need!(site = Site::new());
    let board = site.board();
    let key = post_one(&board, "resize").await;
    let twice = [key.clone(), key.clone()];
    let answers = board.claim(&twice, &ada(), 2, BY_HAND).await.unwrap();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    let consume = || Settlement::of(key.clone(), Decision::Consume, by_name("ada"));
    let answers = board.settle(&[consume(), consume()]).await.unwrap();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert!(
        answers
            .iter()
            .any(|one| matches!(one, Err(BoardError::NoSuchJob)))
    );
}
