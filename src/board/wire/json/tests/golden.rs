//! Postings that TaskFlow 6.5 wrote, both ways.

use serde_json::{Value, json};

use super::{super::encode, POSTINGS, bytes_of, decode, list, read, written};
use crate::{
    board::{Detail, wire::posting::Limit},
    job::{Book, Draft},
};

fn plain() -> Vec<(Vec<u8>, Value)> {
    let vectors = list(POSTINGS, "vectors");
    let vectors = vectors.iter().map(bytes_of);
    let lives = written("/job0").into_iter().map(String::into_bytes);
    vectors
        .chain(lives.filter(|data| data.starts_with(b"{\"uuid\"")))
        .filter_map(|bytes| Some((bytes.clone(), serde_json::from_slice(&bytes).ok()?)))
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn book(posting: &Value) -> Option<Book> {
    posting.get("book").map(|book| Book {
        name: text(&book["name"]),
        uuid: text(&book["uuid"]),
    })
}

fn draft(posting: &Value) -> Draft {
    Draft {
        uuid: text(&posting["uuid"]).parse().unwrap(),
        chosen: false,
        name: text(&posting["name"]),
        priority: text(&posting["priority"]).parse().unwrap(),
        book: book(posting),
        details: posting["details"].clone().into(),
        former: None,
    }
}

#[test]
fn postings_are_written_byte_for_byte() {
    let postings = plain();
    // One of them contains a value that only Python writes, and two come from another fixture.
    assert_eq!(postings.len(), list(POSTINGS, "vectors").len() - 1 + 2);
    for (bytes, posting) in postings {
        let written = encode(&draft(&posting));
        assert_eq!(
            String::from_utf8(written).unwrap(),
            String::from_utf8(bytes).unwrap()
        );
    }
}

#[test]
fn postings_are_read() {
    for (bytes, expected) in plain() {
        let posting = read(&bytes).unwrap();
        assert_eq!(posting.uuid, text(&expected["uuid"]));
        assert_eq!(posting.name, text(&expected["name"]));
        assert_eq!(posting.priority.name(), text(&expected["priority"]));
        assert_eq!(posting.book, book(&expected));
        assert_eq!(posting.problem, None);
        // The node alone has these.
        assert_eq!((posting.created_on, posting.sequence), (None, None));
        // Compare texts, so that the order of keys counts.
        let details = posting.details.unwrap().value().to_string();
        assert_eq!(details, expected["details"].to_string());
    }
}

#[test]
fn python_types_are_displayed() {
    let vectors = list(POSTINGS, "vectors");
    let vector = vectors
        .iter()
        .find(|vector| vector["case"] == "details_python_types")
        .unwrap();
    let details = json!({
        "datetime": "2024-01-02T03:04:05.000006",
        "datetime_utc": "2024-01-02T03:04:05.000006",
        "date": "2024-01-02",
        "uuid": "00000000-0000-0000-0000-000000000005",
        "set": [1],
        "frozenset": [2],
        "tuple": [1, 2],
        "bytes": "abc",
        "nan": { "$float": "nan" },
        "inf": { "$float": "inf" },
        "ninf": { "$float": "-inf" },
    });
    assert_eq!(
        read(&bytes_of(vector)).unwrap().details,
        Some(details.into())
    );
}

#[test]
fn brief_read_omits_only_the_details() {
    for vector in list(POSTINGS, "vectors") {
        let mut whole = read(&bytes_of(&vector)).unwrap();
        whole.details = None;
        assert_eq!(
            decode(&bytes_of(&vector), Detail::Brief, Limit::USUAL).unwrap(),
            whole
        );
    }
}
