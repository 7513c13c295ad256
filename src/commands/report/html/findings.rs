//! Problems of the board and its jobs, and failure groups.

use super::{Facts, ago, code, folded, more, shown, svg, words};
use crate::{
    commands::{
        doctor::Told,
        explain::Explanation,
        parts::signature::{Alike, Sample},
    },
    output::{Html, Text, element, list, short, tag},
    suggest::Suggestion,
};

/// The number of jobs named per explanation.
const MOST_NAMED: usize = 5;

const LONG: usize = 300;

/// The size of an output sample: lines, and columns of each.
const SAMPLE: (usize, usize) = (6, 160);

pub(super) fn findings(facts: &Facts) -> Html {
    if facts.findings.is_empty() && facts.explained.is_empty() && facts.lost == 0 {
        return tag("p", &[&"No problems found."]);
    }
    let mut html = list("ol.findings", facts.findings.iter().map(told));
    html.add(&more(facts.more_findings, "findings", "jobboard doctor"));
    if facts.lost > 0 {
        let lost = format!("The trash holds {} that failed: ", words::jobs(facts.lost));
        let command = code("jobboard list --trash");
        html.add(&tag("p.gap-above", &[&lost, &command, &" lists them."]));
    }
    let blocks = facts.explained.iter().filter(|it| it.like.is_none());
    let blocks = list("ol.findings", blocks.filter_map(|it| explained(facts, it)));
    let title = (!facts.explained.is_empty()).then_some("Jobs that need help");
    html.add(&list(
        "h3.gap-above",
        title.map(|title| Html::of(&[&title])),
    ));
    html.add(&blocks);
    html
}

fn block((severity, called): (&'static str, &str), about: &Html, says: &[Html]) -> Html {
    let word = tag("span.word", &[&severity, &":"]);
    let title = tag("h3", &[&word, &" ", about, &" ", &code(called)]);
    let says: Html = says.iter().cloned().collect();
    element("li", &[("class", &severity)], &[&title, &says])
}

fn told(it: &Told) -> Html {
    let evidence = it.evidence.iter();
    let evidence = pairs(evidence.map(|it| (it.what, it.value.as_str())));
    let word = if it.remedy.fix { "Fix" } else { "Run" };
    let remedy = command(word, &it.remedy.command);
    let about = shown(&it.summary, LONG);
    let says = [tag("p.soft", &[&it.impact]), evidence, remedy];
    block((it.severity.name(), it.code.name()), &about, &says)
}

fn explained(facts: &Facts, it: &Explanation) -> Option<Html> {
    let finding = it.findings.first()?;
    let mut same = facts.explained.iter().filter(|of| of.verdict == it.verdict);
    let is_first = same.next().is_some_and(|first| std::ptr::eq(first, it));
    let count = facts.stuck_jobs.iter().find(|of| of.code == it.verdict);
    let mut about = Html::default();
    if let Some(of) = count.filter(|of| is_first && of.jobs > 1) {
        about.add(&words::jobs(of.jobs)).add(&", for example ");
    }
    let title = it.title();
    let like = facts.explained.iter();
    let like = like.filter(|of| of.like.as_ref() == Some(&title));
    for (at, of) in [it].into_iter().chain(like).take(MOST_NAMED).enumerate() {
        let reference = match of.job.starts_with("key:") {
            true => of.job.as_str(),
            false => short(&of.job),
        };
        let comma = if at > 0 { ", " } else { "" };
        let name = shown(&of.name, super::NAME);
        about.add(&Html::of(&[&comma, &name, &" ", &code(reference)]));
    }
    let evidence = finding.evidence.iter();
    let evidence = pairs(evidence.map(|it| (it.what.as_str(), it.value.as_str())));
    let remedy = finding.remedy.as_ref();
    let remedy = remedy.map(|it| command(&it.text, &it.command));
    let summary = tag("p", &[&shown(&finding.summary, LONG)]);
    let says = [summary, evidence, remedy.unwrap_or_default()];
    let severity = (finding.severity.name(), finding.code.name());
    Some(block(severity, &about, &says))
}

fn pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Html {
    let pairs = pairs.map(|(what, value)| {
        let what = tag("dt", &[&shown(what, 40)]);
        tag("div", &[&what, &" ", &tag("dd", &[&shown(value, LONG)])])
    });
    list("dl.facts", pairs)
}

fn command(what: &str, command: &Suggestion) -> Html {
    // Not shortened: a cut could leave a quote open.
    let line = tag("code", &[&command.to_string()]);
    tag("p.do", &[&shown(what, LONG), &": ", &line])
}

pub(super) fn failures(facts: &Facts) -> Html {
    let Some(most) = facts.failures.iter().map(|it| it.failures).max() else {
        return tag("p", &[&"No failures in the history."]);
    };
    let rule = "Failures are grouped by exit code or signal and last line of output, ignoring \
        numbers (#), ids (H) and quoted text. The board keeps the last three failures of each job.";
    let all = facts.failures.iter().map(|it| failure(facts, it, most));
    let more = more(facts.more_failures, "kinds of failures", "");
    Html::of(&[&tag("p.soft", &[&rule]), &list("ol.failures", all), &more])
}

fn failure(facts: &Facts, of: &Alike, most: u64) -> Html {
    let least = if of.at_least { "at least " } else { "" };
    let unseen = tag("span.unseen", &[&" times"]);
    let count = tag("p", &[&least, &words::grouped(of.failures), &unseen]);
    let share = svg::bar(&[("rect.bad", of.failures)], most);
    let title = tag("h3", &[&tag("code", &[&shown(&of.signature, 160)])]);
    let when = [&ago(facts, of.last), &ago(facts, of.first)].map(|it| Html::of(&[it, &" ago"]));
    let [last, first] = &when;
    let first = match of.failures {
        1 => Html::default(),
        _ => Html::of(&[&", first ", first]),
    };
    let names = of.names.iter().enumerate().map(|(at, name)| {
        let comma = if at > 0 { ", " } else { "" };
        Html::of(&[&comma, &shown(name, 40)])
    });
    let others = if of.more_names { " and others" } else { "" };
    let names = Html::of(&[&names.collect::<Html>(), &others]);
    let jobs = format!("in {}, last ", words::jobs(of.jobs));
    let line = tag("p.soft", &[&jobs, last, &first, &": ", &names]);
    let about = ("Latest failure", of.signature.as_str());
    let sample = folded("details", about, &sample(&of.sample));
    let told = tag("div", &[&title, &line, &sample]);
    tag("li", &[&tag("div.share", &[&count, &share]), &told])
}

fn sample(of: &Sample) -> Html {
    let facts = [
        ("job", short(&of.job)),
        ("name", &of.name),
        ("by", &of.conductor),
        ("reason", &of.reason),
    ];
    let mut html = pairs(facts.into_iter());
    let said = match of.stderr.trim().is_empty() {
        true => &of.stdout,
        false => &of.stderr,
    };
    let (most, columns) = SAMPLE;
    let lines: Vec<_> = said.lines().collect();
    let lines = lines[lines.len().saturating_sub(most)..].iter();
    let lines = lines.map(|line| {
        let line = Text::from(line).shortened(columns);
        Html::of(&[&line, &Html::raw("\n")])
    });
    html.add(&list("pre", lines));
    html
}
