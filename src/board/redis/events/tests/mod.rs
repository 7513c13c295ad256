//! Events of boards that are busy, lost or changed in unexpected ways.

mod busy;
mod initial_listing;
mod lost;
mod manual_changes;
mod peers;

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{super::testing::Server, *};
use crate::{
    board::{
        Board, Event, EventKind,
        conformance::{Subject, ada, claim_one, draft, post_one},
        wire::posting::Limit,
    },
    job::JobKey,
};

const EVENT_TIMEOUT: Duration = Duration::from_secs(20);

fn open(arguments: &[&str]) -> Option<(Arc<Redis>, Server)> {
    let server = Server::start(arguments)?;
    let board = Redis::new(
        &server.url(""),
        None,
        EVENT_TIMEOUT,
        Limit::USUAL,
        crate::job::HISTORY,
    );
    Some((Arc::new(board), server))
}

async fn events(board: &Redis) -> Result<Events<'_>> {
    super::events(board, None).await
}

async fn fill(board: &Arc<Redis>, count: usize) -> Vec<JobKey> {
    let drafts: Vec<_> = (0..count).map(|_| draft("old")).collect();
    let posted = board.post(&drafts, None).await.unwrap();
    posted.into_iter().map(|it| it.unwrap().key).collect()
}

async fn mark(board: &Arc<Redis>) -> JobKey {
    let subject: Subject = Arc::clone(board) as Subject;
    post_one(&subject, "marker").await
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(EVENT_TIMEOUT, work).await;
    done.expect("the exchange ends")
}

async fn next(events: &mut Events<'_>) -> Event {
    in_time(events.stream.next()).await.unwrap().unwrap()
}

async fn until(events: &mut Events<'_>, kind: EventKind) -> Vec<(EventKind, String)> {
    let mut seen = Vec::new();
    while seen.last().is_none_or(|(last, _)| *last != kind) {
        let event = next(events).await;
        let name = event.subject.map(|subject| subject.name);
        seen.push((event.kind, name.unwrap_or_default()));
    }
    seen
}

fn calls(server: &Server, command: &str) -> u32 {
    let stats: String = server.run(&["INFO", "commandstats"]);
    let start = format!("cmdstat_{command}:calls=");
    let line = stats.lines().find_map(|line| line.strip_prefix(&start));
    line.and_then(|rest| rest.split(',').next())
        .map_or(0, |calls| calls.parse().unwrap())
}

async fn until_so(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + EVENT_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "timed out waiting until {what}");
        tokio::task::yield_now().await;
    }
}
