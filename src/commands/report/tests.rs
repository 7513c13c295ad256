//! Pages of boards that were made up: what they look like, that they are well formed, and that strangers stay text.

mod contrast;
mod markup;

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use self::markup::{Token, tokens};
use super::{facts::Facts, gather::Gathered, html};
use crate::{
    board::{examine, testing::scripted::Scripted},
    commands::{
        doctor::Told,
        explain::{Code, Explanation, Finding, Severity},
        parts::tally::{Departures, Tally},
    },
    job::{
        Conductor, Departure, End, Entry, Failure, Holding, Job, Lease, Owner, Pause, Remark, Run,
        Shelf, Told as Tells,
    },
    output::{Page, Record, Report as _},
};

fn at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_370_400, 0).unwrap()
}

fn ago(seconds: i64) -> DateTime<Utc> {
    at() - TimeDelta::seconds(seconds)
}

/// Texts that strangers choose, by turns.
struct Strangers<'a> {
    texts: &'a [&'a str],
    next: usize,
}

impl Strangers<'_> {
    fn text(&mut self) -> String {
        self.next += 1;
        self.texts[self.next % self.texts.len()].to_owned()
    }

    fn owner(&mut self) -> Owner {
        Owner::from_stored(self.text())
    }

    fn failure(&mut self, seconds: i64) -> Failure {
        Failure {
            exit_code: (seconds % 2 == 0).then_some(1),
            stdout: self.text(),
            stderr: self.text(),
            time: ago(seconds),
            ..Failure::told(&self.text(), &self.text())
        }
    }

    fn job(&mut self, number: usize, posted: i64) -> Job {
        Job {
            uuid: format!("00000000-0000-4000-8000-{number:012}"),
            name: self.text(),
            created_on: Some(ago(posted)),
            ..Scripted::new().post("job", None)
        }
    }

    fn held(&mut self, job: Job, lease: Lease) -> Job {
        let holding = Holding {
            owner: Some(self.owner()),
            lease,
            expires_in: (lease == Lease::Timed).then_some(Duration::from_secs(20)),
            outlives: None,
            claimed_on: Some(ago(95)),
            fence: None,
        };
        Job {
            holding: Some(holding),
            ..job
        }
    }

    fn ended(&mut self, job: Job, seconds: i64, departure: Departure) -> Job {
        let mut ended = Job {
            shelf: Shelf::Past,
            ended: Some(End {
                on: ago(seconds),
                departure,
                owner: Some(self.owner()),
                claimed_on: Some(ago(seconds + 45)),
                has_succeeded: departure == Departure::Consumed,
            }),
            ..job
        };
        ended.history.first_claimed_on = Some(ago(seconds + 45));
        ended
    }
}

/// Makes up what there is to say of a board with some of everything, whose texts are these.
fn facts(texts: &[&str]) -> Facts {
    let mut strangers = Strangers { texts, next: 0 };
    let (mut gathered, mut tally) = (Gathered::new(at()), Tally::new(at()));
    let waiting = [(3, 0), (40, 1), (5_000, 2), (90_000, 5)].map(|(posted, failed)| {
        let mut job = strangers.job(failed + 1, posted);
        job.history.attempts = u32::try_from(failed).unwrap();
        let failures = (0..failed.min(3)).map(|it| strangers.failure(20 + it as i64));
        job.history.failures = failures.collect();
        job
    });
    let job = strangers.job(11, 400);
    let timed = strangers.held(job, Lease::Timed);
    let job = strangers.job(12, 9_000);
    let forever = strangers.held(job, Lease::None);
    for job in waiting.into_iter().chain([timed, forever]) {
        gathered.add(&job);
        tally.add(&Entry::Job(job.into()));
    }
    let ends = [
        (60, Departure::Consumed),
        (150, Departure::Failed),
        (155, Departure::Consumed),
    ];
    for (number, (seconds, departure)) in ends.into_iter().enumerate() {
        let job = strangers.job(20 + number, seconds + 70);
        let mut job = strangers.ended(job, seconds, departure);
        job.history.failures = vec![strangers.failure(seconds)];
        gathered.add_left(&Entry::Job(job.into()));
    }
    let conductors = [conductor(&mut strangers)];
    let (figures, names, owners) = tally.finish(&conductors);
    let pause = json!({"names": strangers.text(), "remark": Remark::now("paused", &strangers.text(), None)});
    Facts {
        board: strangers.text(),
        server: strangers.text(),
        version: "0.0.0",
        findings: vec![found(&mut strangers)],
        explained: vec![explained(&mut strangers)],
        unseen: vec![strangers.text()],
        figures,
        names,
        owners,
        trashed: 2,
        conductors: Some(1),
        pauses: serde_json::from_value::<Pause>(pause).into_iter().collect(),
        ..gathered.into_facts(&conductors)
    }
}

