//! The contract of claims.

use std::time::Instant;

use futures_util::future::join_all;

use super::*;
use crate::{
    board::BoardError,
    job::{Claim, ClaimEnd, Fence},
};

pub(super) fn claim(claimed: &Claimed, name: &str, term: Duration) -> Claim {
    Claim {
        key: claimed.job.key.clone(),
        owner: owner(name),
        fence: Some(claimed.fence.clone()),
        term,
    }
}

pub(super) async fn renew(board: &Subject, claim: &Claim) -> Result<()> {
    let renewed = board.renew(std::slice::from_ref(claim)).await?.pop();
    renewed.unwrap()
}

pub(crate) async fn a_claimed_job_cannot_be_claimed_again(board: &Subject) {
    let key = post_one(board, "resize").await;
    let claimed = claim_one(board, &key, &ada()).await.unwrap();
    assert_eq!(claimed.job.name, "resize");
    assert_eq!(claimed.job.details, Some(draft("").details));
    let refused = claim_one(board, &key, &bob()).await;
    assert_matches!(refused, Err(BoardError::AlreadyClaimed { owner: Some(owner) }) if *owner == ada().owner);
    assert_eq!(on_board(board, &key).await.owner(), Some(&ada().owner));
}

pub(crate) async fn claiming_an_own_job_again_is_refused_without_effect(board: &Subject) {
    let key = post_claimed(board, "resize").await;
    let before = on_board(board, &key).await;
    let refused = claim_one(board, &key, &ada()).await;
    assert_matches!(refused, Err(BoardError::AlreadyClaimed { .. }));
    assert_eq!(on_board(board, &key).await, before);
}

pub(crate) async fn twenty_claimants_one_winner(board: &Subject) {
    one_client_wins_a_job(&[(); 20].map(|()| Arc::clone(board))).await;
}

/// All clients claim a job together. One wins and consumes the job; the others learn its name.
pub(crate) async fn one_client_wins_a_job(clients: &[Subject]) {
    let key = post_one(&clients[0], "wanted").await;
    let claims = clients.iter().enumerate().map(|(number, board)| {
        let (board, key) = (Arc::clone(board), key.clone());
        tokio::spawn(async move {
            let by = claimant(&format!("worker{number}"), Term::Indefinite);
            let claimed = claim_one(&board, &key, &by).await;
            claimed.map(|_| (board, by.owner))
        })
    });
    let answers = join_all(claims).await.into_iter().map(Result::unwrap);
    let (won, lost): (Vec<_>, Vec<_>) = answers.partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, clients.len() - 1));
    let (board, winner) = won.into_iter().flatten().next().unwrap();
    for refused in lost.into_iter().filter_map(Result::err) {
        assert_matches!(refused, BoardError::AlreadyClaimed { owner: Some(owner) } if *owner == winner);
    }
    settled(&board, &key, Decision::Consume, Authority::Owner(winner)).await;
}

pub(crate) async fn first_free_jobs_of_several_are_claimed(board: &Subject) {
    let mut keys = Vec::new();
    for number in 0..5 {
        keys.push(post_one(board, &format!("job{number}")).await);
    }
    claim_one(board, &keys[1], &bob()).await.unwrap();
    let answers = board.claim(&keys, &ada(), 2, BY_HAND).await.unwrap();
    let name = |answer: Result<Claimed>| answer.map(|claimed| claimed.job.name).ok();
    let names: Vec<_> = answers.into_iter().map(name).collect();
    assert_eq!(names, [Some("job0".into()), None, Some("job2".into())]);
    assert_eq!(on_board(board, &keys[3]).await.holding, None);
}

pub(crate) async fn unreadable_job_takes_no_place_of_another(board: &Subject) {
    let maps = vec![json!({"": 0}); 25_000];
    let heavy = Draft {
        details: json!({"n": maps}).into(),
        ..draft("heavy")
    };
    let heavy = board.post_one(&heavy, None).await.unwrap().key;
    assert!(on_board(board, &heavy).await.is_unfit);
    let keys = [heavy, post_one(board, "resize").await];
    let answers = board.claim(&keys, &ada(), 1, ATTEMPT).await.unwrap();
    assert_matches!(
        answers.as_slice(),
        [Err(BoardError::Unclaimable { .. }), Ok(_)]
    );
    assert_eq!(on_board(board, &keys[0]).await.holding, None);
}

