//! Bytes that somebody spoiled by accident or on purpose: they are answered, whatever they are.

use super::{
    super::{Entity, read_lock},
    POSTINGS, TOLERANCE, bytes_of, decode, list, read, show, with,
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
const LEADS: &[u8] = b"{}[]\"\\:,-u0eN.\xff\xed ";

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
    let originals = [list(POSTINGS, "vectors"), list(TOLERANCE, "vectors")].concat();
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
            let _ = read_lock(&bytes);
            let _ = Entity::decode(&bytes);
        }
    }
    assert!(refused > 1000);
}

#[test]
fn every_beginning_of_a_posting_is_refused() {
    for vector in list(POSTINGS, "vectors") {
        let bytes = bytes_of(&vector);
        read(&bytes).unwrap();
        for end in 0..bytes.len() {
            let problem = read(&bytes[..end]).unwrap_err().to_string();
            let expected = match end {
                0 => "the record is empty",
                _ => "the record breaks off in the middle",
            };
            assert_eq!(problem, expected);
        }
    }
}

#[test]
fn nothing_may_stand_around_a_posting_but_space() {
    let posting = with(r#""priority": "LOW""#);
    read(&[b" \n\r\t", &posting[..], b" \n\r\t"].concat()).unwrap();
    for tail in ["x", "{}", "\0", "\u{a0}"] {
        let bytes = [&posting[..], tail.as_bytes()].concat();
        let problem = read(&bytes).unwrap_err().to_string();
        let expected = "the record is followed by bytes that do not belong to it";
        assert_eq!(problem, expected);
    }
    let problem = read(b" \n").unwrap_err().to_string();
    assert_eq!(problem, "the record breaks off in the middle");
}

#[test]
fn nesting_is_bounded() {
    let nested = |open: &str, levels: usize, close: &str| {
        show(&format!("{}1{}", open.repeat(levels), close.repeat(levels)))
    };
    let problem = "the record is nested deeper than 128 levels";
    for (open, close) in [("[", "]"), (r#"{"k":"#, "}")] {
        nested(open, 128, close).unwrap();
        for levels in [129, 100_000] {
            let refused = nested(open, levels, close).unwrap_err().to_string();
            assert_eq!(refused, problem);
            show(&open.repeat(levels)).unwrap_err();
        }
    }
    let extra = with(&format!(r#""extra": {}"#, "[".repeat(100_000)));
    assert_eq!(read(&extra).unwrap_err().to_string(), problem);
    read(&[b'['; 1_000_000]).unwrap_err();
}

#[test]
fn numbers_may_be_as_long_as_they_like() {
    let digits = "7".repeat(100_000);
    assert_eq!(show(&digits).unwrap()["$int"], digits.as_str());
    assert_eq!(show(&format!("{digits}.0")).unwrap()["$float"], "inf");
    assert_eq!(show(&format!("0.{digits}")).unwrap(), 7.0 / 9.0);
    assert_eq!(show(&format!("1e{digits}")).unwrap()["$float"], "inf");
    assert_eq!(show(&format!("1e-{digits}")).unwrap(), 0.0);
}

#[test]
fn details_that_would_fill_the_memory_are_left_unread_and_the_rest_is_known() {
    let list = |value: &str, count: usize| {
        let values = vec![value; count].join(",");
        with(&format!(r#""details": [{values}]"#))
    };
    for (bytes, is_read) in [
        (list("0", 400_000), true),
        (list("0", 530_000), false),
        (list(r#"{"":0}"#, 10_000), true),
        (list(r#"{"":0}"#, 40_000), false),
        (list(&format!("\"{}\"", "x".repeat(1 << 20)), 1), false),
    ] {
        for detail in [Detail::Brief, Detail::Whole] {
            let posting = decode(&bytes, detail, Limit::USUAL).unwrap();
            assert_eq!(posting.is_oversized, !is_read);
            assert_eq!(posting.problem.is_some(), !is_read);
            let has_details = is_read && detail == Detail::Whole;
            assert_eq!(posting.details.is_some(), has_details);
        }
    }
}
