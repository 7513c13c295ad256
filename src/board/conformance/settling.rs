//! The contract of settlements.

use futures_util::future::join_all;

use super::{
    claiming::{claim, renew},
    *,
};
use crate::{
    board::{BoardError, Settled},
    job::{Attempts, ExpectedState, Failure, Settlement, State},
};

pub(super) fn failure(reason: &str) -> Failure {
    Failure {
        exit_code: Some(1),
        stdout: "volume 17\n".to_owned(),
        stderr: "no such volume\n".to_owned(),
        ..Failure::reported(reason, "ada")
    }
}

async fn force(
    board: &Subject,
    key: &JobKey,
    decision: Decision,
    seen: ExpectedState,
) -> Result<Settled> {
    board
        .settle_one(key, decision, Authority::Force(seen))
        .await
}

fn outcomes() -> [Decision; 3] {
    [
        release(),
        Decision::Consume,
        Decision::Trash(Aftermath::None),
    ]
}

pub(crate) async fn only_the_owner_can_settle_by_name(board: &Subject) {
    for decision in outcomes() {
        let key = post_claimed(board, "resize").await;
        let before = on_board(board, &key).await;
        let refused = board
            .settle_one(&key, decision.clone(), by_name("bob"))
            .await;
        assert_matches!(refused, Err(BoardError::NotOwner { owner: Some(owner), .. }) if *owner == ada().owner);
        assert_eq!(on_board(board, &key).await, before);
        settled(board, &key, decision, by_name("ada")).await;
    }
}

pub(crate) async fn unclaimed_job_cannot_be_settled_by_name(board: &Subject) {
    let key = post_one(board, "resize").await;
    for decision in outcomes() {
        let refused = board.settle_one(&key, decision, by_name("ada")).await;
        assert_matches!(refused, Err(BoardError::NotClaimed));
    }
    assert_eq!(on_board(board, &key).await.state(), State::Unclaimed);
}

pub(crate) async fn same_name_gets_a_new_fence_for_each_claim(board: &Subject) {
    let key = post_one(board, "resize").await;
    let by = claimant("ada", Term::Lease(LONG));
    let first = claim_one(board, &key, &by).await.unwrap();
    settled(board, &key, release(), by_name("ada")).await;
    let second = claim_one(board, &key, &by).await.unwrap();
    for decision in outcomes() {
        let late = Authority::Claim(by.owner.clone(), first.fence.clone());
        let refused = board.settle_one(&key, decision, late).await;
        assert_matches!(refused, Err(BoardError::Changed));
    }
    let authority = Authority::Claim(by.owner, second.fence);
    settled(board, &key, Decision::Consume, authority).await;
}

pub(crate) async fn an_abandoned_job_can_be_claimed_again(board: &Subject) {
    let key = post_claimed(board, "resize").await;
    settled(board, &key, release(), by_name("ada")).await;
    assert_eq!(on_board(board, &key).await.state(), State::Unclaimed);
    claim_one(board, &key, &bob()).await.unwrap();
}

pub(crate) async fn consumed_job_is_removed(board: &Subject) {
    let key = post_claimed(board, "resize").await;
    settled(board, &key, Decision::Consume, by_name("ada")).await;
    assert_eq!(get(board, Location::Board, &key).await, None);
    assert_eq!(get(board, Location::Trash, &key).await, None);
    let again = board
        .settle_one(&key, Decision::Consume, by_name("ada"))
        .await;
    assert_matches!(again, Err(BoardError::NoSuchJob));
}

pub(crate) async fn twenty_consumers_one_succeeds(board: &Subject) {
    let key = post_claimed(board, "resize").await;
    let consumers = (0..20).map(|_| {
        let (board, key) = (Arc::clone(board), key.clone());
        let consume = Decision::Consume;
        async move { board.settle_one(&key, consume, by_name("ada")).await }
    });
    let answers = join_all(consumers).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
}

pub(crate) async fn each_settlement_of_a_batch_has_its_own_result(board: &Subject) {
    let mut settlements = Vec::new();
    for (number, decision) in outcomes().into_iter().enumerate() {
        let key = post_one(board, &format!("job{number}")).await;
        if number != 1 {
            claim_one(board, &key, &ada()).await.unwrap();
        }
        settlements.push(Settlement::of(key, decision, by_name("ada")));
    }
    let answers = board.settle(&settlements).await.unwrap();
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    assert_matches!(answers[1], Err(BoardError::NotClaimed));
    let released = on_board(board, &settlements[0].key).await;
    assert_eq!(released.state(), State::Unclaimed);
    let trashed = get(board, Location::Trash, &settlements[2].key).await;
    assert_eq!(trashed.unwrap().state(), State::Trashed);
}

pub(crate) async fn forced_settlement_applies_to_the_observed_state(board: &Subject) {
    for decision in outcomes() {
        let key = post_claimed(board, "resize").await;
        let wanted = JobRef::Key(key.clone());
        let seen = board.resolve_one(Location::Board, &wanted).await.unwrap();
        force(board, &key, decision, ExpectedState::of(&seen))
            .await
            .unwrap();
        let left = get(board, Location::Board, &key).await;
        assert!(left.is_none_or(|job| job.holding.is_none()));
    }
    let key = post_claimed(board, "resize").await;
    let stated = ExpectedState::Claimed {
        owner: Some(owner("ada")),
        fence: None,
    };
    force(board, &key, release(), stated).await.unwrap();
}

