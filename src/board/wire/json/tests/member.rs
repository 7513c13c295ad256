//! Members of postings in rare forms.

use serde_json::json;

use super::{read, show, with};
use crate::job::Priority;

fn problem(members: &str) -> String {
    read(&with(members)).unwrap_err().to_string()
}

#[test]
fn last_of_equal_keys_wins() {
    assert_eq!(read(&with(r#""name": "m""#)).unwrap().name, "m");
    let escaped = read(&with(r#""n\u0061me": "m""#)).unwrap();
    assert_eq!(escaped.name, "m");
    let posting = read(&with(r#""priority": 5, "priority": "low""#)).unwrap();
    assert_eq!(posting.priority, Priority::Low);
    let details = show(r#"{"a": 1, "b": 2, "a": 3}"#).unwrap().to_string();
    assert_eq!(details, r#"{"a":3,"b":2}"#);
}

#[test]
fn non_text_names_and_uuids_are_displayed_as_json() {
    for (value, words, note) in [
        ("[1, null]", "[1,null]", "a list"),
        ("null", "null", "null"),
        ("7", "7", "a number"),
        ("1e16", "1e+16", "a floating-point number"),
        ("NaN", r#"{"$float":"nan"}"#, "a floating-point number"),
        ("false", "false", "a boolean"),
        ("{}", "{}", "a map"),
    ] {
        let posting = read(&with(&format!(r#""name": {value}"#))).unwrap();
        assert_eq!(posting.name, words);
        assert_eq!(posting.problem, Some(format!("the name is {note}")));
        let posting = read(&with(&format!(r#""uuid": {value}, "name": 5"#))).unwrap();
        assert_eq!(posting.uuid, words);
        let problem = format!("the uuid is {note}; the name is a number");
        assert_eq!(posting.problem, Some(problem));
    }
}

#[test]
fn priority_names_are_case_insensitive() {
    for name in ["VERY_HIGH", "very_high", "Very_\\u0048igh"] {
        let posting = read(&with(&format!(r#""priority": "{name}""#))).unwrap();
        assert_eq!(posting.priority, Priority::VeryHigh);
        assert_eq!(posting.problem, None);
    }
    for (value, kind) in [("null", "null"), ("1", "a number")] {
        let problem = problem(&format!(r#""priority": {value}"#));
        assert_eq!(problem, format!("the priority is {kind}, not a string"));
    }
}

#[test]
fn details_are_read_unchanged() {
    for (value, expected) in [
        ("[]", json!([])),
        (r#""""#, json!("")),
        ("false", json!(false)),
        ("0", json!(0)),
        ("null", json!({})),
        (r#"{"$int": 1}"#, json!({ "$int": 1 })),
    ] {
        assert_eq!(show(value).unwrap(), expected);
    }
}

#[test]
fn books_may_be_incomplete() {
    for (value, expected) in [
        ("null", None),
        ("{}", None),
        (r#"{"uuid": "u"}"#, Some(("", "u"))),
        (r#"{"name": 5, "foo": null}"#, Some(("5", ""))),
    ] {
        let posting = read(&with(&format!(r#""book": {value}"#))).unwrap();
        let book = posting.book.map(|book| (book.name, book.uuid));
        let expected = expected.map(|(name, uuid)| (name.to_owned(), uuid.to_owned()));
        assert_eq!((book, posting.problem), (expected, None));
    }
    let posting = read(&with(r#""book": "b""#)).unwrap();
    assert_eq!(posting.book, None);
    assert_eq!(posting.problem.as_deref(), Some("the book is a string"));
}

#[test]
fn unused_members_are_validated_and_ignored() {
    let members = r#""created_on": 1, "sequence": "x", "extra": [{"": NaN}]"#;
    let posting = read(&with(members)).unwrap();
    assert_eq!(posting.details, Some(json!({}).into()));
    assert_eq!((posting.created_on, posting.sequence), (None, None));
    assert_eq!(posting.problem, None);
    let problem = problem(r#""extra": [01]"#);
    assert!(problem.starts_with("the record is not JSON"), "{problem}");
}
