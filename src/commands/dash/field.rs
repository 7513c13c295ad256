//! The input line: a filter, or the name of a view or command.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::board::filter::{Filter, Filters};

const MAX_FIELD_CHARS: usize = 2000;

const SHOWN: usize = 12;

#[derive(Debug, Default)]
pub(super) struct Field {
    pub(super) text: String,
    pub(super) error: Option<String>,
    pub(super) is_filter: bool,
    pub(super) names: Vec<String>,
    pub(super) before: Filters,
}

impl Field {
    pub(super) fn press(&mut self, key: KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if is_control => self.text.clear(),
            KeyCode::Char('w') if is_control => {
                let kept = self.text.trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.text.truncate(kept);
            }
            KeyCode::Char(char) if !is_control => self.add([char].into_iter()),
            KeyCode::Backspace => _ = self.text.pop(),
            KeyCode::Tab => self.complete(),
            _ => {}
        }
        self.check();
    }

    pub(super) fn add(&mut self, typed: impl Iterator<Item = char>) {
        let room = MAX_FIELD_CHARS.saturating_sub(self.text.chars().count());
        self.text.extend(typed.take(room));
        self.check();
    }

    fn check(&mut self) {
        self.error = match self.is_filter {
            true => self.filters().err(),
            false if self.completions().is_empty() => Some("no such view or command".to_owned()),
            false => None,
        };
    }

    /// Empty input means no filter.
    pub(super) fn filters(&self) -> Result<Filters, String> {
        match self.text.trim() {
            "" => Ok(Filters::default()),
            text => {
                let filter = text.parse::<Filter>();
                let filter = filter.map_err(|error| error.to_string())?;
                Ok(Filters::new(vec![filter]))
            }
        }
    }

    pub(super) fn completions(&self) -> Vec<String> {
        let fitting = self.names.iter();
        let fitting = fitting.filter(|name| name.starts_with(self.word()));
        fitting.take(SHOWN).cloned().collect()
    }

    fn word(&self) -> &str {
        match self.is_filter {
            true => self.text.rsplit(' ').next().unwrap_or_default(),
            false => self.text.as_str(),
        }
    }

    /// Adds the common prefix of all completions.
    fn complete(&mut self) {
        let completions = self.completions();
        let Some(first) = completions.first() else {
            return;
        };
        let is_common = |end: &usize| {
            completions
                .iter()
                .all(|it| it.get(..*end) == first.get(..*end))
        };
        let end = (0..=first.len()).rev().find(is_common).unwrap_or(0);
        let typed = self.word().len();
        if let Some(rest) = first.get(typed..end) {
            self.text += rest;
        }
    }
}
