//! Suggested commands: word lists, until they are printed for a shell.

#[cfg(test)]
mod tests;

use std::fmt::{self, Write as _};

use serde::Serialize;

use crate::printable::marked;

const MAX_WORD_BYTES: usize = 1000;

/// Replaces a command with a word that cannot be typed in a shell.
const NOT_TYPABLE: &str = ": 'a word of this command cannot be typed; --json prints it'";

/// The words of a suggested command, from any source.
///
/// Only [`fmt::Display`] makes a line of them. sh, bash, zsh and fish read exactly these words from it. Sanitizing
/// for terminals, fields, HTML and monitoring leaves it unchanged: it has only printable characters and no backslash,
/// backtick or bar. See `docs/decisions/suggested-commands.md`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Suggestion(Vec<String>);

impl Suggestion {
    pub(crate) fn of(words: &'static str) -> Self {
        Self::default().with(words.split(' '))
    }

    pub(crate) fn with<T: Into<String>>(mut self, words: impl IntoIterator<Item = T>) -> Self {
        self.0.extend(words.into_iter().map(Into::into));
        self
    }

    /// Adds a word that is never read as an option, even with a leading dash.
    pub(crate) fn operand(self, word: &str) -> Self {
        let end = word.starts_with('-').then_some("--");
        self.with(end).with([word])
    }

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
        // No argument has a NUL, and a shell drops trailing newlines of a substitution.
        let is_typable =
            |it: &String| it.len() <= MAX_WORD_BYTES && !it.contains('\0') && !it.ends_with('\n');
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
    // zsh reads `=ls` as a path, and fish reads `%self` as a number.
    if !word.is_empty() && !word.starts_with(['=', '%']) && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let is_odd =
        |(character, is_unsafe): (char, bool)| is_unsafe || ['\\', '`', '|'].contains(&character);
    if !marked(word).any(is_odd) {
        return format!("'{}'", word.replace('\'', "'\"'\"'"));
    }
    // The four shells share no escape, and none without a backslash: a program prints the word.
    let (mut format, mut bytes) = (String::new(), String::new());
    for (character, is_unsafe) in marked(word) {
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

/// Advice: a fixed text with commands in backticks, and words for its `{}` places.
///
/// Foreign text can enter it only as a word of a command.
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
    /// Takes a text, and any number of words for each `{}` in it.
    pub(crate) fn new<const N: usize>(text: &'static str, words: [&[&str]; N]) -> Self {
        let owned = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect();
        let words = words.into_iter().map(owned).collect();
        Self { text, words }
    }

    pub(crate) fn other_board(url: &str) -> Self {
        Self::new("use `--board {}`", [&[url]])
    }

    /// Completes its commands with our command prefix and the job for `JOB`, and returns both text and commands.
    ///
    /// `None` if it needs a job and none is known.
    pub(crate) fn complete(
        &self,
        program: &Suggestion,
        job: Option<&str>,
    ) -> Option<(String, Vec<Suggestion>)> {
        let (mut words, mut commands) = (self.words.iter(), Vec::new());
        let mut parts = Vec::new();
        for (at, part) in self.text.split('`').enumerate() {
            let is_ours = part.starts_with("jobboard ");
            // Every second part is in backticks. One without foreign words, such as a key's name, stays unchanged.
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
                    let text = command.to_string();
                    // An option is part of a command.
                    let is_command = command.0.first().is_some_and(|it| !it.starts_with('-'));
                    commands.extend(is_command.then_some(command));
                    text
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
