//! A run for snapshots, without its variable parts.

use std::{path::Path, sync::LazyLock};

use regex::{Captures, Regex};

use super::Outcome;

macro_rules! pattern {
    ($pattern:literal) => {{
        static PATTERN: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).unwrap());
        &*PATTERN
    }};
}

/// Prints the exit code and both streams, with normalised variable parts.
///
/// Uuids are numbered in order, `00000001-…`, and keep their length. In listings, durations become `AGE`, and columns
/// are two spaces apart.
pub(super) fn normalised(outcome: &Outcome, root: &Path) -> String {
    let text = format!(
        "exit code {}\n--- stdout\n{}--- stderr\n{}",
        outcome.code, outcome.stdout, outcome.stderr
    );
    let text = text.replace(root.to_str().unwrap(), "ROOT");
    let text = uuids(&default_owner(&text));
    let lines: Vec<_> = text.lines().map(|text| line(text.trim_end())).collect();
    lines.join("\n")
}

fn default_owner(text: &str) -> String {
    let uname = rustix::system::uname();
    let host = regex::escape(&uname.nodename().to_string_lossy());
    let user = Regex::new(&format!(r"[\w.-]+@{host}")).unwrap();
    user.replace_all(text, "user@host").into_owned()
}

/// Numbers the uuids, including prefixes.
fn uuids(text: &str) -> String {
    let uuid = pattern!(r"\b([0-9a-f]{8})((-[0-9a-f]{4}){3}-[0-9a-f]{12})?\b");
    let mut known: Vec<String> = Vec::new();
    let numbered = uuid.replace_all(text, |found: &Captures<'_>| {
        let at = known.iter().position(|uuid| uuid.starts_with(&found[0]));
        let at = at.unwrap_or(known.len());
        if at == known.len() {
            known.push(found[0].to_owned());
        }
        match found.get(2) {
            Some(_) => format!("{:08}-0000-0000-0000-000000000000", at + 1),
            None => format!("{:08}", at + 1),
        }
    });
    numbered.into_owned()
}

fn line(line: &str) -> String {
    let time = pattern!(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z( \(\w+ ago\))?");
    let line = time.replace_all(line, "TIME");
    let line = pattern!(r"SQLite [\d.]+").replace_all(&line, "SQLite VERSION");
    let line = pattern!(r"\d+\.\d\d ms").replace_all(&line, "SPAN");
    let is_listed = pattern!(r"\b(UNCLAIMED|CLAIMED|TRASHED|MALFORMED)\b").is_match(&line);
    if line.contains('\t') && is_listed {
        fields(&line)
    } else if is_listed || line.starts_with("UUID ") {
        cells(&line)
    } else {
        line.into_owned()
    }
}

/// Replaces the seconds in tab-separated fields.
fn fields(line: &str) -> String {
    let fields: Vec<_> = line
        .split('\t')
        .enumerate()
        .map(|(at, field)| match (at, field) {
            (4 | 6 | 7, seconds) if seconds.parse::<u64>().is_ok() => "SECONDS",
            (_, field) => field,
        })
        .collect();
    fields.join("\t")
}

/// Replaces the durations in a row of a table, and their padding.
fn cells(line: &str) -> String {
    let line = pattern!(r"\b\d+(ms|s|m|h|d)([\dms]+)?\b").replace_all(line, "AGE");
    pattern!(r" {2,}").replace_all(&line, "  ").into_owned()
}
