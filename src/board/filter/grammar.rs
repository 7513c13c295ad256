//! Parses expressions: `FIELD OP VALUE`, and more of them after `and`.

use std::borrow::Cow;

use super::{error::Fault, operator};

const AND: &str = "and";

/// A `FIELD OP VALUE` that is not checked yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Clause<'a> {
    pub(super) field: &'a str,
    pub(super) operator: &'a str,
    pub(super) value: Cow<'a, str>,
}

/// Splits an expression. Surplus text is an error, never part of a value.
pub(super) fn parts(text: &str) -> Result<Vec<Clause<'_>>, Fault> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let (part, behind) = part(rest)?;
        parts.push(part);
        if behind.trim().is_empty() {
            return Ok(parts);
        }
        let value = &rest[..rest.len() - behind.len()];
        rest = behind_and(behind).ok_or_else(|| left_over(value, behind))?;
        if rest.is_empty() {
            return Err(Fault::Dangling);
        }
    }
}

/// Reads one part, and returns the text after it.
///
/// An operator takes all operator characters, so that habits of other languages (`==`, `=~`) are detected. A value
/// that begins with one needs a space before it.
fn part(text: &str) -> Result<(Clause<'_>, &str), Fault> {
    let Some(start) = text.find(operator::CHARS) else {
        let operators = operator::names();
        return Err(Fault::NoOperator { operators });
    };
    let (field, rest) = text.split_at(start);
    let length = rest.len() - rest.trim_start_matches(operator::CHARS).len();
    let (operator, rest) = rest.split_at(length);
    let (value, behind) = value(rest.trim_start())?;
    let clause = Clause {
        field: field.trim(),
        operator,
        value,
    };
    Ok((clause, behind))
}

fn value(text: &str) -> Result<(Cow<'_, str>, &str), Fault> {
    if let Some(quote @ ('"' | '\'')) = text.chars().next() {
        let length = quoted(text, quote).ok_or_else(|| Fault::OpenQuote(text.to_owned()))?;
        let (whole, behind) = text.split_at(length);
        // Text after the closing quote makes it no quoted value, but for example JSON.
        if behind.is_empty() || behind.starts_with(char::is_whitespace) {
            let (one, two) = (quote.to_string(), [quote, quote].iter().collect::<String>());
            let value = whole[1..length - 1].replace(&two, &one);
            return Ok((Cow::Owned(value), behind));
        }
    }
    let (value, behind) = text.split_at(bare(text));
    Ok((Cow::Borrowed(value), behind))
}

/// Returns the length of the quoted value at the start of a text, including quotes.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut at = 1;
    loop {
        let end = at + text[at..].find(quote)? + 1;
        match text[end..].starts_with(quote) {
            true => at = end + 1,
            false => return Some(end),
        }
    }
}

/// Returns the length of an unquoted value, which ends at white space, `,`, `;`, `&&` or `||`.
///
/// Closed brackets may contain these: `[1,2]`, `(a b)`, `x{2,3}`.
fn bare(text: &str) -> usize {
    let (mut depth, mut outside, mut is_escaped) = (0_usize, None, false);
    for (at, character) in text.char_indices() {
        let is_end = character.is_whitespace()
            || matches!(character, ',' | ';')
            || ["&&", "||"].iter().any(|sign| text[at..].starts_with(sign));
        if is_end {
            // A bracket opened earlier may never close.
            outside.get_or_insert(at);
            if depth == 0 {
                return at;
            }
        }
        match character {
            _ if is_escaped => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    match depth {
        0 => text.len(),
        _ => outside.unwrap_or(text.len()),
    }
}

fn behind_and(text: &str) -> Option<&str> {
    let word = text.strip_prefix(char::is_whitespace)?.trim_start();
    let (and, behind) = word.split_at_checked(AND.len())?;
    let is_whole = behind.is_empty() || behind.starts_with(char::is_whitespace);
    (and.eq_ignore_ascii_case(AND) && is_whole).then(|| behind.trim_start())
}

/// Reports surplus text after a part, and how to make it part of the value.
fn left_over(part: &str, rest: &str) -> Fault {
    let word = rest.trim_start().get(..3);
    if word.is_some_and(|it| it.eq_ignore_ascii_case("or ")) {
        return Fault::Or;
    }
    let start = part.find(operator::CHARS).unwrap_or(part.len());
    let value = part[start..]
        .trim_start_matches(operator::CHARS)
        .trim_start();
    let is_quoted = matches!(self::value(value), Ok((Cow::Owned(_), _)));
    let comparison = &part[..part.len() - value.len()];
    let whole = format!("{value}{rest}").replace('"', "\"\"");
    Fault::LeftOver {
        part: part.to_owned(),
        rest: rest.trim().to_owned(),
        whole: (!is_quoted).then(|| format!("{comparison}\"{whole}\"")),
    }
}