pub(crate) async fn finished_job_cannot_be_claimed(board: &Subject) {
    let key = post_claimed(board, "resize").await;
    settled(board, &key, Decision::Consume, by_name("ada")).await;
    let refused = claim_one(board, &key, &ada()).await;
    assert_matches!(refused, Err(BoardError::NoSuchJob));
    assert_eq!(get(board, Location::Board, &key).await, None);
}

pub(crate) async fn fences_grow(board: &Subject) {
    let mut last = 0_u64;
    let key = post_one(board, "resize").await;
    for _ in 0..5 {
        let claimed = claim_one(board, &key, &ada()).await.unwrap();
        let fence: u64 = claimed.fence.0.parse().unwrap();
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        settled(board, &key, release(), by_name("ada")).await;
    }
}

pub(crate) async fn timed_claim_expires(board: &Subject) {
    let key = post_one(board, "resize").await;
    let by = claimant("ada", Term::For(SHORT));
    if !board.capabilities().has_expiring_claims {
        let refused = claim_one(board, &key, &by).await;
        assert_matches!(refused, Err(BoardError::Unsupported(_)));
        return;
    }
    claim_one(board, &key, &by).await.unwrap();
    let holding = on_board(board, &key).await.holding.expect("a claim");
    assert_eq!(holding.end, ClaimEnd::Timed);
    assert!(
        holding.expires_in.is_some_and(|left| left <= SHORT),
        "{holding:?}"
    );
    until_free(board, &key).await;
    let late = board
        .settle_one(&key, Decision::Consume, by_name("ada"))
        .await;
    assert_matches!(late, Err(BoardError::NotClaimed));
    claim_one(board, &key, &bob()).await.unwrap();
    let late = board
        .settle_one(&key, Decision::Consume, by_name("ada"))
        .await;
    assert_matches!(late, Err(BoardError::NotOwner { .. }));
}

pub(crate) async fn claim_without_a_term_does_not_expire(board: &Subject) {
    let key = post_claimed(board, "resize").await;
    let holding = on_board(board, &key).await.holding.expect("a claim");
    assert_eq!((holding.end, holding.expires_in), (ClaimEnd::Never, None));
    assert!(holding.claimed_on.is_some());
}

pub(crate) async fn manual_claims_count_no_attempt(board: &Subject) {
    let key = post_one(board, "resize").await;
    for (rules, attempts) in [(BY_HAND, 0), (ATTEMPT, 1), (BY_HAND, 1), (ATTEMPT, 2)] {
        let claimed = board.claim_one(&key, &ada(), rules).await.unwrap();
        assert_eq!(claimed.job.attempts.count, attempts);
        settled(board, &key, release(), by_name("ada")).await;
    }
    assert_eq!(on_board(board, &key).await.attempts.count, 2);
}

/// Claims jobs, with `starting` as the limit of immediate starts.
async fn claim_ahead(board: &Subject, keys: &[JobKey], starting: usize) -> Vec<Result<Claimed>> {
    let rules = ClaimRules {
        starting,
        ..ATTEMPT
    };
    let by = claimant("ada", Term::Lease(LONG));
    let claims = board.claim(keys, &by, keys.len(), rules).await;
    claims.unwrap()
}

async fn give_back(board: &Subject, claimed: &Claimed, aftermath: Aftermath) {
    let right = Authority::Claim(owner("ada"), claimed.fence.clone());
    let decision = Decision::Abandon(aftermath);
    settled(board, &claimed.job.key, decision, right).await;
}

