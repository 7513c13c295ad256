//! Patterns for paths and names. A `*` ends at a slash.

use std::{fmt, str::Chars};

use thiserror::Error;

/// A pattern: `*` is any text and `?` any character, except a slash.
///
/// Not a regular expression: a peer may publish thousands of patterns, and each would take kilobytes.
#[derive(Debug, Clone)]
pub(crate) struct Glob(String);

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
        Ok(Self(text.to_owned()))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn fits(&self, text: &str) -> bool {
        let (mut glob, mut text) = (self.0.chars(), text.chars());
        // What follows the last `*`, and the text that it has not matched yet.
        let mut again: Option<(Chars<'_>, Chars<'_>)> = None;
        loop {
            let rest = text.clone();
            match (glob.next(), text.next()) {
                (None, None) => return true,
                (Some('*'), _) => {
                    text = rest;
                    again = Some((glob.clone(), text.clone()));
                }
                (Some('?'), Some(char)) if char != '/' => {}
                (Some(wanted), Some(char)) if wanted == char => {}
                _ => {
                    // The last `*` matches one more character. Extending an earlier one never helps: up to the last
                    // one, the shortest match leaves the most text, and no `*` passes a slash.
                    let Some((behind, unmatched)) = &mut again else {
                        return false;
                    };
                    if unmatched.next().is_none_or(|char| char == '/') {
                        return false;
                    }
                    (glob, text) = (behind.clone(), unmatched.clone());
                }
            }
        }
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Glob {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
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

    /// Follows the definition, in exponential time.
    fn fits_by_definition(glob: &[u8], text: &[u8]) -> bool {
        match (glob, text) {
            ([], _) => text.is_empty(),
            ([b'*', behind @ ..], _) => {
                let most = text.iter().position(|it| *it == b'/').unwrap_or(text.len());
                (0..=most).any(|taken| fits_by_definition(behind, &text[taken..]))
            }
            ([b'?', behind @ ..], [char, rest @ ..]) if *char != b'/' => {
                fits_by_definition(behind, rest)
            }
            ([wanted, behind @ ..], [char, rest @ ..]) => {
                wanted == char && fits_by_definition(behind, rest)
            }
            (_, []) => false,
        }
    }

    #[test]
    fn short_patterns_match_by_their_definition() {
        let words = |letters: &[u8], most: u32| -> Vec<String> {
            let count = letters.len();
            let word = |length: u32, number: usize| {
                let at = |place: u32| letters[number / count.pow(place) % count] as char;
                (0..length).map(at).collect::<String>()
            };
            let lengths = 0..=most;
            lengths
                .flat_map(|length| (0..count.pow(length)).map(move |it| word(length, it)))
                .collect()
        };
        let texts = words(b"a/?", 6);
        for glob in words(b"a/*?", 5) {
            for text in &texts {
                let expected = fits_by_definition(glob.as_bytes(), text.as_bytes());
                assert_eq!(Glob(glob.clone()).fits(text), expected, "{glob} {text}");
            }
        }
        assert!(Glob("?*ü".to_owned()).fits("äöü"));
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
