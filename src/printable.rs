//! Classifies characters as safe or unsafe to print: a terminal hides unsafe ones or acts on them.

use unicode_width::UnicodeWidthChar;

/// The most marks on a letter; more would paint over the adjacent lines.
const MAX_MARKS: usize = 4;

/// Returns each character with whether it is unsafe at its place.
pub(crate) fn marked(raw: &str) -> impl Iterator<Item = (char, bool)> + '_ {
    let mut marks = 0;
    raw.chars().map(move |character| {
        marks = match character.width() {
            Some(0) => marks + 1,
            _ => 0,
        };
        (character, is_unsafe(character) || marks > MAX_MARKS)
    })
}

/// Whether a terminal hides the character or acts on it.
pub(crate) fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Direction marks, embeddings, overrides and isolates.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Other line breaks, and characters that look like nothing or like a space.
            | '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}'
            | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{206a}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
            // Noncharacters.
            | '\u{fffe}' | '\u{ffff}'
        )
}
