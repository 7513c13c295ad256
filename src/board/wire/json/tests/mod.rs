//! Records written and read by TaskFlow, and invalid ones.

mod entity;
mod golden;
mod hostile;
mod lock;
mod member;
mod python;
mod tolerance;

use serde_json::Value;

use super::decode;
use crate::board::{
    Detail,
    wire::{
        posting::{Limit, Posting, RecordProblem},
        testing::unhex,
    },
};

const POSTINGS: &str = include_str!("../../fixtures/zk_postings.json");
const TOLERANCE: &str = include_str!("../../fixtures/zk_reader_tolerance.json");
const LIFECYCLE: &str = include_str!("../../fixtures/zk_lifecycle.json");
const PYTHON: &str = include_str!("../../fixtures/python_json.json");

fn list(fixture: &str, name: &str) -> Vec<Value> {
    let fixture: Value = serde_json::from_str(fixture).unwrap();
    fixture[name].as_array().unwrap().clone()
}

fn bytes_of(vector: &Value) -> Vec<u8> {
    unhex(vector["data_hex"].as_str().unwrap())
}

fn read(bytes: &[u8]) -> Result<Posting, RecordProblem> {
    decode(bytes, Detail::Whole, Limit::USUAL)
}

fn with(members: &str) -> Vec<u8> {
    format!(r#"{{"uuid": "u", "name": "n", {members}}}"#).into_bytes()
}

fn show(details: &str) -> Result<Value, RecordProblem> {
    let posting = read(&with(&format!(r#""details": {details}"#)))?;
    Ok(posting.details.unwrap().value().into_owned())
}

fn written(part: &str) -> Vec<String> {
    let mut written: Vec<_> = list(LIFECYCLE, "steps")
        .iter()
        .flat_map(|step| step["tree_after"].as_object().unwrap().clone())
        .filter(|(path, _)| path.contains(part))
        .map(|(_, node)| node["data_utf8"].as_str().unwrap().to_owned())
        .filter(|data| !data.is_empty())
        .collect();
    written.sort();
    written.dedup();
    written
}
