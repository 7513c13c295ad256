//! Conductors that disappear: their registry entries expire.

use std::collections::{HashSet, VecDeque};

use crate::{
    board::{Event, EventKind},
    job::Owner,
};

/// How many departed conductors are kept; each process has its own name.
const REMEMBERED: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    There,
    Gone,
}

/// Prevents duplicate events for arrivals and departures.
#[derive(Debug, Default)]
pub(super) struct Conductors {
    touched: HashSet<String>,
    /// Departed conductors, the latest last.
    gone: VecDeque<String>,
    /// Conductors seen to be back that may still announce it.
    back: HashSet<String>,
}

impl Conductors {
    pub(super) fn touch(&mut self, name: String) {
        self.touched.insert(name);
    }

    pub(super) fn take_touched(&mut self) -> Vec<String> {
        self.touched.drain().collect()
    }

    pub(super) fn has_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    pub(super) fn hear(&mut self, event: &Event) -> bool {
        let name = event.owner.as_ref().map(ToString::to_string);
        match (event.kind, name) {
            (EventKind::ConductorLeft, Some(name)) => self.leave(name),
            (EventKind::ConductorJoined, Some(name)) => {
                self.join(&name);
                !self.back.remove(&name)
            }
            _ => true,
        }
    }

    pub(super) fn see(&mut self, name: String, presence: Presence) -> Option<Event> {
        let owner = Owner::from_stored(name.clone());
        let kind = match presence {
            Presence::There => {
                let is_back = self.join(&name);
                is_back.then(|| self.back.insert(name))?;
                EventKind::ConductorJoined
            }
            Presence::Gone => self.leave(name).then_some(EventKind::ConductorLeft)?,
        };
        Some(Event {
            owner: Some(owner),
            ..Event::now(kind)
        })
    }

    fn join(&mut self, name: &str) -> bool {
        let known = self.gone.len();
        self.gone.retain(|gone| gone != name);
        self.gone.len() < known
    }

    fn leave(&mut self, name: String) -> bool {
        self.back.remove(&name);
        if self.gone.contains(&name) {
            return false;
        }
        self.gone.push_back(name);
        if self.gone.len() > REMEMBERED {
            self.gone.pop_front();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind, name: &str) -> Event {
        Event {
            owner: Some(Owner::from_stored(name)),
            ..Event::now(kind)
        }
    }

    fn seen(conductors: &mut Conductors, name: &str, presence: Presence) -> Option<EventKind> {
        let event = conductors.see(name.to_owned(), presence);
        event.map(|event| event.kind)
    }

    #[test]
    fn announced_and_observed_change_is_reported_once() {
        let mut conductors = Conductors::default();
        let (joined, left) = (EventKind::ConductorJoined, EventKind::ConductorLeft);
        for _ in 0..2 {
            assert!(conductors.hear(&event(joined, "night")));
            assert_eq!(seen(&mut conductors, "night", Presence::There), None);
            assert_eq!(seen(&mut conductors, "night", Presence::Gone), Some(left));
            assert!(!conductors.hear(&event(left, "night")));
            assert_eq!(
                seen(&mut conductors, "night", Presence::There),
                Some(joined)
            );
            assert!(!conductors.hear(&event(joined, "night")));
            assert!(conductors.hear(&event(left, "night")));
            assert_eq!(seen(&mut conductors, "night", Presence::Gone), None);
        }
    }

    #[test]
    fn memory_of_departed_conductors_is_bounded() {
        let mut conductors = Conductors::default();
        for number in 0..10 * REMEMBERED {
            conductors.hear(&event(EventKind::ConductorLeft, &number.to_string()));
        }
        assert_eq!(conductors.gone.len(), REMEMBERED);
    }
}
