//! Readers of the fixtures.

use serde_json::Value;

use crate::job::{Book, Draft};

pub(super) fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

pub(super) fn book(posting: &Value) -> Option<Book> {
    posting.get("book").map(|book| Book {
        name: text(&book["name"]),
        uuid: text(&book["uuid"]),
    })
}

pub(super) fn draft(posting: &Value) -> Draft {
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
