//! Conductors that TaskFlow registers.

use super::{super::Entity, written};
use crate::tests::rows;

#[test]
fn taskflow_entities_round_trip() {
    let entities = written("/conductor/");
    let [text] = &entities[..] else {
        panic!("{entities:?}");
    };
    let entity = Entity::decode(text.as_bytes()).unwrap();
    let expected = Entity {
        name: "cond-a@host.example:4123".to_owned(),
        host: "host.example".to_owned(),
        pid: 4123,
    };
    assert_eq!(entity, expected);
    assert_eq!(String::from_utf8(entity.encode()).unwrap(), *text);
}

#[test]
fn entities_may_have_extra_members_in_any_order() {
    let text = r#"{"metadata": {"x": 1, "pid": 7, "hostname": "h"}, "y": [], "name": "é", "kind": "conductor"}"#;
    let entity = Entity::decode(text.as_bytes()).unwrap();
    assert_eq!((&*entity.name, &*entity.host, entity.pid), ("é", "h", 7));
}

#[test]
fn other_entities_are_refused() {
    let with =
        |metadata: &str| format!(r#"{{"kind": "conductor", "name": "n", "metadata": {metadata}}}"#);
    let problem = |text: &str| Entity::decode(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(problem(""), "the record is empty");
    for [text, expected] in rows(
        r#"
        {} => the record has no `kind`
        {"kind": "worker"} => the record has the unknown kind `worker`
        {"kind": "conductor"} => the record has no `name`
        "#,
    ) {
        assert_eq!(problem(text), expected);
    }
    for [metadata, expected] in rows(
        r#"
        5 => the record is a number, not a map
        {} => the record has no `hostname`
        {"hostname": "h"} => the record has no `pid`
        {"hostname": "h", "pid": "7"} => the pid is not a process number
        {"hostname": "h", "pid": -7} => the pid is not a process number
        "#,
    ) {
        assert_eq!(problem(&with(metadata)), expected, "{metadata}");
    }
}
