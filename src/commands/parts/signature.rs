//! Which failures are alike: by how the command ended, and the last thing that it wrote, but for what differs from
//! one job to the next.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::{job::Failure, output::covered_text};

/// How many characters of a signature are kept.
const LONGEST: usize = 120;

/// How much of a line is looked at.
const LOOKED_AT: usize = 1024;

/// Returns what a failure has in common with others like it.
///
/// How it ended, then the last line that is not empty of its errors, or else of its output. What looks like a
/// secret is covered; of quoted text `"…"` is left, of a path its last part, of what looks like an id `H`, of a
/// number `#`.
pub(crate) fn signature(failure: &Failure) -> String {
    let how = match (failure.exit_code, failure.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => alike(&failure.reason),
    };
    let last = |text: &str| {
        let line = text.lines().rev().find(|line| !line.trim().is_empty());
        line.map(|line| alike(line.trim()))
    };
    let said = last(&failure.stderr).or_else(|| last(&failure.stdout));
    match said {
        Some(said) => begin(&format!("{how}: {said}"), LONGEST),
        None => begin(&how, LONGEST),
    }
}

/// Leaves out of a line what differs where all else is alike.
fn alike(line: &str) -> String {
    static VARIES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let varies = [
            r#"(?<quoted>"[^"]*"|`[^`]*`|\B'[^']*'\B)"#,
            r"(?<path>(?:/[^\s/:,;)]+)+/(?<last>[^\s/:,;)]+))",
            r"\b(?<id>[[:xdigit:]]{8}-(?:[[:xdigit:]]{4}-){3}[[:xdigit:]]{12}|0x[[:xdigit:]]+)\b",
            r"\b(?<word>[[:xdigit:]]{8,})\b",
            r"(?<number>[0-9]+)",
        ];
        Regex::new(&varies.join("|")).ok()
    });
    let line = covered_text(&begin(line, LOOKED_AT));
    let Some(varies) = VARIES.as_ref() else {
        return line;
    };
    let varied = |found: &Captures<'_>| {
        let is = |group| found.name(group).is_some();
        match found.name("last") {
            Some(last) => alike(last.as_str()),
            None if is("quoted") => "\"…\"".to_owned(),
            None if is("id") => "H".to_owned(),
            // A long number is one, and a word has no digits.
            None if is("word") => match &found[0] {
                text if text.bytes().all(|byte| byte.is_ascii_digit()) => "#".to_owned(),
                text if text.bytes().any(|byte| byte.is_ascii_digit()) => "H".to_owned(),
                text => text.to_owned(),
            },
            None => "#".to_owned(),
        }
    };
    varies.replace_all(&line, varied).into_owned()
}

fn begin(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(exit_code: Option<i32>, stderr: &str) -> Failure {
        Failure {
            exit_code,
            stderr: stderr.to_owned(),
            ..Failure::told("the command took longer than 5s", "night")
        }
    }

    #[test]
    fn what_differs_from_job_to_job_is_left_out() {
        for (code, stderr, expected) in [
            (Some(1), "", "exit 1"),
            (None, "", "the command took longer than #s"),
            (
                Some(2),
                "a\nno space left on /srv/a/b.img (4711 kB)\n\n",
                "exit 2: no space left on b.img (# kB)",
            ),
            (
                Some(1),
                "volume 1f0c9a58-8f0e-5d0a-8a43-6b0c3f6d2e7b is busy",
                "exit 1: volume H is busy",
            ),
            (
                Some(1),
                "can't open \"it\": it's 0xdeadbeef or c0ffee0123",
                "exit 1: can't open \"…\": it's H or H",
            ),
            (
                Some(1),
                "a 'b c' password=x",
                "exit 1: a \"…\" password=********",
            ),
            (
                Some(1),
                "12345678 defaced effaceddad",
                "exit 1: # defaced effaceddad",
            ),
        ] {
            assert_eq!(signature(&failure(code, stderr)), expected);
        }
        let long = signature(&failure(Some(1), &"é ".repeat(5000)));
        assert_eq!(long.chars().count(), LONGEST + 1);
    }
}