pub(crate) async fn claim_made_ahead_counts_an_attempt_once_it_has_a_result(board: &Subject) {
    let failed = Aftermath::failed(super::settling::failure("broken"));
    let not_before = chrono::Utc::now();
    for (aftermath, starting, ahead) in [
        (Aftermath::None, 1, 0),
        (Aftermath::Interrupted, 0, 0),
        (Aftermath::Postponed { not_before }, 0, 0),
        (failed, 1, 1),
    ] {
        let keys = [
            post_one(board, "first").await,
            post_one(board, "second").await,
        ];
        for (key, claimed) in keys.iter().zip(claim_ahead(board, &keys, 1).await) {
            let claimed = claimed.unwrap();
            // For the worker it is an attempt in any case.
            assert_eq!(claimed.job.attempts.count, 1);
            assert_eq!(on_board(board, key).await.attempts.count, 1);
            give_back(board, &claimed, aftermath.clone()).await;
        }
        for (key, attempts) in keys.iter().zip([starting, ahead]) {
            let stored = on_board(board, key).await.attempts;
            assert_eq!(stored.count, attempts, "{aftermath:?}");
        }
    }
}

pub(crate) async fn job_released_ahead_of_its_turn_starts_immediately_when_claimed_next(
    board: &Subject,
) {
    let key = [post_one(board, "resize").await];
    let claim = async |starting| claim_ahead(board, &key, starting).await.pop().unwrap();
    let left = claim(0).await.unwrap();
    // Simulates an expired claim.
    give_back(board, &left, Aftermath::None).await;
    let refused = claim(0).await;
    assert_matches!(refused, Err(BoardError::Delayed { .. }));
    let begun = claim(1).await.unwrap();
    assert_eq!(begun.job.attempts.count, 1);
    give_back(board, &begun, Aftermath::None).await;
    let again = claim(0).await.unwrap();
    assert_eq!(again.job.attempts.count, 2);
}

pub(crate) async fn delayed_job_is_claimed_only_by_reference(board: &Subject) {
    let key = post_one(board, "resize").await;
    let not_before = chrono::Utc::now() + LONG;
    claim_one(board, &key, &ada()).await.unwrap();
    let postpone = Decision::Abandon(Aftermath::Postponed { not_before });
    settled(board, &key, postpone, by_name("ada")).await;
    let refused = board.claim_one(&key, &ada(), ATTEMPT).await;
    assert_matches!(refused, Err(BoardError::Delayed { .. }));
    let candidates = board
        .candidates(&Default::default(), 10, &Default::default())
        .await
        .unwrap();
    assert!(candidates.jobs.is_empty());
    let next = candidates.next_not_before.expect("when it may be tried");
    assert_eq!(next.timestamp_millis(), not_before.timestamp_millis());
    claim_one(board, &key, &ada()).await.unwrap();
}

pub(crate) async fn renewed_claim_outlives_its_first_term(board: &Subject) {
    let mut term = SHORT;
    while !is_renewed_in_time(board, term).await {
        term *= 4;
        assert!(term < SHORT * 100, "this machine is too slow");
    }
}

/// Requires that a renewed claim of this term lasts; `false` if a renewal came too late.
async fn is_renewed_in_time(board: &Subject, term: Duration) -> bool {
    let key = post_one(board, "resize").await;
    let by = claimant("ada", Term::Lease(term));
    let mut last = Instant::now();
    let claimed = claim_one(board, &key, &by).await.unwrap();
    let claim = claim(&claimed, "ada", term);
    for _ in 0..4 {
        tokio::time::sleep(term / 2).await;
        let asked = Instant::now();
        let renewed = renew(board, &claim).await;
        if last.elapsed() > term * 3 / 4 {
            return false;
        }
        match renewed {
            // A session this short may end because of a slow connection or server.
            Err(BoardError::Unreachable { .. } | BoardError::NotClaimed) => return false,
            renewed => renewed.unwrap(),
        }
        last = asked;
    }
    let job = on_board(board, &key).await;
    if last.elapsed() > term * 3 / 4 {
        return false;
    }
    assert_eq!(job.owner(), Some(&by.owner));
    assert_eq!(job.holding.unwrap().fence, claim.fence);
    true
}

