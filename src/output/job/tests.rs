//! Listings of records, on terminals of several widths.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::*;
use crate::{
    job::{
        Attempts, AuditEntry, ClaimEnd, End, Failure, Holding, Job, JobField, JobKey, Location,
        Malformed, Outcome, Owner,
    },
    output::{Row, Text, style::styled, table::Layout},
};

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn ago(seconds: i64) -> Option<DateTime<Utc>> {
    Some(now() - TimeDelta::seconds(seconds))
}

fn job(uuid: &str, name: &str) -> Job {
    Job {
        key: JobKey::new(uuid),
        uuid: uuid.to_owned(),
        sequence: Some(1),
        created_on: ago(720),
        size: 300,
        ..Job::named(name)
    }
}

fn claimed(job: Job, owner: &str, lease: ClaimEnd, expires_in: Option<u64>) -> Job {
    let holding = Some(Holding {
        expires_in: expires_in.map(Duration::from_secs),
        claimed_on: ago(300),
        ..Holding::new(Owner::new(owner).ok(), lease, None)
    });
    Job { holding, ..job }
}

fn failure() -> Failure {
    Failure {
        exit_code: Some(3),
        time: now(),
        ..Failure::reported("the command ended with code 3", "c1")
    }
}

fn audit(reason: Option<&str>) -> AuditEntry {
    AuditEntry {
        by: "olga@desk-4".to_owned(),
        action: Some("trashed".to_owned()),
        on: ago(60),
        reason: reason.map(str::to_owned),
    }
}

fn malformed() -> Entry {
    let key = JobKey::new("job0000000012-abcdef");
    Entry::Malformed(Malformed {
        size: 7,
        ..Malformed::new(key, "its posting is no map".to_owned())
    })
}

fn night() -> Vec<Entry> {
    let delayed = Attempts {
        count: 2,
        not_before: Some(now() + TimeDelta::seconds(28)),
        ..Attempts::default()
    };
    let unreadable = "what is beside it is of version 9, which this jobboard does not know";
    let owner = "octavia-worker-7.example.com:4711:c0ffee";
    let [create, resize, backup, again, evil] = [
        ("1f0c9a58-8f0e-4d0a-8a43", "create_load_balancer"),
        ("1f0c9a58-b6c5-4d0a-8a43", "resize"),
        ("b7e6a1c2-30f4-4c56-9b5e", "backup"),
        ("c7e6a1c2-30f4-4c56-9b5e", "backup"),
        ("d7e6a1c2-30f4-4c56-9b5e", "evil\u{1b}[2J\u{202e}"),
    ]
    .map(|(begin, name)| {
        let end = if begin.starts_with('1') {
            "6b0c3f6d2e7b"
        } else {
            "0d8f2f3f6a11"
        };
        job(&format!("{begin}-{end}"), name)
    });
    let jobs = [
        claimed(create, owner, ClaimEnd::Never, None),
        claimed(resize, "ada", ClaimEnd::Timed, Some(12)),
        Job {
            attempts: delayed.clone(),
            ..backup
        },
        // A delay no longer matters to a claimed job.
        Job {
            attempts: delayed,
            ..claimed(again, "bob", ClaimEnd::Session, None)
        },
        Job {
            problem: Some(unreadable.to_owned()),
            ..evil
        },
    ];
    let jobs = jobs.into_iter().map(|job| Entry::Job(Box::new(job)));
    jobs.chain([malformed()]).collect()
}

fn table(columns: &JobColumns, entries: &[Entry], room: Option<usize>) -> String {
    let mut layout = Layout::new(&columns.shapes(), room);
    for entry in entries {
        layout.push(columns.row(JobView::of(entry, now())).cells());
    }
    let lines = layout.finish().into_iter();
    let table: String = lines.map(|line| styled(&line, false) + "\n").collect();
    let is_within = |line: &str| room.is_none_or(|room| Text::from(line).width() <= room);
    assert!(table.lines().all(is_within), "{table}");
    table
}

fn on(location: Location, entries: &[Entry], room: Option<usize>) -> String {
    table(&JobColumns::usual(location), entries, room)
}

fn changed(changes: &[&str]) -> JobColumns {
    let changes = changes.iter().map(|it| ColumnChange::read(it).unwrap());
    JobColumns::usual(Location::Board).but(&changes.collect::<Vec<_>>())
}

