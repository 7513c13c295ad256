//! Text that is safe to print: foreign text with everything unprintable escaped.

use std::{borrow::Borrow, fmt};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::printable::marked;

/// Text without control characters, terminal sequences or changes of direction. All output for people consists of it,
/// so that no byte of a job can act on a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text(String);

impl Text {
    /// Makes a line of tab-separated fields. A program can restore the originals.
    pub(crate) fn line<T: AsRef<str>>(fields: &[T]) -> Self {
        let length = fields.iter().map(|field| field.as_ref().len() + 1).sum();
        let mut line = String::with_capacity(length);
        for (at, field) in fields.iter().enumerate() {
            let field = field.as_ref();
            if at > 0 {
                line.push('\t');
            }
            if field.contains('\\') || !is_safe(field) {
                escape(field, &mut line);
            } else {
                line.push_str(field);
            }
        }
        Self(line)
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Fits it into these columns: keeps both ends of a longer text, which identify it.
    pub(crate) fn shortened(&self, columns: usize) -> Self {
        if self.width() <= columns {
            return self.clone();
        }
        let room = columns.saturating_sub(1);
        let head: String = begin(self.0.chars(), room.div_ceil(2)).collect();
        let tail: Vec<_> = begin(self.0.chars().rev(), room / 2).collect();
        let tail: String = tail.into_iter().rev().collect();
        Self(format!("{head}…{tail}"))
    }

    /// Fits it into these columns: keeps the beginning of a longer text.
    pub(crate) fn cut(&self, columns: usize) -> Self {
        if self.width() <= columns {
            return self.clone();
        }
        let head: String = begin(self.0.chars(), columns.saturating_sub(1)).collect();
        Self(head + "…")
    }

    pub(crate) fn split(&self, columns: usize) -> (Self, Self) {
        let head = begin(self.0.chars(), columns)
            .map(char::len_utf8)
            .sum::<usize>();
        let first = self.0.chars().next().map_or(0, char::len_utf8);
        let end = if columns > 0 { head.max(first) } else { 0 };
        let (head, rest) = self.0.split_at(end);
        (Self(head.to_owned()), Self(rest.to_owned()))
    }

    pub(super) fn truncate(&mut self, characters: usize) {
        if let Some((end, _)) = self.0.char_indices().nth(characters) {
            self.0.truncate(end);
        }
    }

    pub(crate) fn width(&self) -> usize {
        self.0.width()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<T: AsRef<str>> From<T> for Text {
    fn from(raw: T) -> Self {
        let raw = raw.as_ref();
        if is_safe(raw) {
            return Self(raw.to_owned());
        }
        let mut safe = String::with_capacity(raw.len() + 16);
        escape(raw, &mut safe);
        Self(safe)
    }
}

/// Joins texts with commas.
pub(crate) fn listed(texts: impl IntoIterator<Item: Borrow<str>>) -> String {
    texts.into_iter().collect::<Vec<_>>().join(", ")
}

/// Lists the counts above zero, such as `2 done, 1 failed`.
pub(crate) fn counted(counts: impl IntoIterator<Item = (u64, &'static str)>) -> String {
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    listed(counts.map(|(count, what)| format!("{count} {what}")))
}

/// Keeps both ends of a text that is longer than this. The result is not safe to print.
pub(crate) fn ends(text: &str, characters: usize) -> String {
    let count = text.chars().count();
    if count <= characters {
        return text.to_owned();
    }
    let room = characters.saturating_sub(1);
    let head: String = text.chars().take(room.div_ceil(2)).collect();
    head + "…" + &text.chars().skip(count - room / 2).collect::<String>()
}

fn begin(characters: impl Iterator<Item = char>, columns: usize) -> impl Iterator<Item = char> {
    let mut taken = 0;
    characters.take_while(move |character| {
        taken += character.width().unwrap_or_default();
        taken <= columns
    })
}

fn is_safe(raw: &str) -> bool {
    // Almost all texts are like this, and a check without an early end is fast.
    raw.bytes()
        .fold(true, |is_safe, byte| is_safe & matches!(byte, b' '..=b'~'))
        || !marked(raw).any(|(_, is_unsafe)| is_unsafe)
}

fn escape(raw: &str, safe: &mut String) {
    for (character, is_unsafe) in marked(raw) {
        match character {
            '\\' => safe.push_str("\\\\"),
            character if is_unsafe => safe.extend(character.escape_default()),
            character => safe.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        printable::is_unsafe,
        untrusted::{Answer, Bounds, Corpus, refused, same},
    };

    #[test]
    fn printable_text_is_unchanged() {
        for text in ["resize", "héllo ☃ 😀", "C:\\temp", "日本語", ""] {
            assert_eq!(Text::from(text).as_str(), text);
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        for (raw, safe) in [
            (
                "\u{1b}[2J\u{1b}]0;owned\u{7}",
                "\\u{1b}[2J\\u{1b}]0;owned\\u{7}",
            ),
            ("a\tb\nc\rd", "a\\tb\\nc\\rd"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("user\u{202e}gpj.exe", "user\\u{202e}gpj.exe"),
            ("backup\u{fe0f}\u{3164}", "backup\\u{fe0f}\\u{3164}"),
            ("\u{7f}\u{0}", "\\u{7f}\\u{0}"),
            ("\u{fffe}\u{ffff}", "\\u{fffe}\\u{ffff}"),
        ] {
            assert_eq!(Text::from(raw).as_str(), safe);
        }
    }

    #[test]
    fn shortened_text_keeps_both_ends() {
        for (text, columns, shown) in [
            ("ada@host:host:4711:c0ffee", 13, "ada@ho…c0ffee"),
            ("short", 5, "short"),
            ("日本語日本語", 6, "日…語"),
            ("abc", 1, "…"),
        ] {
            assert_eq!(Text::from(text).shortened(columns).as_str(), shown);
        }
    }

    #[test]
    fn stacked_marks_are_limited() {
        let painted = format!("e{}", "\u{301}".repeat(2_000));
        let shown = Text::from(&painted);
        assert!(
            shown
                .as_str()
                .starts_with("e\u{301}\u{301}\u{301}\u{301}\\u{301}")
        );
        assert!(shown.shortened(80).as_str().len() < 100);
        assert_eq!(Text::from("e\u{301}").as_str(), "e\u{301}");
    }

    #[test]
    fn backslash_is_escaped_next_to_an_escape() {
        assert_eq!(Text::from("\n\\n").as_str(), "\\n\\\\n");
    }

    fn unescaped(field: &str) -> Option<String> {
        let (mut text, mut rest) = (String::new(), field.chars());
        while let Some(character) = rest.next() {
            text.push(match character {
                '\\' => match rest.next()? {
                    't' => '\t',
                    'n' => '\n',
                    'r' => '\r',
                    'u' => {
                        let (number, behind) = rest.as_str().strip_prefix('{')?.split_once('}')?;
                        rest = behind.chars();
                        char::from_u32(u32::from_str_radix(number, 16).ok()?)?
                    }
                    itself => itself,
                },
                character => character,
            });
        }
        Some(text)
    }

    #[test]
    fn untrusted_texts_are_harmless_and_reversible() {
        let texts = [
            "resize|a\tb",
            "\u{1b}[2J|user\u{202e}gpj.exe",
            "e\u{301}\u{301}|C:\\temp|\u{e0041}",
        ];
        Corpus::of(Bounds::STORED, texts).hold_for_text(|raw| {
            let text = Text::from(raw);
            if let Some(odd) = text.as_str().chars().find(|it| is_unsafe(*it)) {
                return Err(format!("{odd:?} is shown"));
            }
            for columns in [1, 7, 80] {
                let shown = [
                    text.shortened(columns),
                    text.cut(columns),
                    text.split(columns).0,
                ];
                same(
                    "it fits",
                    &shown.map(|it| it.width() > columns.max(2)),
                    &[false; 3],
                )?;
            }
            let fields: Vec<_> = raw.split('|').map(str::to_owned).collect();
            let line = Text::line(&fields);
            let again: Option<Vec<_>> = line.as_str().split('\t').map(unescaped).collect();
            same("read again", &Some(fields), &again)?;
            match text.as_str() == raw {
                true => Ok(Answer::Read),
                false => refused("it is escaped"),
            }
        });
    }
}
