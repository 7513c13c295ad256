//! Locks that TaskFlow writes, and malformed ones.

use super::{
    super::{Lock, lock, read_lock},
    written,
};
use crate::job::Owner;

fn owner_of(bytes: &[u8]) -> Owner {
    match read_lock(bytes) {
        Lock::Owned(owner) => owner,
        other => panic!("{other:?}"),
    }
}

#[test]
fn taskflow_locks_round_trip() {
    let locks = written(".lock");
    assert_eq!(locks.len(), 2);
    for text in locks {
        let owner = owner_of(text.as_bytes());
        assert!(["alice", "wörker ☃"].contains(&owner.text().as_ref()));
        assert_eq!(String::from_utf8(lock(&owner)).unwrap(), text);
    }
}

#[test]
fn owners_differ_in_every_character() {
    let full = owner_of(br#" {"owner": "x", "lease_id": 5, "owner": "\ud83d\ude80"} "#);
    assert_eq!(full, Owner::new("🚀").unwrap());
    let names = [
        r"a\ud83d\ude00",
        r"a\ud83d\ude01",
        r"a\\ud800",
        r"a\ufffd",
        "a",
    ];
    let owners = names.map(|name| owner_of(format!(r#"{{"owner": "{name}"}}"#).as_bytes()));
    for (at, owner) in owners.iter().enumerate() {
        assert_eq!(owners.iter().position(|other| other == owner), Some(at));
    }
}

#[test]
fn lock_without_an_owner_is_unowned() {
    let owners = ["null", "\"\"", "0", "-0.0", "false", "[]", "{ }"];
    let owners = owners.map(|owner| format!(r#"{{"owner": {owner}}}"#));
    let none = ["{}", r#"{"other": 1}"#].map(str::to_owned);
    for text in owners.iter().chain(&none) {
        let read = read_lock(text.as_bytes());
        let Lock::Vacant(problem) = read else {
            panic!("{text}: {read:?}");
        };
        let expected =
            "the lock names no owner, so the job counts as unclaimed, but no worker can claim it";
        assert_eq!(problem, expected);
    }
}

#[test]
fn unreadable_owner_still_counts_as_claimed() {
    let broken = |problem: &str| {
        format!("the lock is unreadable, and TaskFlow fails on it: the record {problem}")
    };
    let typed = |kind: &str| format!("the owner in the lock is {kind}, not a string");
    let huge = format!(r#"{{"owner": "{}"}}"#, "x".repeat(5000));
    for (bytes, expected) in [
        (
            huge.as_bytes(),
            "the owner in the lock has 5000 bytes".to_owned(),
        ),
        (br#"{"owner": 5}"#, typed("a number")),
        (br#"{"owner": NaN}"#, typed("a floating-point number")),
        (br#"{"owner": true}"#, typed("a boolean")),
        (br#"{"owner": ["ada"]}"#, typed("a list")),
        (br#"{"owner": {"a": 1}}"#, typed("a map")),
        (b"", broken("is empty")),
        (b"ada", broken("is not JSON: a value is missing at byte 0")),
        (b"[]", broken("is a list, not a map")),
        (
            br#"{"owner": "a\ud800"}"#,
            broken("is not JSON: a string contains an invalid escape at byte 10"),
        ),
        (br#"{"owner": "ada"#, broken("is truncated")),
        (
            b"{\"owner\": \"\xff\"}",
            broken("contains a string that is not UTF-8"),
        ),
        (b"\xef\xbb\xbf{}", broken("begins with a byte order mark")),
    ] {
        let read = read_lock(bytes);
        let Lock::Unreadable(problem) = read else {
            panic!("{bytes:?}: {read:?}");
        };
        assert_eq!(problem, expected);
    }
}
