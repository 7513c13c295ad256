//! Commands that are suggested to people: words, until they are printed for a shell.

#[cfg(test)]
mod tests;

use std::fmt::{self, Write as _};

use serde::Serialize;

use crate::printable::judged;

/// The longest word that is printed for a shell, in bytes.
const LONGEST: usize = 1000;

/// Printed instead of a command with a word that cannot be typed in a shell.
const NOT_TYPABLE: &str = ": 'a word of this command cannot be typed; --json prints it'";

/// The words of a command that a person may type, wherever they come from.
///
/// Only [`fmt::Display`] makes a line of them. In that line sh, bash, zsh and fish read exactly these words, and what
/// makes text safe for terminals, fields, HTML and monitoring does not change it: it has no backslash, no backtick, no
/// bar, and nothing that is not printable. See `docs/decisions/suggested-commands.md`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Suggestion(Vec<String>);

impl Suggestion {
    /// Takes words of ours, with a space between two of them.
    pub(crate) fn of(words: &'static str) -> Self {
        Self::default().with(words.split(' '))
    }

    /// Adds words, whatever is in them.
    pub(crate) fn with<T: Into<String>>(mut self, words: impl IntoIterator<Item = T>) -> Self {
        self.0.extend(words.into_iter().map(Into::into));
        self
    }

    /// Adds a word that is no option, whatever it begins with.
    pub(crate) fn operand(self, word: &str) -> Self {
        let end = word.starts_with('-').then_some("--");
        self.with(end).with([word])
    }

    /// Puts the words of how our commands begin in front.
    pub(crate) fn on(self, program: &Self) -> Self {
        program.clone().with(self.0)
    }

    pub(crate) fn each_word(&mut self, change: impl Fn(&mut String)) {
        self.0.iter_mut().for_each(change);
    }

    pub(crate) fn words(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No argument has a NUL, and a shell drops the newlines at the end of what it substitutes.
        let is_typable =
            |it: &String| it.len() <= LONGEST && !it.contains('\0') && !it.ends_with('\n');
        if !self.0.iter().all(is_typable) {
            return f.write_str(NOT_TYPABLE);
        }
        let words: Vec<_> = self.0.iter().map(|word| typed(word)).collect();
        f.write_str(&words.join(" "))
    }
}

fn typed(word: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "_@%+=:,./-".contains(character);
    // zsh takes `=ls` for a path, and `%self` is a number for fish.
    if !word.is_empty() && !word.starts_with(['=', '%']) && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let is_odd =
        |(character, is_unsafe): (char, bool)| is_unsafe || ['\\', '`', '|'].contains(&character);
    if !judged(word).any(is_odd) {
        return format!("'{}'", word.replace('\'', "'\"'\"'"));
    }
    // The four shells have no escape in common, and none without a backslash: a program prints the word.
    let (mut format, mut bytes) = (String::new(), String::new());
    for (character, is_unsafe) in judged(word) {
        let is_text = is_plain(character) || character == ' ' || !character.is_ascii();
        if is_text && character != '%' && !is_unsafe {
            format.push(character);
            continue;
        }
        for byte in character.encode_utf8(&mut [0; 4]).bytes() {
            format += "%c";
            let _ = write!(bytes, ",{byte}");
        }
    }
    format!("\"$(LC_ALL=C awk 'BEGIN{{printf \"{format}\"{bytes}}}')\"")
}

/// Advice: a text of ours with commands in backticks, and words for the places where it says `{}`.
///
/// A word of a stranger cannot become part of the text but as a word of a command.
#[derive(Debug, Clone)]
pub(crate) struct Hint {
    text: &'static str,
    words: Vec<Vec<String>>,
}

impl From<&'static str> for Hint {
    fn from(text: &'static str) -> Self {
        let words = Vec::new();
        Self { text, words }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let completed = self.complete(&Suggestion::of("jobboard"), None);
        f.write_str(&completed.map_or_else(String::new, |(text, _)| text))
    }
}

impl Hint {
    /// Takes a text, and for each `{}` in it none or more words.
    pub(crate) fn new<const N: usize>(text: &'static str, words: [&[&str]; N]) -> Self {
        let owned = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect();
        let words = words.into_iter().map(owned).collect();
        Self { text, words }
    }

    /// Writes it with all that its commands need, which are returned, too: how ours begin, and the job for `JOB`.
    ///
    /// `None` if it is about a job, and nobody knows which.
    pub(crate) fn complete(
        &self,
        program: &Suggestion,
        job: Option<&str>,
    ) -> Option<(String, Vec<Suggestion>)> {
        let (mut words, mut commands) = (self.words.iter(), Vec::new());
        let mut parts = Vec::new();
        for (at, part) in self.text.split('`').enumerate() {
            let is_ours = part.starts_with("jobboard ");
            // Every second part is in backticks; one without words of others is as it is, such as the name of a key.
            parts.push(match at % 2 == 1 && (is_ours || part.contains("{}")) {
                true => {
                    let mut command = Suggestion::default();
                    for word in part.split(' ') {
                        command = match word {
                            "jobboard" if part.starts_with("jobboard help") => command.with([word]),
                            "jobboard" => program.clone(),
                            "JOB" => command.with([job?]),
                            "{}" => command.with(words.next()?),
                            word => command.with([word]),
                        };
                    }
                    commands.push(command);
                    commands.last()?.to_string()
                }
                false => {
                    let mut pieces = part.split("{}");
                    let mut text = pieces.next()?.to_owned();
                    for piece in pieces {
                        let words = Suggestion::default().with(words.next()?);
                        let _ = write!(text, "{words}{piece}");
                    }
                    text
                }
            });
        }
        Some((parts.join("`"), commands))
    }
}
