//! Records read by TaskFlow 6.5, and its results.

use chrono::NaiveDateTime;
use serde_json::Value;

use super::{TOLERANCE, bytes_of, read, vectors};
use crate::{board::wire::posting::Posting, tests::rows};

/// Records that TaskFlow rejects, and their problems.
const REFUSED: &str = "
    missing uuid => the record has no `uuid`
    missing name => the record has no `name`
    missing created_on => the record has no `created_on`
    missing sequence => the record has no `sequence`
    priority unknown => unknown priority `BOGUS` (valid: VERY_HIGH, HIGH, NORMAL, LOW, VERY_LOW)
    priority null => the priority is null, not a string
    created_on without microsecond => a time has no `microsecond`
    created_on month 13 => 2024-13-01T03:04:05.000006 is not a valid time
    details int keys => the record contains a map with a number as a key
    trailing byte => extra bytes follow the record
    truncated => the record is truncated
    reserved byte c1 => the record contains the invalid byte c1
    json text => the record is a number, not a map
    list root => the record is a list, not a map
    empty value => the record is empty
    invalid utf-8 name => the record contains a string that is not UTF-8
";

/// TaskFlow rejects these too. They are jobs here: their meaning is plain, at most without the time.
const READ_HERE: [&str; 3] = [
    "created_on tz unknown",
    "priority bin",
    "all keys and text bin (python2 writer)",
];

/// Records that TaskFlow lists, and their problems.
const NOTED: &str = "
    created_on string => created_on: the record has a string in place of a time
    created_on null => created_on: the record has null in place of a time
    created_on msgpack timestamp -1 => created_on: the record has a value of a special type in place of a time
    created_on unknown ext 99 => created_on: the record has a value of a special type in place of a time
    sequence string => the sequence is a string
";

fn of(table: &str, case: &str) -> Option<&'static str> {
    let mut rows = rows(table).into_iter();
    rows.find(|[other, _]| *other == case)
        .map(|[_, words]| words)
}

fn is_as_listed(posting: &Posting, listed: &Value) {
    let name = match listed["name"]["$bytes_hex"].as_str() {
        Some(hex) => String::from_utf8(super::unhex(hex)).unwrap(),
        None => listed["name"].as_str().unwrap().to_owned(),
    };
    assert_eq!(posting.name, name);
    assert_eq!(posting.uuid, listed["uuid"]);
    assert_eq!(posting.priority.name(), listed["priority"]);
    assert_eq!(posting.sequence, listed["sequence"].as_i64());
    assert_eq!(posting.details, Some(listed["details"].clone().into()));
    let created_on = listed["created_on"]["$datetime"].as_str().map(|text| {
        let naive = text.trim_end_matches("+00:00");
        naive.parse::<NaiveDateTime>().unwrap().and_utc()
    });
    assert_eq!(posting.created_on, created_on);
}

#[test]
fn exactly_the_jobs_that_taskflow_lists_are_read() {
    let vectors = vectors(TOLERANCE);
    let mut refused = 0;
    for vector in &vectors {
        let case = vector["case"].as_str().unwrap();
        let result = read(&bytes_of(vector));
        match vector["iterjobs"]["returns"].as_array() {
            Some(listed) => {
                let posting = result.unwrap();
                is_as_listed(&posting, &listed[0]);
                assert_eq!(posting.problem.as_deref(), of(NOTED, case), "{case}");
            }
            None => {
                refused += 1;
                let problem = result.err().map(|problem| problem.to_string());
                assert_eq!(problem.is_none(), READ_HERE.contains(&case), "{case}");
                assert_eq!(problem.as_deref(), of(REFUSED, case), "{case}");
            }
        }
    }
    let expected = rows::<2>(REFUSED).len() + READ_HERE.len();
    assert_eq!((vectors.len(), refused), (40, expected));
}

#[test]
fn python_2_jobs_are_listed() {
    for case in ["priority bin", "all keys and text bin (python2 writer)"] {
        let vectors = vectors(TOLERANCE);
        let vector = vectors.iter().find(|vector| vector["case"] == case);
        let posting = read(&bytes_of(vector.unwrap())).unwrap();
        assert_eq!(posting.uuid, "00000000-0000-4000-8000-0000000000ff");
        assert_eq!(posting.name, "hand");
        assert_eq!(posting.sequence, Some(1));
        assert!(posting.created_on.is_some());
        assert_eq!(posting.problem, None);
    }
}
