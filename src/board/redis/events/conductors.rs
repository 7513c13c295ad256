//! Conductors that leave without a word: their entry in the registry lapses.

use std::collections::HashSet;

use crate::board::{Event, EventKind};

/// Keeps each departure from being told twice.
#[derive(Debug, Default)]
pub(super) struct Conductors {
    /// Those whose entry was touched, to be looked at.
    touched: HashSet<String>,
    /// Those that are known to have left.
    gone: HashSet<String>,
}

impl Conductors {
    pub(super) fn touch(&mut self, name: String) {
        self.touched.insert(name);
    }

    /// Returns those that are to be looked at.
    pub(super) fn take_touched(&mut self) -> Vec<String> {
        self.touched.drain().collect()
    }

    pub(super) fn has_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Whether an event is news.
    pub(super) fn hear(&mut self, event: &Event) -> bool {
        let name = event.owner.as_ref().map(ToString::to_string);
        match (event.kind, name) {
            (EventKind::ConductorLeft, Some(name)) => self.gone.insert(name),
            (EventKind::ConductorJoined, Some(name)) => {
                self.gone.remove(&name);
                true
            }
            _ => true,
        }
    }

    /// Takes what a look at the entry of a conductor showed.
    pub(super) fn see(&mut self, name: String, is_there: bool) -> Option<Event> {
        if is_there {
            self.gone.remove(&name);
            return None;
        }
        let owner = crate::job::Owner::from_stored(name.clone());
        self.gone.insert(name).then(|| Event {
            owner: Some(owner),
            ..Event::now(EventKind::ConductorLeft)
        })
    }
}
