//! Sorting and grouping by a field.

use super::*;

fn order(field: &str, entries: &[Entry]) -> Vec<usize> {
    let order = FieldOrder::read(field).unwrap();
    let mut places: Vec<_> = (0..entries.len()).collect();
    let keys: Vec<_> = entries.iter().map(|it| order.key(it, now())).collect();
    places.sort_by(|&one, &other| order.compare(&keys[one], &keys[other]));
    places
}

fn value(field: &str, entry: &Entry) -> Value {
    FieldPath::read(field).unwrap().group(entry, now())
}

#[test]
fn missing_values_sort_last_in_both_directions() {
    let tried = |attempts| {
        let attempts = Attempts {
            count: attempts,
            ..Attempts::default()
        };
        entry(Job { attempts, ..job() })
    };
    let entries = [malformed(), tried(11), tried(2), tried(30)];
    assert_eq!(order("attempts", &entries), [2, 1, 3, 0]);
    assert_eq!(order("-attempts", &entries), [3, 1, 2, 0]);
    let entries = [unclaimed(), claimed(), malformed()];
    assert_eq!(order("owner", &entries), [1, 0, 2]);
    assert_eq!(order("-state", &entries), [0, 2, 1]);
    assert_eq!(order("-size", &entries), [0, 1, 2]);
}

#[test]
fn earliest_start_and_soonest_end_sort_first() {
    let old = |seconds| {
        entry(Job {
            created_on: ago(seconds),
            ..job()
        })
    };
    let undated = entry(Job {
        created_on: None,
        ..job()
    });
    let entries = [old(10), old(1000), undated, old(100)];
    assert_eq!(order("age", &entries), [1, 3, 0, 2]);
    assert_eq!(order("-age", &entries), [0, 3, 1, 2]);
    let lapsing = |seconds| entry(held(ClaimEnd::Timed, Some(seconds)));
    let never = entry(held(ClaimEnd::Never, None));
    let claims = [never, lapsing(20), lapsing(3)];
    assert_eq!(order("expires", &claims), [2, 1, 0]);
}

#[test]
fn priorities_are_ordered_by_importance() {
    let of = |priority| entry(Job { priority, ..job() });
    let entries = [Priority::High, Priority::VeryLow, Priority::Normal].map(of);
    assert_eq!(order("-priority", &entries), [0, 2, 1]);
}

#[test]
fn numeric_details_sort_before_texts() {
    let values = r#"["b", 10, 9.5, null, -3, "10", -2.5, 9007199254740993, 9007199254740992,
                     9007199254740992.0]"#;
    let values: Vec<Value> = serde_json::from_str(values).unwrap();
    let entry = |value| with(json!({ "x": value }));
    let entries: Vec<_> = values.into_iter().map(entry).collect();
    assert_eq!(order("details.x", &entries), [4, 6, 2, 1, 8, 7, 9, 5, 0, 3]);
}

#[test]
fn values_match_json_and_durations_are_ranges() {
    for (field, expected) in [
        ("name", json!("backup/db-1")),
        ("state", json!("CLAIMED")),
        ("owner", json!("worker-7")),
        ("priority", json!("NORMAL")),
        ("attempts", json!(3)),
        ("held", json!(60)),
        ("age", json!(3600)),
        ("expires", json!(0)),
        ("took", json!(null)),
        ("details.x", json!(null)),
    ] {
        assert_eq!(value(field, &claimed()), expected, "{field}");
    }
    assert_eq!(value("details.x", &with(json!({"x": [1]}))), json!([1]));
    assert_eq!(value("name", &malformed()), json!(null));
}

#[test]
fn values_have_readable_labels() {
    for (field, value, words) in [
        ("age", json!(0), Some("under 1m")),
        ("held", json!(600), Some("10m to 1h")),
        ("took", json!(604800), Some("7d or more")),
        ("attempts", json!(0), Some("0")),
        ("details.x", json!({"a": 1}), Some("{\"a\":1}")),
        ("owner", json!(null), None),
    ] {
        let field = FieldPath::read(field).unwrap();
        assert_eq!(field.in_words(&value).as_deref(), words);
    }
}

#[test]
fn unknown_sort_field_lists_the_known_ones() {
    let refusal = FieldOrder::read("-atempts").unwrap_err();
    let expected = "unknown field `atempts` (did you mean `attempts`?); the fields are name,";
    assert!(refusal.starts_with(expected), "{refusal}");
}
