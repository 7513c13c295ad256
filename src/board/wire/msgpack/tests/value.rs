//! Shown forms of values without a JSON form.

use serde_json::{Value, json};

use super::{
    super::stored::{ShownValue, bytes},
    TIME, read, unhex, with,
};

fn show(value: &str) -> Value {
    let details = read(&with("details", value)).unwrap().details;
    details.unwrap().value().into_owned()
}

fn extension(code: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xc8];
    bytes.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
    bytes.push(code);
    bytes.extend(payload);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn show_extension(code: u8, payload: &str) -> Value {
    show(&hex(&extension(code, &unhex(payload))))
}

#[test]
fn numbers_are_exact() {
    assert_eq!(show("cfffffffffffffffff"), json!(u64::MAX));
    assert_eq!(show("d38000000000000000"), json!(i64::MIN));
    assert_eq!(show("cb8000000000000000").to_string(), "-0.0");
    assert_eq!(show("ca3fc00000"), json!(1.5));
    assert_eq!(show("ca7fc00000"), json!({ "$float": "nan" }));
    assert_eq!(show("cbfff0000000000000"), json!({ "$float": "-inf" }));
}

#[test]
fn known_extensions_are_displayed_as_text() {
    let uuid = hex(b"000102030405060708090A0B0c0d0e0f");
    for (code, payload, text) in [
        (0, uuid.as_str(), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (1, &TIME[6..], "2024-02-29T13:05:09.123456"),
    ] {
        let expected = json!({ "$ext": code, "text": text });
        assert_eq!(show_extension(code, payload), expected);
    }
}

#[test]
fn times_name_their_zone() {
    let mut payload = unhex(&TIME[6..]);
    payload[0] += 1;
    payload.extend(b"\xa2tz\xa4Mars");
    let shown = show(&hex(&extension(1, &payload)));
    assert_eq!(shown["text"], "2024-02-29T13:05:09.123456[Mars]");
}

#[test]
fn unknown_and_broken_extensions_are_displayed_in_hex() {
    for (code, payload) in [
        (9, "00ff"),
        (0, "3030"),
        (1, "80"),
        (1, ""),
        (4, "93c3a16190"),
        (99, ""),
    ] {
        let expected = json!({ "$ext": code, "hex": payload });
        assert_eq!(show_extension(code, payload), expected);
    }
    let undefined = read(&with("details", "d4fe00")).unwrap_err().to_string();
    let problem = "the record contains a value of the undefined type -2";
    assert_eq!(undefined, problem);
    let timestamp = json!({ "$ext": -1, "hex": "6553f100" });
    assert_eq!(show("d6ff6553f100"), timestamp);
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| read(&with("details", &("91".repeat(levels) + "c0")));
    assert!(nested(128).is_ok());
    let problem = nested(129).unwrap_err().to_string();
    assert_eq!(problem, "the record is nested deeper than 128 levels");
    let maps = read(&with("extra", &("81a16b".repeat(129) + "c0")));
    assert_eq!(maps.unwrap_err().to_string(), problem);
    assert!(read(&[0x91; 1_000_000]).is_err());
    assert!(nested(100_000).is_err());
}

fn written(shown: &Value) -> String {
    hex(&bytes(&ShownValue(shown)))
}

#[test]
fn values_without_a_json_form_are_written_back_unchanged() {
    let extension = |code, payload: &str| hex(&rmp_extension(code, &unhex(payload)));
    let uuid = hex(b"000102030405060708090a0b0c0d0e0f");
    let zoned = {
        let mut payload = unhex(&TIME[6..]);
        payload[0] += 1;
        payload.extend(b"\xa2tz\xa4Mars");
        hex(&payload)
    };
    for raw in [
        "c40200ff".to_owned(),
        "cb7ff8000000000000".to_owned(),
        "cbfff0000000000000".to_owned(),
        "9281a161c402ff00c0".to_owned(),
        "81c402ff0001".to_owned(),
        TIME.to_owned(),
        extension(0, &uuid),
        extension(1, &zoned),
        extension(4, "93c3a16190"),
        extension(9, "00ff"),
        extension(0, "3030"),
    ] {
        let shown = show(&raw);
        assert_eq!(written(&shown), raw, "{shown}");
    }
}

#[test]
fn lookalikes_of_special_values_are_written_literally() {
    for look in [
        json!({ "$bytes": "?" }),
        json!({ "$bytes": 1 }),
        json!({ "$bytes": "AA==", "x": 1 }),
        json!({ "$float": "many" }),
        json!({ "$ext": 1, "text": "yesterday" }),
        json!({ "$ext": 1000, "hex": "00" }),
        json!({ "$ext": -2, "hex": "00" }),
        json!({ "$ext": 9, "hex": "0" }),
        json!({ "$ext": 9, "text": "a" }),
        json!({ "$bytes:?": 1 }),
    ] {
        assert_eq!(show(&written(&look)), look);
    }
}

fn rmp_extension(code: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    let mut bytes = match length {
        1 | 2 | 4 | 8 | 16 => vec![0xd4 + u8::try_from(length.ilog2()).unwrap()],
        _ => vec![0xc7, length],
    };
    bytes.push(code);
    bytes.extend(payload);
    bytes
}
