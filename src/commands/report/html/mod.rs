//! A report as a page of HTML.

mod board;
mod findings;
mod past;

use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use chrono::{DateTime, Utc};

use super::{facts::Facts, svg, words};
use crate::output::{Html, Text, rfc3339};

/// How the page looks; there is no other style in it.
const STYLE: &str = include_str!("../style.css");

/// How much of a name is shown.
const NAME: usize = 80;

/// The policy under which browsers show the page: nothing runs, nothing is asked for.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = BASE64.encode(digest(&SHA256, STYLE.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
});

/// The sections, by their ids, how they are called in short, and their titles.
const SECTIONS: [(&str, &str, &str); 7] = [
    ("findings", "Findings", "What is wrong"),
    ("counts", "Counts", "How many jobs"),
    ("ages", "Ages", "How long they wait and are held"),
    ("names", "Names", "By name"),
    ("owners", "Owners", "By owner"),
    ("failures", "Failures", "How they failed"),
    ("past", "Past", "What has left the board"),
];

/// Writes the page.
pub(super) fn page(facts: &Facts) -> Html {
    let mut html = Html::new();
    html.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n");
    html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"");
    html.text(POLICY.as_str())
        .raw("\">\n<meta charset=\"utf-8\">\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
    html.raw("<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    html.text(Text::from(&facts.board).shortened(NAME).as_str());
    html.raw(", a job board</title>\n<style>")
        .raw(STYLE)
        .raw("</style>\n</head>\n<body>\n");
    html.raw(svg::PATTERNS).raw("\n");
    head(facts, &mut html);
    html.raw("<main>\n");
    let sections = [
        findings::findings(facts),
        board::counts(facts),
        board::ages(facts),
        board::names(facts),
        board::owners(facts),
        findings::failures(facts),
        past::past(facts),
    ];
    for ((id, _, title), section) in SECTIONS.into_iter().zip(&sections) {
        html.raw("<section id=\"")
            .raw(id)
            .raw("\" aria-labelledby=\"")
            .raw(id);
        html.raw("-title\">\n<h2 id=\"")
            .raw(id)
            .raw("-title\">")
            .raw(title)
            .raw("</h2>\n");
        html.add(section).raw("</section>\n");
    }
    html.raw("</main>\n");
    foot(facts, &mut html);
    html.raw("</body>\n</html>\n");
    html
}

fn head(facts: &Facts, html: &mut Html) {
    html.raw("<header>\n<p class=\"kind\">Job board</p>\n<h1>");
    html.add(&name(&facts.board))
        .raw("</h1>\n<p class=\"soft\">");
    html.text(Text::from(&facts.server).shortened(NAME).as_str());
    html.raw(", as it was at ")
        .add(&time(facts.at))
        .raw("</p>\n");
    let is_well = facts.wrong() == (0, 0);
    let class = if is_well { "verdict" } else { "verdict bad" };
    html.raw("<p class=\"")
        .raw(class)
        .raw("\">")
        .text(facts.verdict())
        .raw("</p>\n");
    html.raw("<nav aria-label=\"Sections\">\n<ul>\n");
    for (id, called, _) in SECTIONS {
        html.raw("<li><a href=\"#")
            .raw(id)
            .raw("\">")
            .raw(called)
            .raw("</a></li>\n");
    }
    html.raw("</ul>\n</nav>\n</header>\n");
}

fn foot(facts: &Facts, html: &mut Html) {
    html.raw("<footer>\n<p>Made by <code>jobboard report</code> ")
        .text(facts.version);
    html.raw(" from one look at each record. Ages are counted up to ")
        .add(&time(facts.at));
    html.raw("; jobs that came or went meanwhile may be in it or not. Of names and of what commands wrote ");
    html.raw("the beginning and the end is shown, and what looks like a secret is covered; details of jobs ");
    html.raw("are not in it.</p>\n");
    for what in &facts.unseen {
        html.raw("<p>Not seen: ")
            .text(Text::from(what).shortened(400).as_str())
            .raw("</p>\n");
    }
    html.raw("</footer>\n");
}

/// Shows a name, whatever it is, so that it disturbs nothing around it.
fn name(text: &str) -> Html {
    shown(text, NAME)
}

/// Shows so much of a text of a stranger.
fn shown(text: &str, columns: usize) -> Html {
    let mut html = Html::new();
    html.raw("<bdi>")
        .text(Text::from(text).shortened(columns).as_str())
        .raw("</bdi>");
    html
}

/// Shows a moment.
fn time(time: DateTime<Utc>) -> Html {
    let shown = time.format("%Y-%m-%d %H:%M:%S UTC").to_string();
    moment(time, shown)
}

/// Shows how long ago a moment was; nothing, if none is known.
fn ago(facts: &Facts, time: Option<DateTime<Utc>>) -> Html {
    time.map_or_else(|| text("–"), |time| moment(time, facts.ago(time)))
}

fn moment(time: DateTime<Utc>, shown: String) -> Html {
    let mut html = Html::new();
    html.raw("<time datetime=\"")
        .text(rfc3339(time))
        .raw("\">")
        .text(shown)
        .raw("</time>");
    html
}

fn text(text: impl Into<Text>) -> Html {
    let mut html = Html::new();
    html.text(text);
    html
}

fn count(number: u64) -> Html {
    match number {
        0 => text("–"),
        number => text(words::grouped(number)),
    }
}

/// A column of a table: its title, and its class.
type Column = (&'static str, &'static str);

/// Writes a table, of which the first column names the rows.
fn table(caption: &'static str, columns: &[Column], rows: impl Iterator<Item = Vec<Html>>) -> Html {
    let mut html = Html::new();
    html.raw("<table>\n<caption>")
        .raw(caption)
        .raw("</caption>\n<thead><tr>");
    for (title, class) in columns {
        html.raw("<th scope=\"col\"")
            .add(&of_class(class))
            .raw(">")
            .raw(title)
            .raw("</th>");
    }
    html.raw("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.raw("<tr>");
        for (at, (cell, (_, class))) in row.iter().zip(columns).enumerate() {
            let (begin, end) = match at {
                0 => ("<th scope=\"row\"", "</th>"),
                _ => ("<td", "</td>"),
            };
            html.raw(begin)
                .add(&of_class(class))
                .raw(">")
                .add(cell)
                .raw(end);
        }
        html.raw("</tr>\n");
    }
    html.raw("</tbody>\n</table>\n");
    html
}

fn of_class(class: &'static str) -> Html {
    let mut html = Html::new();
    if !class.is_empty() {
        html.raw(" class=\"").raw(class).raw("\"");
    }
    html
}

/// Writes a figure: its title, a remark, the drawing, and the numbers in a table that can be opened.
fn figure(
    class: &'static str,
    (title, remark): (&'static str, &str),
    drawing: &Html,
    below: &Html,
    table: &Html,
) -> Html {
    let mut html = Html::new();
    html.raw("<figure")
        .add(&of_class(class))
        .raw(">\n<figcaption>")
        .raw(title);
    html.raw("<small>")
        .text(remark)
        .raw("</small></figcaption>\n");
    html.add(drawing).raw("\n").add(below);
    html.raw("<details>\n<summary>The numbers<span class=\"unseen\">: ")
        .raw(title);
    html.raw("</span></summary>\n")
        .add(table)
        .raw("</details>\n</figure>\n");
    html
}

/// Writes what the marks of a figure mean.
fn legend(marks: &[(&'static str, &'static str)]) -> Html {
    let mut html = Html::new();
    html.raw("<ul class=\"legend\">");
    for (class, meaning) in marks {
        html.raw("<li>")
            .raw("<svg aria-hidden=\"true\" focusable=\"false\" width=\"12\" height=\"12\">");
        match *class {
            "cross" => html
                .raw("<svg class=\"cross\" x=\"6\" y=\"6\"><path d=\"M-4-4L4 4M4-4L-4 4\"/></svg>"),
            class => {
                html.raw("<rect class=\"").raw(class);
                html.raw("\" x=\"1\" y=\"1\" width=\"10\" height=\"10\"/>")
            }
        };
        html.raw("</svg>").raw(meaning).raw("</li>");
    }
    html.raw("</ul>\n");
    html
}

/// Says that more is not shown.
fn more(count: Option<u64>, what: &'static str) -> Html {
    let mut html = Html::new();
    match count {
        Some(0) => return html,
        Some(count) => html
            .raw("<p class=\"soft\">And ")
            .text(words::grouped(count)),
        None => html.raw("<p class=\"soft\">There are many"),
    };
    html.raw(" more ").raw(what).raw(".</p>\n");
    html
}
