//! Matches of filters, and messages for invalid ones.

mod details;
mod field;
mod grammar;
mod order;
mod refusal;
mod untrusted;

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::*;
use crate::job::{
    Attempts, ClaimEnd, Entry, Holding, Job, JobKey, Location, Malformed, Owner, Priority,
};

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn ago(seconds: i64) -> Option<DateTime<Utc>> {
    Some(now() - TimeDelta::seconds(seconds))
}

fn job() -> Job {
    Job {
        key: JobKey::new("k"),
        uuid: "3f9a12cd-0000-4000-8000-000000000001".to_owned(),
        sequence: Some(12),
        created_on: ago(3600),
        last_modified: ago(600),
        attempts: Attempts {
            count: 3,
            ..Attempts::default()
        },
        size: 4096,
        ..Job::named("backup/db-1")
    }
}

fn entry(job: Job) -> Entry {
    Entry::Job(Box::new(job))
}

fn unclaimed() -> Entry {
    entry(job())
}

fn named(name: &str) -> Entry {
    entry(Job {
        name: name.to_owned(),
        ..job()
    })
}

fn held(lease: ClaimEnd, expires_in: Option<u64>) -> Job {
    Job {
        holding: Some(Holding {
            expires_in: expires_in.map(Duration::from_secs),
            claimed_on: ago(300),
            ..Holding::new(Owner::new("worker-7").ok(), lease, None)
        }),
        ..job()
    }
}

fn claimed() -> Entry {
    entry(held(ClaimEnd::Timed, Some(30)))
}

fn trashed() -> Entry {
    entry(Job {
        location: Location::Trash,
        ..held(ClaimEnd::Never, None)
    })
}

fn with(details: Value) -> Entry {
    entry(Job {
        details: Some(details.into()),
        ..job()
    })
}

fn malformed() -> Entry {
    Entry::Malformed(Malformed {
        size: 7,
        raw: b"garbage".to_vec(),
        ..Malformed::new(JobKey::new("k"), "it is empty".to_owned())
    })
}

fn holds(expression: &str, entry: &Entry) -> bool {
    let filter: Filter = expression.parse().unwrap();
    filter.matches(entry, now())
}

/// Requires that an entry matches some expressions, and none of the others. ` | ` separates expressions.
#[track_caller]
fn matches(entry: &Entry, expressions: &str, others: &str) {
    for (expressions, expected) in [(expressions, true), (others, false)] {
        for expression in expressions.split(" | ").filter(|it| !it.is_empty()) {
            assert_eq!(holds(expression, entry), expected, "{expression}");
        }
    }
}

#[test]
fn spaces_around_the_operator_are_ignored() {
    let spaced = "state=UNCLAIMED |  state = UNCLAIMED  | age>=\t1h | age >=1h";
    matches(&unclaimed(), spaced, "");
}

#[test]
fn a_value_may_contain_operators() {
    matches(&named("a>=b"), "name=a>=b | name~a>= | name=a*=b", "");
    matches(&named("=~x"), "name= =~x | name ~ ^=~", "");
    matches(&with(json!({"x": "<b>"})), "details.x= <b>", "");
}

#[test]
fn filter_is_displayed_as_written() {
    for text in ["name=a>=b", "held > 10m", "details.x= =1", "owner!="] {
        let filter: Filter = text.parse().unwrap();
        assert_eq!(filter.to_string(), text);
    }
}

#[test]
fn all_filters_must_hold() {
    let filters = |texts: &[&str]| {
        let filters: Vec<Filter> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Filters::new(filters)
    };
    let both = filters(&["state=claimed", "held>1m"]);
    assert!(both.matches(&claimed(), now()));
    assert!(!both.matches(&unclaimed(), now()));
    assert_eq!(both.to_string(), "state=claimed and held>1m");
    assert!(Filters::default().matches(&malformed(), now()));
    assert_eq!(Filters::default().to_string(), "");
}

#[test]
fn only_filters_on_details_read_them() {
    for (text, needs) in [
        ("name=details.x", false),
        ("size>1MB", false),
        ("details~x", true),
        ("details.x=1", true),
        ("details.x=none", true),
    ] {
        let filter: Filter = text.parse().unwrap();
        assert_eq!(filter.needs_details(), needs, "{text}");
        assert_eq!(Filters::new(vec![filter]).needs_details(), needs, "{text}");
    }
    assert!(!Filters::default().needs_details());
}

#[test]
fn a_filter_can_be_an_argument() {
    fn check<T: FromStr<Err: std::error::Error + Send + Sync> + Clone + Send + Sync + 'static>() {}
    check::<Filter>();
}
