//! Globs for texts.

use std::str::Chars;

use thiserror::Error;

#[derive(Debug, Error)]
pub(crate) enum InvalidGlob {
    #[error("`[` has no matching `]`; write `[[]` for a literal `[`")]
    Unclosed,
    #[error("the range `{0}-{1}` is in reverse order; write `[[]` for a literal `[`")]
    Backwards(char, char),
    #[error("the glob is too long")]
    TooLong,
}

pub(crate) fn literal(text: &str) -> String {
    let is_wild = |char| matches!(char, '*' | '?' | '[');
    let chars = text.chars();
    let escaped = chars.map(|char| match is_wild(char) {
        true => format!("[{char}]"),
        false => char.to_string(),
    });
    escaped.collect()
}

/// Translates a glob for texts to a regular expression: `*`, `?` and classes in brackets.
///
/// Not with globset: it is made for paths of bytes, where `?` is half of an umlaut. It also expands braces, which
/// JSON is full of.
pub(crate) fn translate(glob: &str) -> Result<String, InvalidGlob> {
    let mut regex = String::from(r"(?s)\A");
    let mut rest = glob.chars();
    while let Some(char) = rest.next() {
        match char {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            '[' => rest = translate_class(rest.as_str(), &mut regex)?,
            _ => push_literal(char, &mut regex),
        }
    }
    regex.push_str(r"\z");
    Ok(regex)
}

/// Translates the text after a `[`, and returns the text after its `]`.
fn translate_class<'a>(text: &'a str, regex: &mut String) -> Result<Chars<'a>, InvalidGlob> {
    let (opening, members) = match text.strip_prefix(['!', '^']) {
        Some(members) => ("[^", members),
        None => ("[", text),
    };
    // A bracket that comes first is a member, because a class is never empty.
    let (end, _) = members
        .char_indices()
        .skip(1)
        .find(|(_, char)| *char == ']')
        .ok_or(InvalidGlob::Unclosed)?;
    regex.push_str(opening);
    let mut rest = members[..end].chars();
    while let Some(first) = rest.next() {
        push_literal(first, regex);
        let mut behind = rest.clone();
        if let (Some('-'), Some(last)) = (behind.next(), behind.next()) {
            if last < first {
                return Err(InvalidGlob::Backwards(first, last));
            }
            regex.push('-');
            push_literal(last, regex);
            rest = behind;
        }
    }
    regex.push(']');
    Ok(members[end + 1..].chars())
}

fn push_literal(char: char, regex: &mut String) {
    regex.push_str(&regex::escape(char.encode_utf8(&mut [0; 4])));
}
