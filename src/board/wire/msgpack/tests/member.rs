//! Members of postings in rare forms.

use serde_json::json;

use super::{good, read, record, unhex, with};
use crate::{
    job::{Book, Priority},
    tests::rows,
};

#[test]
fn last_of_equal_keys_wins() {
    let mut members = good();
    members.insert(0, ("name", "a161".to_owned()));
    members.push(("name", "a162".to_owned()));
    assert_eq!(read(&record(&members, 0xa0)).unwrap().name, "b");
    let details = with("details", "83a16101a16202a16103");
    let shown = read(&details).unwrap().details.unwrap().value().to_string();
    assert_eq!(shown, r#"{"a":3,"b":2}"#);
}

#[test]
fn text_key_wins_over_an_equal_bytes_key() {
    for at in [0, 6] {
        let mut members = good();
        members.insert(at, ("", String::new()));
        let mut bytes = record(&members, 0xa0);
        // The byte of the empty key becomes a pair of bytes and text.
        let empty = bytes.iter().position(|byte| *byte == 0xa0).unwrap();
        bytes.splice(empty..=empty, unhex("c4046e616d65a56f74686572"));
        let posting = read(&bytes).unwrap();
        assert_eq!(posting.name, "name");
        assert_eq!(posting.details, Some(json!({}).into()));
    }
}

#[test]
fn python_2_postings_are_read_completely() {
    let mut members = good();
    members.retain(|(name, _)| *name != "details");
    // They precede the keys that identify the writer.
    members.insert(0, ("details", "82c4016bc40176c4017891c402fffe".to_owned()));
    members.push(("book", "82c4046e616d65c40162c40475756964c40175".to_owned()));
    let posting = read(&record(&members, 0xc4)).unwrap();
    let details = json!({ "k": "v", "x": [{ "$bytes": "//4=" }] });
    assert_eq!(posting.details, Some(details.into()));
    let book = Book {
        name: "b".to_owned(),
        uuid: "u".to_owned(),
    };
    assert_eq!(posting.book, Some(book));
    assert_eq!(posting.priority, Priority::High);
}

#[test]
fn bytes_in_python_3_details_stay_bytes() {
    let posting = read(&with("details", "82a16bc40176c40178c0")).unwrap();
    let details = json!({ "k": { "$bytes": "dg==" }, "$bytes:eA==": null });
    assert_eq!(posting.details, Some(details.into()));
}

#[test]
fn non_text_names_and_uuids_are_displayed_as_json() {
    let posting = read(&with("name", "9201c0")).unwrap();
    assert_eq!(posting.name, "[1,null]");
    assert_eq!(posting.problem.as_deref(), Some("the name is a list"));
    let posting = read(&with("uuid", "c402fffe")).unwrap();
    assert_eq!(posting.uuid, r#"{"$bytes":"//4="}"#);
    assert_eq!(posting.problem.as_deref(), Some("the uuid is bytes"));
}

#[test]
fn sequences_of_any_width_are_read() {
    for (value, expected) in [
        ("d005", 5),
        ("cf0000000000000005", 5),
        ("ff", -1),
        ("d3ffffffffffffffff", -1),
        ("cf7fffffffffffffff", i64::MAX),
    ] {
        let posting = read(&with("sequence", value)).unwrap();
        assert_eq!((posting.sequence, posting.problem), (Some(expected), None));
    }
}

#[test]
fn invalid_sequences_are_reported() {
    for [value, expected] in rows(
        "
        cf8000000000000000 => the sequence is too large: 9223372036854775808
        cb3ff0000000000000 => the sequence is a floating-point number
        c3 => the sequence is a boolean
        80 => the sequence is a map
        ",
    ) {
        let posting = read(&with("sequence", value)).unwrap();
        assert_eq!(posting.sequence, None);
        assert_eq!(posting.problem.as_deref(), Some(expected));
    }
}

#[test]
fn several_problems_are_all_reported() {
    let mut members = good();
    members[1].1 = "05".to_owned();
    members[3].1 = "c0".to_owned();
    let posting = read(&record(&members, 0xa0)).unwrap();
    let problem = "the name is a number; created_on: the record has null in place of a time";
    assert_eq!(posting.problem.as_deref(), Some(problem));
}

#[test]
fn details_are_read_unchanged() {
    for (value, expected) in [
        ("90", json!([])),
        ("a0", json!("")),
        ("c2", json!(false)),
        ("00", json!(0)),
        ("c0", json!({})),
    ] {
        let details = read(&with("details", value)).unwrap().details;
        assert_eq!(details, Some(expected.into()));
    }
}

#[test]
fn books_may_be_incomplete() {
    for (value, expected) in [
        ("c0", None),
        ("80", None),
        ("81a475756964a175", Some(("", "u"))),
        ("82a46e616d6505a3666f6fc0", Some(("5", ""))),
    ] {
        let posting = read(&with("book", value)).unwrap();
        let book = posting.book.map(|book| (book.name, book.uuid));
        let expected = expected.map(|(name, uuid)| (name.to_owned(), uuid.to_owned()));
        assert_eq!((book, posting.problem), (expected, None));
    }
    let posting = read(&with("book", "a162")).unwrap();
    assert_eq!(posting.book, None);
    assert_eq!(posting.problem.as_deref(), Some("the book is a string"));
}

#[test]
fn unused_members_are_validated_and_ignored() {
    assert!(read(&with("extra", "81a16191c0")).is_ok());
    for (value, expected) in [
        ("8105c0", "a map with a number as a key"),
        ("a1ff", "a string that is not UTF-8"),
    ] {
        let problem = read(&with("extra", value)).unwrap_err().to_string();
        assert_eq!(problem, format!("the record contains {expected}"));
    }
}