fn conductor(strangers: &mut Strangers<'_>) -> Conductor {
    Conductor {
        name: strangers.text(),
        host: strangers.text(),
        pid: 1,
        since: ago(1000),
        owner: strangers.owner(),
        silence: None,
        told: Tells {
            runs: vec![Run {
                uuid: strangers.text(),
                name: strangers.text(),
                since: ago(30),
                attempt: 1,
            }],
            ..Tells::default()
        },
    }
}

fn found(strangers: &mut Strangers<'_>) -> Told {
    let remedy = examine::Remedy::Shows(vec!["show".to_owned(), strangers.text()]);
    let finding = examine::Finding::new(examine::Code::NeverLapsing, strangers.text(), remedy);
    Told::new(
        finding.seen("owner", strangers.text()),
        &["jobboard".to_owned()],
    )
}

fn explained(strangers: &mut Strangers<'_>) -> Explanation {
    let finding = Finding::new(Code::HeldForever, Severity::Error, strangers.text());
    let finding = finding
        .seen(strangers.text(), strangers.text())
        .at("held", Some(ago(95)), at());
    Explanation {
        job: strangers.text(),
        name: strangers.text(),
        verdict: Code::HeldForever,
        will_run: false,
        findings: vec![finding.mend(strangers.text(), vec![strangers.text()])],
        unseen: Vec::new(),
        like: None,
    }
}

const USUAL: [&str; 5] = [
    "resize",
    "nightly-backup",
    "ada@node-1",
    "report",
    "no space left",
];

#[test]
fn a_small_board_has_this_page() {
    let page = html::page(&facts(&USUAL));
    let (head, rest) = page.as_str().split_once("<style>").unwrap();
    let (_, body) = rest.split_once("</style>").unwrap();
    // The hash changes with each change of the style.
    let (policy, head) = head.split_once("sha256-").unwrap();
    let (_, head) = head.split_once("&#39;").unwrap();
    insta::assert_snapshot!(
        "page",
        format!("{policy}HASH&#39;{head}<style>STYLE</style>{body}")
    );
}

#[test]
fn a_small_board_is_this_text() {
    let mut page = Page::new(false, Some((80, 24)));
    facts(&USUAL).human(&mut page);
    insta::assert_snapshot!("text", page.into_text());
}

#[test]
fn the_same_board_at_the_same_time_is_the_same_page() {
    let [one, other] = [(); 2].map(|()| html::page(&facts(&USUAL)));
    assert_eq!(one, other);
}

#[test]
fn an_empty_board_has_a_page_too() {
    let mut facts = facts(&USUAL);
    let empty = Gathered::new(at()).into_facts(&[]);
    facts = Facts {
        board: facts.board,
        server: facts.server,
        ..empty
    };
    let page = html::page(&facts);
    tokens(page.as_str());
    assert!(page.as_str().contains("Nothing was found."));
    assert!(facts.lines().len() > 20);
}

/// What strangers may write to get out of where they belong.
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
fn what_strangers_wrote_is_text_and_nothing_else() {
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
        // The name of the board is shown whole.
        let board = crate::output::Text::from(facts(&texts).board);
        assert!(shown.contains(board.as_str()), "{board}");
        let unsafe_ones = ['\u{202e}', '\u{1b}', '\u{0}', '\u{200b}', '\u{e0041}'];
        assert!(!shown.contains(unsafe_ones), "{shown}");
    }
}

#[test]
fn what_looks_like_a_secret_is_in_no_form_of_it() {
    let texts = [
        "password=hunter2",
        "https://ada:hunter2@host/x",
        "Authorization: Bearer hunter2hunter2",
    ];
    let facts = Facts {
        // These are the operator's own.
        board: "board".to_owned(),
        server: "server".to_owned(),
        ..facts(&texts).guarded()
    };
    let mut text = Page::new(false, Some((80, 24)));
    facts.human(&mut text);
    let lines = facts.lines().concat().concat();
    let page = html::page(&facts);
    let json = serde_json::to_string(&facts).unwrap();
    for form in [page.as_str(), &text.into_text(), &lines, &json] {
        assert!(
            !form.contains("hunter2") && form.contains("********"),
            "{form}"
        );
    }
}

