//! Damaged and malicious bytes never cause a panic.

use super::{
    super::{Entity, Lock, edited, lock, read_lock, write::bytes},
    POSTINGS, TOLERANCE, bytes_of, decode, list, read, show, with, written,
};
use crate::{
    board::{Detail, wire::posting::Limit},
    job::{Details, Edit, Priority},
    untrusted::{Answer, Bounds, Corpus, Tried, refused, same},
};

/// Any accepted posting must work for all readers and writers.
fn is_a_posting(input: &[u8]) -> Tried {
    let brief = decode(input, Detail::Brief, Limit::USUAL);
    let mut whole = match read(input) {
        Ok(whole) => whole,
        Err(problem) => {
            let brief = brief.map(drop).map_err(|it| it.to_string());
            same("looks agree", &brief, &Err(problem.to_string()))?;
            return refused(&problem);
        }
    };
    let brief = brief.map_err(|it| format!("only a brief look refuses it: {it}"))?;
    let details = whole.details.take();
    same("looks agree", &brief, &whole)?;
    same("details are read", &details.is_none(), &whole.is_oversized)?;
    if let Some(details) = details.as_ref().map(Details::value).as_deref() {
        // The JSON form is both printed and stored.
        let text = bytes(details);
        let text = std::str::from_utf8(&text).map_err(|it| it.to_string())?;
        let again = show(text).map_err(|it| format!("{text} is refused: {it}"))?;
        same("written again", details, &again)?;
    }
    let edit = Edit {
        priority: Some(Priority::Low),
        ..Edit::default()
    };
    match edited(input, &edit, Limit::USUAL) {
        Ok(edited) => {
            let mut again = read(&edited).map_err(|it| format!("edited, it is refused: {it}"))?;
            same(
                "an edit leaves the details",
                &details,
                &again.details.take(),
            )?;
            whole.priority = Priority::Low;
            same("an edit leaves the rest", &whole, &again)?;
        }
        Err(_) if whole.is_oversized => {}
        Err(problem) => return Err(format!("it cannot be edited: {problem}")),
    }
    Ok(Answer::Read)
}

#[test]
fn untrusted_json_postings_decode_consistently() {
    let vectors = [POSTINGS, TOLERANCE].map(|it| list(it, "vectors")).concat();
    let postings = vectors.iter().map(bytes_of).filter(|it| it.len() < 4096);
    Corpus::of(Bounds::STORED, postings).hold(is_a_posting);
}

#[test]
fn untrusted_locks_round_trip() {
    let locks = [
        r#"{"owner": ""}"#,
        r#"{"owner": "\ud83d\ude00 \u00e9\"\\"}"#,
        "{}",
    ];
    let locks = written(".lock").into_iter().chain(locks.map(str::to_owned));
    Corpus::of(Bounds::STORED, locks).hold(|input| match read_lock(input) {
        Lock::Owned(owner) => {
            let again = read_lock(&lock(&owner));
            let is_text = std::str::from_utf8(owner.as_bytes()).is_ok();
            match again {
                Lock::Owned(again) if !is_text || again == owner => Ok(Answer::Read),
                again => Err(format!("{owner:?} is written as {again:?}")),
            }
        }
        Lock::Vacant(problem) | Lock::Unreadable(problem) => refused(&problem),
    });
}

#[test]
fn untrusted_conductors_round_trip() {
    let entities = written("/conductor/").into_iter().chain([
        r#"{"kind": "conductor", "name": "a@b:1", "metadata": {"hostname": "b", "pid": 1}}"#
            .to_owned(),
    ]);
    Corpus::of(Bounds::STORED, entities).hold(|input| match Entity::decode(input) {
        Ok(entity) => {
            let again = Entity::decode(&entity.encode()).map_err(|it| it.to_string());
            same("written again", &Ok(entity), &again).and(Ok(Answer::Read))
        }
        Err(problem) => refused(&problem),
    });
}

#[test]
fn truncated_posting_is_refused() {
    for vector in list(POSTINGS, "vectors") {
        let bytes = bytes_of(&vector);
        read(&bytes).unwrap();
        for end in 0..bytes.len() {
            let problem = read(&bytes[..end]).unwrap_err().to_string();
            let expected = match end {
                0 => "the record is empty",
                _ => "the record is truncated",
            };
            assert_eq!(problem, expected);
        }
    }
}

#[test]
fn only_white_space_may_surround_a_posting() {
    let posting = with(r#""priority": "LOW""#);
    read(&[b" \n\r\t", &posting[..], b" \n\r\t"].concat()).unwrap();
    for tail in ["x", "{}", "\0", "\u{a0}"] {
        let bytes = [&posting[..], tail.as_bytes()].concat();
        let problem = read(&bytes).unwrap_err().to_string();
        let expected = "extra bytes follow the record";
        assert_eq!(problem, expected);
    }
    let problem = read(b" \n").unwrap_err().to_string();
    assert_eq!(problem, "the record is truncated");
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
fn numbers_may_have_any_length() {
    let digits = "7".repeat(100_000);
    assert_eq!(show(&digits).unwrap()["$int"], digits.as_str());
    assert_eq!(show(&format!("{digits}.0")).unwrap()["$float"], "inf");
    assert_eq!(show(&format!("0.{digits}")).unwrap(), 7.0 / 9.0);
    assert_eq!(show(&format!("1e{digits}")).unwrap()["$float"], "inf");
    assert_eq!(show(&format!("1e-{digits}")).unwrap(), 0.0);
}

#[test]
fn oversized_details_are_skipped_and_the_rest_is_read() {
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
