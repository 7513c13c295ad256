//! Lost replies: nothing is done twice, and unknown outcomes are reported.

use std::collections::HashMap;

use super::*;

/// A request that takes several steps, the first of which deletes a node.
const DELETES: &str = "\0\0\0\u{e}\0\0\0\u{2}\0";

const SHORT_OP_TIMEOUT: Duration = Duration::from_millis(700);

/// A board behind a proxy, which loses the reply to the next request with such bytes.
struct Lossy {
    site: Site,
    proxy: Proxy,
    board: Subject,
}

impl Lossy {
    async fn new() -> Option<Self> {
        let site = Site::new()?;
        let proxy = Proxy::start(site.port);
        let url = zookeeper_url(&format!("zk://127.0.0.1:{}{}", proxy.port, site.path));
        let board: Subject = Arc::new(ZooKeeper::new(
            &url,
            None,
            SHORT_OP_TIMEOUT,
            crate::job::HISTORY,
        ));
        // This also creates the parent nodes, which would cause another attempt.
        let key = post(&board, chosen("folders", Uuid::new_v4())).await;
        claim_one(&board, &key, &ada()).await.unwrap();
        settled(&board, &key, Decision::Consume, by_name("ada")).await;
        Some(Self { site, proxy, board })
    }

    fn lose(&self, word: &'static str, mode: ProxyMode) {
        self.proxy.set_at(word, mode);
    }

    async fn jobs(&self) -> Vec<Job> {
        assert!(self.proxy.has_sprung());
        self.proxy.set(ProxyMode::PassOn);
        list(&self.site.board(), WHOLE_BOARD).await
    }
}

const PROXY_MODES: [ProxyMode; 2] = [ProxyMode::HangUpOnce, ProxyMode::Silent];

fn is_unknown<T: std::fmt::Debug>(answer: Result<T>) {
    assert_matches!(answer, Err(BoardError::Unknown { .. }));
}

async fn post_with(
    board: &Subject,
    draft: Draft,
    by: Option<&crate::job::Claimant>,
) -> Result<crate::board::Posted> {
    board.post(&[draft], by).await?.pop().unwrap()
}

#[tokio::test]
async fn post_with_a_lost_reply_is_looked_up_once() {
    need!(lossy = Lossy::new().await);
    post_one(&lossy.board, "first").await;
    let kept = claimant("runner", Term::Lease(Duration::from_secs(10)));
    for (round, by) in [None, Some(&kept), Some(&ada())].into_iter().enumerate() {
        lossy.lose("swallowed", ProxyMode::HangUpOnce);
        let posted = post_with(&lossy.board, draft("swallowed"), by)
            .await
            .unwrap();
        let jobs = lossy.jobs().await;
        assert_eq!(jobs.len(), 2, "round {round}");
        let job = jobs
            .into_iter()
            .find(|job| job.name == "swallowed")
            .unwrap();
        assert_eq!(
            (job.key, job.sequence),
            (posted.key.clone(), Some(posted.sequence))
        );
        let fence = job.holding.and_then(|holding| holding.fence);
        assert_eq!(posted.fence, fence);
        assert_eq!(fence.is_some(), by.is_some());
        let seen = ExpectedState::Unclaimed;
        let authority = by.map_or(Authority::Force(seen), |by| {
            Authority::Owner(by.owner.clone())
        });
        settled(&lossy.board, &posted.key, Decision::Consume, authority).await;
    }
}

#[tokio::test]
async fn post_that_cannot_be_looked_up_is_unknown_and_not_repeated() {
    for mode in PROXY_MODES {
        for (is_chosen, by) in [
            (true, None),
            (true, Some(ada())),
            (false, None),
            (false, Some(ada())),
        ] {
            need!(lossy = Lossy::new().await);
            if !is_chosen && mode == ProxyMode::HangUpOnce {
                continue;
            }
            post_one(&lossy.board, "first").await;
            lossy.lose("swallowed", mode);
            let draft = match is_chosen {
                true => chosen("swallowed", Uuid::new_v4()),
                false => draft("swallowed"),
            };
            is_unknown(post_with(&lossy.board, draft, by.as_ref()).await);
            assert_eq!(lossy.jobs().await.len(), 2, "{mode:?}");
        }
    }
}

