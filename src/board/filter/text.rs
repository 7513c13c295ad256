//! Texts and what describes them: globs, regular expressions, their order.

use std::str::Chars;

use regex::{Regex, RegexBuilder};

use super::{
    error::{Fault, InvalidGlob},
    operator::{Comparison, Relation},
};

/// What is asked of a text.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    Exact(String),
    /// A text also fits a glob that it equals, so that JSON need not be escaped: `[1,2]`.
    Glob {
        text: String,
        regex: Regex,
    },
    Regex(Regex),
    Ordered(Comparison<String>),
}

impl Pattern {
    /// Reads a text, a glob or a regular expression, whichever the relation asks for.
    pub(super) fn new(relation: Relation, text: &str) -> Result<Self, Fault> {
        Ok(match relation {
            Relation::Is if !text.contains(['*', '?', '[']) => Self::Exact(text.to_owned()),
            Relation::Is => Self::Glob {
                text: text.to_owned(),
                regex: compile(RegexBuilder::new(&translate(text)?))?,
            },
            Relation::Like => Self::Regex(compile(RegexBuilder::new(text))?),
            Relation::Order(order) => Self::Ordered(Comparison::new(order, text.to_owned())),
        })
    }

    /// Reads a regular expression for texts that come in any case.
    pub(super) fn caseless(text: &str) -> Result<Self, Fault> {
        let mut builder = RegexBuilder::new(text);
        builder.case_insensitive(true);
        Ok(Self::Regex(compile(builder)?))
    }

    /// Whether a text is as it should be; nothing is allocated.
    pub(super) fn fits(&self, value: &str) -> bool {
        match self {
            Self::Exact(text) => text == value,
            Self::Glob { text, regex } => text == value || regex.is_match(value),
            Self::Regex(regex) => regex.is_match(value),
            Self::Ordered(comparison) => comparison.fits(value),
        }
    }
}

fn compile(builder: RegexBuilder) -> Result<Regex, Fault> {
    builder.build().map_err(|error| {
        // It draws a picture over several lines; the last one says what is wrong.
        let picture = error.to_string();
        let reason = picture.lines().last().unwrap_or_default();
        let reason = reason.trim_start_matches("error: ").trim_end_matches('.');
        Fault::Regex(reason.to_owned())
    })
}

/// Translates a glob to a regular expression.
///
/// Not by globset: it is made for paths, which are bytes, so that `?` is half of an umlaut there,
/// and it knows braces, which JSON is full of.
fn translate(glob: &str) -> Result<String, InvalidGlob> {
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

/// Translates what follows a `[`, and returns what follows its `]`.
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

/// Adds a character that means only itself.
fn push_literal(char: char, regex: &mut String) {
    regex.push_str(&regex::escape(char.encode_utf8(&mut [0; 4])));
}
