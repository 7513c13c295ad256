//! A report as a page of HTML.

mod board;
mod findings;

use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use chrono::{DateTime, Utc};

use super::{
    facts::ReportFacts,
    svg,
    tables::{BarPart, OmittedRows, Table},
    words,
};
use crate::{
    output::{ABSENT, Cell, Column, Fit, Html, Text, Tone, element, list, rfc3339, tag},
    suggest::Suggestion,
};

const STYLE: &str = include_str!("../style.css");

const NAME: usize = 80;

static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = BASE64.encode(digest(&SHA256, STYLE.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
});

const HEAD: &str = "\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
    <meta name=\"color-scheme\" content=\"light dark\">\n\
    <meta name=\"referrer\" content=\"no-referrer\">\n";

type Section = (&'static str, &'static str, fn(&ReportFacts) -> Html);

const SECTIONS: [Section; 8] = [
    ("Jobs", "Jobs now", board::tiles),
    ("Failures", "Failures by cause", findings::failures),
    ("Problems", "Problems", findings::problems),
    ("Timeline", "Timeline", board::history),
    ("Times", "Waits and durations", board::times),
    ("Names", "By name", board::names),
    ("Owners", "By owner", board::owners),
    ("Server", "Server", server),
];

pub(super) fn page(facts: &ReportFacts) -> Html {
    let http = "Content-Security-Policy";
    let policy = [("http-equiv", &http as _), ("content", &*POLICY as _)];
    let policy = element("meta", &policy, &[]);
    let name = Text::from(&facts.board).shortened(NAME);
    let title = tag("title", &[&name, &", a job board"]);
    let style = tag("style", &[&Html::raw(STYLE)]);
    let head = Html::of(&[&policy, &Html::raw(HEAD), &title, &style]);
    let main = list("main", SECTIONS.map(|it| section(it, facts)));
    let patterns = Html::raw(svg::PATTERNS);
    let body = tag("body", &[&patterns, &header(facts), &main, &footer(facts)]);
    let page = element("html", &[("lang", &"en")], &[&tag("head", &[&head]), &body]);
    Html::of(&[&Html::raw("<!DOCTYPE html>\n"), &page])
}

fn section((name, title, content): Section, facts: &ReportFacts) -> Html {
    let (id, labelled) = (name.to_lowercase(), format!("{name}-title").to_lowercase());
    let title = element("h2", &[("id", &labelled)], &[&title]);
    let attributes = [("id", &id as _), ("aria-labelledby", &labelled as _)];
    element("section", &attributes, &[&title, &content(facts)])
}

fn header(facts: &ReportFacts) -> Html {
    let kind = tag("p.kind", &[&"Job board"]);
    let name = facts.title.as_ref().unwrap_or(&facts.board);
    let title = tag("h1", &[&shown(name, NAME)]);
    let address = match facts.title {
        Some(_) => Html::of(&[&shown(&facts.board, NAME), &", "]),
        None => Html::default(),
    };
    let about = tag("p.soft", &[&address, &"as of ", &time(facts.at)]);
    let verdict = match facts.wrong {
        0 => "p.verdict",
        _ => "p.verdict.bad",
    };
    let verdict = tag(verdict, &[&facts.verdict()]);
    let links = SECTIONS.map(|(name, ..)| {
        let to = format!("#{}", name.to_lowercase());
        tag("li", &[&element("a", &[("href", &to)], &[&name])])
    });
    let links = list("ul", links);
    let links = element("nav", &[("aria-label", &"Sections")], &[&links]);
    tag("header", &[&kind, &title, &about, &verdict, &links])
}

fn server(facts: &ReportFacts) -> Html {
    let unseen = facts.unseen.iter().map(|what| shown(what, 400));
    let unseen = unseen.map(|what| tag("p", &[&"Not checked: ", &what]));
    let conductors = facts.conductors_in_words();
    let server = shown(&facts.server, NAME);
    let server = tag("p", &[&server, &"; conductors: ", &conductors, &"."]);
    Html::of(&[&server, &unseen.collect::<Html>()])
}

