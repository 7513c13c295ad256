//! Tests pages of made-up boards: their look, their form, and the escaping of untrusted text.

mod contrast;
mod generated;
mod markup;

use std::collections::BTreeSet;

use self::{
    generated::{Strangers, ago, at, diagnosed, facts, masked_entry, problem, surveyor},
    markup::{Token, tokens},
};
use super::{facts::ReportFacts, gather::ReportData, html, words::Remainder};
use crate::{
    job::{ClaimEnd, Location, Outcome},
    output::{Page, Report as _},
    problem::Severity,
};

const USUAL: [&str; 5] = [
    "resize",
    "nightly-backup",
    "ada@node-1",
    "report",
    "no space left",
];

#[test]
fn page_of_a_small_board() {
    let page = html::page(&facts(&USUAL));
    let (head, rest) = page.as_str().split_once("<style>").unwrap();
    let (_, body) = rest.split_once("</style>").unwrap();
    let (policy, head) = head.split_once("sha256-").unwrap();
    let (_, head) = head.split_once("&#39;").unwrap();
    insta::assert_snapshot!(
        "page",
        format!("{policy}HASH&#39;{head}<style>STYLE</style>{body}")
    );
}

#[test]
fn text_of_a_small_board() {
    let mut page = Page::new(Some((80, 24)));
    facts(&USUAL).human(&mut page);
    insta::assert_snapshot!("text", page.into_text());
}

#[test]
fn bars_cover_the_hour_of_the_numbers() {
    let facts = facts(&USUAL);
    for (kind, hour) in facts.hour.iter().enumerate() {
        let bars = facts.intervals.iter().map(|it| it.counts()[kind]);
        assert_eq!(bars.sum::<u64>(), hour.iter().sum::<u64>(), "{kind}");
    }
}

#[test]
fn report_is_reproducible() {
    let [one, other] = [(); 2].map(|()| html::page(&facts(&USUAL)));
    assert_eq!(one, other);
}

#[test]
fn empty_board_has_a_page() {
    let mut facts = facts(&USUAL);
    let empty = ReportData::new(at()).into_facts();
    facts = ReportFacts {
        board: facts.board,
        server: facts.server,
        ..empty
    };
    let page = html::page(&facts);
    tokens(page.as_str());
    assert!(page.as_str().contains("No problems found."));
}

const HOSTILE: [&str; 30] = [
    "<script>pwned()</script>",
    "<img src=x onerror=\"pwned()\">",
    "\"><svg onload=pwned()>",
    "' onmouseover='pwned()",
    "\" onfocus=\"pwned()\" autofocus=\"",
    "javascript:pwned()",
    "</style><script>pwned()</script>",
    "</title><h1>pwned",
    "</pre></details></section></main></body></html>",
    "<!--",
    "-->",
    "]]>",
    "<![CDATA[",
    "<?xml",
    "&lt;script&gt;",
    "&#60;script&#62;",
    "&quot; onload=x",
    "{{7*7}}${7*7}<%= 7 %>",
    "url(http://pwned.example/)",
    "@import 'http://pwned.example/'",
    "<base href=http://pwned.example>",
    "<meta http-equiv=refresh content=0>",
    "<iframe src=//pwned.example>",
    "<a href=http://pwned.example>",
    "\u{202e}evil\u{2066}",
    "\u{1b}[2J\u{7}\u{0}",
    "\u{feff}\u{200b}\u{2028}\u{e0041}",
    "a\nb\r\n\tc",
    "日本語 اللغة 😀",
    "`'\"\\",
];

#[test]
fn foreign_text_stays_text() {
    let ours = tokens(html::page(&facts(&USUAL)).as_str());
    let ours = ours.into_iter().filter_map(|token| match token {
        Token::Open(name, _) => Some(name),
        Token::Close(_) | Token::Text(_) => None,
    });
    let ours: BTreeSet<_> = ours.collect();
    for first in 0..HOSTILE.len() {
        let mut texts = HOSTILE;
        texts.rotate_left(first);
        let page = html::page(&facts(&texts));
        let mut shown = String::new();
        for token in tokens(page.as_str()) {
            match token {
                Token::Text(text) => shown += &text,
                Token::Open(name, attributes) => {
                    assert!(ours.contains(&name), "{name}");
                    for (attribute, value) in attributes {
                        assert!(
                            !attribute.starts_with("on") && attribute != "style",
                            "{attribute}"
                        );
                        assert!(attribute != "href" || value.starts_with('#'), "{value}");
                        assert!(attribute != "src", "{value}");
                    }
                }
                Token::Close(_) => {}
            }
        }
        // The board's name is not shortened.
        let board = crate::output::Text::from(facts(&texts).board);
        assert!(shown.contains(board.as_str()), "{board}");
        let unsafe_ones = ['\u{202e}', '\u{1b}', '\u{0}', '\u{200b}', '\u{e0041}'];
        assert!(!shown.contains(unsafe_ones), "{shown}");
    }
}

#[test]
fn secrets_are_masked_in_every_form() {
    let texts = [
        "password=hunter2",
        "https://ada:hunter2@host/x",
        "Authorization: Bearer hunter2hunter2",
    ];
    let facts = ReportFacts {
        // The operator's own texts.
        board: "board".to_owned(),
        server: "server".to_owned(),
        ..facts(&texts).masked()
    };
    let mut text = Page::new(Some((80, 24)));
    facts.human(&mut text);
    let page = html::page(&facts);
    let json = serde_json::to_string(&facts).unwrap();
    for form in [page.as_str(), &text.into_text(), &json] {
        assert!(
            !form.contains("hunter2") && form.contains("********"),
            "{form}"
        );
    }
}

