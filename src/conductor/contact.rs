//! Whether a board does as it is asked, as all parts of a conductor have last seen it.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::outage::is_away;
use crate::{board::BoardError, duration};

/// Since when the board does not do as it is asked, and what it does instead.
type Lost = (Instant, &'static str);

#[derive(Debug, Default)]
pub(super) struct Contact(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    made: Option<Instant>,
    /// Since when it is said that it does not.
    lost: Option<Lost>,
    /// The same of what the registry is to be told.
    untold: Option<Lost>,
    /// How often it did so again.
    regained: u64,
    /// How many parts of the conductor wait for it to do so again.
    waiting: usize,
}

impl Contact {
    /// Notes that the board has done as it was asked; whether it was said that it does not.
    pub(super) fn make(&self) -> bool {
        let mut state = self.0.lock();
        state.made = Some(Instant::now());
        state.untold = None;
        let is_back = state.lost.take().is_some();
        state.regained += u64::from(is_back);
        is_back
    }

    /// Notes that it has not; whether that is still to be said.
    pub(super) fn lose(&self, error: &BoardError) -> bool {
        let lost = &mut self.0.lock().lost;
        let is_news = lost.is_none();
        lost.get_or_insert_with(|| instead(error));
        is_news
    }

    /// Counts a part that waits for the board, or does so no more.
    pub(super) fn count(&self, waits: bool) {
        let waiting = &mut self.0.lock().waiting;
        *waiting = match waits {
            true => *waiting + 1,
            false => waiting.saturating_sub(1),
        };
    }

    /// Notes that the registry was told something, or could not be; whether it has to be said that the
    /// board is back.
    ///
    /// Whoever waits for the board to do something else has not got that by it.
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
        true => "is away",
        false => "refuses",
    };
    (Instant::now(), does)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> BoardError {
        BoardError::Unreachable {
            board: "b".to_owned(),
            source: "it is away".into(),
        }
    }

    #[test]
    fn who_waits_for_the_board_is_not_helped_by_what_the_registry_is_told() {
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
    fn a_board_that_cannot_be_told_anything_is_away_and_that_is_nothing_to_be_said() {
        let contact = Contact::default();
        assert!(!contact.tell::<()>(&Err(away())) && contact.last().is_none());
        assert!(
            contact
                .trouble()
                .is_some_and(|it| it.contains("is away for"))
        );
        assert!(!contact.tell(&Ok(())) && contact.trouble().is_none());
    }
}
