//! How problems are printed, wherever they are listed.

use chrono::{DateTime, Utc};

use crate::{
    context::Context,
    duration,
    output::{Page, Text, Tone, count_jobs, titled},
    problem::{Evidence, Fix, Problem, Severity},
};

const INDENT: &str = "       ";

const COUNT: usize = 10;

pub(crate) const CODE: usize = 22;

pub(crate) fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Ok => Tone::Good,
        Severity::Note => Tone::Plain,
        Severity::Warning => Tone::Warning,
        Severity::Error => Tone::Bad,
    }
}

/// Returns a problem in one line, with the number of its jobs.
pub(crate) fn scope(problem: &Problem) -> String {
    let count = match problem.jobs {
        0 => String::new(),
        jobs => format!("{}, ", count_jobs(jobs)),
    };
    format!("{}: {count}{}", problem.code, problem.summary)
}

/// Continues `no problems found`: a part that could not be checked may hide one.
pub(crate) fn unchecked(parts: usize) -> String {
    match parts {
        0 => String::new(),
        1 => ", but 1 part could not be checked".to_owned(),
        parts => format!(", but {parts} parts could not be checked"),
    }
}

/// Removes the fixes that a read-only board refuses, and prints how many.
pub(crate) fn omit_refused<'a>(ctx: &Context, problems: impl IntoIterator<Item = &'a mut Problem>) {
    let Some(source) = ctx.config.why_read_only() else {
        return;
    };
    let mut with_fix: Vec<_> = problems.into_iter().filter(|it| it.fix.is_some()).collect();
    with_fix.iter_mut().for_each(|it| it.omit_change());
    let fixes = match with_fix.iter().filter(|it| it.fix.is_none()).count() {
        0 => return,
        1 => "1 fix is".to_owned(),
        count => format!("{count} fixes are"),
    };
    ctx.out.note(format!(
        "{fixes} not shown: the board is read-only because of {source}"
    ));
}

/// Prints a problem in three lines: its summary, the examples and evidence, and the fix.
pub(crate) fn print(problem: &Problem, now: DateTime<Utc>, page: &mut Page) {
    let word = match problem.severity {
        Severity::Ok => "ok",
        Severity::Note => "note",
        Severity::Warning => "WARN",
        Severity::Error => "ERROR",
    };
    // A problem takes three lines of a usual terminal; `explain` shows the whole.
    let taken = INDENT.len() + CODE + COUNT;
    let page_room = page.columns().filter(|it| *it >= 80).map(|it| it - taken);
    let line = page.sentence(INDENT.len());
    let line = line.add(tone(problem.severity), format!("{word:<7}"));
    let line = line.add(Tone::Strong, format!("{:<CODE$}", problem.code.name()));
    let count = match problem.jobs {
        0 => String::new(),
        jobs => count_jobs(jobs),
    };
    let summary = Text::from(&problem.summary);
    let room = page_room.unwrap_or(usize::MAX);
    line.plain(format!("{count:>8}  ")).plain(summary.cut(room));
    print_rest(problem, now, INDENT, page);
}

pub(crate) fn print_rest(problem: &Problem, now: DateTime<Utc>, indent: &str, page: &mut Page) {
    let facts = facts(problem, now);
    if !facts.is_empty() {
        page.sentence(indent.len())
            .plain(indent)
            .add(Tone::Faint, facts.join("; "));
    }
    if let Some(fix) = &problem.fix {
        print_fix(fix, indent, page);
    }
}

fn print_fix(fix: &Fix, indent: &str, page: &mut Page) {
    let word = match (fix.risk, &fix.command) {
        (Some(_), _) => "fix  ",
        (None, Some(_)) if fix.shows && fix.text.is_none() => "see  ",
        _ => "do   ",
    };
    match &fix.command {
        Some(command) => {
            let text = fix.lead().map(|text| format!("{text}: "));
            let text = text.unwrap_or_default();
            page.command(&format!("{indent}{word}{text}"), command);
        }
        None => {
            let text = fix.text.as_deref().unwrap_or_default();
            let line = page.sentence(indent.len() + word.len());
            line.add(Tone::Faint, format!("{indent}{word}")).plain(text);
        }
    }
}

/// Returns the examples, the evidence, and the impact of a problem that is about no job.
fn facts(problem: &Problem, now: DateTime<Utc>) -> Vec<String> {
    let mut facts = Vec::new();
    if let [first, ..] = problem.examples.as_slice() {
        let names = problem.examples.iter();
        let names = names.map(|it| titled(&it.name, &it.job));
        let more = problem.jobs > problem.examples.len() as u64;
        let names: Vec<_> = names.collect();
        let what = if names.len() > 1 { "oldest" } else { "for" };
        let oldest = first
            .since
            .map(|since| format!(", {what} {}", duration::between(since, now)));
        facts.push(format!(
            "{}{}{}",
            names.join(", "),
            if more { ", ..." } else { "" },
            oldest.unwrap_or_default()
        ));
    }
    let evidence = problem.evidence.iter();
    facts.extend(evidence.map(|Evidence { what, value, .. }| format!("{what} {value}")));
    if problem.jobs == 0 && !problem.impact.is_empty() {
        facts.push(problem.impact.to_owned());
    }
    facts
}