#[test]
fn failed_jobs_in_the_trash_are_counted_as_a_problem() {
    let mut strangers = Strangers::of(&USUAL);
    let (mut gathered, mut surveyor) = (ReportData::new(at()), surveyor(Vec::new()));
    for number in 0..3 {
        let mut job = strangers.job(number, 100);
        (job.location, job.trashed_on) = (Location::Trash, Some(ago(10)));
        job.attempts.failures = (0..number).map(|_| strangers.failure(20)).collect();
        let entry = masked_entry(job);
        gathered.add(entry.job().unwrap());
        surveyor.add(&entry);
    }
    let facts = diagnosed(gathered.into_facts(), surveyor.counted(), Vec::new());
    let failed = facts.problems.iter().map(|it| (it.code.name(), it.jobs));
    assert_eq!(failed.collect::<Vec<_>>(), [("failed", 1), ("failed", 1)]);
    let [_, _, failed] = &facts.hour;
    assert_eq!(failed.iter().sum::<u64>(), 2);
    // Each stands with its failures, and nowhere else.
    assert_eq!(facts.other_problems().count(), 0);
    let page = html::page(&facts);
    assert_eq!(page.as_str().matches("--problem").count(), 2);
    let mut page = Page::new(Some((80, 24)));
    facts.human(&mut page);
    let text = page.into_text();
    assert!(text.contains("\n  failed      2\n"), "{text}");
}

#[test]
fn verdict_counts_problems_only() {
    for (wrong, verdict) in [
        (0, "No problems found."),
        (1, "1 problem: unreadable-record (2 jobs)."),
        (2, "2 problems: unreadable-record (2 causes, 4 jobs)."),
    ] {
        let mut strangers = Strangers::of(&USUAL);
        let mut problems: Vec<_> = (0..3).map(|_| problem(&mut strangers)).collect();
        for it in &mut problems[wrong..] {
            it.severity = Severity::Note;
        }
        let facts = ReportData::new(at()).into_facts();
        let facts = diagnosed(facts, surveyor(Vec::new()).counted(), problems);
        assert_eq!(
            (facts.verdict().as_str(), facts.sound),
            (verdict, wrong == 0)
        );
    }
}

#[test]
fn foreign_text_does_not_enlarge_the_page() {
    let marks = "e".to_owned() + &"\u{301}".repeat(900);
    let (quotes, controls) = ("\"".repeat(9_000), "\u{1b}\n".repeat(9_000));
    let mut texts: Vec<String> = (0..5_000)
        .map(|it| format!("{it}{quotes}{controls}{marks}"))
        .collect();
    texts.rotate_left(7);
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let mut strangers = Strangers::of(&texts);
    let mut gathered = ReportData::new(at());
    let mut surveyor = surveyor(Vec::new());
    for number in 0..60 {
        let mut job = strangers.job(number, 100);
        job.attempts.failures = vec![strangers.failure(50)];
        let job = strangers.held(job, ClaimEnd::Never);
        let entry = masked_entry(job.clone());
        gathered.add(entry.job().unwrap());
        surveyor.add(&entry);
        let ended = strangers.ended(job, 20, Outcome::Consumed);
        gathered.add_left(&masked_entry(ended));
    }
    let problems = (0..60).map(|_| problem(&mut strangers)).collect();
    let facts = diagnosed(gathered.into_facts(), surveyor.counted(), problems);
    assert_eq!((facts.names.len(), facts.problems.len()), (50, 50));
    let facts = facts.masked();
    let page = html::page(&facts);
    tokens(page.as_str());
    let json = serde_json::to_string(&facts).unwrap();
    assert!(json.len() < 2_000_000, "{}", json.len());
    assert!(page.as_str().len() < 500_000, "{}", page.as_str().len());
}

#[test]
fn purged_failed_job_counts_as_failed() {
    let mut strangers = Strangers::of(&USUAL);
    let mut gathered = ReportData::new(at());
    let earlier = strangers.job(3, 2_000);
    let job = strangers.job(4, 1_000);
    let mut job = strangers.ended(job, 20, Outcome::Purged);
    job.attempts.failures = vec![strangers.failure(400)];
    gathered.add_left(&masked_entry(job));
    gathered.add_left(&masked_entry(strangers.ended(
        earlier,
        900,
        Outcome::Consumed,
    )));
    let intervals = gathered.into_facts().intervals;
    let sum = |kind: usize| intervals.iter().map(|it| it.counts()[kind]).sum::<u64>();
    assert_eq!((sum(2), sum(1)), (1, 1));
}

#[test]
fn omitted_rows_are_counted() {
    let mut all: Vec<_> = (0..60).collect();
    let more = Remainder::than(&mut all, 50, true);
    assert_eq!((all.len(), more.to_string().as_str()), (50, "at least 10"));
    let more = Remainder {
        count: 1_234,
        at_least: false,
    };
    let facts = ReportFacts {
        more_names: more,
        more_problems: more,
        ..facts(&USUAL)
    };
    let page = html::page(&facts);
    assert!(page.as_str().contains("And 1,234 more names: <code>"));
    assert!(page.as_str().contains("And 1,234 more problems: <code>"));
    let mut text = Page::new(Some((80, 24)));
    facts.human(&mut text);
    let text = text.into_text();
    assert!(
        text.contains("1,234 more names (list --count --by name)"),
        "{text}"
    );
}
