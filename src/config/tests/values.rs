//! Tests of values and their sources.

use super::*;
use crate::tests::rows;

#[test]
fn owner_comes_from_flag_then_environment_then_table() {
    let machine = Machine::new().user_file("[board.a]\nurl = \"redis://a\"\nwho = \"carl\"");
    let who = |flags, variables: &[(&str, &str)]| text(&machine.load(flags, variables).who);
    let flags = || Flags {
        who: Some("ada".to_owned()),
        ..board("a")
    };
    let variables = [("JOBBOARD_WHO", "bob")];
    assert_eq!(who(flags(), &variables), "ada from --who");
    assert_eq!(who(board("a"), &variables), "bob from JOBBOARD_WHO");
    assert_eq!(who(board("a"), &[]), "carl from the user file");
    assert!(who(board("redis://a"), &[]).ends_with(" from default"));
    let refusal = machine.refusal(board("a"), &[("JOBBOARD_WHO", "a\nb")]);
    assert!(refusal.contains("JOBBOARD_WHO: an owner name must not contain"));
}

#[test]
fn read_only_cannot_be_lifted_by_a_weaker_source() {
    let machine = Machine::new().user_file(
        "[board.ro]\nurl = \"redis://a\"\nread_only = true\n\
         [board.rw]\nurl = \"redis://a\"\nread_only = false",
    );
    for (name, flag, variable, expected) in [
        ("ro", true, Some("1"), "true from --read-only"),
        ("rw", false, Some("TRUE"), "true from JOBBOARD_READ_ONLY"),
        ("ro", false, Some("1"), "true from JOBBOARD_READ_ONLY"),
        ("ro", false, Some("0"), "true from the user file"),
        ("ro", false, None, "true from the user file"),
        ("rw", false, Some(""), "false from JOBBOARD_READ_ONLY"),
        ("rw", false, None, "false from the user file"),
        ("redis://a", false, None, "true from the user file"),
        ("redis://b", false, None, "false from default"),
    ] {
        let flags = Flags {
            read_only: flag,
            ..board(name)
        };
        let set = variable.map(|value| ("JOBBOARD_READ_ONLY", value));
        let read_only = machine.load(flags, set.as_slice()).read_only;
        assert_eq!(text(&read_only), expected, "{name} {flag} {variable:?}");
    }
    let refusal = machine.refusal(board("ro"), &[("JOBBOARD_READ_ONLY", "yes")]);
    let expected = "JOBBOARD_READ_ONLY is `yes`; use 1, true, 0 or false";
    assert_eq!(refusal, expected);
}

#[test]
fn timeout_comes_from_flag_then_user_then_system() {
    let machine = Machine::new().system_file("op_timeout = \"1m30s\"\nmax_details = 4096");
    let flags = |millis| Flags {
        op_timeout: Some(Duration::from_millis(millis)),
        ..Flags::default()
    };
    let config = machine.load(Flags::default(), &[]);
    assert_eq!(config.op_timeout.value, Duration::from_secs(90));
    assert_eq!(text(&config.max_details), "4096 from the system file");
    let machine = machine.user_file("op_timeout = \"2s\"");
    let config = machine.load(Flags::default(), &[]);
    assert_eq!(config.op_timeout.source.to_string(), machine.text(USER));
    assert_eq!(text(&config.max_details), "4096 from the system file");
    let timeout = machine.load(flags(250), &[]).op_timeout;
    let flag = Source::Flag("--op-timeout");
    assert_eq!(timeout, Sourced::new(Duration::from_millis(250), flag));
    for millis in [0, u64::MAX] {
        let refusal = machine.refusal(flags(millis), &[]);
        assert!(refusal.starts_with("--op-timeout: "), "{refusal}");
    }
}

#[test]
fn sizes_accept_units() {
    for (value, bytes, shown) in [
        ("1", 1, "1"),
        ("1500", 1500, "1500"),
        ("2048", 2048, "2KiB"),
        ("\"512KiB\"", 512 * 1024, "512KiB"),
        ("\"1024KiB\"", 1024 * 1024, "1MiB"),
        ("\"3MiB\"", 3 * 1024 * 1024, "3MiB"),
        ("\"1GiB\"", 1024 * 1024 * 1024, "1GiB"),
    ] {
        let machine = Machine::new().user_file(&format!("max_details = {value}"));
        let config = machine.load(Flags::default(), &[]);
        assert_eq!(config.max_details.value, bytes);
        let mut entries = config.entries().into_iter();
        assert!(entries.any(|row| row.key == "max_details" && row.value == shown));
    }
}

