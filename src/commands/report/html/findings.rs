//! The problems, and the failures by cause.

use std::iter;

use super::{ReportFacts, ago, code, folded, more, shown, svg, words::jobs_grouped};
use crate::{
    diagnosis::{FailureGroup, Sample},
    output::{Html, Text, element, grouped, list, short, tag},
    problem::{Fix, Problem},
};

const LONG: usize = 300;

const SAMPLE: (usize, usize) = (6, 160);

pub(super) fn problems(facts: &ReportFacts) -> Html {
    if facts.problems.is_empty() {
        return tag("p", &[&facts.verdict()]);
    }
    let mut html = list("ol.findings", facts.other_problems().map(problem));
    if facts.other_problems().next().is_none() {
        html = tag("p", &[&"All problems are failures; see above."]);
    }
    html.add(&more((facts.more_problems, "problems", "doctor")));
    html
}

fn problem(it: &Problem) -> Html {
    let severity = it.severity.name();
    let word = tag("span.word", &[&severity, &":"]);
    let count = match it.jobs {
        0 => String::new(),
        count => format!(" {}:", jobs_grouped(count)),
    };
    let about = shown(&it.summary, LONG);
    let title = tag(
        "h3",
        &[&word, &count, &" ", &about, &" ", &code(it.code.name())],
    );
    let examples = it
        .examples
        .iter()
        .map(|of| Html::of(&[&shown(&of.name, super::NAME), &" ", &code(short(&of.job))]));
    let examples = list("p", with_commas(examples));
    let evidence = it.evidence.iter();
    let evidence = pairs(evidence.map(|it| (it.what.as_str(), it.value.as_str())));
    let impact = tag("p.soft", &[&it.impact]);
    let fix = it.fix.as_ref().map(fix).unwrap_or_default();
    let says = Html::of(&[&title, &examples, &impact, &evidence, &fix]);
    element("li", &[("class", &severity)], &[&says])
}

fn fix(fix: &Fix) -> Html {
    let usual = match fix.risk {
        Some(_) => "Fix",
        None if fix.shows => "See",
        None => "Run",
    };
    let text = fix.lead().unwrap_or_else(|| usual.to_owned());
    let text = shown(&text, LONG);
    match &fix.command {
        // Not shortened: a cut could leave a quote open.
        Some(command) => tag(
            "p.do",
            &[&text, &": ", &tag("code", &[&command.to_string()])],
        ),
        None => tag(
            "p.do",
            &[&shown(fix.text.as_deref().unwrap_or(usual), LONG)],
        ),
    }
}

fn with_commas(items: impl Iterator<Item = Html>) -> impl Iterator<Item = Html> {
    let commas = [""].into_iter().chain(iter::repeat(", "));
    commas
        .zip(items)
        .map(|(comma, item)| Html::of(&[&comma, &item]))
}

fn pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Html {
    let pairs = pairs.map(|(what, value)| {
        let what = tag("dt", &[&shown(what, 40)]);
        tag("div", &[&what, &" ", &tag("dd", &[&shown(value, LONG)])])
    });
    list("dl.facts", pairs)
}

pub(super) fn failures(facts: &ReportFacts) -> Html {
    let Some(most) = facts.failures.iter().map(|it| it.failures).max() else {
        return tag("p", &[&"No failures in the history."]);
    };
    let rule = "Failures are grouped by exit code or signal and last line of output, ignoring \
        numbers (#), ids (H) and quoted text. The board keeps the last three failures of each job.";
    let all = facts.failures.iter().map(|it| failure(facts, it, most));
    let more = more((facts.more_failures, "kinds of failures", ""));
    Html::of(&[&tag("p.soft", &[&rule]), &list("ol.failures", all), &more])
}

fn failure(facts: &ReportFacts, of: &FailureGroup, most: u64) -> Html {
    let least = if of.at_least { "at least " } else { "" };
    let times = if of.failures == 1 { " time" } else { " times" };
    let unseen = tag("span.unseen", &[&times]);
    let count = tag("p", &[&least, &grouped(of.failures), &unseen]);
    let share = svg::bar(&[("rect.bad", "failures", of.failures)], most);
    let title = tag("h3", &[&tag("code", &[&shown(&of.signature, 160)])]);
    let spans = [of.last, of.first].map(|it| facts.ago(it));
    let when = [&ago(facts, of.last), &ago(facts, of.first)].map(|it| Html::of(&[it, &" ago"]));
    let [last, first] = &when;
    let first = match spans[0] == spans[1] {
        true => Html::default(),
        false => Html::of(&[&", first ", first]),
    };
    let names = with_commas(of.names.iter().map(|name| shown(name, 40)));
    let others = if of.more_names { " and others" } else { "" };
    let names = Html::of(&[&names.collect::<Html>(), &others]);
    let jobs = format!("in {}, last ", jobs_grouped(of.jobs));
    let line = tag("p.soft", &[&jobs, last, &first, &": ", &names]);
    let sample = sample(&of.sample);
    let sample = folded("details", "Latest failure", &of.signature, &sample);
    let problem = facts.problem_of(of);
    let fix = problem.and_then(|it| it.fix.as_ref()).map(fix);
    let content = tag("div", &[&title, &line, &fix.unwrap_or_default(), &sample]);
    tag("li", &[&tag("div.share", &[&count, &share]), &content])
}

fn sample(of: &Sample) -> Html {
    let facts = [
        ("job", short(&of.job)),
        ("name", &of.name),
        ("by", &of.conductor),
        ("reason", &of.reason),
    ];
    let mut html = pairs(facts.into_iter());
    let text = match of.stderr.trim().is_empty() {
        true => &of.stdout,
        false => &of.stderr,
    };
    let (most, columns) = SAMPLE;
    let lines: Vec<_> = text.lines().collect();
    let lines = lines[lines.len().saturating_sub(most)..].iter();
    let lines = lines.map(|line| {
        let line = Text::from(line).shortened(columns);
        Html::of(&[&line, &Html::raw("\n")])
    });
    html.add(&list("pre", lines));
    html
}
