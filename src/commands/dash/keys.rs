//! The views, and the key bindings: one table for their actions and their help.

use std::collections::HashSet;

use clap::ValueEnum;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::act::Operation;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum View {
    /// The problems that `doctor --only jobs,conductors,keys` lists
    Problems,
    #[default]
    Jobs,
    /// The claims, by owner
    Claims,
    /// The jobs in the trash, by reason
    Trash,
    /// The jobs that have left the board, by reason, the latest first
    History,
    Conductors,
    Events,
}
use View::*;

impl View {
    pub(super) fn title(self) -> String {
        format!("{self:?}")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyAction {
    Show(View),
    Turn(isize),
    Move(isize),
    Page(isize),
    First,
    Last,
    Open,
    Back,
    Filter,
    Command,
    Sort,
    Reverse,
    Fold,
    Mark,
    Do(Operation),
    Fix,
    Help,
    Redraw,
    Suspend,
    Quit,
}
use KeyAction::*;

/// A group of keys: label, description, whether the bottom line shows it, and the actions.
pub(super) type Binding = (&'static str, &'static str, bool, &'static [KeyAction]);

const VIEWS: &[KeyAction] = &[
    Show(Problems),
    Show(Jobs),
    Show(Claims),
    Show(Trash),
    Show(History),
    Show(Conductors),
    Show(Events),
];

#[rustfmt::skip]
const KEYS: &[Binding] = &[
    ("1 2 3 4 5 6 7", "choose a view", false, VIEWS),
    ("Tab S-Tab", "next view, previous view", false, &[Turn(1), Turn(-1)]),
    ("Up Down k j", "move", false, &[Move(-1), Move(1), Move(-1), Move(1)]),
    ("PgUp PgDn", "move by one page", false, &[Page(-1), Page(1)]),
    ("Home End g G", "first row, last row", false, &[First, Last, First, Last]),
    ("Enter Right", "open", true, &[Open, Open]),
    ("Esc Left", "back; unmark; clear filter", false, &[Back, Back]),
    ("/", "filter", true, &[Filter]),
    (":", "view or command by name", false, &[Command]),
    ("s S", "sort, reverse the order", false, &[Sort, Reverse]),
    ("Space", "fold, unfold by reason", false, &[Fold]),
    ("x", "mark", true, &[Mark]),
    ("A", "abandon", true, &[Do(Operation::Abandon)]),
    ("T", "trash", true, &[Do(Operation::Trash)]),
    ("R", "retry", true, &[Do(Operation::Retry)]),
    ("C", "consume", true, &[Do(Operation::Consume)]),
    ("F", "fix the problem", true, &[Fix]),
    ("P", "pause or resume by name", false, &[Do(Operation::Pause)]),
    ("?", "keys", true, &[Help]),
    ("Ctrl-L", "redraw", false, &[Redraw]),
    ("Ctrl-Z", "suspend", false, &[Suspend]),
    ("q Ctrl-C", "quit", true, &[Quit, Quit]),
];

fn acts((_, _, _, actions): &Binding) -> bool {
    actions
        .iter()
        .any(|action| matches!(action, Do(_) | Fix | Mark))
}

pub(super) fn known(may_act: bool) -> impl Iterator<Item = &'static Binding> {
    KEYS.iter().filter(move |keys| may_act || !acts(keys))
}

/// Returns the views and the actions by name; a view hides an action of the same name.
pub(super) fn named(may_act: bool) -> Vec<(String, KeyAction)> {
    let views = View::value_variants().iter();
    let views = views.map(|view| (view.title().to_lowercase(), Show(*view)));
    let mut named: Vec<_> = views.collect();
    for (_, does, _, actions) in known(may_act) {
        let does = does.split(';').next().unwrap_or_default();
        let names: Vec<_> = does.split(", ").collect();
        let is_one = actions.iter().all(|it| *it == actions[0]) && names.len() == 1;
        if names.len() == actions.len() || is_one {
            let pairs = names.into_iter().zip(*actions);
            named.extend(pairs.map(|(name, action)| (name.to_owned(), *action)));
        }
    }
    let mut seen = HashSet::new();
    named.retain(|(name, action)| *action != Command && seen.insert(name.clone()));
    named
}

pub(super) fn action(event: KeyEvent, may_act: bool) -> Option<KeyAction> {
    let name = name(event);
    let mut keys = known(may_act).flat_map(|(keys, _, _, actions)| keys.split(' ').zip(*actions));
    keys.find(|(key, _)| *key == name)
        .map(|(_, action)| *action)
}

fn name(event: KeyEvent) -> String {
    let is_control = event.modifiers.contains(KeyModifiers::CONTROL);
    match event.code {
        KeyCode::Char(char) if is_control => format!("Ctrl-{}", char.to_ascii_uppercase()),
        KeyCode::Char(' ') => "Space".to_owned(),
        KeyCode::Char(char) => char.to_string(),
        KeyCode::BackTab => "S-Tab".to_owned(),
        KeyCode::PageUp => "PgUp".to_owned(),
        KeyCode::PageDown => "PgDn".to_owned(),
        code => format!("{code:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_one_meaning_and_can_be_typed() {
        let mut seen = HashSet::new();
        for (keys, _, _, actions) in KEYS {
            assert_eq!(keys.split(' ').count(), actions.len(), "{keys}");
            assert!(keys.split(' ').all(|key| seen.insert(key)), "{keys}");
        }
        for (code, expected) in [
            (KeyCode::Enter, Open),
            (KeyCode::Char(' '), Fold),
            (KeyCode::Char('7'), Show(Events)),
            (KeyCode::BackTab, Turn(-1)),
            (KeyCode::PageDown, Page(1)),
        ] {
            assert_eq!(action(code.into(), false), Some(expected));
        }
        let trash = KeyCode::Char('T').into();
        assert_eq!(action(trash, true), Some(Do(Operation::Trash)));
        assert_eq!(action(trash, false), None);
    }
}
