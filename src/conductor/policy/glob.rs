//! Patterns for paths and names. A `*` ends at a slash.

use std::{fmt, str::FromStr};

use regex::Regex;
use thiserror::Error;

use crate::glob::translate_path;

/// A pattern: `*` is any text and `?` any character, except a slash.
#[derive(Debug, Clone)]
pub(crate) struct Glob {
    text: String,
    regex: Regex,
}

#[derive(Debug, Error)]
#[error("the pattern `{text}` {problem}")]
pub(crate) struct InvalidPattern {
    text: String,
    problem: &'static str,
}

impl Glob {
    pub(crate) fn of_path(text: &str) -> Result<Self, InvalidPattern> {
        let invalid = |problem| InvalidPattern {
            text: text.to_owned(),
            problem,
        };
        if !text.starts_with('/') {
            return Err(invalid(
                "is not an absolute path; allow a program by its path, for example /usr/bin/make",
            ));
        }
        if text.contains("**") {
            return Err(invalid("contains `**`; a `*` never matches a slash"));
        }
        text.parse()
    }

    pub(crate) fn fits(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Glob {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let pattern = translate_path(text).ok();
        let regex = pattern.and_then(|pattern| Regex::new(&pattern).ok());
        let text = text.to_owned();
        match regex {
            Some(regex) => Ok(Self { text, regex }),
            None => Err(InvalidPattern {
                text,
                problem: "is too long",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_does_not_cross_a_slash() {
        let glob = Glob::of_path("/opt/*/bin/run-?").unwrap();
        assert!(glob.fits("/opt/a.b/bin/run-1"));
        for other in [
            "/opt/a/b/bin/run-1",
            "/opt/a/bin/run-12",
            "/opt/a/bin/run-1\n",
            "/opt/aXbin/run-1",
            "x/opt/a/bin/run-1",
        ] {
            assert!(!glob.fits(other), "{other}");
        }
    }

    #[test]
    fn other_characters_are_literal() {
        let glob = Glob::of_path("/usr/bin/g++[x]").unwrap();
        assert!(glob.fits("/usr/bin/g++[x]") && !glob.fits("/usr/bin/gx"));
    }

    #[test]
    fn program_globs_must_be_absolute() {
        for text in ["make", "./make", "*", "", "/usr/**/make"] {
            assert!(Glob::of_path(text).is_err(), "{text}");
        }
    }
}
