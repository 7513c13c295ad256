//! What is wrong with the board and its jobs, and how jobs failed.

use super::{Facts, ago, name, shown, svg, text, words};
use crate::{
    commands::{
        doctor::Told,
        explain::Explanation,
        parts::signature::{Alike, Sample},
    },
    output::{Html, Text, short},
    shell,
};

/// How many findings are shown.
const MOST: usize = 40;

/// How many jobs are named of which the same is to be said.
const MOST_NAMED: usize = 5;

/// How much of a text is shown that tells of something.
const LONG: usize = 300;

/// How many facts of a finding are shown.
const MOST_FACTS: usize = 5;

/// How much of a command line is shown: twenty uuids, and the words before them.
const COMMAND: usize = 1000;

/// How much of what a command wrote is shown: lines, and columns of each.
const SAMPLE: (usize, usize) = (6, 160);

/// Writes the findings of `doctor` and of `explain`.
pub(super) fn findings(facts: &Facts) -> Html {
    let mut html = Html::new();
    if facts.findings.is_empty() && facts.explained.is_empty() && facts.lost == 0 {
        html.raw("<p>Nothing was found.</p>\n");
        return html;
    }
    if !facts.findings.is_empty() {
        html.raw("<ol class=\"findings\">\n");
        facts
            .findings
            .iter()
            .take(MOST)
            .for_each(|it| told(it, &mut html));
        html.raw("</ol>\n");
        let more = facts.findings.len().saturating_sub(MOST) as u64;
        html.add(&super::more(
            Some(more),
            "findings; <code>jobboard doctor</code> has them",
        ));
    }
    if facts.lost > 0 {
        html.raw("<p class=\"gap-above\">In the trash ")
            .text(words::are(facts.lost));
        html.raw(" that failed: <code>jobboard list --trash</code> shows them.</p>\n");
    }
    if !facts.explained.is_empty() {
        html.raw("<h3 class=\"gap-above\">Jobs that will not run without help</h3>\n");
        html.raw("<ol class=\"findings\">\n");
        let blocks = facts.explained.iter().filter(|it| it.like.is_none());
        blocks.for_each(|it| explained(facts, it, &mut html));
        html.raw("</ol>\n");
    }
    html
}

fn told(it: &Told, html: &mut Html) {
    let severity = it.severity.name();
    begin(severity, severity, html);
    html.add(&shown(&it.summary, LONG))
        .raw(" <code>")
        .raw(it.code.name());
    html.raw("</code></h3>\n<p class=\"soft\">")
        .raw(it.consequence)
        .raw("</p>\n");
    let evidence = it.evidence.iter().take(MOST_FACTS);
    pairs(evidence.map(|it| (it.what, it.value.as_str())), html);
    let word = if it.remedy.fix { "Mend: " } else { "To do: " };
    command(word, &it.remedy.text, html);
    html.raw("</li>\n");
}

/// Writes what is the matter with a job, and with which others it is the same.
fn explained(facts: &Facts, it: &Explanation, html: &mut Html) {
    let Some(finding) = it.findings.first() else {
        return;
    };
    let severity = finding.severity.name();
    begin(severity, severity, html);
    let mut same = facts.explained.iter().filter(|of| of.verdict == it.verdict);
    let is_first = same.next().is_some_and(|first| std::ptr::eq(first, it));
    let count = facts.trouble.iter().find(|of| of.code == it.verdict);
    match count.filter(|of| is_first && of.jobs > 1) {
        Some(of) => html.text(words::jobs(of.jobs)).raw(", such as "),
        None => html,
    };
    let title = it.title();
    let like = facts.explained.iter();
    let like = like.filter(|of| of.like.as_ref() == Some(&title));
    for (at, of) in [it].into_iter().chain(like).take(MOST_NAMED).enumerate() {
        let reference = match of.job.starts_with("key:") {
            true => of.job.as_str(),
            false => short(&of.job),
        };
        html.raw(if at > 0 { ", " } else { "" })
            .add(&name(&of.name));
        html.raw(" <code>").add(&name(reference)).raw("</code>");
    }
    html.raw(" <code>")
        .raw(finding.code.name())
        .raw("</code></h3>\n<p>");
    html.add(&shown(&finding.summary, LONG)).raw("</p>\n");
    let evidence = finding.evidence.iter().take(MOST_FACTS);
    pairs(
        evidence.map(|it| (it.what.as_str(), it.value.as_str())),
        html,
    );
    if let Some(remedy) = &finding.remedy {
        html.raw("<p class=\"do\">")
            .add(&shown(&remedy.text, LONG))
            .raw(": <code>");
        html.add(&line_of(&shell::line(&remedy.command)))
            .raw("</code></p>\n");
    }
    html.raw("</li>\n");
}