pub(crate) async fn forced_settlement_is_refused_after_the_claim_changed(board: &Subject) {
    let key = post_one(board, "resize").await;
    let wanted = JobRef::Key(key.clone());
    let unclaimed = board.resolve_one(Location::Board, &wanted).await.unwrap();
    claim_one(board, &key, &ada()).await.unwrap();
    let claimed = board.resolve_one(Location::Board, &wanted).await.unwrap();
    settled(board, &key, release(), by_name("ada")).await;
    claim_one(board, &key, &ada()).await.unwrap();
    for seen in [unclaimed, claimed] {
        for decision in outcomes() {
            let refused = force(board, &key, decision, ExpectedState::of(&seen)).await;
            assert_matches!(refused, Err(BoardError::Changed));
        }
    }
    assert_eq!(on_board(board, &key).await.owner(), Some(&ada().owner));
}

pub(crate) async fn unclaimed_job_can_be_settled_by_force(board: &Subject) {
    let key = post_one(board, "resize").await;
    let refused = force(board, &key, release(), ExpectedState::Unclaimed).await;
    assert_matches!(refused, Err(BoardError::NotClaimed));
    force(board, &key, Decision::Consume, ExpectedState::Unclaimed)
        .await
        .unwrap();
    assert_eq!(get(board, Location::Board, &key).await, None);
}

pub(crate) async fn last_three_failures_are_stored(board: &Subject) {
    let key = post_one(board, "resize").await;
    for number in 1..=4 {
        board.claim_one(&key, &ada(), ATTEMPT).await.unwrap();
        let failed = Aftermath::failed(failure(&format!("attempt {number}")));
        let failed = Decision::Abandon(failed);
        settled(board, &key, failed, by_name("ada")).await;
    }
    let attempts = on_board(board, &key).await.attempts;
    let reasons = attempts.failures.iter().map(|it| it.reason.as_str());
    let reasons: Vec<_> = reasons.collect();
    assert_eq!(reasons, ["attempt 2", "attempt 3", "attempt 4"]);
    assert_eq!(attempts.failures.len(), Attempts::MAX_FAILURES);
    assert_eq!(attempts.count, 4);
    let lines: Vec<_> = attempts.failures[0].last_lines().collect();
    assert_eq!(
        lines,
        [("stdout", "volume 17"), ("stderr", "no such volume")]
    );
}

pub(crate) async fn trashing_an_untried_job_counts_no_attempt(board: &Subject) {
    let key = post_one(board, "resize").await;
    for ahead in [false, true] {
        let rules = ClaimRules {
            starting: usize::from(!ahead),
            ..ATTEMPT
        };
        board.claim_one(&key, &ada(), rules).await.unwrap();
        if !ahead {
            let back = Decision::Abandon(Aftermath::failed(failure("it failed")));
            settled(board, &key, back, by_name("ada")).await;
        }
    }
    let spent = Decision::Spent(failure("it was tried once"));
    settled(board, &key, spent, by_name("ada")).await;
    let attempts = get(board, Location::Trash, &key).await.unwrap().attempts;
    assert_eq!(attempts.count, 1);
    assert_eq!(
        attempts.failures.last().unwrap().reason,
        "it was tried once"
    );
}

pub(crate) async fn interrupted_and_postponed_attempts_do_not_count(board: &Subject) {
    let key = post_one(board, "resize").await;
    let not_before = chrono::Utc::now() - LONG;
    for (aftermath, postponed) in [
        (Aftermath::Interrupted, 0),
        (Aftermath::Postponed { not_before }, 1),
        (Aftermath::Interrupted, 1),
    ] {
        board.claim_one(&key, &ada(), ATTEMPT).await.unwrap();
        settled(board, &key, Decision::Abandon(aftermath), by_name("ada")).await;
        let attempts = on_board(board, &key).await.attempts;
        assert_eq!((attempts.count, attempts.postponed), (0, postponed));
    }
}

pub(crate) async fn holder_of_an_expired_claim_cannot_settle(board: &Subject) {
    let key = post_one(board, "resize").await;
    let by = claimant("ada", Term::Lease(SHORT));
    let first = claim_one(board, &key, &by).await.unwrap();
    if !board.capabilities().has_expiring_claims {
        board.close().await;
    }
    until_free(board, &key).await;
    let late = Authority::Claim(by.owner.clone(), first.fence.clone());
    let refused = board
        .settle_one(&key, Decision::Consume, late.clone())
        .await;
    assert_matches!(refused, Err(BoardError::NotClaimed));
    claim_one(board, &key, &bob()).await.unwrap();
    let refused = board
        .settle_one(&key, Decision::Consume, late.clone())
        .await;
    assert_matches!(refused, Err(BoardError::NotOwner { .. }));
    assert_eq!(on_board(board, &key).await.owner(), Some(&bob().owner));
    // A later claim by the same owner is another claim.
    settled(board, &key, release(), by_name("bob")).await;
    let second = claim_one(board, &key, &claimant("ada", Term::Lease(LONG))).await;
    let claims = [&first, &second.unwrap()].map(|it| claim(it, "ada", LONG));
    assert_matches!(renew(board, &claims[0]).await, Err(BoardError::Changed));
    renew(board, &claims[1]).await.unwrap();
    let refused = board.settle_one(&key, Decision::Consume, late).await;
    assert_matches!(refused, Err(BoardError::Changed));
}

pub(crate) async fn delayed_job_stays_delayed_when_released(board: &Subject) {
    let key = post_one(board, "resize").await;
    let not_before = chrono::Utc::now() + LONG;
    for aftermath in [
        Aftermath::Postponed { not_before },
        Aftermath::None,
        Aftermath::Interrupted,
    ] {
        claim_one(board, &key, &ada()).await.unwrap();
        let back = Decision::Abandon(aftermath);
        settled(board, &key, back, by_name("ada")).await;
        let stored = on_board(board, &key).await.attempts.not_before;
        let millis = |time: chrono::DateTime<chrono::Utc>| time.timestamp_millis();
        assert_eq!(stored.map(millis), Some(millis(not_before)));
    }
}
