//! Waits out board outages, and reports their start and end.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::{self, Instant};

use super::{
    progress::{Note, Reporter},
    shared::Shared,
};
use crate::{
    backoff::jittered,
    board::{BoardError, chain},
    duration,
};

/// The shortest and the longest. Work resumes within five seconds: the longest pause plus the time to connect, list
/// and claim.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));

/// The same for a board that answers with an error.
const REFUSED_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How long such an error may last before a conductor that is to end gives up.
const REFUSED_FOR: Duration = Duration::from_secs(10);

/// Whether no retry can fix an error: the board denies access.
pub(super) fn is_final(error: &BoardError) -> bool {
    matches!(error, BoardError::Denied { .. })
}

/// At startup only: a full disk or a missing name server may recover later.
pub(super) fn is_final_at_first(error: &BoardError) -> bool {
    is_final(error) || matches!(error, BoardError::Misdirected { .. }) || !is_away(error)
}

/// Whether the board is unreachable or silent, rather than answering with an error.
pub(super) fn is_away(error: &BoardError) -> bool {
    error.is_retryable() || matches!(error, BoardError::Unknown { .. })
}

/// Waits for a board to come back, longer each time.
#[derive(Debug)]
pub(super) struct Outage {
    reporter: Reporter,
    /// Shared, so that only the first part of the conductor that notices reports it.
    contact: Arc<Contact>,
    pause: Duration,
    waits: bool,
    refused_since: Option<Instant>,
}

impl Outage {
    pub(super) fn new(shared: &Shared) -> Self {
        Self {
            reporter: shared.reporter.clone(),
            contact: Arc::clone(&shared.account.contact),
            pause: PAUSE.0,
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
        self.wait(true);
        let is_away = is_away(error);
        self.refused_since = match is_away {
            true => None,
            false => self.refused_since.or_else(|| Some(Instant::now())),
        };
        lost(&self.contact, &self.reporter, error);
    }

    /// Records a success, and reports the board's return if its loss was reported.
    pub(super) fn is_over(&mut self) {
        self.pause = PAUSE.0;
        self.refused_since = None;
        self.wait(false);
        if self.contact.make() {
            self.reporter.tell(Note::new("board_reached"));
        }
    }

    /// Records whether this part waits for the board.
    pub(super) fn wait(&mut self, waits: bool) {
        if std::mem::replace(&mut self.waits, waits) != waits {
            self.contact.count(waits);
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

    /// Waits before the next attempt, with jitter.
    pub(super) async fn pause(&mut self) {
        let (shortest, longest) = self.refused_since.map_or(PAUSE, |_| REFUSED_PAUSE);
        let pause = self.pause.clamp(shortest, longest);
        self.pause = (pause * 2).min(longest);
        time::sleep(jittered(pause, 0.5)).await;
    }
}

/// Reports once that the board is gone or fails.
pub(super) fn lost(contact: &Contact, reporter: &Reporter, error: &BoardError) {
    if !contact.lose(error) {
        return;
    }
    let event = match is_away(error) {
        true => "board_unreachable",
        // The board answers with an error.
        false => "board_failed",
    };
    reporter.tell(Note::new(event).with("reason", chain(error)));
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.wait(false);
    }
}

/// The start and the kind of the failure.
type Lost = (Instant, &'static str);

#[derive(Debug, Default)]
pub(super) struct Contact(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    made: Option<Instant>,
    /// The reported failure.
    lost: Option<Lost>,
    /// The failure as the registry shows it.
    untold: Option<Lost>,
    /// The number of recoveries.
    regained: u64,
    /// The number of parts that wait for the board.
    waiting: usize,
}

impl Contact {
    /// Records a success, and returns whether a failure was reported before.
    pub(super) fn make(&self) -> bool {
        let mut state = self.0.lock();
        state.made = Some(Instant::now());
        state.untold = None;
        let is_back = state.lost.take().is_some();
        state.regained += u64::from(is_back);
        is_back
    }

    /// Records a failure, and returns whether it is still to be reported.
    pub(super) fn lose(&self, error: &BoardError) -> bool {
        let lost = &mut self.0.lock().lost;
        let is_news = lost.is_none();
        lost.get_or_insert_with(|| instead(error));
        is_news
    }

    /// Counts the parts that wait for the board.
    pub(super) fn count(&self, waits: bool) {
        let waiting = &mut self.0.lock().waiting;
        *waiting = match waits {
            true => *waiting + 1,
            false => waiting.saturating_sub(1),
        };
    }

    /// Returns whether to report the board's return. A success in the registry does not help a part that waits for
    /// another request.
    pub(super) fn tell<T>(&self, answer: &Result<T, BoardError>) -> bool {
        let mut state = self.0.lock();
        if let Err(error) = answer {
            state.untold.get_or_insert_with(|| instead(error));
            return false;
        }
        state.untold = None;
        let is_whole = state.waiting == 0;
        drop(state);
        is_whole && self.make()
    }

    pub(super) fn last(&self) -> Option<Instant> {
        self.0.lock().made
    }

    pub(super) fn regained(&self) -> u64 {
        self.0.lock().regained
    }

    pub(super) fn trouble(&self) -> Option<String> {
        let state = self.0.lock();
        let (noticed, does) = state.lost.into_iter().chain(state.untold).min()?;
        let since = state.made.unwrap_or(noticed);
        let seconds = Duration::from_secs(since.elapsed().as_secs());
        Some(format!("the board {does} for {}", duration::brief(seconds)))
    }
}

fn instead(error: &BoardError) -> Lost {
    let does = match is_away(error) {
        true => "has been unreachable",
        false => "has refused requests",
    };
    (Instant::now(), does)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stopping_conductor_does_not_outwait_its_deadline() {
        let just_before = REFUSED_FOR - Duration::from_millis(50);
        let mut outage = Outage {
            reporter: Reporter::new().0,
            contact: Arc::default(),
            pause: REFUSED_PAUSE.1,
            waits: false,
            refused_since: Instant::now().checked_sub(just_before),
        };
        let start = Instant::now();
        outage.pause_by(true).await;
        assert!(outage.is_hopeless() && start.elapsed() < REFUSED_PAUSE.1 / 2);
    }

    fn away() -> BoardError {
        BoardError::Unreachable {
            board: "b".to_owned(),
            source: "it is away".into(),
        }
    }

    #[test]
    fn registry_reply_does_not_end_an_outage() {
        let contact = Contact::default();
        assert!(!contact.make());
        let first = contact.last();
        assert!(contact.lose(&away()) && !contact.lose(&away()));
        contact.count(true);
        assert!(!contact.tell(&Ok(())));
        assert!(contact.last() == first && contact.trouble().is_some());
        contact.count(false);
        assert!(contact.tell(&Ok(())) && !contact.tell(&Ok(())));
        assert!(contact.last() > first && contact.trouble().is_none());
    }

    #[test]
    fn failed_registry_request_counts_as_an_outage_without_a_note() {
        let contact = Contact::default();
        assert!(!contact.tell::<()>(&Err(away())) && contact.last().is_none());
        assert!(
            contact
                .trouble()
                .is_some_and(|it| it.contains("has been unreachable for"))
        );
        assert!(!contact.tell(&Ok(())) && contact.trouble().is_none());
    }
}
