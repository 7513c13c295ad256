//! Renewals on a simulated clock, against a board with scripted answers.

use std::{collections::VecDeque, future::Future, io, sync::Mutex};

use futures_util::future::join_all;
use tokio::time;

use super::*;
use crate::{
    board::{Result, testing::scripted::Scripted},
    job::{Fence, JobKey, Owner},
    process::simulation::{Machine, MachineScope},
};

#[derive(Debug, Clone, Copy)]
enum Answer {
    Grant,
    /// Refuses the claim on this job, grants the others.
    Refuse(&'static str),
    Unreachable,
    Fail,
    /// Returns an error for each claim.
    FailEach,
    Silence,
}

/// The answers of a board that can only renew; the last one repeats.
struct Renewals {
    has_expiring_claims: bool,
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<(Boottime, Vec<String>)>>,
}

impl Renewals {
    fn new(has_expiring_claims: bool, answers: &[Answer]) -> Arc<Self> {
        Arc::new(Self {
            has_expiring_claims,
            answers: Mutex::new(answers.iter().copied().collect()),
            asked: Mutex::default(),
        })
    }

    fn keeper(self: &Arc<Self>) -> Keeper {
        let renewals = Arc::clone(self);
        let renew = move |claims: &[Claim]| renewals.renew(claims);
        Keeper::start(Arc::new(Scripted::renewing(
            self.has_expiring_claims,
            renew,
        )))
    }

    fn renew(&self, claims: &[Claim]) -> Option<Result<Vec<Result<()>>>> {
        let keys: Vec<String> = claims.iter().map(|it| it.key.to_string()).collect();
        let asked = (Boottime::now(), keys.clone());
        self.asked.lock().unwrap().push(asked);
        let refused = match self.answer() {
            Answer::Grant => "",
            Answer::Refuse(key) => key,
            Answer::Unreachable => {
                return Some(Err(BoardError::Unreachable {
                    board: "scripted".to_owned(),
                    source: Box::new(io::Error::other("cut")),
                }));
            }
            Answer::Fail => return Some(Err(broken())),
            Answer::FailEach => return Some(Ok(keys.iter().map(|_| Err(broken())).collect())),
            Answer::Silence => return None,
        };
        let answer = |key: &String| match key == refused {
            true => Err(BoardError::NotClaimed),
            false => Ok(()),
        };
        Some(Ok(keys.iter().map(answer).collect()))
    }

    fn answer(&self) -> Answer {
        let mut answers = self.answers.lock().unwrap();
        let next = *answers.front().unwrap();
        if answers.len() > 1 {
            answers.pop_front();
        }
        next
    }

    fn asked(&self) -> Vec<(Boottime, Vec<String>)> {
        self.asked.lock().unwrap().clone()
    }

