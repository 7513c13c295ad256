//! Posting many jobs, and posting under reserved numbers.

use super::*;

#[tokio::test]
async fn batches_fit_the_request_limit_of_the_server() {
    need!(site = Site::new());
    // Long paths, large postings, long owner names.
    let deep = Site::at(
        site.port,
        format!("/{}/{}/jobs", Uuid::new_v4(), "x".repeat(3000)),
    );
    let drafts: Vec<_> = (0..700)
        .map(|number| draft(&format!("job {number}")))
        .collect();
    for by in [None, Some(claimant(&"o".repeat(2000), Term::Indefinite))] {
        let posted = deep.board().post(&drafts, by.as_ref()).await.unwrap();
        assert!(
            posted.iter().all(Result::is_ok),
            "{:?}",
            posted.iter().find(|one| one.is_err())
        );
    }
    // The server may take so long over such replies that it drops our session.
    let listed = loop {
        let board = deep.board();
        let entries = board.entries(WHOLE_BOARD);
        let listed: Result<Vec<_>> = futures_util::TryStreamExt::try_collect(entries).await;
        match listed {
            Err(error) if error.is_retryable() => {}
            listed => break listed.unwrap(),
        }
    };
    assert_eq!(listed.len(), 1400);
    let large = |size: usize| Draft {
        details: json!({"text": "x".repeat(size)}).into(),
        ..draft("large")
    };
    let drafts = [
        large(890_000),
        large(10_000),
        large(890_000),
        large(2_000_000),
        draft("last"),
    ];
    let posted = site.board().post(&drafts, None).await.unwrap();
    let refused: Vec<_> = posted.iter().map(Result::is_err).collect();
    assert_eq!(refused, [false, false, false, true, false]);
    // Even large jobs can be moved.
    let (board, key) = (site.board(), &posted[0].as_ref().unwrap().key);
    claim_one(&board, key, &ada()).await.unwrap();
    settled(&board, key, trash(), by_name("ada")).await;
    restore(&board, key).await.unwrap();
}

#[tokio::test]
async fn concurrent_posts_keep_their_order() {
    need!(site = Site::new());
    let drafts: Vec<_> = (0..1500).map(|_| draft("many")).collect();
    let boards: Vec<_> = (0..4).map(|_| site.board()).collect();
    let posts = boards.iter().map(|board| board.post(&drafts, None));
    for posted in futures_util::future::join_all(posts).await {
        let numbers: Vec<_> = (posted.unwrap().into_iter())
            .map(|one| one.unwrap().sequence)
            .collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    }
}

#[tokio::test]
async fn batch_of_1500_settlements_has_all_results() {
    need!(site = Site::new());
    let board = site.board();
    let drafts: Vec<_> = (0..1500).map(|_| draft("many")).collect();
    let posted = board.post(&drafts, None).await.unwrap();
    let keys: Vec<_> = posted.into_iter().map(|one| one.unwrap().key).collect();
    let claimed = board
        .claim(&keys, &ada(), keys.len(), BY_HAND)
        .await
        .unwrap();
    assert!(claimed.iter().all(Result::is_ok));
    let trashed = keys
        .iter()
        .map(|key| Settlement::of(key.clone(), trash(), by_name("ada")));
    let settled = board.settle(&trashed.collect::<Vec<_>>()).await.unwrap();
    assert!(settled.iter().all(Result::is_ok));
    let restores = keys
        .iter()
        .map(|key| crate::job::Revision::from_trash(key.clone(), None));
    let restored = board.revise(&restores.collect::<Vec<_>>()).await.unwrap();
    assert!(restored.iter().all(Result::is_ok));
}

#[tokio::test]
async fn overflowed_numbers_are_accepted() {
    need!(site = Site::new());
    let (board, nodes) = (site.board(), site.nodes().await);
    post_one(&board, "first").await;
    let late = JobKey::new("job-2147483648");
    nodes
        .put(
            &site.job(&late),
            posting(&Uuid::new_v4().to_string(), "late"),
        )
        .await;
    let job = on_board(&board, &late).await;
    assert_eq!(job.sequence, Some(-2_147_483_648));
    let found = board
        .find(Location::Board, &[JobRef::Sequence(-2_147_483_648)])
        .await
        .unwrap();
    assert_eq!(found[0].len(), 1);
    claim_one(&board, &late, &ada()).await.unwrap();
    settled(&board, &late, trash(), by_name("ada")).await;
    restore(&board, &late).await.unwrap();
}
