//! Damaged and malicious bytes never cause a panic.

use serde_json::Value;

use super::{
    super::{
        around_number, decode, edited, rank, read_time,
        stored::{ShownValue, bytes},
        time as encoded,
        token::PackReader,
        value::Viewer,
    },
    DATETIMES, LAST_MODIFIED, POSTINGS, TOLERANCE, bytes_of, read, unhex, vectors, with,
};
use crate::{
    board::{
        Detail,
        wire::posting::{Limit, Posting, RecordProblem},
    },
    job::{Edit, Priority},
    untrusted::{Answer, Bounds, Corpus, Tried, refused, same},
};

fn postings() -> Corpus {
    let vectors = [POSTINGS, TOLERANCE].into_iter().flat_map(vectors);
    // The longest ones are many times the same.
    let postings = vectors.map(|it| bytes_of(&it)).filter(|it| it.len() < 4096);
    Corpus::of(Bounds::STORED, postings)
}

/// Any accepted posting must work for all readers and writers.
fn is_a_posting(
    decode: impl Fn(&[u8], Detail) -> Result<Posting, RecordProblem>,
    input: &[u8],
) -> Tried {
    let (brief, whole) = (decode(input, Detail::Brief), decode(input, Detail::Whole));
    let (brief, mut whole) = match (brief, whole) {
        (Err(brief), Err(whole)) => {
            same("looks agree", &brief.to_string(), &whole.to_string())?;
            return refused(&whole);
        }
        (brief, whole) => (
            brief.map_err(|it| format!("only a brief look refuses it: {it}"))?,
            whole.map_err(|it| format!("only a whole look refuses it: {it}"))?,
        ),
    };
    let details = whole.details.take();
    same("looks agree", &brief, &whole)?;
    same("details are read", &details.is_none(), &whole.is_oversized)?;
    let parts = around_number(input).map(|parts| parts.concat());
    same(
        "its number is a part of it",
        &parts.as_deref(),
        &Some(input),
    )?;
    if let Some(problem) = whole.problem.as_ref().filter(|it| it.len() > 4096) {
        return Err(format!("the problem takes {} bytes", problem.len()));
    }
    if let Some(details) = &details {
        are_stored_as_displayed(&details.value())?;
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
        Err(problem) if problem.contains("no room to add it") || whole.is_oversized => {}
        Err(problem) => return Err(format!("it cannot be edited: {problem}")),
    }
    Ok(Answer::Read)
}

/// Requires that the shown form converts back to the stored value.
fn are_stored_as_displayed(details: &Value) -> Result<(), String> {
    let stored = bytes(&ShownValue(details));
    let mut reader = PackReader::new(&stored);
    let checked = reader.item().and_then(|_| reader.end());
    checked.map_err(|problem| format!("the stored {details} are rejected: {problem}"))?;
    let shown = Viewer {
        has_byte_texts: false,
    }
    .show(&mut PackReader::new(&stored));
    let shown = shown.map_err(|problem| format!("{details} is not shown: {problem}"))?;
    same("stored again", &stored, &bytes(&ShownValue(&shown)))?;
    // Bytes with a known meaning are shown by that meaning.
    match details.to_string().contains("\"hex\"") {
        true => Ok(()),
        false => same("shown again", details, &shown),
    }
}

#[test]
fn untrusted_postings_decode_consistently() {
    let reader = |input: &[u8], detail| decode(input, detail, Limit::USUAL);
    postings().hold(|input| {
        let read = reader(input, Detail::Brief).ok();
        let read = read.map(|posting| (posting.priority, posting.sequence));
        same("its rank", &rank(input).ok(), &read)?;
        is_a_posting(reader, input)
    });
}

#[test]
fn untrusted_postings_expose_a_reader_that_invents_missing_bytes() {
    let reader = |input: &[u8], detail| {
        let longer = (0..64).map(|more| [input, &vec![0; more][..]].concat());
        let mut tried = longer.map(|input| decode(&input, detail, Limit::USUAL));
        let found = tried.find(|tried| !matches!(tried, Err(RecordProblem::Truncated)));
        found.unwrap_or(Err(RecordProblem::Truncated))
    };
    let fault = postings().fault(|input| is_a_posting(reader, input));
    let invariant = fault.expect("it is found").invariant;
    assert!(
        invariant.contains("its number is a part of it"),
        "{invariant}"
    );
}

#[test]
fn untrusted_details_are_stored_as_displayed() {
    let shown = [
        r#"{"a": [1, -1, 1.5, -0.0, 18446744073709551615, null, true, "é"], "b": {"$float": "nan"}}"#,
        r#"{"$bytes:/w==": {"$bytes": "/w=="}, "c": {"$ext": 42, "hex": "00ff"}}"#,
        r#"[{"$ext": 0, "text": "1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b"}]"#,
        r#"{"t": {"$ext": 1, "text": "2024-02-29T13:05:09.123456[Europe/Paris]"}}"#,
        r#"{"t": {"$ext": 6, "text": "2024-02-29T13:05:09.123456+00:00"}}"#,
        r#"[{"$ext": 2, "text": "[3,1]"}, {"$ext": 3, "text": "127.0.0.1"}]"#,
        r#"[{"$ext": 4, "text": "[1,\"a\"]"}, {"$ext": 7, "text": "2024-02-29"}]"#,
    ];
    let read = |text: &str| match serde_json::from_str(text) {
        Ok(details) => are_stored_as_displayed(&details).and(Ok(Answer::Read)),
        Err(error) => refused(&error),
    };
    Corpus::of(Bounds::STORED, shown).hold_for_text(read);
}

#[test]
fn invalid_extension_is_stored_as_a_map() {
    for shown in [
        r#"{"$ext": 1, "text": "2024-02-29T13:05:60.123456"}"#,
        r#"{"$ext": 1, "text": "+2024-02-29T13:05:09.12345"}"#,
        r#"{"$ext": 2, "text": "[1,2,3]"}"#,
        r#"{"$ext": 7, "text": "+12345-01-01"}"#,
        r#"{"$ext": 42, "hex": "+f"}"#,
    ] {
        let shown: Value = serde_json::from_str(shown).unwrap();
        let stored = bytes(&ShownValue(&shown));
        let map = PackReader::new(&stored).token().unwrap();
        assert_eq!(map.kind(), "a map", "{shown}");
    }
}

#[test]
fn untrusted_times_round_trip() {
    let times = [DATETIMES, LAST_MODIFIED].into_iter().flat_map(vectors);
    let times = times.map(|vector| bytes_of(&vector));
    Corpus::of(Bounds::STORED, times).hold(|input| match read_time(input) {
        Ok(time) => {
            let again = read_time(&encoded(time)).map_err(|it| it.to_string());
            same("written again", &Ok(time), &again).and(Ok(Answer::Read))
        }
        Err(problem) => refused(&problem),
    });
}

#[test]
fn truncated_posting_is_refused() {
    for vector in vectors(POSTINGS) {
        let bytes = bytes_of(&vector);
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_err());
        }
    }
}

#[test]
fn declared_lengths_are_not_trusted() {
    for text in [
        "dfffffffff",
        "dfffffffffa161ddffffffff",
        "81a161dbffffffff",
        "81a161c6ffffffff",
        "81a161c9ffffffff01",
        "81a161ddffffffffc0",
    ] {
        let problem = read(&unhex(text)).unwrap_err().to_string();
        assert_eq!(problem, "the record is truncated");
    }
}

#[test]
fn oversized_details_are_skipped_and_the_rest_is_read() {
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
        let expected = format!("the `{member}` of the record is too large");
        assert_eq!(problem.to_string(), expected);
    }
}
