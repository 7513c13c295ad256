//! JSON as Python writes and reads it: its `json` module produced the tables.

use serde_json::{Value, json};

use super::{super::write::bytes, PYTHON, list, show, unhex};
use crate::tests::rows;

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn numbers_are_written_as_in_python() {
    for row in list(PYTHON, "floats") {
        let number = unhex(text(&row[0])).try_into().map(f64::from_be_bytes);
        let written = bytes(&number.unwrap());
        assert_eq!(String::from_utf8(written).unwrap(), text(&row[1]));
    }
}

#[test]
fn numbers_are_read_exactly() {
    for row in list(PYTHON, "floats") {
        let shown = show(text(&row[1])).unwrap().as_f64().unwrap();
        assert_eq!(shown.to_be_bytes().to_vec(), unhex(text(&row[0])));
    }
}

#[test]
fn texts_round_trip_as_in_python() {
    for row in list(PYTHON, "texts") {
        let original = String::from_utf8(unhex(text(&row[0]))).unwrap();
        let written = bytes(&original);
        assert_eq!(String::from_utf8(written).unwrap(), text(&row[1]));
        assert_eq!(show(text(&row[1])).unwrap(), original);
        let key = bytes(&json!({ original.as_str(): original }));
        let expected = format!("{{{0}: {0}}}", text(&row[1]));
        assert_eq!(String::from_utf8(key).unwrap(), expected);
    }
}

#[test]
fn half_surrogate_pairs_are_refused_and_other_values_are_read_as_in_python() {
    let (mut shown, mut refused) = (0, 0);
    for row in list(PYTHON, "literals") {
        let literal = text(&row[0]);
        let result = show(literal);
        match row[1].get("shown") {
            // Null details count as empty.
            Some(Value::Null) => assert_eq!(result.unwrap(), json!({})),
            Some(expected) => {
                shown += 1;
                assert_eq!(result.unwrap().to_string(), expected.to_string());
            }
            None => {
                refused += 1;
                assert!(result.is_err(), "{literal}");
            }
        }
    }
    assert!(shown > 40 && refused > 50);
}

#[test]
fn errors_name_the_problem() {
    for [literal, problem] in rows(
        r#"
        nope => a value is missing at byte 38
        [1 2] => a comma is missing at byte 41
        {1: 2} => a key is missing at byte 39
        {"a" 1} => a colon is missing at byte 43
        "\n" => a string contains a control character at byte 39
        "\x41" => a string contains an invalid escape at byte 38
        "\ud83dx" => a string contains an invalid escape at byte 38
        "#,
    ) {
        let message = show(literal).unwrap_err().to_string();
        assert_eq!(message, format!("the record is not JSON: {problem}"));
    }
}
