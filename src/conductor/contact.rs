//! A conductor's contact with its board: reports the start and end of outages, and waits them out.

use std::{error::Error as _, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::{self, Instant};

use super::log::{Note, Reporter};
use crate::{
    backoff::Backoff,
    board::{BoardError, chain},
    duration,
};

/// The shortest and the longest. Work resumes within five seconds: the longest pause plus the time to connect, list
/// and claim.
const RECONNECT_PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));

/// The same for a board that answers with an error.
const REFUSED_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How long such an error may last before a conductor that is to end gives up.
const REFUSED_FOR: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Outage {
    /// Shared, so that only the first part of the conductor that notices reports it.
    contact: Arc<Contact>,
    backoff: Backoff,
    waits: bool,
    refused_since: Option<Instant>,
}

impl Outage {
    pub(super) fn new(contact: &Arc<Contact>) -> Self {
        Self {
            contact: Arc::clone(contact),
            backoff: Backoff::after_one(RECONNECT_PAUSES),
            waits: false,
            refused_since: None,
        }
    }

    /// Whether the board has refused for so long that a conductor that is to end should exit.
    pub(super) fn is_hopeless(&self) -> bool {
        self.refused_since
            .is_some_and(|since| since.elapsed() >= REFUSED_FOR)
    }

    pub(super) fn begin(&mut self, error: &BoardError) {
        self.set_waiting(true);
        self.refused_since = match error.is_away() {
            true => None,
            false => self.refused_since.or_else(|| Some(Instant::now())),
        };
        self.contact.record_failure(error);
    }

    pub(super) fn end(&mut self) {
        self.backoff = Backoff::after_one(RECONNECT_PAUSES);
        self.refused_since = None;
        self.set_waiting(false);
        self.contact.record_success();
    }

    pub(super) fn set_waiting(&mut self, waits: bool) {
        if std::mem::replace(&mut self.waits, waits) != waits {
            self.contact.count_waiting(waits);
        }
    }

    /// Waits before the next attempt. A conductor that is to end waits no longer than `REFUSED_FOR`.
    pub(super) async fn pause_by(&mut self, is_to_end: bool) {
        match self.refused_since.filter(|_| is_to_end) {
            Some(since) => {
                // Either way it is time for another attempt.
                let _ = time::timeout_at(since + REFUSED_FOR, self.pause()).await;
            }
            None => self.pause().await,
        }
    }

    pub(super) async fn pause(&mut self) {
        let bounds = self
            .refused_since
            .map_or(RECONNECT_PAUSES, |_| REFUSED_PAUSE);
        self.backoff.set_bounds(bounds);
        time::sleep(self.backoff.pause()).await;
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.set_waiting(false);
    }
}