fn footer(facts: &ReportFacts) -> Html {
    let made = format!(
        " {}, which read each record once; jobs posted or removed meanwhile may be missing or \
            included. Ages and expiries are as of ",
        facts.version
    );
    let what = ". Long names and command output are shortened, and text that looks like a secret is \
        masked. Details of jobs are not included.";
    let program = tag("code", &[&"jobboard report"]);
    let made = tag("p", &[&"Made by ", &program, &made, &time(facts.at), &what]);
    tag("footer", &[&made])
}

/// Shows part of an untrusted text, isolated from the text around it.
fn shown(text: &str, columns: usize) -> Html {
    tag("bdi", &[&Text::from(text).shortened(columns)])
}

fn code(text: &str) -> Html {
    tag("code", &[&Text::from(text).shortened(NAME)])
}

fn time(time: DateTime<Utc>) -> Html {
    moment(time, &words::time(time))
}

fn ago(facts: &ReportFacts, time: DateTime<Utc>) -> Html {
    moment(time, &facts.ago(time))
}

fn moment(time: DateTime<Utc>, shown: &str) -> Html {
    element("time", &[("datetime", &rfc3339(time))], &[&shown])
}

/// Writes a table with row headers, its bars in the last column, and a legend if they have several parts.
fn table(of: &Table) -> Html {
    let is_number = |column: &Column| column.fit == Fit::Number;
    let mut heads = of.columns.iter().map(|column| {
        let name = if is_number(column) { "th.n" } else { "th" };
        element(name, &[("scope", &"col")], &[&column.title])
    });
    let mut head: Html = heads.by_ref().take(1).collect();
    if !of.bars.is_empty() {
        let unseen = tag("span.unseen", &[&"drawn"]);
        head.add(&element("th.w", &[("scope", &"col")], &[&unseen]));
    }
    head.add(&heads.collect::<Html>());
    let length = |bar: &Vec<BarPart>| bar.iter().map(|(.., count)| count).sum();
    let most = of.bars.iter().map(length).max().unwrap_or_default();
    let rows = of.rows.iter().enumerate().map(|(at, cells)| {
        let first = cells.iter().take(1).map(content).collect::<Html>();
        let mut row = element("th", &[("scope", &"row")], &[&first]);
        row.add(&list("td.w", of.bars.get(at).map(|it| svg::bar(it, most))));
        for (cell, column) in cells.iter().zip(&of.columns).skip(1) {
            let name = if is_number(column) { "td.n" } else { "td" };
            row.add(&tag(name, &[&content(cell)]));
        }
        tag("tr", &[&row])
    });
    let head = tag("thead", &[&tag("tr", &[&head])]);
    let caption = tag("caption", &[&of.title]);
    let mut html = tag("table", &[&caption, &head, &list("tbody", rows)]);
    if let Some(bar) = of.bars.first().filter(|bar| bar.len() > 1) {
        html.add(&legend(bar));
    }
    html.add(&more(of.more));
    html
}

fn content(cell: &Cell) -> Html {
    match (cell.tone, cell.text.as_str()) {
        (_, ABSENT) => tag("bdi", &[&"–"]),
        (Tone::Bad, _) => tag("strong.bad-text", &[&cell.text.shortened(NAME)]),
        _ => tag("bdi", &[&cell.text.shortened(NAME)]),
    }
}

fn figure(title: &str, note: &str, content: &Html) -> Html {
    let caption = tag("figcaption", &[&title, &tag("small", &[&note])]);
    tag("figure.wide", &[&caption, content])
}

fn folded(name: &'static str, title: &str, about: &str, content: &Html) -> Html {
    let unseen = tag("span.unseen", &[&": ", &about]);
    tag(name, &[&tag("summary", &[&title, &unseen]), content])
}

fn legend(marks: &[BarPart]) -> Html {
    let marks = marks.iter().map(|&(mark, meaning, _)| {
        let drawn = svg::rect(mark, (8.0, 84.0, 1.0, 10.0));
        tag("li", &[&svg::decorative_svg("12", 12, &drawn), &meaning])
    });
    list("ul.legend", marks)
}

fn more((more, what, command): OmittedRows) -> Html {
    if more.count == 0 {
        return Html::default();
    }
    let command = match command {
        "" => Html::default(),
        command => {
            let command = Suggestion::of("jobboard").with(command.split(' '));
            Html::of(&[&": ", &code(&command.to_string()), &" lists all"])
        }
    };
    tag(
        "p.soft",
        &[&format!("And {more} more {what}"), &command, &"."],
    )
}
