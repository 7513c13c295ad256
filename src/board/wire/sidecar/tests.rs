//! Reading and writing sidecars.

use super::*;
use crate::{
    job::{Aftermath, Authority, Decision, ExpectedState, JobKey, Revision, Settlement},
    untrusted::{Answer, Bounds, Corpus, refused, same},
};

fn eventful() -> Sidecar {
    let now = Utc::now();
    let audit = AuditEntry::now("abandoned", "olga", None);
    Sidecar {
        owner: Some("ada".to_owned()),
        claimed_on: Some(now),
        fence: Some(Fence("7".to_owned())),
        attempts: 2,
        session: Some(10_000),
        ahead: true,
        postponed: u32::MAX,
        not_before: Some(now),
        failures: vec![Failure {
            exit_code: Some(3),
            ..Failure::reported("it failed", "c1")
        }],
        trashed_on: Some(now),
        created_on: Some(now),
        first_claimed_on: Some(now),
        audit: Some(audit),
        ..Sidecar::default()
    }
}

#[test]
fn known_members_equal_the_written_members() {
    let written: Map<String, Value> = serde_json::from_slice(&eventful().write()).unwrap();
    let mut written: Vec<_> = written.keys().map(String::as_str).collect();
    let mut known = MEMBERS;
    written.sort_unstable();
    known.sort_unstable();
    assert_eq!(written, known);
}

#[test]
fn unknown_members_are_preserved_and_reset_ones_are_not() {
    let former = br#"{"v":1,"owner":"ada","attempts":5,"colour":{"of":["the",1]}}"#;
    let (read, problem) = Sidecar::read(Some(former));
    assert_eq!(problem, None);
    let restore = Revision::from_trash(JobKey::new("1"), None);
    let restored = read.restarted(&restore, Utc::now()).unwrap();
    let restored = restored.write_over(former);
    let restored: Value = serde_json::from_slice(&restored).unwrap();
    assert_eq!(
        restored,
        serde_json::json!({"v": 1, "colour": {"of": ["the", 1]}})
    );
}

#[test]
fn unsupported_sidecar_reports_only_the_reason() {
    for (text, expected) in [
        ("", "empty or not text"),
        ("{}", "version is missing"),
        (r#"{"v":0}"#, "version is missing"),
        (r#"{"v":3}"#, "version 3"),
        (r#"{"v":3,"attempts":"x"}"#, "version 3"),
        (r#"{"v":1,"attempts":"x"}"#, "is unreadable"),
        (r#"{"v":1,"colour":"\ud800"}"#, "is unreadable"),
        (
            r#"{"v":1,"not_before":"2026-01-01 00:00:00Z"}"#,
            "is not a time",
        ),
    ] {
        let (side, problem) = Sidecar::read(Some(text.as_bytes()));
        assert_eq!(side, Sidecar::default());
        let problem = problem.unwrap();
        assert!(problem.contains(expected), "{text}: {problem}");
    }
    let long = format!("{{\"v\":1,\"x\":\"{}\"}}", "x".repeat(MAX_SIDECAR_BYTES));
    assert!(Sidecar::read(Some(long.as_bytes())).1.is_some());
}

/// The scripts on Redis have the same bounds; their tests only compare both.
#[test]
fn values_are_read_up_to_their_bounds() {
    let beyond = r#"
        "attempts":-1
        "attempts":1.5
        "attempts":4294967296
        "attempts":null
        "postponed":[1]
        "not_before":5
        "not_before":"2026-02-30T00:00:00Z"
        "not_before":"2026-01-01T00:00:00+02:00"
        "not_before":"2026-12-31T23:59:60Z"
        "remark":{"by":"ada","on":"2026-12-31T23:59:60Z"}
        "session":100000000000000
        "owner":{"name":"ada"}
        "ahead":1
        "failures":5
        "failures":[{"reason":"r","stdout":null,"stderr":"","conductor":"c","time":"2020-02-29T23:59:59Z"}]
        "failures":[{"reason":"r","stdout":"","stderr":"","conductor":"c","time":"now"}]"#;
    let within = r#"
        "attempts":4294967295,"postponed":4294967295
        "not_before":"2020-02-29T23:59:59.123456789Z","owner":null
        "ahead":true,"session":99999999999999,"claimed_on":null
        "failures":[{"exit_code":1,"signal":null,"reason":"r","stderr":"","conductor":"c","time":"2020-02-29T23:59:59.1Z"}]"#;
    for (members, is_read) in [(beyond, false), (within, true)] {
        for members in members.trim().lines() {
            let text = format!(r#"{{"v":1,{}}}"#, members.trim());
            let (_, problem) = Sidecar::read(Some(text.as_bytes()));
            assert_eq!(problem.is_none(), is_read, "{text}: {problem:?}");
        }
    }
}

#[test]
fn failures_of_earlier_versions_are_read() {
    let earlier = br#"{"v":1,"failures":[{"exit_code":3,"signal":null,"reason":"it failed",
        "stderr":"oh","conductor":"c1","time":"2026-01-01T00:00:00Z"}]}"#;
    let (mut side, problem) = Sidecar::read(Some(earlier));
    assert_eq!((side.failures.len(), problem), (1, None));
    let longest = Failure {
        // These characters have the longest escapes.
        stdout: "\u{1}".repeat(2048),
        stderr: "\u{1}".repeat(2048),
        ..side.failures[0].clone()
    };
    for _ in 0..5 {
        side.add_failure(&longest);
    }
    let written = side.write();
    assert!(written.len() < MAX_SIDECAR_BYTES / 2);
    assert_eq!(Sidecar::read(Some(&written)), (side, None));
}

#[test]
fn counters_saturate() {
    let mut side = eventful();
    side.attempts = 0;
    let not_before = Utc::now();
    let postponed = Decision::Abandon(Aftermath::Postponed { not_before });
    let authority = Authority::Force(ExpectedState::Unclaimed);
    side.settle(&Settlement::of(JobKey::new("1"), postponed, authority));
    assert_eq!((side.attempts, side.postponed), (0, u32::MAX));
}

#[test]
fn untrusted_sidecars_round_trip() {
    let later = br#"{"v":1,"owner":"ada","attempts":5,"colour":{"of":["the",1]}}"#;
    let corpus = [
        eventful().write(),
        Sidecar::first_attempt(Utc::now()).write(),
        later.to_vec(),
        br#"{"v":2,"attempts":{"many":true}}"#.to_vec(),
    ];
    Corpus::of(Bounds::STORED, corpus).hold(|input| {
        let (side, problem) = Sidecar::read(Some(input));
        if let Some(problem) = problem {
            same("it says nothing else", &side, &Sidecar::default())?;
            return refused(&problem);
        }
        let read = |bytes: &[u8]| Sidecar::read(Some(bytes));
        same("written again", &(side.clone(), None), &read(&side.write()))?;
        let over = side.write_over(input);
        same("written over itself", &(side, None), &read(&over))?;
        // Unknown members keep their values.
        if let Ok(former) = serde_json::from_slice::<Map<String, Value>>(input) {
            let now: Map<String, Value> = serde_json::from_slice(&over).unwrap();
            let others = |members: Map<String, Value>| {
                let is_other = |name: &String| !MEMBERS.contains(&name.as_str());
                members
                    .into_iter()
                    .filter(|(name, _)| is_other(name))
                    .collect::<Vec<_>>()
            };
            same("foreign members stay", &others(former), &others(now))?;
        }
        Ok(Answer::Read)
    });
}