#[test]
fn a_run_that_begins_at_the_end_of_time_has_a_page() {
    let mut conductor = conductor(&mut Strangers {
        texts: &USUAL,
        next: 0,
    });
    conductor.told.runs[0].since = DateTime::<Utc>::MAX_UTC;
    let facts = Facts {
        remembered: Some(Departures::default()),
        ..Gathered::new(at()).into_facts(&[conductor])
    };
    assert!(
        html::page(&facts)
            .as_str()
            .contains("Who performed what when")
    );
}

#[test]
fn jobs_in_the_trash_that_failed_are_in_the_verdict() {
    let mut strangers = Strangers {
        texts: &USUAL,
        next: 0,
    };
    let mut gathered = Gathered::new(at());
    for number in 0..3 {
        let mut job = strangers.job(number, 100);
        (job.shelf, job.trashed_on) = (Shelf::Trash, Some(ago(10)));
        job.history.failures = (0..number).map(|_| strangers.failure(20)).collect();
        gathered.add(&job);
    }
    let facts = gathered.into_facts(&[]);
    assert!(
        facts
            .verdict()
            .ends_with(" In the trash are 2 jobs that failed."),
        "{}",
        facts.verdict()
    );
    assert!(
        html::page(&facts)
            .as_str()
            .contains("jobboard list --trash")
    );
    let mut page = Page::new(false, Some((80, 24)));
    facts.human(&mut page);
    assert!(page.into_text().contains("\n  failed      2\n"));
}

#[test]
fn of_more_runs_than_are_shown_it_is_said() {
    let mut strangers = Strangers {
        texts: &USUAL,
        next: 0,
    };
    let mut gathered = Gathered::new(at());
    for number in 0..300 {
        let job = strangers.job(number, 1_000);
        let mut job = strangers.ended(job, number as i64, Departure::Consumed);
        if let Some(ended) = &mut job.ended {
            ended.owner = Some(Owner::from_stored(format!("ada-{}", number / 10)));
        }
        gathered.add_left(&Entry::Job(job.into()));
    }
    let facts = gathered.into_facts(&[]);
    assert_eq!(
        facts.timeline.extent(),
        "120 of 300 jobs that ended, the last ones"
    );
    assert_eq!(
        (facts.timeline.more, facts.timeline.lanes[0].performed),
        (18, 10)
    );
    assert_eq!(facts.timeline.to, Some(at()));
    let runs = facts.lines().into_iter().filter(|line| line[0] == "run");
    let runs: Vec<_> = runs.collect();
    assert_eq!(runs.len(), 120);
    assert!(runs.iter().all(|line| line.len() == 7), "{runs:?}");
}

#[test]
fn whatever_strangers_wrote_the_page_stays_small() {
    let marks = "e".to_owned() + &"\u{301}".repeat(900);
    let (quotes, controls) = ("\"".repeat(9_000), "\u{1b}\n".repeat(9_000));
    let mut texts: Vec<String> = (0..5_000)
        .map(|it| format!("{it}{quotes}{controls}{marks}"))
        .collect();
    texts.rotate_left(7);
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let mut strangers = Strangers {
        texts: &texts,
        next: 0,
    };
    let mut gathered = Gathered::new(at());
    let mut tally = Tally::new(at());
    for number in 0..300 {
        let mut job = strangers.job(number, 100);
        job.history.failures = vec![strangers.failure(50)];
        let job = strangers.held(job, Lease::None);
        gathered.add(&job);
        tally.add(&Entry::Job(job.clone().into()));
        let ended = strangers.ended(job, 20, Departure::Consumed);
        gathered.add_left(&Entry::Job(ended.into()));
    }
    let (figures, names, owners) = tally.finish(&[]);
    let mut facts = Facts {
        figures,
        findings: (0..100).map(|_| found(&mut strangers)).collect(),
        explained: (0..10).map(|_| explained(&mut strangers)).collect(),
        ..gathered.into_facts(&[])
    };
    (facts.names, facts.owners) = (names, owners);
    facts.names.truncate(50);
    facts.owners.truncate(50);
    let facts = facts.guarded();
    let page = html::page(&facts);
    tokens(page.as_str());
    let json = serde_json::to_string(&facts).unwrap();
    assert!(json.len() < 2_000_000, "{}", json.len());
    assert!(facts.lines().concat().concat().len() < 2_000_000);
    assert!(page.as_str().len() < 500_000, "{}", page.as_str().len());
}