pub(crate) async fn only_the_holder_of_a_claim_can_renew_it(board: &Subject) {
    let key = post_one(board, "resize").await;
    let by = claimant("ada", Term::Lease(LONG));
    let claimed = claim_one(board, &key, &by).await.unwrap();
    let right = claim(&claimed, "ada", LONG);
    let other_owner = Claim {
        owner: owner("bob"),
        ..right.clone()
    };
    let other_fence = Claim {
        fence: Some(Fence("999999".into())),
        ..right.clone()
    };
    let gone = Claim {
        key: JobKey::new("no such job"),
        ..right.clone()
    };
    let by_hand = post_one(board, "by-hand").await;
    let by_hand = claim_one(board, &by_hand, &ada()).await.unwrap();
    let without_fence = Claim {
        fence: None,
        ..claim(&by_hand, "ada", LONG)
    };
    let answers = board
        .renew(&[other_owner, other_fence, gone, right, without_fence])
        .await
        .unwrap();
    assert_matches!(answers[0], Err(BoardError::NotOwner { .. }));
    assert_matches!(answers[1], Err(BoardError::Changed));
    assert_matches!(answers[2], Err(BoardError::NoSuchJob));
    assert!(answers[3].is_ok(), "{answers:?}");
    match board.capabilities().has_expiring_claims {
        true => assert!(answers[4].is_ok(), "{answers:?}"),
        false => assert_matches!(answers[4], Err(BoardError::Unsupported(_))),
    }
}

pub(crate) async fn lease_has_the_term_that_the_board_grants(board: &Subject) {
    let granted = board.lease_term(LONG).await.unwrap();
    let has_sessions = !board.capabilities().has_expiring_claims;
    assert!(granted == LONG || has_sessions && granted < LONG);
    let key = post_one(board, "resize").await;
    let by = claimant("ada", Term::Lease(granted));
    let claimed = claim_one(board, &key, &by).await.unwrap();
    let holding = on_board(board, &key).await.holding.unwrap();
    match has_sessions {
        true => assert_eq!(
            (holding.end, holding.outlives),
            (ClaimEnd::Session, Some(granted))
        ),
        false => {
            assert_eq!(holding.end, ClaimEnd::Timed);
            let left = holding.expires_in.unwrap();
            assert!(left <= granted && left > granted / 2, "{left:?}");
        }
    }
    assert_eq!(board.lease_term(granted).await.unwrap(), granted);
    renew(board, &claim(&claimed, "ada", granted))
        .await
        .unwrap();
}

pub(crate) async fn renewal_does_not_revive_an_expired_claim(board: &Subject) {
    let key = post_one(board, "resize").await;
    let by = claimant("ada", Term::Lease(SHORT));
    let claimed = claim_one(board, &key, &by).await.unwrap();
    if !board.capabilities().has_expiring_claims {
        board.close().await;
    }
    until_free(board, &key).await;
    let refused = renew(board, &claim(&claimed, "ada", LONG)).await;
    assert_matches!(refused, Err(BoardError::NotClaimed));
    assert_eq!(on_board(board, &key).await.holding, None);
}

pub(crate) async fn closed_board_keeps_other_claims_and_connects_again(board: &Subject) {
    let by_hand = post_claimed(board, "by hand").await;
    let kept = post_one(board, "kept").await;
    let by = claimant("bob", Term::Lease(LONG));
    claim_one(board, &kept, &by).await.unwrap();
    board.close().await;
    if !board.capabilities().has_expiring_claims {
        until_free(board, &kept).await;
    } else {
        assert_eq!(on_board(board, &kept).await.owner(), Some(&by.owner));
    }
    assert_eq!(on_board(board, &by_hand).await.owner(), Some(&ada().owner));
    settled(board, &by_hand, Decision::Consume, by_name("ada")).await;
}

pub(crate) async fn manual_claim_can_be_given_an_expiry(board: &Subject) {
    let key = post_claimed(board, "resize").await;
    let extension = Claim {
        key: key.clone(),
        owner: owner("ada"),
        fence: None,
        term: LONG,
    };
    let stranger = Claim {
        owner: owner("bob"),
        term: SHORT,
        ..extension.clone()
    };
    let extended = renew(board, &extension).await;
    if !board.capabilities().has_expiring_claims {
        assert_matches!(extended, Err(BoardError::Unsupported(_)));
        return;
    }
    extended.unwrap();
    let refused = renew(board, &stranger).await;
    assert_matches!(refused, Err(BoardError::NotOwner { .. }));
    let holding = on_board(board, &key).await.holding.expect("a claim");
    assert!(
        holding.expires_in.is_some_and(|left| left > LONG / 2),
        "{holding:?}"
    );
}