    async fn asked_times(&self, count: usize) {
        soon(async {
            while self.asked().len() < count {
                time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
}

fn broken() -> BoardError {
    BoardError::Failed {
        doing: "read",
        board: "scripted".to_owned(),
        source: Box::new(io::Error::other("broken")),
    }
}

const TERM: Duration = Duration::from_millis(2400);

/// Simulates the clocks of this thread, some time after the start of the machine.
async fn simulated() -> MachineScope {
    let (_, scope) = Machine::start(0, None, false);
    time::sleep(Duration::from_secs(60)).await;
    scope
}

fn claim(key: &str, term: Duration) -> Claim {
    Claim {
        key: JobKey::new(key),
        owner: Owner::new("ada").unwrap(),
        fence: Some(Fence("1".to_owned())),
        term,
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    time::timeout(Duration::from_secs(10), future)
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn claims_are_renewed_together_and_outlive_their_term() {
    let _machine = simulated().await;
    let board = Renewals::new(true, &[Answer::Grant]);
    let keeper = board.keeper();
    let start = Boottime::now();
    let mut a = keeper.hold(claim("a", TERM), start);
    let mut b = keeper.hold(claim("b", TERM), start);
    tokio::select! {
        lost = a.lost() => panic!("{lost}"),
        lost = b.lost() => panic!("{lost}"),
        () = board.asked_times(4) => {}
    }
    assert!((start + TERM).is_past());
    for (n, (asked, keys)) in board.asked().into_iter().enumerate() {
        assert!(asked >= start + TERM / 3 * u32::try_from(n + 1).unwrap());
        assert_eq!(keys, ["a", "b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn refused_claim_is_lost_immediately_and_the_others_survive() {
    let _machine = simulated().await;
    let board = Renewals::new(true, &[Answer::Refuse("b"), Answer::Grant]);
    let keeper = board.keeper();
    let start = Boottime::now();
    let mut a = keeper.hold(claim("a", TERM), start);
    let mut b = keeper.hold(claim("b", TERM), start);
    let lost = soon(b.lost()).await;
    assert!(matches!(
        lost,
        Lost::Refused {
            source: BoardError::NotClaimed,
            ..
        }
    ));
    assert!(lost.kill_at() <= Boottime::now() + TERM / 12);
    tokio::select! {
        lost = a.lost() => panic!("{lost}"),
        () = board.asked_times(4) => {}
    }
    assert_eq!(board.asked().pop().unwrap().1, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn unrenewable_claim_is_lost_before_its_deadline() {
    let _machine = simulated().await;
    use Answer::{Fail, FailEach, Silence, Unreachable};
    join_all([Unreachable, Fail, FailEach, Silence].map(is_lost_in_time)).await;
}

async fn is_lost_in_time(answer: Answer) {
    let board = Renewals::new(true, &[Answer::Grant, answer]);
    let keeper = board.keeper();
    let mut lease = keeper.hold(claim("a", TERM), Boottime::now());
    let lost = soon(lease.lost()).await;
    let confirmed = board.asked()[0].0;
    assert!((confirmed + TERM * 5 / 6 - Duration::from_millis(5)).is_past());
    assert!(lost.kill_at() <= confirmed + TERM, "{answer:?}");
    assert!(board.asked().len() > 2, "{answer:?}: tried again");
    let Lost::Expired { last, .. } = lost else {
        panic!("{lost}")
    };
    assert_eq!(last.is_some(), !matches!(answer, Answer::Silence));
    // Without claims the keeper sends no more requests.
    assert!(keeper.ledger.claims().0.is_empty());
}

#[tokio::test(start_paused = true)]
async fn claim_survives_a_short_outage() {
    let _machine = simulated().await;
    use Answer::{Fail, FailEach, Grant, Silence, Unreachable};
    let board = Renewals::new(true, &[Unreachable, Fail, FailEach, Grant, Silence, Grant]);
    let keeper = board.keeper();
    let mut lease = keeper.hold(claim("a", TERM), Boottime::now());
    tokio::select! {
        lost = lease.lost() => panic!("{lost}"),
        () = board.asked_times(7) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn late_claim_is_lost() {
    let _machine = simulated().await;
    let board = Renewals::new(true, &[Answer::Grant]);
    let keeper = board.keeper();
    let mut unnoticed = keeper.hold(claim("b", TERM), Boottime::now() - TERM);
    assert!(unnoticed.lost_by_now().is_some());
    let mut lease = keeper.hold(claim("a", TERM), Boottime::now() - TERM);
    assert!(soon(lease.lost()).await.kill_at().is_past());
    assert!(board.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn session_deadline_counts_from_the_last_but_one_confirmation() {
    let _machine = simulated().await;
    let board = Renewals::new(false, &[Answer::Grant, Answer::Grant, Answer::Unreachable]);
    let keeper = board.keeper();
    let mut lease = keeper.hold(claim("a", TERM), Boottime::now());
    let lost = soon(lease.lost()).await;
    let asked = board.asked();
    assert!(lost.kill_at() < asked[0].0 + TERM);
    assert!(lost.kill_at() + TERM / 12 < asked[1].0 + TERM);
}

#[tokio::test(start_paused = true)]
async fn session_deadline_allows_for_silence_before_the_first_claim() {
    let _machine = simulated().await;
    let board = Renewals::new(false, &[Answer::Unreachable]);
    let keeper = board.keeper();
    let asked = Boottime::now();
    let mut lease = keeper.hold(claim("a", TERM), asked);
    let lost = soon(lease.lost()).await;
    assert_eq!(lost.kill_at(), asked + TERM * 3 / 4 - TERM / 12);
}

#[tokio::test(start_paused = true)]
async fn session_deadline_allows_for_silence_before_a_renewal_right_after_the_claim() {
    let _machine = simulated().await;
    let board = Renewals::new(false, &[Answer::Grant, Answer::Unreachable]);
    let keeper = board.keeper();
    // The older claim is due, and the new one is renewed with it.
    let _older = keeper.hold(claim("a", TERM), Boottime::now() - TERM / 3);
    let mut lease = keeper.hold(claim("b", TERM), Boottime::now());
    let lost = soon(lease.lost()).await;
    let (renewed, keys) = board.asked()[0].clone();
    assert_eq!(keys, ["a", "b"]);
    assert!(lost.kill_at() <= renewed + TERM * 3 / 4 - TERM / 12);
}

#[tokio::test(start_paused = true)]
async fn claims_can_be_added_and_removed_during_renewals() {
    let _machine = simulated().await;
    let board = Renewals::new(true, &[Answer::Grant]);
    let keeper = board.keeper();
    let a = keeper.hold(claim("a", TERM), Boottime::now());
    board.asked_times(1).await;
    let b = keeper.hold(claim("b", TERM), Boottime::now());
    board.asked_times(2).await;
    drop(a);
    board.asked_times(3).await;
    let asked: Vec<Vec<String>> = board.asked().into_iter().map(|(_, keys)| keys).collect();
    assert_eq!(asked[0], ["a"]);
    assert_eq!(asked[1], ["a", "b"]);
    assert_eq!(asked[2], ["b"]);
    drop(b);
}

fn is_unrenewed(lost: &Lost) -> bool {
    matches!(lost, Lost::Expired { last: None, .. })
}

#[tokio::test(start_paused = true)]
async fn claim_without_a_keeper_is_lost_once() {
    let _machine = simulated().await;
    let board = Renewals::new(true, &[Answer::Grant]);
    let keeper = board.keeper();
    let [mut awaited, mut checked] =
        ["a", "b"].map(|key| keeper.hold(claim(key, TERM), Boottime::now()));
    assert!(checked.lost_by_now().is_none());
    drop(keeper);
    assert!(is_unrenewed(&soon(awaited.lost()).await));
    assert!(awaited.lost_by_now().is_none(), "it was taken before");
    assert!(checked.has_expired());
    assert!(checked.lost_by_now().is_some_and(|it| is_unrenewed(&it)));
    assert!(checked.lost_by_now().is_none(), "it was taken before");
}

#[tokio::test(start_paused = true)]
async fn claims_are_lost_when_the_keeper_panics() {
    let _machine = simulated().await;
    let board = Scripted::renewing(true, |_| panic!("a planted defect"));
    let mut keeper = Keeper::start(Arc::new(board));
    let mut held = keeper.hold(claim("a", TERM), Boottime::now());
    assert!(is_unrenewed(&soon(held.lost()).await));
    soon(keeper.broken()).await;
    let mut late = keeper.hold(claim("b", TERM), Boottime::now());
    assert!(late.lost_by_now().is_some_and(|it| is_unrenewed(&it)));
}

#[tokio::test(start_paused = true)]
async fn refusal_is_no_expiry_and_stays_to_be_taken() {
    let _machine = simulated().await;
    let board = Renewals::new(true, &[Answer::Refuse("a")]);
    let keeper = board.keeper();
    let mut lease = keeper.hold(claim("a", TERM), Boottime::now());
    board.asked_times(1).await;
    assert!(!lease.has_expired());
    assert!(matches!(lease.lost_by_now(), Some(Lost::Refused { .. })));
}
