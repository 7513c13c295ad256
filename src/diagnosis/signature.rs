//! Groups failures by signature: the exit and the last output line, without the parts that differ from job to job.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

use chrono::{DateTime, Utc};
use regex::{Captures, Regex};
use serde::Serialize;

use super::causes::keep_most;
use crate::{
    job::{Attempts, Failure, Job},
    output::ends,
    secret::covered_text,
};

const MAX_SIGNATURE_CHARS: usize = 120;

const LOOKED_AT: usize = 1024;

const NAMES: usize = 5;

const MAX_SIGNATURES: usize = 1000;

const SAMPLE: usize = 2_000;

/// Returns the variable-free form of a failure.
///
/// It has the exit, then the last line of standard error, or else of the output. Secrets are masked. Quoted text
/// becomes `"…"`, a path its last part, an id `H`, and a number `#`, except an exit code at the beginning.
pub(crate) fn signature(failure: &Failure) -> String {
    let how = failure.how().unwrap_or_else(|| alike(&failure.reason));
    match failure.last_line() {
        Some(line) => begin(&format!("{how}: {}", alike(&line)), MAX_SIGNATURE_CHARS),
        None => begin(&how, MAX_SIGNATURE_CHARS),
    }
}

fn alike(line: &str) -> String {
    static VARIES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let varies = [
            r"(?<exit>^(?:exit|signal) [0-9]+\b)",
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
            // A worker reports its exit code like this.
            None if is("exit") => found[0].to_owned(),
            None if is("id") => "H".to_owned(),
            // A long number is no id, and a word has no digits.
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

#[derive(Debug, Serialize)]
pub(crate) struct FailureGroup {
    pub(crate) signature: String,
    pub(crate) failures: u64,
    /// Whether earlier failures are missing: a job keeps only its last ones.
    pub(crate) at_least: bool,
    pub(crate) jobs: u64,
    pub(crate) names: BTreeSet<String>,
    pub(crate) more_names: bool,
    pub(crate) first: DateTime<Utc>,
    pub(crate) last: DateTime<Utc>,
    pub(crate) sample: Sample,
}

/// One failure, with secrets masked and long texts cut in the middle.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) job: String,
    pub(crate) name: String,
    pub(crate) conductor: String,
    pub(crate) reason: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Sample {
    fn of(job: &Job, failure: &Failure) -> Self {
        let sample = |text: &str| ends(&covered_text(text), SAMPLE);
        Self {
            job: job.reference().into_owned(),
            name: job.name.clone(),
            conductor: sample(&failure.conductor),
            reason: sample(&failure.headline()),
            stdout: sample(&failure.stdout),
            stderr: sample(&failure.stderr),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Signatures {
    all: HashMap<String, FailureGroup>,
    pub(crate) has_dropped: bool,
}

impl Signatures {
    pub(crate) fn add(&mut self, job: &Job) {
        let mut seen = BTreeSet::new();
        let failures = job.attempts.failures.iter();
        for failure in failures.filter(|it| !it.is_release()) {
            let signature = signature(failure);
            let is_first = seen.insert(signature.clone());
            self.note(signature, job, failure, is_first);
        }
        // The failures of dropped signatures are not counted.
        self.has_dropped |= keep_most(&mut self.all, MAX_SIGNATURES, |of| of.failures);
    }

    fn note(&mut self, signature: String, job: &Job, failure: &Failure, is_first: bool) {
        let group = self.all.entry(signature);
        let of = group.or_insert_with_key(|signature| FailureGroup {
            signature: signature.clone(),
            failures: 0,
            at_least: false,
            jobs: 0,
            names: BTreeSet::new(),
            more_names: false,
            first: failure.time,
            last: failure.time,
            sample: Sample::of(job, failure),
        });
        of.failures += 1;
        let kept = job.attempts.failures.len();
        of.at_least |= kept >= Attempts::MAX_FAILURES && job.failed_attempts() as usize > kept;
        of.jobs += u64::from(is_first);
        of.first = of.first.min(failure.time);
        if failure.time > of.last {
            (of.last, of.sample) = (failure.time, Sample::of(job, failure));
        }
        if !of.names.contains(&job.name) {
            match of.names.len() < NAMES {
                true => _ = of.names.insert(job.name.clone()),
                false => of.more_names = true,
            }
        }
    }

    pub(crate) fn finish(self) -> Vec<FailureGroup> {
        let mut all: Vec<_> = self.all.into_values().collect();
        let rank = |of: &FailureGroup| (Reverse(of.failures), Reverse(of.last));
        all.sort_by(|one, other| (rank(one), &one.signature).cmp(&(rank(other), &other.signature)));
        all
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::{board::testing::scripted::Scripted, tests::rows};

    fn failure(exit_code: Option<i32>, stderr: &str) -> Failure {
        Failure {
            exit_code,
            stderr: stderr.to_owned(),
            ..Failure::reported("the command took longer than 5s", "night")
        }
    }

    #[test]
    fn signature_omits_variable_parts() {
        for [code, stderr, expected] in rows(
            r#"
            1 =>  => exit 1
            - =>  => the command took longer than #s
            2 => a\nno space left on /srv/a/b.img (4711 kB)\n\n => exit 2: no space left on b.img (# kB)
            1 => volume 1f0c9a58-8f0e-5d0a-8a43-6b0c3f6d2e7b is busy => exit 1: volume H is busy
            1 => can't open "it": it's 0xdeadbeef or c0ffee0123 => exit 1: can't open "…": it's H or H
            1 => a 'b c' password=x => exit 1: a "…" password=********
            1 => 12345678 defaced effaceddad => exit 1: # defaced effaceddad
            "#,
        ) {
            let signature = signature(&failure(code.parse().ok(), stderr));
            assert_eq!(signature, expected);
        }
        let by_hand = |reason| signature(&Failure::reported(reason, "ada"));
        assert_eq!(by_hand("exit 4"), "exit 4");
        assert_eq!(by_hand("disk 7: exit 4"), "disk #: exit #");
        let long = signature(&failure(Some(1), &"é ".repeat(5000)));
        assert_eq!(long.chars().count(), MAX_SIGNATURE_CHARS + 1);
    }

    #[test]
    fn failures_are_grouped_by_signature() {
        let board = Scripted::new();
        let mut alike = Signatures::default();
        let start = Utc::now();
        for number in 0..10_i32 {
            let mut job = board.post(&format!("job-{}", number % 7), None);
            let at = |seconds: i32| start + TimeDelta::seconds(seconds.into());
            job.attempts.failures = vec![
                Failure {
                    time: at(number),
                    ..failure(Some(1), &format!("disk {number}"))
                },
                Failure {
                    time: at(-number),
                    ..failure(Some(1), "disk 99")
                },
            ];
            alike.add(&job);
        }
        let all = alike.finish();
        let [of] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            (of.failures, of.jobs, of.names.len(), of.more_names),
            (20, 10, 5, true)
        );
        assert_eq!(
            (of.last - of.first, of.sample.stderr.as_str()),
            (TimeDelta::seconds(18), "disk 9")
        );
    }

    #[test]
    fn frequent_signatures_survive_among_many() {
        let board = Scripted::new();
        let mut alike = Signatures::default();
        let mut job = board.post("job", None);
        let word = |number: u32| {
            let letters = number.to_string().into_bytes().into_iter();
            letters
                .map(|digit| char::from(digit - b'0' + b'k'))
                .collect::<String>()
        };
        for number in 0..10_000 {
            let texts = [word(number), "often".to_owned()];
            job.attempts.failures = texts.map(|text| failure(Some(1), &text)).to_vec();
            alike.add(&job);
        }
        assert!(alike.all.len() <= 2 * MAX_SIGNATURES);
        assert_eq!(alike.finish()[0].failures, 10_000);
    }
}
