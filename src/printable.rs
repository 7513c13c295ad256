//! Which characters are safe to print: what a terminal would act on, or hide, is not.

use unicode_width::UnicodeWidthChar;

/// How many marks may stand on a letter; more would paint over the lines around it.
const MOST_MARKS: usize = 4;

/// Tells of each character whether it is unsafe where it stands.
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

/// Whether a terminal would act on the character, or hide it, instead of showing it.
pub(crate) fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Direction marks, embeddings, overrides and isolates.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Line breaks of other kinds, and what takes no place.
            | '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{2060}' | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
            // No characters at all.
            | '\u{fffe}' | '\u{ffff}'
        )
}
