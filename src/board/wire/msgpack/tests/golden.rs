//! Postings and times that TaskFlow 6.5 wrote, both ways.

use chrono::{DateTime, NaiveDateTime, Utc};
use serde_json::{Value, json};

use super::{
    super::{decode, encode, read_time, sequence, time},
    DATETIMES, LAST_MODIFIED, POSTINGS, bytes_of, read, vectors,
};
use crate::board::{
    Detail,
    wire::{
        posting::Limit,
        testing::{book, draft},
    },
};

fn utc(text: &Value) -> DateTime<Utc> {
    let time: NaiveDateTime = text.as_str().unwrap().parse().unwrap();
    time.and_utc()
}

#[test]
fn postings_are_written_byte_for_byte() {
    for vector in vectors(POSTINGS) {
        // A draft cannot hold Python-only values.
        if vector["case"] == "details_python_types" {
            continue;
        }
        let decoded = &vector["decoded"];
        let mut bytes = encode(&draft(decoded), utc(&decoded["created_on"]["$datetime"]));
        bytes.extend(sequence(decoded["sequence"].as_u64().unwrap()));
        assert_eq!(bytes, bytes_of(&vector), "{}", vector["case"]);
    }
}

#[test]
fn postings_are_read() {
    for vector in vectors(POSTINGS) {
        let decoded = &vector["decoded"];
        let posting = read(&bytes_of(&vector)).unwrap();
        assert_eq!(posting.uuid, decoded["uuid"]);
        assert_eq!(posting.name, decoded["name"]);
        assert_eq!(posting.priority.name(), decoded["priority"]);
        let created_on = utc(&decoded["created_on"]["$datetime"]);
        assert_eq!(posting.created_on, Some(created_on));
        assert_eq!(posting.book, book(decoded));
        assert_eq!(posting.sequence, decoded["sequence"].as_i64());
        assert_eq!(posting.problem, None);
        if vector["case"] != "details_python_types" {
            // Compare texts, so that the order of keys counts.
            let details = posting.details.unwrap().value().to_string();
            assert_eq!(details, decoded["details"].to_string());
        }
    }
}

#[test]
fn python_types_are_displayed() {
    let mut vectors = vectors(POSTINGS).into_iter();
    let vector = vectors.find(|vector| vector["case"] == "details_python_types");
    let details = json!({
        "datetime": { "$ext": 1, "text": "2024-01-02T03:04:05.000006" },
        "datetime_utc": { "$ext": 1, "text": "2024-01-02T03:04:05.000006+00:00" },
        "date": { "$ext": 7, "hex": "83a479656172cd07e8a56d6f6e746801a364617902" },
        "uuid": { "$ext": 0, "text": "00000000-0000-0000-0000-000000000005" },
        "set": { "$ext": 4, "hex": "9101" },
        "frozenset": { "$ext": 5, "hex": "9102" },
        "tuple": [1, 2],
        "bytes": { "$bytes": "YWJj" },
        "nan": { "$float": "nan" },
        "inf": { "$float": "inf" },
        "ninf": { "$float": "-inf" },
    });
    let posting = read(&bytes_of(&vector.unwrap())).unwrap();
    assert_eq!(posting.details, Some(details.into()));
}

#[test]
fn brief_read_omits_only_the_details() {
    for vector in vectors(POSTINGS) {
        let mut whole = read(&bytes_of(&vector)).unwrap();
        whole.details = None;
        let brief = decode(&bytes_of(&vector), Detail::Brief, Limit::USUAL);
        assert_eq!(brief.unwrap(), whole);
    }
}

#[test]
fn times_round_trip() {
    for vector in [vectors(DATETIMES), vectors(LAST_MODIFIED)].concat() {
        let expected = utc(&vector["utc"]);
        assert_eq!(time(expected), bytes_of(&vector));
        assert_eq!(read_time(&bytes_of(&vector)).unwrap(), expected);
    }
}

#[test]
fn sequences_are_written_in_the_shortest_form() {
    assert_eq!(sequence(0), [0]);
    assert_eq!(sequence(127), [127]);
    assert_eq!(sequence(128), [0xcc, 128]);
    assert_eq!(sequence(256), [0xcd, 1, 0]);
    assert_eq!(sequence(65_536), [0xce, 0, 1, 0, 0]);
    assert_eq!(sequence(u64::MAX), [&[0xcf][..], &[255; 8]].concat());
}