fn begin(class: &'static str, word: &'static str, html: &mut Html) {
    html.raw("<li class=\"")
        .raw(class)
        .raw("\">\n<h3><span class=\"word\">")
        .raw(word);
    html.raw(":</span> ");
}

fn pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>, html: &mut Html) {
    let mut pairs = pairs.peekable();
    if pairs.peek().is_none() {
        return;
    }
    html.raw("<dl class=\"facts\">");
    for (what, value) in pairs {
        html.raw("<div><dt>")
            .add(&shown(what, 40))
            .raw("</dt> <dd>");
        html.add(&shown(value, LONG)).raw("</dd></div>");
    }
    html.raw("</dl>\n");
}

fn command(word: &'static str, line: &str, html: &mut Html) {
    html.raw("<p class=\"do\">")
        .raw(word)
        .raw("<code>")
        .add(&line_of(line))
        .raw("</code></p>\n");
}

/// Shows a command; one that nobody could read is cut, and does not work then.
fn line_of(line: &str) -> Html {
    text(Text::from(line).shortened(COMMAND).as_str())
}

/// Writes what failures have in common, each with its last one.
pub(super) fn failures(facts: &Facts) -> Html {
    let mut html = Html::new();
    if facts.failures.is_empty() {
        html.raw("<p>No failure is remembered.</p>\n");
        return html;
    }
    html.raw(
        "<p class=\"soft\">Failures are alike that ended in the same way with the same last line, ",
    );
    html.raw("whatever numbers (<code>#</code>), ids (<code>H</code>) and quoted texts are in it. Of each job ");
    html.raw("the last three are remembered.</p>\n<ol class=\"failures\">\n");
    let most = facts.failures.first().map_or(1, |it| it.failures);
    for it in &facts.failures {
        html.raw("<li>\n<div class=\"share\"><p>")
            .raw(if it.at_least { "at least " } else { "" })
            .text(words::grouped(it.failures))
            .raw("<span class=\"unseen\"> times</span></p>");
        html.add(&svg::share(it.failures, most))
            .raw("</div>\n<div>\n<h3><code>");
        html.add(&shown(&it.signature, 160))
            .raw("</code></h3>\n")
            .add(&line(facts, it));
        html.add(&sample(&it.sample)).raw("</div>\n</li>\n");
    }
    html.raw("</ol>\n")
        .add(&super::more(Some(facts.more_failures), "kinds of failures"));
    html
}

fn line(facts: &Facts, of: &Alike) -> Html {
    let mut html = Html::new();
    html.raw("<p class=\"soft\">in ");
    html.text(words::jobs(of.jobs)).raw(", last ");
    html.add(&ago(facts, Some(of.last))).raw(" ago");
    if of.failures > 1 {
        html.raw(", first ")
            .add(&ago(facts, Some(of.first)))
            .raw(" ago");
    }
    html.raw(": ");
    for (at, it) in of.names.iter().enumerate() {
        html.raw(if at > 0 { ", " } else { "" }).add(&shown(it, 40));
    }
    html.raw(if of.more_names {
        " and others</p>\n"
    } else {
        "</p>\n"
    });
    html
}

fn sample(of: &Sample) -> Html {
    let mut html = Html::new();
    html.raw("<details>\n<summary>The last one</summary>\n");
    let job = short(&of.job);
    let facts = [
        ("job", job),
        ("name", &of.name),
        ("by", &of.conductor),
        ("reason", &of.reason),
    ];
    pairs(facts.into_iter(), &mut html);
    let said = if of.stderr.trim().is_empty() {
        &of.stdout
    } else {
        &of.stderr
    };
    let lines: Vec<_> = said.lines().collect();
    let (most, columns) = SAMPLE;
    let lines = &lines[lines.len().saturating_sub(most)..];
    if !lines.is_empty() {
        html.raw("<pre>");
        for line in lines {
            html.add(&text(Text::from(line).shortened(columns).as_str()))
                .raw("\n");
        }
        html.raw("</pre>\n");
    }
    html.raw("</details>\n");
    html
}
