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

#[derive(Debug, Default)]
pub(super) struct ConductorPresences {
    /// Conductors with entries to read again.
    pub(super) touched: HashSet<String>,
    /// Conductors reported as departed, the latest last. One that a read showed to be back may still announce it:
    ///
    /// | before | joined message | left message | read: present | read: absent |
    /// |---|---|---|---|---|
    /// | not listed | report | report, `Gone` | | report, `Gone` |
    /// | `There` | remove | report, `Gone` | | report, `Gone` |
    /// | `Gone` | report, remove | | report, `There` | |
    departed: VecDeque<(String, Presence)>,
}

impl ConductorPresences {
    pub(super) fn apply(&mut self, event: &Event) -> bool {
        let name = event.owner.as_ref().map(ToString::to_string);
        match (event.kind, name) {
            (EventKind::ConductorLeft, Some(name)) => {
                self.set(&name, Some(Presence::Gone)) != Some(Presence::Gone)
            }
            (EventKind::ConductorJoined, Some(name)) => {
                self.set(&name, None) != Some(Presence::There)
            }
            _ => true,
        }
    }

    pub(super) fn observe(&mut self, name: &str, presence: Presence) -> Option<Event> {
        let before = self.departed.iter().find(|(it, _)| it == name);
        let kind = match (before.map(|it| it.1), presence) {
            (Some(Presence::Gone), Presence::There) => EventKind::ConductorJoined,
            (None | Some(Presence::There), Presence::Gone) => EventKind::ConductorLeft,
            _ => return None,
        };
        self.set(name, Some(presence));
        Some(Event {
            owner: Some(Owner::from_stored(name)),
            ..Event::now(kind)
        })
    }

    fn set(&mut self, name: &str, presence: Option<Presence>) -> Option<Presence> {
        let at = self.departed.iter().position(|(it, _)| it == name);
        let before = at.and_then(|at| self.departed.remove(at));
        if let Some(presence) = presence {
            self.departed.push_back((name.to_owned(), presence));
            if self.departed.len() > REMEMBERED {
                self.departed.pop_front();
            }
        }
        before.map(|(_, presence)| presence)
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

    fn seen(
        conductors: &mut ConductorPresences,
        name: &str,
        presence: Presence,
    ) -> Option<EventKind> {
        let event = conductors.observe(name, presence);
        event.map(|event| event.kind)
    }

    #[test]
    fn announced_and_observed_change_is_reported_once() {
        let mut conductors = ConductorPresences::default();
        let (joined, left) = (EventKind::ConductorJoined, EventKind::ConductorLeft);
        for _ in 0..2 {
            assert!(conductors.apply(&event(joined, "night")));
            assert_eq!(seen(&mut conductors, "night", Presence::There), None);
            assert_eq!(seen(&mut conductors, "night", Presence::Gone), Some(left));
            assert!(!conductors.apply(&event(left, "night")));
            assert_eq!(
                seen(&mut conductors, "night", Presence::There),
                Some(joined)
            );
            assert!(!conductors.apply(&event(joined, "night")));
            assert!(conductors.apply(&event(left, "night")));
            assert_eq!(seen(&mut conductors, "night", Presence::Gone), None);
        }
    }

    #[test]
    fn memory_of_departed_conductors_is_bounded() {
        let mut conductors = ConductorPresences::default();
        for number in 0..10 * REMEMBERED {
            conductors.apply(&event(EventKind::ConductorLeft, &number.to_string()));
        }
        assert_eq!(conductors.departed.len(), REMEMBERED);
    }
}