fn trashed(name: &str, audit: Option<AuditEntry>, failures: Vec<Failure>) -> Entry {
    Entry::Job(Box::new(Job {
        location: Location::Trash,
        trashed_on: ago(60),
        attempts: Attempts {
            audit,
            failures,
            ..Attempts::default()
        },
        ..job("1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b", name)
    }))
}

fn ended(outcome: Outcome, failures: Vec<Failure>) -> Entry {
    let ended = End {
        on: now(),
        outcome,
        owner: None,
        claimed_on: ago(90),
        has_succeeded: false,
    };
    let first_claimed_on = ago(90);
    Entry::Job(Box::new(Job {
        location: Location::History,
        ended: Some(ended),
        attempts: Attempts {
            failures,
            first_claimed_on,
            ..Attempts::default()
        },
        ..job("1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b", "resize")
    }))
}

fn states() -> Vec<Entry> {
    let mut entries = night();
    entries.swap_remove(0);
    entries.retain(|it| it.job().is_none_or(|job| job.problem.is_none()));
    let audit = audit(Some("no such volume"));
    entries.push(trashed("sent", Some(audit), vec![failure()]));
    entries.push(ended(Outcome::Failed, vec![failure()]));
    entries
}

#[test]
fn thousands_are_grouped() {
    let grouped = [0, 999, 1_000, 1_234_567].map(grouped);
    assert_eq!(grouped, ["0", "999", "1,000", "1,234,567"]);
}

