//! Fuzzed expressions: an accepted filter means the same when printed and parsed again.

use super::*;
use crate::untrusted::{Answer, Bounds, Corpus, Tried, refused, same};

const EXPRESSIONS: [&str; 16] = [
    "state=UNCLAIMED",
    "name=backup-* and priority>=HIGH",
    "name='a b' and owner!=none",
    "name=\"it said \"\"no\"\"\"",
    "held>10m and age < 1h30m",
    "size>=4KiB and attempts<=3",
    "name~^a|b$ and state!~trash",
    "details.a.0.b=[1,2]",
    "details.n>=1.5e3",
    "details~x and details!=none",
    "sequence!=-7",
    "name=[!a-c]*?",
    "outcome=failed and exit_code>0",
    "waited>5s and took<2d",
    "owner>=m",
    "expires=none",
];

fn prints_its_meaning(text: &str) -> Tried {
    let filter: Filter = match text.parse() {
        Ok(filter) => filter,
        Err(invalid) => return refused(&invalid),
    };
    let printed = filter.to_string();
    let again: Filter = printed
        .parse()
        .map_err(|invalid: InvalidFilter| invalid.to_string())?;
    same("printed again", &printed, &again.to_string())?;
    let details = json!({"a": [{"b": [1, 2]}], "n": 1500, "text": "x"});
    let entries = [
        unclaimed(),
        claimed(),
        malformed(),
        named("backup-7"),
        with(details),
    ];
    let matches = |filter: &Filter| entries.each_ref().map(|entry| filter.matches(entry, now()));
    same("it matches", &matches(&filter), &matches(&again))?;
    Ok(Answer::Read)
}

#[test]
fn untrusted_filters_are_printed_with_the_same_meaning() {
    let bounds = Bounds {
        inputs: 500,
        // A compiled regular expression may take ten megabytes, and compiling it takes more.
        memory: (64 << 20, 64 << 10),
        ..Bounds::TYPED
    };
    Corpus::of(bounds, EXPRESSIONS).hold_for_text(prints_its_meaning);
}

#[test]
fn untrusted_fields_are_printed_as_they_were_read() {
    let names = ["name", "details", "details.a.0.b", "exit_code"];
    Corpus::of(Bounds::TYPED, names).hold_for_text(|text| match FieldPath::read(text) {
        Ok(field) => same("read again", &text, &&*field.name()).and(Ok(Answer::Read)),
        Err(fault) => refused(&fault),
    });
}
