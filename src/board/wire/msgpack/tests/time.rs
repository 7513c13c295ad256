//! Times in forms that TaskFlow itself does not write.

use super::{super::read_time, read, unhex, with};
use crate::tests::rows;

const CLOCK: &str = "a364617901a56d6f6e746802a479656172cd07e8a4686f757203a66d696e75746504\
                     a67365636f6e6405ab6d6963726f7365636f6e6406";

/// The time on that clock.
const USUAL: &str = "2024-02-01 03:04:05.000006 UTC";

fn payload(pairs: u8, more: &str) -> Vec<u8> {
    let mut bytes = vec![0x87 + pairs];
    bytes.extend(unhex(CLOCK));
    bytes.extend(unhex(more));
    bytes
}

fn extension(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xc7, payload.len() as u8, 1];
    bytes.extend(payload);
    bytes
}

fn read_with(pairs: u8, more: &str) -> String {
    match read_time(&extension(&payload(pairs, more))) {
        Ok(time) => time.to_string(),
        Err(problem) => problem.to_string(),
    }
}

#[test]
fn times_accept_numbers_of_any_width_and_repeated_keys() {
    for [more, expected] in rows(
        "
        a364617902 => 2024-02-02 03:04:05.000006 UTC
        a3646179d3000000000000000b => 2024-02-11 03:04:05.000006 UTC
        c403646179c3 => 2024-02-01 03:04:05.000006 UTC
        a3666f6f81a16190 => 2024-02-01 03:04:05.000006 UTC
        ",
    ) {
        assert_eq!(read_with(1, more), expected, "{more}");
    }
    assert_eq!(read_with(0, ""), USUAL);
}

#[test]
fn invalid_times_are_refused() {
    for [more, expected] in rows(
        "
        a36461791e => 2024-02-30T03:04:05.000006 is not a valid time
        a47965617200 => 0-02-01T03:04:05.000006 is not a valid time
        a67365636f6e643c => 2024-02-01T03:04:60.000006 is not a valid time
        a3646179ff => 2024-02--1T03:04:05.000006 is not a valid time
        a3646179a131 => the `day` of a time is not a number
        05c0 => the record contains a map with a number as a key
        a2747a05 => the zone of a time is not a string
        a2747aa3757463 => a time is in the zone `utc` instead of UTC
        ",
    ) {
        assert_eq!(read_with(1, more), expected, "{more}");
    }
    assert_eq!(
        read_with(2, "a67365636f6e643bab6d6963726f7365636f6e64ce000f4240"),
        "2024-02-01T03:04:59.1000000 is not a valid time",
    );
    assert_eq!(read_with(0, "c0"), "extra bytes follow the record");
    let mut long = extension(&payload(0, ""));
    long.push(0);
    assert!(read_time(&long).is_err());
    for (bytes, expected) in [
        (&b""[..], "the record is empty"),
        (b"\xa3now", "the record has a string in place of a time"),
        (b"\xd4\x01\x90", "a time has no `day`"),
    ] {
        assert_eq!(read_time(bytes).unwrap_err().to_string(), expected);
    }
}

#[test]
fn zone_may_be_absent_or_utc() {
    for zone in "a3555443 c403555443 a74574632f555443 a3474d54 a0 c0 00".split(' ') {
        assert_eq!(read_with(1, &format!("a2747a{zone}")), USUAL, "{zone}");
    }
}

#[test]
fn job_posted_in_another_zone_is_listed_without_its_time() {
    let berlin = extension(&payload(1, "a2747aad4575726f70652f4265726c696e"));
    let hex: String = berlin.iter().map(|byte| format!("{byte:02x}")).collect();
    let posting = read(&with("created_on", &hex)).unwrap();
    assert_eq!(posting.created_on, None);
    let problem = "created_on: a time is in the zone `Europe/Berlin` instead of UTC";
    assert_eq!(posting.problem.as_deref(), Some(problem));
}