#[test]
fn every_value_is_listed_with_its_source() {
    let machine = Machine::new()
        .user_file("[board.a]\nurl = \"redis://ada:hunter2@a\"\nprotected = true")
        .system_file("max_details = \"2MiB\"");
    let (user, system) = (machine.text(USER), machine.text(SYSTEM));
    let flags = Flags {
        who: Some("ada".to_owned()),
        ..board("a")
    };
    let config = machine.load(flags, &[("JOBBOARD_READ_ONLY", "1")]);
    let rows = config.entries().into_iter();
    let rows = rows.map(|row| (row.key.clone(), row.text(), row.source));
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            ("board", "a", "--board"),
            ("url", "redis://ada@a:6379/0", &user),
            ("who", "ada", "--who"),
            ("read_only", "true", "JOBBOARD_READ_ONLY"),
            ("protected", "true", &user),
            ("yes", "false", "default"),
            ("password", "set", &user),
            ("format", "none", "default"),
            ("op_timeout", "5s", "default"),
            ("max_details", "2MiB", &system),
            ("history", "10000", "default"),
            ("config_file", &user, "default"),
            ("config_file", &system, "default"),
        ]
        .map(|(key, value, source)| (key.to_owned(), value.to_owned(), source.to_owned()))
    );
}

#[test]
fn board_without_a_name_has_none_in_the_list() {
    let machine = Machine::new();
    let path = machine.write("other.toml", "");
    let flags = Flags {
        config: Some(path.clone()),
        ..board("redis://a")
    };
    let rows = machine.load(flags, &[]).entries();
    assert_eq!((&*rows[0].key, &rows[0].value), ("board", &Value::Null));
    assert_eq!(rows[0].text(), "none");
    assert_eq!(rows[0].source, "--board");
    let file = rows.last().unwrap();
    assert_eq!(Path::new(&file.text()), path);
    assert_eq!(file.source, "--config");
    let is_unset = |row: &Setting| row.key == "password" && row.value.is_null();
    assert!(rows.iter().any(is_unset));
}

#[test]
fn values_have_json_types() {
    let machine = Machine::new();
    let rows = machine.load(board("redis://a"), &[]).entries();
    for key in ["read_only", "protected", "yes"] {
        let row = rows.iter().find(|row| row.key == key).unwrap();
        assert_eq!((&row.value, &*row.text()), (&Value::Bool(false), "false"));
    }
}

#[test]
fn environment_sets_defaults_for_options() {
    let machine = Machine::new().user_file("op_timeout = \"7s\"");
    let other = machine.write("other.toml", "max_details = 12");
    let variables = [
        ("JOBBOARD_FORMAT", "JSON"),
        ("JOBBOARD_OP_TIMEOUT", "2s"),
        ("JOBBOARD_YES", "1"),
    ];
    let config = machine.load(Flags::default(), &variables);
    assert_eq!(config.format.value, Some(Format::Json));
    assert_eq!(config.format.source.to_string(), "JOBBOARD_FORMAT");
    assert_eq!(config.op_timeout.value, Duration::from_secs(2));
    assert_eq!(config.op_timeout.source.to_string(), "JOBBOARD_OP_TIMEOUT");
    assert_eq!(text(&config.yes), "true from JOBBOARD_YES");
    let other = other.display().to_string();
    let config = machine.load(Flags::default(), &[("JOBBOARD_CONFIG", &other)]);
    assert_eq!(config.max_details.value, 12);
    assert_eq!(config.entries().last().unwrap().source, "JOBBOARD_CONFIG");
}

#[test]
fn command_line_wins_even_over_an_invalid_variable() {
    let machine = Machine::new();
    let path = machine.write("mine.toml", "");
    let flags = Flags {
        format: Some(Format::Tsv),
        op_timeout: Some(Duration::from_secs(1)),
        config: Some(path),
        ..Flags::default()
    };
    let variables = [
        ("JOBBOARD_FORMAT", "xml"),
        ("JOBBOARD_OP_TIMEOUT", "soon"),
        ("JOBBOARD_CONFIG", "nowhere.toml"),
    ];
    let config = machine.load(flags, &variables);
    assert_eq!(config.format.value, Some(Format::Tsv));
    assert_eq!(config.op_timeout.source.to_string(), "--op-timeout");
    assert_eq!(config.entries().last().unwrap().source, "--config");
}

#[test]
fn invalid_variable_is_named() {
    let machine = Machine::new();
    for [name, value, problem] in rows(
        r"
        JOBBOARD_FORMAT => xml => JOBBOARD_FORMAT is `xml`; use one of table, tsv, json, jsonl, uuid
        JOBBOARD_FORMAT =>  => JOBBOARD_FORMAT is empty
        JOBBOARD_OP_TIMEOUT => 10 => JOBBOARD_OP_TIMEOUT: `10` has no unit; write `10s` or `10m`, for example
        JOBBOARD_OP_TIMEOUT => 0s => JOBBOARD_OP_TIMEOUT: the timeout must be longer than 0s
        JOBBOARD_YES => yes => JOBBOARD_YES is `yes`; use 1, true, 0 or false
        JOBBOARD_CONFIG => /nowhere.toml => JOBBOARD_CONFIG: file /nowhere.toml does not exist
        JOBBOARD_CONFIG => / => JOBBOARD_CONFIG: cannot read /
        JOBBOARD_CONFIG =>  => JOBBOARD_CONFIG is empty
        ",
    ) {
        let refusal = machine.refusal(Flags::default(), &[(name, value)]);
        assert!(refusal.starts_with(problem), "{refusal}");
    }
}
