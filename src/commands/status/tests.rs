//! Tests the status screen on terminals of several sizes.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};

use super::screen::Status;
use crate::{
    diagnosis::{ByName, ByOwner, Figures, OutcomeCounts, Standing},
    job::Owner,
    output::{Page, Report, Text},
    problem::{Code, CodeCount, Problem},
    suggest::Suggestion,
};

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn ago(seconds: i64) -> DateTime<Utc> {
    now() - TimeDelta::seconds(seconds)
}

fn owner(name: &str) -> Option<Owner> {
    Some(Owner::from_stored(name))
}

fn named(name: &str, jobs: u64, failed: u64) -> ByName {
    ByName {
        name: name.to_owned(),
        jobs,
        unclaimed: jobs - 1,
        claimed: 1,
        failed,
        oldest: Some(ago(90_000)),
    }
}

fn standing(name: &str, by: Option<Owner>, seconds: i64) -> Option<Standing> {
    Some(Standing {
        uuid: "b7e6a1c2-30f4-4c56-9b5e-0d8f2f3f6a11".to_owned(),
        reference: "b7e6a1c2-30f4-4c56-9b5e-0d8f2f3f6a11".to_owned(),
        name: name.to_owned(),
        owner: by,
        since: ago(seconds),
    })
}

fn holders() -> Vec<ByOwner> {
    vec![
        ByOwner {
            owner: owner("ops@h7:h7:4711:c0ffee"),
            claims: 181,
            held_since: Some(ago(60)),
            expires_in: Some(Duration::from_secs(12)),
            conductor: Some("night".to_owned()),
            ..ByOwner::default()
        },
        ByOwner {
            owner: owner("ada"),
            claims: 2,
            held_since: Some(ago(18_720)),
            claim_never_expires: 2,
            absence: Some("gone"),
            ..ByOwner::default()
        },
        ByOwner {
            claims: 1,
            ..ByOwner::default()
        },
    ]
}

fn problems() -> Vec<CodeCount> {
    let problem = |(code, jobs)| Problem {
        jobs,
        ..Problem::new(code, "")
    };
    let problems = [
        (Code::WrongType, 0),
        (Code::ClaimNeverExpires, 2),
        (Code::RetriesExhausted, 4),
        (Code::UnreadableRecord, 2),
        (Code::UnreadableRecord, 1),
    ];
    CodeCount::of(&problems.map(problem))
}

fn night() -> Status {
    let names = (0..12).map(|at| named(&format!("job-{at}"), 12 - at, at % 2));
    Status {
        board: "redis://h7:6379/0?namespace=octavia".to_owned(),
        server: "Redis 7.0.15".to_owned(),
        figures: Figures {
            unclaimed: 312,
            backing_off: 20,
            claimed: 184,
            jobs_with_problem: [(Code::UnreadableRecord, 3)].into(),
            oldest_unclaimed: standing("resize\u{1b}[31m", None, 273_600),
            longest_held: standing("backup", owner("ada\u{202e}@h7"), 18_720),
            ..Figures::default()
        },
        problems: problems(),
        trashed: 7,
        history: Some(OutcomeCounts {
            consumed: 340,
            failed: 3,
            purged: 2,
            moved: 0,
            since: ago(86_400),
            earliest: None,
        }),
        history_problem: None,
        unseen: Vec::new(),
        slots_free: 3,
        silent: 0,
        absent: BTreeMap::new(),
        pauses: Vec::new(),
        conductors: Some(2),
        names: [named("evil\u{1b}[2J\nname", 40, 3)]
            .into_iter()
            .chain(names)
            .collect(),
        owners: holders(),
        program: Suggestion::of("jobboard --board").with(["night shift"]),
        now: now(),
    }
}

fn shown(status: &Status, size: Option<(usize, usize)>) -> String {
    let mut page = Page::new(size);
    status.human(&mut page);
    page.into_text()
}

#[test]
fn many_problems_fit_one_screen() {
    insta::assert_snapshot!(shown(&night(), Some((80, 40))), @r#"
    redis://h7:6379/0?namespace=octavia
    unclaimed     312 (20 backing off) + 3 unreadable
      oldest      3d4h  b7e6a1c2 resize\u{1b}[31m
    claimed       184
      longest     5h12m  b7e6a1c2 backup by ada\u{202e}@h7
    in the trash  7
    last 1d       3 failed, 340 consumed, 2 purged
    conductors    2, free slots: 3

    unreadable-record     3 jobs      jobboard --board 'night shift' doctor --only unreadable-record
    wrong-type                        jobboard --board 'night shift' doctor --only wrong-type
    retries-exhausted     4 jobs      jobboard --board 'night shift' doctor --only retries-exhausted
    claim-never-expires   2 jobs      jobboard --board 'night shift' doctor --only claim-never-expires

    NAME                 JOBS  UNCLAIMED  CLAIMED  FAILING  OLDEST
    evil\u{1b}[2J\nname    40         39        1        3    1d1h
    job-0                  12         11        1        -    1d1h
    job-1                  11         10        1        1    1d1h
    job-2                  10          9        1        -    1d1h
    job-3                   9          8        1        1    1d1h
    job-4                   8          7        1        -    1d1h
    job-5                   7          6        1        1    1d1h
    job-6                   6          5        1        -    1d1h
    job-7                   5          4        1        1    1d1h
    job-8                   4          3        1        -    1d1h
    3 more (list --count --by name)

    OWNER                  CLAIMS   HELD  EXPIRES  NEVER  CONDUCTOR
    ops@h7:h7:4711:c0ffee     181     1m      12s      -  night
    ada                         2  5h12m        -      2  gone
    ?                           1      -        -      -  -
    "#);
}

#[test]
fn narrow_terminal_cuts_facts_but_no_command() {
    insta::assert_snapshot!(shown(&night(), Some((40, 30))), @r"
    redis://h7:6379/0?namespace=octavia
    unclaimed     312 (20 backing off) + 3 …
      oldest      3d4h  b7e6a1c2 resize\u{1…
    claimed       184
      longest     5h12m  b7e6a1c2 backup by…
    in the trash  7
    last 1d       3 failed, 340 consumed, 2…
    conductors    2, free slots: 3

    unreadable-record     3 jobs      jobboard --board 'night shift' doctor --only unreadable-record
    wrong-type                        jobboard --board 'night shift' doctor --only wrong-type
    retries-exhausted     4 jobs      jobboard --board 'night shift' doctor --only retries-exhausted
    claim-never-expires   2 jobs      jobboard --board 'night shift' doctor --only claim-never-expires

    NAME               JOBS  FAILING  OLDEST
    evil\u{1b}[2J\nn…    40        3    1d1h
    job-0                12        -    1d1h
    job-1                11        1    1d1h
    10 more (list --count --by name)

    OWNER               CLAIMS   HELD  NEVER
    ops@h7:h7…1:c0ffee     181     1m      -
    ada                      2  5h12m      2
    ?                        1      -      -
    ");
}

#[test]
fn small_terminal_shows_fewer_names_and_owners() {
    let mut status = night();
    let rows = |text: &str| {
        let lines = text.lines().map(|line| Text::from(line).width());
        lines.map(|width| width.div_ceil(80).max(1)).sum::<usize>()
    };
    for height in 29..40 {
        let text = shown(&status, Some((80, height)));
        assert!(rows(&text) < height, "{height}: {text}");
    }
    assert!(shown(&status, None).contains("job-8"));
    // A sound board fits the smallest usual one.
    (status.figures, status.problems) = (Figures::default(), Vec::new());
    let text = shown(&status, Some((80, 24)));
    assert!(rows(&text) < 24, "{text}");
}
