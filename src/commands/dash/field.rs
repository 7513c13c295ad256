//! The filter input.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::board::filter::{Filter, Filters};

const LONGEST: usize = 2000;

#[derive(Debug, Default)]
pub(super) struct Field {
    pub(super) text: String,
    pub(super) error: Option<String>,
}

impl Field {
    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Filters> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if is_control => self.text.clear(),
            KeyCode::Char('w') if is_control => {
                let kept = self.text.trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.text.truncate(kept);
            }
            KeyCode::Char(char) if !is_control => self.add([char].into_iter()),
            KeyCode::Backspace => _ = self.text.pop(),
            _ => {}
        }
        let filters = self.check();
        filters.filter(|_| key.code == KeyCode::Enter)
    }

    pub(super) fn add(&mut self, typed: impl Iterator<Item = char>) {
        let room = LONGEST.saturating_sub(self.text.chars().count());
        self.text.extend(typed.take(room));
        self.check();
    }

    /// Empty input means no filter. Returns `None` and keeps the error if the input does not parse.
    fn check(&mut self) -> Option<Filters> {
        let read = match self.text.trim() {
            "" => Ok(Filters::default()),
            text => text.parse::<Filter>().map(|it| Filters::new(vec![it])),
        };
        self.error = read.as_ref().err().map(ToString::to_string);
        read.ok()
    }
}
