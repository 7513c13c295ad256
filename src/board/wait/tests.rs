//! Tests of waiting on a scripted board.

use chrono::TimeDelta;

use super::*;
use crate::board::testing::scripted::{Scripted, event};
use crate::job::{End, Entry, Outcome};

const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

async fn soon<T>(future: impl Future<Output = T>) -> T {
    time::timeout(WAIT_TIMEOUT, future).await.unwrap()
}

#[tokio::test]
async fn events_during_a_retried_lookup_are_handled() {
    for is_resync in [false, true] {
        let board = Scripted::new();
        let (first, second) = (board.post("first", None), board.post("second", None));
        board.claim_silently(&first);
        board.claim_silently(&second);
        let mut waiter = Waiter::begin(&board).await.unwrap();
        let script = async {
            while board.looks() == 0 {
                tokio::task::yield_now().await;
            }
            board.change(&second, |job| job.holding = None);
            board.fails_next(&[match is_resync {
                true => Event::resync(),
                false => event(EventKind::Abandoned, &second),
            }]);
            board.send(event(EventKind::Abandoned, &first));
        };
        let (filters, none) = (Filters::default(), HashSet::new());
        let wait = waiter.until_claimable(&filters, &none);
        let (found, ()) = soon(async { tokio::join!(wait, script) }).await;
        assert_eq!(found.unwrap().key, second.key);
    }
}

#[tokio::test]
async fn job_trashed_and_purged_during_a_failed_lookup_counts_as_trashed() {
    let board = Scripted::new();
    let job = board.post("job", None);
    let mut waiter = Waiter::begin(&board).await.unwrap();
    let kinds = [EventKind::Trashed, EventKind::Purged];
    board.fails_next(&kinds.map(|kind| event(kind, &job)));
    board.remove(&job);
    let awaited = [Awaited {
        key: job.key.clone(),
        uuid: Some(job.uuid.clone()),
        sequence: job.sequence,
        created_on: None,
    }];
    let endings = soon(waiter.until_finished(&awaited)).await.unwrap();
    assert_eq!(endings, [Some(Ending::Trashed)]);
}

async fn ended(events: &[EventKind], remembered: Option<TimeDelta>) -> Option<Ending> {
    let board = Scripted::new();
    let job = board.post("job", None);
    let mut waiter = Waiter::begin(&board).await.unwrap();
    let awaited = [Awaited::of(&Entry::Job(Box::new(job.clone())))];
    events.iter().for_each(|kind| {
        board.send(match kind {
            EventKind::Resync => Event::resync(),
            kind => event(*kind, &job),
        });
    });
    let posted = job.created_on.unwrap();
    board.change(&job, |job| match remembered {
        Some(after) => {
            job.location = Location::History;
            job.created_on = Some(posted + after.min(TimeDelta::zero()) * 2);
            job.ended = Some(End {
                on: posted + after,
                outcome: Outcome::Consumed,
                owner: None,
                claimed_on: None,
                has_succeeded: true,
            });
        }
        None => job.key = JobKey::new("other"),
    });
    soon(waiter.until_finished(&awaited)).await.unwrap()[0]
}

#[tokio::test]
async fn only_an_announced_or_recorded_end_counts() {
    use EventKind::{Claimed, Consumed, Resync};
    let (later, before) = (TimeDelta::seconds(1), TimeDelta::seconds(-1));
    for (events, remembered, ending) in [
        (&[Consumed][..], None, Ending::Gone),
        (&[Claimed, Consumed], None, Ending::Gone),
        (&[Resync], None, Ending::Vanished),
        (&[Claimed, Resync], None, Ending::Vanished),
        (&[Resync], Some(later), Ending::Gone),
        (&[], Some(later), Ending::Gone),
        // The end of an earlier job of that name and number.
        (&[Resync], Some(before), Ending::Vanished),
    ] {
        let ended = ended(events, remembered).await;
        assert_eq!(ended, Some(ending), "{events:?} {remembered:?}");
    }
}

#[tokio::test]
async fn unread_short_lived_job_has_ended_unless_trashed() {
    for (location, ending) in [
        (None, Ending::Gone),
        (Some(Location::Trash), Ending::Trashed),
    ] {
        let board = Scripted::new();
        let job = board.post("job", None);
        let mut waiter = Waiter::begin(&board).await.unwrap();
        let awaited = [Awaited::of(&Entry::Job(Box::new(job.clone())))];
        board.send(Event::came_and_went(job.key.clone()));
        match location {
            Some(location) => board.change(&job, |job| job.location = location),
            None => board.remove(&job),
        }
        let endings = soon(waiter.until_finished(&awaited)).await.unwrap();
        assert_eq!(endings, [Some(ending)]);
    }
}

#[tokio::test]
async fn only_the_jobs_of_events_are_looked_up_again() {
    let board = Scripted::new();
    let jobs: Vec<_> = (0..20)
        .map(|at| board.post(&format!("job-{at}"), None))
        .collect();
    let of = |job: &Job| Awaited::of(&Entry::Job(Box::new(job.clone())));
    let awaited: Vec<_> = jobs.iter().map(of).collect();
    let mut waiter = Waiter::begin(&board).await.unwrap();
    let script = async {
        for job in &jobs {
            let before = board.finds();
            board.remove(job);
            board.send(event(EventKind::Consumed, job));
            while board.finds() == before {
                tokio::task::yield_now().await;
            }
        }
    };
    let (endings, ()) = soon(async { tokio::join!(waiter.until_finished(&awaited), script) }).await;
    assert!(endings.unwrap().iter().all(|it| *it == Some(Ending::Gone)));
    assert!(board.wanted() < 150, "{}", board.wanted());
}

#[test]
fn another_job_with_the_same_number_does_not_match() {
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
async fn job_is_found_once_old_enough_without_an_event() {
    let board = Scripted::new();
    let job = board.post("job", None);
    let soon_an_hour = Duration::from_millis(3600 * 1000 - 300);
    board.change(&job, |job| job.created_on = Some(Utc::now() - soon_an_hour));
    let mut waiter = Waiter::begin(&board).await.unwrap();
    let (filters, none) = (
        Filters::new(vec!["age>1h".parse().unwrap()]),
        HashSet::new(),
    );
    let found = soon(waiter.until_claimable(&filters, &none)).await.unwrap();
    assert_eq!(found.key, job.key);
    assert!(board.looks() > 1);
}

#[tokio::test]
async fn excluded_job_counts_again_once_released() {
    let board = Scripted::new();
    let job = board.post("job", None);
    let mut waiter = Waiter::begin(&board).await.unwrap();
    let script = async {
        while board.looks() == 0 {
            tokio::task::yield_now().await;
        }
        board.send(event(EventKind::Abandoned, &job));
    };
    let (filters, except) = (Filters::default(), HashSet::from([job.key.clone()]));
    let wait = waiter.until_claimable(&filters, &except);
    let (found, ()) = soon(async { tokio::join!(wait, script) }).await;
    assert_eq!(found.unwrap().key, job.key);
}
