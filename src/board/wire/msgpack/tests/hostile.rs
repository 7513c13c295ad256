//! Bytes that somebody spoiled by accident or on purpose: they are answered, whatever they are.

use super::{
    super::{decode, read_time},
    DATETIMES, POSTINGS, TOLERANCE, bytes_of, read, unhex, vectors, with,
};
use crate::board::{Detail, wire::posting::Limit};

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// Bytes after which much depends on what follows.
const LEADS: [u8; 12] = [
    0x80, 0x90, 0xa0, 0xc1, 0xc4, 0xc6, 0xc7, 0xc9, 0xdb, 0xdd, 0xdf, 0xff,
];

fn spoil(bytes: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..=dice.roll(3) {
        let at = dice.roll(bytes.len().max(1));
        match dice.roll(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, LEADS[dice.roll(LEADS.len())]),
            _ if bytes.is_empty() => {}
            2 => bytes[at] = LEADS[dice.roll(LEADS.len())],
            3 => bytes[at] ^= 1 << dice.roll(8),
            _ => {
                bytes.remove(at);
            }
        }
    }
}

#[test]
fn spoilt_postings_are_read_or_refused_and_looks_agree() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let originals = [vectors(POSTINGS), vectors(TOLERANCE)].concat();
    let mut refused = 0;
    for _ in 0..200 {
        for original in &originals {
            let mut bytes = bytes_of(original);
            spoil(&mut bytes, &mut dice);
            let brief = decode(&bytes, Detail::Brief, Limit::USUAL);
            match read(&bytes) {
                Ok(mut whole) => {
                    assert!(whole.details.take().is_some());
                    assert_eq!(brief.unwrap(), whole);
                }
                Err(problem) => {
                    refused += 1;
                    assert_eq!(brief.unwrap_err().to_string(), problem.to_string());
                }
            }
        }
    }
    assert!(refused > 1000);
}

#[test]
fn every_beginning_of_a_posting_is_refused() {
    for vector in vectors(POSTINGS) {
        let bytes = bytes_of(&vector);
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_err());
        }
    }
}

#[test]
fn spoilt_times_are_read_or_refused() {
    let mut dice = Dice(7);
    for _ in 0..2000 {
        for original in vectors(DATETIMES) {
            let mut bytes = bytes_of(&original);
            spoil(&mut bytes, &mut dice);
            let _ = read_time(&bytes);
        }
    }
}

#[test]
fn lengths_are_not_believed() {
    for text in [
        "dfffffffff",
        "dfffffffffa161ddffffffff",
        "81a161dbffffffff",
        "81a161c6ffffffff",
        "81a161c9ffffffff01",
        "81a161ddffffffffc0",
    ] {
        let problem = read(&unhex(text)).unwrap_err().to_string();
        assert_eq!(problem, "the record breaks off in the middle");
    }
}

#[test]
fn details_that_would_fill_the_memory_are_left_unread_and_the_rest_is_known() {
    let list = |value: &str, count: usize| format!("dd{count:08x}{}", value.repeat(count));
    for (details, is_read) in [
        (list("c0", 500_000), true),
        (list("c0", 600_000), false),
        (list("81a0c0", 10_000), true),
        (list("81a0c0", 40_000), false),
        (list("d40001", 40_000), false),
        (format!("db{:08x}{}", 1 << 19, "61".repeat(1 << 19)), true),
        (format!("db{:08x}{}", 1 << 20, "61".repeat(1 << 20)), false),
    ] {
        let bytes = with("details", &details);
        for detail in [Detail::Brief, Detail::Whole] {
            let posting = decode(&bytes, detail, Limit::USUAL).unwrap();
            assert_eq!(posting.name, "name");
            assert_eq!(posting.is_oversized, !is_read, "{}", &details[..16]);
            assert_eq!(posting.problem.is_some(), !is_read);
            let has_details = is_read && detail == Detail::Whole;
            assert_eq!(posting.details.is_some(), has_details);
        }
        let roomy = Limit { details: 1 << 22 };
        let posting = decode(&bytes, Detail::Whole, roomy).unwrap();
        assert!(posting.details.is_some());
    }
    for member in ["name", "uuid"] {
        let problem = read(&with(member, &list("c0", 100_000))).unwrap_err();
        let expected = format!("the `{member}` of the record is too large to be read");
        assert_eq!(problem.to_string(), expected);
    }
}
