//! Waiting, on a board that happens as the test says.

use super::*;
use crate::board::testing::scripted::{Scripted, event};
use crate::job::Entry;

/// Longer than any wait that ends.
const PATIENCE: Duration = Duration::from_secs(20);

async fn soon<T>(future: impl Future<Output = T>) -> T {
    time::timeout(PATIENCE, future).await.unwrap()
}

#[tokio::test]
async fn what_happens_while_a_look_is_tried_again_is_heeded() {
    for is_resync in [false, true] {
        let board = Scripted::new();
        let (first, second) = (board.post("first", None), board.post("second", None));
        board.claim_silently(&first);
        board.claim_silently(&second);
        let mut waiter = Waiter::begin(&board, |_| {}).await.unwrap();
        let script = async {
            while board.looks() == 0 {
                tokio::task::yield_now().await;
            }
            board.change(&second, |job| job.holding = None);
            board.fails_next(&[match is_resync {
                true => Event::resync(),
                false => event(EventKind::Abandoned, &second),
            }]);
            board.tell(event(EventKind::Abandoned, &first));
        };
        let (filters, none) = (Filters::default(), HashSet::new());
        let wait = waiter.until_claimable(&filters, &none);
        let (found, ()) = soon(async { tokio::join!(wait, script) }).await;
        assert_eq!(found.unwrap().key, second.key);
    }
}

#[tokio::test]
async fn a_job_that_was_trashed_and_purged_while_a_look_failed_was_trashed() {
    let board = Scripted::new();
    let job = board.post("job", None);
    let mut waiter = Waiter::begin(&board, |_| {}).await.unwrap();
    let kinds = [EventKind::Trashed, EventKind::Purged];
    board.fails_next(&kinds.map(|kind| event(kind, &job)));
    board.remove(&job);
    let awaited = [Awaited {
        key: job.key.clone(),
        uuid: Some(job.uuid.clone()),
        sequence: job.sequence,
    }];
    let endings = soon(waiter.until_finished(&awaited)).await.unwrap();
    assert_eq!(endings, [Some(Shelf::Trash)]);
}

#[test]
fn another_job_of_the_same_number_is_not_the_one_that_is_waited_for() {
    let board = Scripted::new();
    let (job, other) = (board.post("job", None), board.post("other", None));
    let awaited = Awaited::of(&Entry::Job(Box::new(job.clone())));
    assert!(awaited.is_of(&job));
    let namesake = Job {
        uuid: other.uuid,
        ..job
    };
    assert!(!awaited.is_of(&namesake));
}

#[tokio::test]
async fn a_job_that_becomes_old_enough_is_found_though_nothing_happens() {
    let board = Scripted::new();
    let job = board.post("job", None);
    let soon_an_hour = Duration::from_millis(3600 * 1000 - 300);
    board.change(&job, |job| job.created_on = Some(Utc::now() - soon_an_hour));
    let mut waiter = Waiter::begin(&board, |_| {}).await.unwrap();
    let (filters, none) = (
        Filters::new(vec!["age>1h".parse().unwrap()]),
        HashSet::new(),
    );
    let found = soon(waiter.until_claimable(&filters, &none)).await.unwrap();
    assert_eq!(found.key, job.key);
    assert!(board.looks() > 1);
}

#[tokio::test]
async fn what_is_excepted_counts_again_once_it_is_set_free() {
    let board = Scripted::new();
    let job = board.post("job", None);
    let mut waiter = Waiter::begin(&board, |_| {}).await.unwrap();
    let script = async {
        while board.looks() == 0 {
            tokio::task::yield_now().await;
        }
        board.tell(event(EventKind::Abandoned, &job));
    };
    let (filters, except) = (Filters::default(), HashSet::from([job.key.clone()]));
    let wait = waiter.until_claimable(&filters, &except);
    let (found, ()) = soon(async { tokio::join!(wait, script) }).await;
    assert_eq!(found.unwrap().key, job.key);
}