#[test]
fn every_state_has_all_keys_in_json() {
    let json = |it: &Entry| serde_json::to_string(&JobView::of(it, now())).unwrap();
    let json = states().iter().map(json).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(json, @r#"
    {"uuid":null,"key":"job0000000012-abcdef","name":null,"state":"MALFORMED","priority":null,"sequence":null,"created_on":null,"last_modified":null,"owner":null,"lease":null,"expires_in":null,"claimed_on":null,"fence":null,"trashed_on":null,"ended_on":null,"outcome":null,"by":null,"action":null,"action_on":null,"reason":null,"waited":null,"took":null,"exit_code":null,"signal":null,"book":null,"details":null,"attempts":null,"postponed":null,"not_before":null,"last_failure":null,"failures":null,"problem":"its posting is no map","size":7,"raw":""}
    {"uuid":"1f0c9a58-b6c5-4d0a-8a43-6b0c3f6d2e7b","key":"1f0c9a58-b6c5-4d0a-8a43-6b0c3f6d2e7b","name":"resize","state":"CLAIMED","priority":"NORMAL","sequence":1,"created_on":"2027-01-15T07:48:00Z","last_modified":null,"owner":"ada","lease":"timed","expires_in":12.0,"claimed_on":"2027-01-15T07:55:00Z","fence":null,"trashed_on":null,"ended_on":null,"outcome":null,"by":null,"action":null,"action_on":null,"reason":null,"waited":null,"took":null,"exit_code":null,"signal":null,"book":null,"details":null,"attempts":0,"postponed":0,"not_before":null,"last_failure":null,"failures":[],"problem":null}
    {"uuid":"b7e6a1c2-30f4-4c56-9b5e-0d8f2f3f6a11","key":"b7e6a1c2-30f4-4c56-9b5e-0d8f2f3f6a11","name":"backup","state":"UNCLAIMED","priority":"NORMAL","sequence":1,"created_on":"2027-01-15T07:48:00Z","last_modified":null,"owner":null,"lease":null,"expires_in":null,"claimed_on":null,"fence":null,"trashed_on":null,"ended_on":null,"outcome":null,"by":null,"action":null,"action_on":null,"reason":null,"waited":null,"took":null,"exit_code":null,"signal":null,"book":null,"details":null,"attempts":2,"postponed":0,"not_before":"2027-01-15T08:00:28Z","last_failure":null,"failures":[],"problem":null}
    {"uuid":"c7e6a1c2-30f4-4c56-9b5e-0d8f2f3f6a11","key":"c7e6a1c2-30f4-4c56-9b5e-0d8f2f3f6a11","name":"backup","state":"CLAIMED","priority":"NORMAL","sequence":1,"created_on":"2027-01-15T07:48:00Z","last_modified":null,"owner":"bob","lease":"session","expires_in":null,"claimed_on":"2027-01-15T07:55:00Z","fence":null,"trashed_on":null,"ended_on":null,"outcome":null,"by":null,"action":null,"action_on":null,"reason":null,"waited":null,"took":null,"exit_code":null,"signal":null,"book":null,"details":null,"attempts":2,"postponed":0,"not_before":"2027-01-15T08:00:28Z","last_failure":null,"failures":[],"problem":null}
    {"uuid":"1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b","key":"1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b","name":"sent","state":"TRASHED","priority":"NORMAL","sequence":1,"created_on":"2027-01-15T07:48:00Z","last_modified":null,"owner":null,"lease":null,"expires_in":null,"claimed_on":null,"fence":null,"trashed_on":"2027-01-15T07:59:00Z","ended_on":null,"outcome":null,"by":"olga@desk-4","action":"trashed","action_on":"2027-01-15T07:59:00Z","reason":"no such volume","waited":null,"took":null,"exit_code":3,"signal":null,"book":null,"details":null,"attempts":0,"postponed":0,"not_before":null,"last_failure":{"exit_code":3,"signal":null,"reason":"the command ended with code 3","stdout":"","stderr":"","conductor":"c1","time":"2027-01-15T08:00:00Z"},"failures":[{"exit_code":3,"signal":null,"reason":"the command ended with code 3","stdout":"","stderr":"","conductor":"c1","time":"2027-01-15T08:00:00Z"}],"problem":null}
    {"uuid":"1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b","key":"1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b","name":"resize","state":"COMPLETE","priority":"NORMAL","sequence":1,"created_on":"2027-01-15T07:48:00Z","last_modified":null,"owner":null,"lease":null,"expires_in":null,"claimed_on":null,"fence":null,"trashed_on":null,"ended_on":"2027-01-15T08:00:00Z","outcome":"failed","by":null,"action":null,"action_on":null,"reason":null,"waited":630.0,"took":90.0,"exit_code":3,"signal":null,"book":null,"details":null,"attempts":0,"postponed":0,"not_before":null,"last_failure":{"exit_code":3,"signal":null,"reason":"the command ended with code 3","stdout":"","stderr":"","conductor":"c1","time":"2027-01-15T08:00:00Z"},"failures":[{"exit_code":3,"signal":null,"reason":"the command ended with code 3","stdout":"","stderr":"","conductor":"c1","time":"2027-01-15T08:00:00Z"}],"problem":null}
    "#);
}

#[test]
fn every_state_has_all_columns() {
    let columns = JobColumns::of(&ColumnChange::names().join(" "));
    let fields = |it| columns.row(JobView::of(it, now())).fields().join("|");
    let fields = states().iter().map(fields).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(fields, @"
    key:job0000000012-abcdef||MALFORMED|||||||its posting is no map|job0000000012-abcdef||7||MALFORMED||||||its posting is no map|
    1f0c9a58-b6c5-4d0a-8a43-6b0c3f6d2e7b|resize|CLAIMED|NORMAL|720|ada|300|12|0||1f0c9a58-b6c5-4d0a-8a43-6b0c3f6d2e7b|1|300|||||||||
    b7e6a1c2-30f4-4c56-9b5e-0d8f2f3f6a11|backup|UNCLAIMED|NORMAL|720||||2|retry in 28s|b7e6a1c2-30f4-4c56-9b5e-0d8f2f3f6a11|1|300|||||||||
    c7e6a1c2-30f4-4c56-9b5e-0d8f2f3f6a11|backup|CLAIMED|NORMAL|720|bob|300|session|2||c7e6a1c2-30f4-4c56-9b5e-0d8f2f3f6a11|1|300|||||||||
    1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b|sent|TRASHED|NORMAL|720||||0||1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b|1|300|60|||||olga@desk-4|trashed|no such volume|3
    1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b|resize|COMPLETE|NORMAL|720||||0||1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b|1|300||failed|0|630|90|||exit 3|3
    ");
}

#[test]
fn documents_list_every_field() {
    let page = include_str!("../../../docs/filters.md");
    let (_, fields) = page.split_once("## The fields").unwrap();
    let names = fields.lines().filter_map(|line| {
        let names = line.strip_prefix("| ")?.split(" | ").next()?;
        (names != "field").then(|| names.split(", "))
    });
    let mut names: Vec<_> = names.flatten().collect();
    let mut expected: Vec<_> = JobField::ALL.iter().map(|it| it.name()).collect();
    expected.push("details.PATH");
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);

    let page = include_str!("../../../docs/output.md");
    for (options, location) in [
        ("", Location::Board),
        (" --trash", Location::Trash),
        (" --history", Location::History),
    ] {
        let columns = JobColumns::usual(location).names().join(" ");
        let row = format!("| `list{options}` | {columns} |");
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn schema_lists_every_key() {
    let schema: Value = serde_json::from_str(include_str!("../../../schemas/job.json")).unwrap();
    let job = serde_json::to_value(JobView::of(&malformed(), now())).unwrap();
    let keys: Vec<_> = job.as_object().unwrap().keys().collect();
    let properties: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(properties, keys);
    let required = schema["required"].as_array().unwrap().iter();
    let required: Vec<_> = required.map(|it| it.as_str().unwrap()).collect();
    let optional = ["size", "raw"];
    let expected: Vec<_> = keys
        .into_iter()
        .filter(|it| !optional.contains(&it.as_str()))
        .collect();
    assert_eq!(required, expected);
}

#[test]
fn wide_terminal_shows_every_column() {
    insta::assert_snapshot!(on(Location::Board, &night(), None), @r#"
    UUID        NAME                      STATE      PRIORITY  AGE  OWNER                                     HELD  EXPIRES  TRIES  NOTE
    1f0c9a58-8  create_load_balancer      CLAIMED    NORMAL    12m  octavia-worker-7.example.com:4711:c0ffee    5m    never      0  never expires
    1f0c9a58-b  resize                    CLAIMED    NORMAL    12m  ada                                         5m      12s      0  -
    b7e6a1c2-3  backup                    UNCLAIMED  NORMAL    12m  -                                            -        -      2  retry in 28s
    c7e6a1c2-3  backup                    CLAIMED    NORMAL    12m  bob                                         5m  session      2  -
    d7e6a1c2-3  evil\u{1b}[2J\u{202e}     UNCLAIMED  NORMAL    12m  -                                            -        -      0  what is beside it is of version 9, which this jobboard does not know
    -           key:job0000000012-abcdef  MALFORMED  -           -  -                                            -        -      -  its posting is no map
    "#);
}

#[test]
fn eighty_columns_show_the_most_useful_facts() {
    insta::assert_snapshot!(on(Location::Board, &night(), Some(80)), @r#"
    UUID       NAME           STATE     AGE OWNER          HELD TRIES NOTE
    1f0c9a58-8 create_load_b… CLAIMED   12m octavia…c0ffee   5m     0 never expires
    1f0c9a58-b resize         CLAIMED   12m ada              5m     0 -
    b7e6a1c2-3 backup         UNCLAIMED 12m -                 -     2 retry in 28s
    c7e6a1c2-3 backup         CLAIMED   12m bob              5m     2 -
    d7e6a1c2-3 evil\u{1b}[2J… UNCLAIMED 12m -                 -     0 what is besid…
    -          key:job0000000012-abcdef MALFORMED its posting is no map
    "#);
}

#[test]
fn uninformative_columns_are_dropped_first() {
    let entries: Vec<_> = night().drain(2..3).collect();
    insta::assert_snapshot!(on(Location::Board, &entries, Some(70)), @"
    UUID     NAME   STATE     PRIORITY AGE OWNER HELD TRIES NOTE
    b7e6a1c2 backup UNCLAIMED NORMAL   12m -        -     2 retry in 28s
    ");
}

#[test]
fn narrow_terminal_shows_names_and_states() {
    insta::assert_snapshot!(on(Location::Board, &night(), Some(40)), @r#"
    UUID        NAME               STATE
    1f0c9a58-8  create_load_bala…  CLAIMED
    1f0c9a58-b  resize             CLAIMED
    b7e6a1c2-3  backup             UNCLAIMED
    c7e6a1c2-3  backup             CLAIMED
    d7e6a1c2-3  evil\u{1b}[2J\u{…  UNCLAIMED
    -           key:job0…2-abcdef  MALFORMED
    "#);
}

#[test]
fn trash_shows_actor_and_reason() {
    let entries = [
        trashed("sent", Some(audit(Some("no such volume"))), vec![failure()]),
        trashed("failed", None, vec![failure()]),
        Entry::Job(Box::new(Job {
            location: Location::Trash,
            problem: Some("the board of the job is unknown".to_owned()),
            ..job("2f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b", "strange")
        })),
        malformed(),
    ];
    insta::assert_snapshot!(on(Location::Trash, &entries, Some(80)), @"
    UUID      NAME     TRASHED  TRIES  BY           REASON
    1f0c9a58  sent          1m      0  olga@desk-4  no such volume
    1f0c9a58  failed        1m      0  -            exit 3
    2f0c9a58  strange        -      0  -            the board of the job is unknown
    -         key:job0000000012-abcdef  its posting is no map
    ");
}

#[test]
fn history_shows_outcome_and_duration() {
    let entries = [
        ended(Outcome::Failed, vec![failure()]),
        // It failed first and succeeded later.
        ended(Outcome::Consumed, vec![failure()]),
        malformed(),
    ];
    insta::assert_snapshot!(on(Location::History, &entries, Some(80)), @"
    UUID      NAME    OUTCOME    ENDED  WAITED   TOOK  BY  REASON
    1f0c9a58  resize  failed        0s     10m  1m30s  -   exit 3
    1f0c9a58  resize  consumed      0s     10m  1m30s  -   -
    -         key:job0000000012-abcdef  MALFORMED  its posting is no map
    ");
}

#[test]
fn columns_can_be_replaced_added_and_removed() {
    let titles = |changes: &[&str]| {
        let table = table(&changed(changes), &night(), None);
        let titles = table.lines().next().unwrap().split_whitespace();
        titles.collect::<Vec<_>>().join(" ").to_lowercase()
    };
    for (changes, shown) in [
        (&["name", "note"][..], "name note"),
        (&["name", "+size", "tries", "-name", "size"], "size tries"),
        (
            &[
                "+key", "-owner", "-held", "-expires", "-age", "-note", "+name",
            ],
            "uuid name state priority tries key",
        ),
    ] {
        assert_eq!(titles(changes), shown, "{changes:?}");
    }
    assert!(changed(&["name", "-name"]).is_empty());
    let refusal = ColumnChange::read("+colour").unwrap_err();
    assert!(
        refusal.starts_with("no column `colour`; the columns are uuid, name"),
        "{refusal}"
    );
    assert!(ColumnChange::read("").is_err());
}

#[test]
fn requested_columns_are_not_dropped() {
    let columns = changed(&["+expires", "+size"]);
    let shown = table(&columns, &night()[..3], Some(60));
    insta::assert_snapshot!(shown, @"
    UUID        NAME                  STATE      EXPIRES  SIZE
    1f0c9a58-8  create_load_balancer  CLAIMED      never   300
    1f0c9a58-b  resize                CLAIMED        12s   300
    b7e6a1c2-3  backup                UNCLAIMED        -   300
    ");
}

#[test]
fn tsv_fields_are_stable() {
    let columns = JobColumns::usual(Location::Board);
    let fields =
        |it| Text::from(columns.row(JobView::of(it, now())).fields().join("|")).to_string();
    let fields = night().iter().map(fields).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(fields, @r"
    1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b|create_load_balancer|CLAIMED|NORMAL|720|octavia-worker-7.example.com:4711:c0ffee|300|never|0|never expires
    1f0c9a58-b6c5-4d0a-8a43-6b0c3f6d2e7b|resize|CLAIMED|NORMAL|720|ada|300|12|0|
    b7e6a1c2-30f4-4c56-9b5e-0d8f2f3f6a11|backup|UNCLAIMED|NORMAL|720||||2|retry in 28s
    c7e6a1c2-30f4-4c56-9b5e-0d8f2f3f6a11|backup|CLAIMED|NORMAL|720|bob|300|session|2|
    d7e6a1c2-30f4-4c56-9b5e-0d8f2f3f6a11|evil\u{1b}[2J\u{202e}|UNCLAIMED|NORMAL|720||||0|what is beside it is of version 9, which this jobboard does not know
    key:job0000000012-abcdef||MALFORMED|||||||its posting is no map
    ");
}

#[test]
fn title_names_a_record_once() {
    let uuid = "b7e6a1c2-30f4-4c56-9b5e-0d8f2f3f6a11";
    let key = format!("key:{uuid}");
    for (name, reference, title) in [
        ("resize", uuid, "resize b7e6a1c2"),
        ("1", uuid, "1 b7e6a1c2"),
        ("", uuid, "b7e6a1c2"),
        (uuid, uuid, "b7e6a1c2"),
        (uuid, &key, &key),
    ] {
        assert_eq!(titled(name, reference), title);
    }
}
