//! Many concurrent clients, and servers that die under load.
//!
//! `JOBBOARD_FAULTS=full` makes the tests large.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use futures_util::future::join_all;

use super::*;
use crate::board::{
    conformance::claiming::one_client_wins_a_job, testing::needs::size,
    zookeeper::testing::Ensemble,
};

#[tokio::test]
async fn sixty_four_claimants_one_winner_known_to_the_others() {
    need!(site = Site::new());
    let crowd: Vec<_> = (0..64).map(|_| site.board()).collect();
    for _ in 0..size(300, 10) {
        one_client_wins_a_job(&crowd).await;
    }
    join_all(crowd.iter().map(|board| board.close())).await;
}

async fn post_many(site: &Site, is_chosen: bool, by: Option<crate::job::Claimant>) -> Vec<JobKey> {
    let board = site.board();
    let mut keys = Vec::new();
    for round in 0..size(1500, 60) {
        let drafts: Vec<_> = (0..=round % 3)
            .map(|_| match is_chosen {
                true => chosen("crowded", Uuid::new_v4()),
                false => draft("crowded"),
            })
            .collect();
        for posted in board.post(&drafts, by.as_ref()).await.unwrap() {
            keys.push(posted.unwrap().key);
        }
        if round % 2 == 0 {
            let key = keys.pop().unwrap();
            if by.is_none() {
                claim_one(&board, &key, &ada()).await.unwrap();
            }
            settled(&board, &key, Decision::Consume, by_name("ada")).await;
        }
    }
    keys
}

#[tokio::test]
async fn numbers_are_unique_for_all_kinds_of_posts() {
    need!(site = Site::new());
    let (mut all, mut count) = (HashSet::new(), 0);
    let ways = [
        (false, None),
        (false, None),
        (true, None),
        (true, Some(ada())),
        (false, Some(ada())),
    ];
    let site = &site;
    let posted = join_all(ways.map(|(is_chosen, by)| post_many(site, is_chosen, by))).await;
    for keys in posted {
        count += keys.len();
        all.extend(keys);
    }
    assert_eq!(all.len(), count, "a number was given twice");
    let there = list(&site.board(), WHOLE_BOARD).await;
    let there: HashSet<_> = there.into_iter().map(|job| job.key).collect();
    assert!(there == all, "a job is missing");
    eprintln!(
        "faults: {count} jobs were posted in five ways concurrently, each under its own number"
    );
}

#[tokio::test]
async fn concurrent_posts_of_one_uuid_one_succeeds() {
    need!(site = Site::new());
    for _ in 0..size(50, 2) {
        let uuid = Uuid::new_v4();
        let crowd = (0..20).map(|_| async {
            let board = site.board();
            let answer = board
                .post(&[chosen("unique", uuid)], None)
                .await
                .unwrap()
                .remove(0);
            board.close().await;
            answer
        });
        let others = async {
            let board = site.board();
            for _ in 0..20 {
                let key = post_one(&board, "other").await;
                claim_one(&board, &key, &bob()).await.unwrap();
                settled(&board, &key, Decision::Consume, by_name("bob")).await;
            }
        };
        let (answers, ()) = tokio::join!(join_all(crowd), others);
        let won = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(won, 1);
        let lost = answers
            .iter()
            .filter(|one| matches!(one, Err(BoardError::Exists { .. })));
        assert_eq!(lost.count(), 19, "{answers:?}");
    }
}

/// The replies to one worker while a leader died.
#[derive(Default)]
struct Replies {
    posted: HashSet<Uuid>,
    claimed: Vec<(JobKey, String)>,
    is_unknown: usize,
}

/// The load by all workers.
#[derive(Default)]
struct Load {
    acknowledged: AtomicUsize,
    is_over: AtomicBool,
}

impl Load {
    /// Waits until this many more posts are acknowledged.
    async fn grows_by(&self, posts: usize, ensemble: &mut Ensemble) {
        let enough = self.acknowledged.load(Relaxed) + posts;
        let growth = async {
            while self.acknowledged.load(Relaxed) < enough {
                // A server that loses its leader may exit.
                ensemble.revive();
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let grown = tokio::time::timeout(Duration::from_secs(90), growth).await;
        grown.expect("the board acknowledges posts");
    }
}

async fn work(board: Subject, name: String, load: Arc<Load>) -> Replies {
    let by = claimant(&name, Term::Indefinite);
    let mut replies = Replies::default();
    while !load.is_over.load(Relaxed) {
        let draft = draft("loaded");
        let uuid = draft.uuid;
        let posted = match board
            .post(&[draft], None)
            .await
            .map(|mut all| all.pop().unwrap())
        {
            Ok(Ok(posted)) => posted,
            Ok(Err(BoardError::Unknown { .. })) => {
                replies.is_unknown += 1;
                continue;
            }
            Ok(Err(BoardError::Unreachable { .. })) | Err(BoardError::Unreachable { .. }) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
            other => panic!("{other:?}"),
        };
        replies.posted.insert(uuid);
        load.acknowledged.fetch_add(1, Relaxed);
        match claim_one(&board, &posted.key, &by).await {
            Ok(_) => replies.claimed.push((posted.key, name.clone())),
            Err(BoardError::Unknown { .. } | BoardError::Unreachable { .. }) => {
                replies.is_unknown += 1
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    replies
}

#[tokio::test]
async fn acknowledged_changes_survive_the_death_of_the_leader() {
    need!(mut ensemble = Ensemble::start());
    let url = zookeeper_url(&format!("zk://{}/load/jobs", ensemble.hosts()));
    let open =
        || -> Subject { Arc::new(ZooKeeper::new(&url, None, OP_TIMEOUT, crate::job::HISTORY)) };
    let load = Arc::new(Load::default());
    let workers: Vec<_> = (0..4)
        .map(|number| tokio::spawn(work(open(), format!("worker-{number}"), Arc::clone(&load))))
        .collect();
    let posts = size(1000, 100);
    load.grows_by(posts, &mut ensemble).await;
    ensemble.leader().unwrap().stop();
    load.grows_by(posts, &mut ensemble).await;
    load.is_over.store(true, Relaxed);
    let replies: Vec<_> = join_all(workers)
        .await
        .into_iter()
        .map(|one| one.unwrap())
        .collect();
    let board = open();
    let jobs = loop {
        match board.post(&[draft("last")], None).await {
            Ok(_) => break list(&board, WHOLE_BOARD).await,
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
        // A server that loses its leader may exit.
        ensemble.revive();
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let mut there = HashSet::new();
    for job in &jobs {
        assert!(
            there.insert(job.uuid.clone()),
            "{} was posted twice",
            job.uuid
        );
    }
    let posted: Vec<_> = replies.iter().flat_map(|replies| &replies.posted).collect();
    assert!(
        posted.iter().all(|uuid| there.contains(&uuid.to_string())),
        "one was lost"
    );
    let holders: std::collections::HashMap<_, _> = jobs
        .iter()
        .map(|job| (&job.key, job.holding.as_ref()))
        .collect();
    for (key, name) in replies.iter().flat_map(|replies| &replies.claimed) {
        let holder = holders[key].and_then(|holding| holding.owner.clone());
        assert_eq!(holder, Some(owner(name)));
    }
    eprintln!(
        "faults: {} posts acknowledged while the leader died, {} answers unknown, nothing lost",
        posted.len(),
        replies
            .iter()
            .map(|replies| replies.is_unknown)
            .sum::<usize>()
    );
}
