//! Postings that TaskFlow 6.5 wrote, both ways.

use serde_json::{Value, json};

use super::{super::encode, POSTINGS, bytes_of, decode, list, read, written};
use crate::board::{
    Detail,
    wire::{
        posting::Limit,
        testing::{book, draft},
    },
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

#[test]
fn postings_are_written_byte_for_byte() {
    let postings = plain();
    // One of them contains a value that only Python writes, and two come from another fixture.
    assert_eq!(postings.len(), list(POSTINGS, "vectors").len() - 1 + 2);
    for (bytes, posting) in postings {
        let written = [encode(&draft(&posting)), bytes];
        let [written, read] = written.map(|it| String::from_utf8(it).unwrap());
        assert_eq!(written, read);
    }
}

#[test]
fn postings_are_read() {
    for (bytes, expected) in plain() {
        let posting = read(&bytes).unwrap();
        assert_eq!(posting.uuid, expected["uuid"]);
        assert_eq!(posting.name, expected["name"]);
        assert_eq!(posting.priority.name(), expected["priority"]);
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
    let mut vectors = list(POSTINGS, "vectors").into_iter();
    let vector = vectors.find(|vector| vector["case"] == "details_python_types");
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
    let posting = read(&bytes_of(&vector.unwrap())).unwrap();
    assert_eq!(posting.details, Some(details.into()));
}

#[test]
fn brief_read_omits_only_the_details() {
    for vector in list(POSTINGS, "vectors") {
        let mut whole = read(&bytes_of(&vector)).unwrap();
        whole.details = None;
        let brief = decode(&bytes_of(&vector), Detail::Brief, Limit::USUAL);
        assert_eq!(brief.unwrap(), whole);
    }
}
