//! Classifies characters as safe or unsafe to print: a terminal hides unsafe ones or acts on them.

use unicode_width::UnicodeWidthChar;

/// The most marks on a letter; more would paint over the adjacent lines.
const MOST_MARKS: usize = 4;

/// Returns each character with whether it is unsafe at its place.
pub(crate) fn judged(raw: &str) -> impl Iterator<Item = (char, bool)> + '_ {
    let mut marks = 0;
    raw.chars().map(move |character| {
        marks = match character.width() {
            Some(0) => marks + 1,
            _ => 0,
        };
        (character, is_unsafe(character) || marks > MOST_MARKS)
    })
}

/// Whether a terminal hides the character or acts on it.
pub(crate) fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Direction marks, embeddings, overrides and isolates.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Other line breaks, and characters without width.
            | '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{2060}' | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
            // Noncharacters.
            | '\u{fffe}' | '\u{ffff}'
        )
}
