//! Records written and read by TaskFlow, and invalid ones.

mod golden;
mod hostile;
mod member;
mod time;
mod tolerance;
mod value;

use serde_json::Value;

use super::decode;
use crate::board::{
    Detail,
    wire::{
        posting::{Limit, Posting, RecordProblem},
        testing::unhex,
    },
};

const POSTINGS: &str = include_str!("../../fixtures/redis_postings.json");
const TOLERANCE: &str = include_str!("../../fixtures/redis_reader_tolerance.json");
const DATETIMES: &str = include_str!("../../fixtures/redis_datetimes.json");
const LAST_MODIFIED: &str = include_str!("../../fixtures/redis_last_modified.json");

const TIME: &str = "c73c0187a36461791da56d6f6e746802a479656172cd07e8a4686f75720da66d696e757465\
                    05a67365636f6e6409ab6d6963726f7365636f6e64ce0001e240";

fn vectors(fixture: &str) -> Vec<Value> {
    let fixture: Value = serde_json::from_str(fixture).unwrap();
    fixture["vectors"].as_array().unwrap().clone()
}

fn bytes_of(vector: &Value) -> Vec<u8> {
    unhex(vector["value_hex"].as_str().unwrap())
}

fn read(bytes: &[u8]) -> Result<Posting, RecordProblem> {
    decode(bytes, Detail::Whole, Limit::USUAL)
}

fn good() -> Vec<(&'static str, String)> {
    vec![
        ("uuid", "a475756964".to_owned()),
        ("name", "a46e616d65".to_owned()),
        ("priority", "a448494748".to_owned()),
        ("created_on", TIME.to_owned()),
        ("details", "80".to_owned()),
        ("sequence", "07".to_owned()),
    ]
}

fn with(name: &'static str, value: &str) -> Vec<u8> {
    let mut members = good();
    members.retain(|(other, _)| *other != name);
    members.push((name, value.to_owned()));
    record(&members, 0xa0)
}

/// A posting whose keys begin with this byte: `a0` for texts, `c4` for bytes.
fn record(members: &[(&'static str, String)], keys: u8) -> Vec<u8> {
    let mut bytes = vec![0x80 | members.len() as u8];
    for (name, value) in members {
        match keys {
            0xa0 => bytes.push(0xa0 | name.len() as u8),
            _ => bytes.extend([keys, name.len() as u8]),
        }
        bytes.extend(name.as_bytes());
        bytes.extend(unhex(value));
    }
    bytes
}