#[tokio::test]
async fn each_of_many_concurrent_posts_has_its_own_result() {
    need!(lossy = Lossy::new().await);
    let mut drafts: Vec<_> = (0..1000).map(|_| draft("many")).collect();
    drafts[300].name = "swallowed".to_owned();
    lossy.lose("swallowed", ProxyMode::HangUpOnce);
    let answers = lossy.board.post(&drafts, None).await.unwrap();
    let jobs: HashMap<_, _> = (lossy.jobs().await.into_iter())
        .map(|job| (job.uuid.clone(), job))
        .collect();
    let mut numbers = Vec::new();
    for (draft, answer) in drafts.iter().zip(&answers) {
        match answer {
            Ok(posted) => {
                let job = &jobs[&draft.uuid.to_string()];
                assert_eq!(job.key, posted.key);
                numbers.push(posted.sequence);
            }
            Err(error) => assert!(matches!(error, BoardError::Unknown { .. }), "{error:?}"),
        }
    }
    assert_eq!(answers.len(), drafts.len());
    assert!(answers[300].is_ok(), "{:?}", answers[300]);
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    assert!(list(&lossy.board, WHOLE_BOARD).await.len() <= drafts.len());
}

#[tokio::test]
async fn claim_with_a_lost_reply_is_unknown_and_happens_once() {
    for mode in PROXY_MODES {
        need!(lossy = Lossy::new().await);
        let key = post_one(&lossy.board, "first").await;
        let swallowed = claimant("swallowed", Term::Indefinite);
        lossy.lose("swallowed", mode);
        is_unknown(claim_one(&lossy.board, &key, &swallowed).await);
        let job = lossy.jobs().await.remove(0);
        assert_eq!(job.holding.unwrap().owner, Some(owner("swallowed")));
        let nodes = lossy.site.nodes().await;
        let side = nodes.get(&lossy.site.paths.side(&key)).await.unwrap();
        assert_eq!(side.1.version, 0, "it was claimed twice");
    }
}

#[tokio::test]
async fn settlement_with_a_lost_reply_is_unknown_and_happens_once() {
    for mode in PROXY_MODES {
        for (word, decision) in [
            (DELETES, Decision::Consume),
            (DELETES, release()),
            ("swallowed", trash()),
        ] {
            need!(lossy = Lossy::new().await);
            let key = post_claimed(&lossy.board, "swallowed").await;
            lossy.lose(word, mode);
            is_unknown(
                lossy
                    .board
                    .settle_one(&key, decision.clone(), by_name("ada"))
                    .await,
            );
            let jobs = lossy.jobs().await;
            let is_there = matches!(decision, Decision::Abandon(_));
            assert_eq!(jobs.len(), usize::from(is_there), "{decision:?}");
            assert!(jobs.iter().all(|job| job.holding.is_none()));
            let in_trash = get(&lossy.site.board(), Location::Trash, &key).await;
            assert_eq!(in_trash.is_some(), matches!(decision, Decision::Trash(_)));
        }
    }
}

#[tokio::test]
async fn restore_and_purge_with_a_lost_reply_happen_once() {
    for mode in PROXY_MODES {
        need!(lossy = Lossy::new().await);
        let key = trashed(&lossy.board, draft("swallowed")).await;
        lossy.lose("swallowed", mode);
        is_unknown(restore(&lossy.board, &key).await);
        assert_eq!(lossy.jobs().await.len(), 1);
        let key = trashed(&lossy.site.board(), draft("other")).await;
        lossy.lose(DELETES, mode);
        is_unknown(purge(&lossy.board, &key).await);
        assert_eq!(lossy.jobs().await.len(), 1);
        assert!(
            get(&lossy.site.board(), Location::Trash, &key)
                .await
                .is_none()
        );
    }
}