type ContactFailure = (Instant, &'static str);

/// Whether the board answers. The first part of the conductor that notices a change reports it.
#[derive(Debug)]
pub(super) struct Contact {
    reporter: Reporter,
    state: Mutex<ContactState>,
}

#[derive(Debug, Default)]
struct ContactState {
    made: Option<Instant>,
    lost: Option<ContactFailure>,
    unpublished: Option<ContactFailure>,
    regained: u64,
    waiting: usize,
}

impl Contact {
    pub(super) fn new(reporter: &Reporter) -> Self {
        Self {
            reporter: reporter.clone(),
            state: Mutex::default(),
        }
    }

    /// Records a success, and reports it after a reported failure.
    pub(super) fn record_success(&self) {
        let mut state = self.state.lock();
        state.made = Some(Instant::now());
        state.unpublished = None;
        if state.lost.take().is_some() {
            state.regained += 1;
            self.reporter.report(Note::new("board_reached"));
        }
    }

    /// Records a failure, and reports it unless one is reported already.
    pub(super) fn record_failure(&self, error: &BoardError) {
        let lost = &mut self.state.lock().lost;
        if lost.is_some() {
            return;
        }
        *lost = Some(failure(error));
        let (event, reason) = match (error.is_away(), error.source()) {
            (true, Some(source)) => ("board_unreachable", chain(source)),
            (true, None) => ("board_unreachable", chain(error)),
            // The board answers with an error.
            (false, _) => ("board_failed", chain(error)),
        };
        self.reporter
            .report(Note::new(event).with("reason", reason));
    }

    pub(super) fn count_waiting(&self, waits: bool) {
        let waiting = &mut self.state.lock().waiting;
        *waiting = match waits {
            true => *waiting + 1,
            false => waiting.saturating_sub(1),
        };
    }

    /// Records the registry's answer. A success does not help a part that waits for another request.
    pub(super) fn published<T>(&self, answer: &Result<T, BoardError>) {
        let mut state = self.state.lock();
        match answer {
            Err(error) => _ = state.unpublished.get_or_insert_with(|| failure(error)),
            Ok(_) if state.waiting > 0 => state.unpublished = None,
            Ok(_) => {
                drop(state);
                self.record_success();
            }
        }
    }

    pub(super) fn last(&self) -> Option<Instant> {
        self.state.lock().made
    }

    pub(super) fn regained(&self) -> u64 {
        self.state.lock().regained
    }

    pub(super) fn problem(&self) -> Option<String> {
        let state = self.state.lock();
        let (noticed, does) = state.lost.into_iter().chain(state.unpublished).min()?;
        let since = state.made.unwrap_or(noticed);
        let seconds = Duration::from_secs(since.elapsed().as_secs());
        Some(format!("the board {does} for {}", duration::brief(seconds)))
    }
}

fn failure(error: &BoardError) -> ContactFailure {
    let does = match error.is_away() {
        true => "has been unreachable",
        false => "has refused requests",
    };
    (Instant::now(), does)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conductor::log::LogItem;

    #[tokio::test(start_paused = true)]
    async fn stopping_conductor_does_not_outwait_its_deadline() {
        let just_before = REFUSED_FOR - Duration::from_millis(50);
        let mut outage = Outage {
            contact: Arc::new(Contact::new(&Reporter::new().0)),
            backoff: Backoff::after_one((REFUSED_PAUSE.1, REFUSED_PAUSE.1)),
            waits: false,
            refused_since: Instant::now().checked_sub(just_before),
        };
        let start = Instant::now();
        outage.pause_by(true).await;
        assert!(outage.is_hopeless() && start.elapsed() < REFUSED_FOR);
    }

    fn away() -> BoardError {
        BoardError::Unreachable {
            board: "b".to_owned(),
            source: "it is away".into(),
        }
    }

    /// A contact, and the events that it has reported since the last call.
    fn contact() -> (Contact, impl FnMut() -> Vec<&'static str>) {
        let (reporter, mut log) = Reporter::new();
        let event = |item| match item {
            LogItem::Note(note) => note.event,
            other => panic!("{other:?}"),
        };
        let events = move || {
            let items = std::iter::from_fn(|| log.try_recv().ok());
            items.map(event).collect()
        };
        (Contact::new(&reporter), events)
    }

    #[test]
    fn registry_reply_does_not_end_an_outage() {
        let (contact, mut events) = contact();
        contact.record_success();
        let first = contact.last();
        contact.record_failure(&away());
        contact.record_failure(&away());
        assert_eq!(events(), ["board_unreachable"]);
        contact.count_waiting(true);
        contact.published(&Ok(()));
        assert!(contact.last() == first && contact.problem().is_some());
        contact.count_waiting(false);
        assert!(events().is_empty());
        contact.published(&Ok(()));
        contact.published(&Ok(()));
        assert_eq!((events(), contact.regained()), (vec!["board_reached"], 1));
        assert!(contact.last() > first && contact.problem().is_none());
    }

    #[test]
    fn failed_registry_request_counts_as_an_outage_without_a_note() {
        let (contact, mut events) = contact();
        contact.published::<()>(&Err(away()));
        assert!(contact.last().is_none());
        assert!(
            contact
                .problem()
                .is_some_and(|it| it.contains("has been unreachable for"))
        );
        contact.published(&Ok(()));
        assert!(events().is_empty() && contact.problem().is_none());
    }
}
