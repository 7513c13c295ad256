//! Tests of the choice of the board.

use super::*;
use crate::tests::rows;

#[test]
fn defaults_apply_without_any_setting() {
    let machine = Machine::new();
    let config = machine.load(Flags::default(), &[("USER", "ada")]);
    let file = machine.text("home/.local/state/jobboard/board.db");
    assert_eq!(url(&config), format!("sqlite:{file} from default"));
    assert!(!config.is_board_chosen);
    assert_eq!(config.board.value.name, None);
    assert_eq!(text(&config.read_only), "false from default");
    assert_eq!(protected(&config), "false from default");
    assert_eq!(config.op_timeout, Sourced::default(Duration::from_secs(5)));
    assert_eq!(text(&config.max_details), "1048576 from default");
    assert_eq!(config.password().unwrap(), None);
    let who = format!("ada@{} from default", host_name());
    assert_eq!(text(&config.who), who);
}

#[test]
fn board_selected_by_url_has_the_protection_of_its_table() {
    let machine = Machine::new().user_file(
        "[board.plain]\nurl = \"redis://localhost/0\"\n\
         [board.prod]\nurl = \"redis://ada@localhost/0\"\nprotected = true\n\
         [board.look]\nurl = \"zk://h1,h2/taskflow/jobs\"\nread_only = true\n",
    );
    for (url, name, is_read_only) in [
        ("redis://127.0.0.1:6379", Some("prod"), false),
        ("rediss://[::1]/0?namespace=taskflow", Some("prod"), false),
        ("redis://127.1/0", Some("prod"), false),
        ("redis://0x7f000001", Some("prod"), false),
        ("redis://0.0.0.0/0", Some("prod"), false),
        ("redis://[::ffff:127.0.0.1]/0", Some("prod"), false),
        ("redis://localhost./0", Some("prod"), false),
        ("redis://10.1", None, false),
        ("redis://localhost/1", None, false),
        ("redis://localhost:6380", None, false),
        ("redis://localhost?namespace=other", None, false),
        ("redis://elsewhere", None, false),
        ("zk://H2", None, true),
        ("zk://h2/jobs?chroot=/taskflow", None, true),
        ("zk://h2/other", None, false),
    ] {
        let config = machine.load(board(url), &[]);
        let chosen = &config.board.value;
        assert_eq!(chosen.name.as_deref(), name, "{url}");
        assert_eq!(chosen.is_protected, name.is_some(), "{url}");
        assert_eq!(config.read_only.value, is_read_only, "{url}");
    }
    // Naming another table selects that table's settings.
    let config = machine.load(board("plain"), &[]);
    assert!(!config.board.value.is_protected);
}

#[test]
fn octavia_board_is_protected_by_its_url_too() {
    let machine = Machine::new();
    let conf = machine.write(
        "octavia.conf",
        "[task_flow]\njobboard_backend_hosts = 127.0.0.1\njobboard_backend_port = 6380\n",
    );
    let table = format!("[board.lbs]\nurl = \"octavia:{}\"\n", conf.display());
    let machine = machine.user_file(&table);
    let url = "redis://localhost:6380?namespace=octavia_jobboard";
    let chosen = machine.load(board(url), &[]).board.value;
    assert_eq!(chosen.name.as_deref(), Some("lbs"));
    assert!(chosen.is_protected);
}

#[test]
fn removed_file_is_protected_by_a_relative_path() {
    let directory = tempfile::tempdir_in(".").unwrap();
    let path = directory.path().canonicalize().unwrap().join("b.db");
    let path = path.display();
    let table = format!("[board.b]\nurl = \"sqlite:{path}\"\nprotected = true\n");
    let machine = Machine::new().user_file(&table);
    let name = directory.path().file_name().unwrap().to_str().unwrap();
    let url = format!("sqlite:{name}/../{name}/b.db");
    assert!(machine.load(board(&url), &[]).board.value.is_protected);
}

#[test]
fn default_board_follows_the_state_directory() {
    let machine = Machine::new();
    let url = |variables: &[(&str, &str)]| {
        let config = machine.load(Flags::default(), variables);
        config.board.value.url.to_string()
    };
    let home = machine.text("home/.local/state/jobboard/board.db");
    for (state, path) in [
        ("/state", "/state/jobboard/board.db"),
        ("state", &home),
        ("", &home),
    ] {
        let url = url(&[("XDG_STATE_HOME", state)]);
        assert_eq!(url, format!("sqlite:{path}"), "{state}");
    }
}

#[test]
fn only_the_default_board_needs_a_home() {
    let machine = Machine::new();
    let variables = [("HOME", "")];
    let refusal = machine.refusal(Flags::default(), &variables);
    assert!(refusal.contains("set HOME or give --board"), "{refusal}");
    machine.load(board("redis://host"), &variables);
}

#[test]
fn user_account_takes_precedence_over_the_variable() {
    let machine = Machine::new();
    let ada = || {
        Some(environment::Account {
            name: "ada".to_owned(),
            home: PathBuf::from("/home/ada"),
        })
    };
    let env = Environment::made_of(&[("USER", "eve")], &machine.path("etc"), ada);
    let config = Config::load(Flags::default(), &env).unwrap();
    assert!(config.who.value.text().starts_with("ada@"));
    let url = config.board.value.url.to_string();
    assert_eq!(url, "sqlite:/home/ada/.local/state/jobboard/board.db");

    let id = geteuid().as_raw();
    let config = machine.load(Flags::default(), &[]);
    assert!(config.who.value.text().starts_with(&format!("{id}@")));
}

#[test]
fn board_is_chosen_by_flag_then_environment_then_user_then_system() {
    let table = "[board.a]\nurl = \"redis://a\"\n[board.b]\nurl = \"redis://b\"\n";
    let machine = Machine::new().system_file(&format!("default = \"b\"\n{table}"));
    let chosen = |machine: &Machine, flags, variables: &[(&str, &str)]| {
        let config = machine.load(flags, variables);
        assert!(config.is_board_chosen);
        let name = config.board.value.name.as_deref().unwrap_or("no table");
        let board = with_source(name, &config.board.source);
        format!("{board}: {}", url(&config))
    };
    let expected = "b from the system file: redis://b:6379/0 from the system file";
    assert_eq!(chosen(&machine, Flags::default(), &[]), expected);
    let machine = machine.user_file("default = \"a\"");
    for [flag, variable, expected] in rows(
        r"
        - => - => a from the user file: redis://a:6379/0 from the system file
        - => zk://z => no table from JOBBOARD_URL: zk://z:2181/taskflow/jobs from JOBBOARD_URL
        b => zk://z => b from --board: redis://b:6379/0 from the system file
        sqlite:x => a => no table from --board: sqlite:x from --board
        ",
    ) {
        let flags = Flags {
            board: (flag != "-").then(|| flag.to_owned()),
            ..Flags::default()
        };
        let variable = (variable != "-").then_some(("JOBBOARD_URL", variable));
        assert_eq!(chosen(&machine, flags, variable.as_slice()), expected);
    }
}

#[test]
fn user_table_replaces_the_system_table() {
    let machine = Machine::new()
        .system_file("[board.a]\nurl = \"redis://sys\"\nprotected = true\nwho = \"eve\"")
        .user_file("[board.a]\nurl = \"redis://user\"");
    let config = machine.load(board("a"), &[]);
    assert_eq!(url(&config), "redis://user:6379/0 from the user file");
    assert_eq!(protected(&config), "false from default");
    assert_eq!(config.who.source, Source::Default);
}

#[test]
fn named_file_replaces_the_others() {
    let machine = Machine::new().user_file("nonsense").system_file("nonsense");
    let path = machine.write(
        "other.toml",
        "[board.a]\nurl = \"redis://a\"\nprotected = true",
    );
    let flags = || Flags {
        config: Some(path.clone()),
        ..board("a")
    };
    let config = machine.load(flags(), &[]);
    let path = path.display();
    assert_eq!(protected(&config), format!("true from {path}"));
    fs::remove_file(machine.path("other.toml")).unwrap();
    let refusal = machine.refusal(flags(), &[]);
    assert_eq!(refusal, format!("--config: file {path} does not exist"));
}

#[test]
fn configuration_directory_variable_is_respected() {
    let machine = Machine::new();
    machine.write("xdg/jobboard/config.toml", "op_timeout = \"7s\"");
    let directory = machine.text("xdg");
    let config = machine.load(Flags::default(), &[("XDG_CONFIG_HOME", &directory)]);
    assert_eq!(config.op_timeout.value, Duration::from_secs(7));
    // The home of many daemons.
    machine.load(board("redis://a"), &[("HOME", "/dev/null")]);
}

#[test]
fn unknown_board_lists_the_known_ones() {
    let machine = Machine::new();
    let expected = "--board: unknown board `prud`; no configuration file has a [board.NAME] table";
    assert_eq!(machine.refusal(board("prud"), &[]), expected);
    let machine = machine
        .user_file("default = \"gone\"\n[board.prod]\nurl = \"redis://a\"")
        .system_file("[board.prod]\nurl = \"redis://b\"\n[board.lab]\nurl = \"redis://c\"");
    assert_eq!(
        machine.refusal(Flags::default(), &[("JOBBOARD_URL", "prud")]),
        "JOBBOARD_URL: unknown board `prud`; configured boards: lab, prod"
    );
    let refusal = machine.refusal(Flags::default(), &[]);
    assert!(
        refusal.contains("config.toml: unknown board `gone`"),
        "{refusal}"
    );
    let refusal = machine.refusal(board("./jobs.db"), &[]);
    assert!(
        refusal.ends_with("; for a file, use sqlite:./jobs.db"),
        "{refusal}"
    );
}

#[test]
fn invalid_url_is_reported_with_its_position() {
    let machine = Machine::new().user_file("[board.a]\nurl = \"redis://:hunter2@h/x\"");
    let refusal = machine.refusal(board("a"), &[]);
    let expected = format!(
        "the url of [board.a] in {} is invalid: `x` is not a database number; write \
         redis://HOST/0, for example",
        machine.text(USER)
    );
    assert_eq!(refusal, expected);
    let refusal = machine.refusal(Flags::default(), &[("JOBBOARD_URL", "x://:hunter2@h")]);
    assert!(refusal.starts_with("JOBBOARD_URL is not a valid board URL: unknown scheme `x`"));
    // An unused board may be invalid.
    machine.load(board("redis://host"), &[]);
}

#[test]
fn empty_value_is_an_error() {
    let machine = Machine::new();
    let who = Flags {
        who: Some(String::new()),
        ..Flags::default()
    };
    let expected = "invalid owner name in --who: an owner name must not be empty or blank";
    assert_eq!(machine.refusal(who, &[]), expected);
    let refusal = machine.refusal(board(""), &[]);
    assert!(refusal.starts_with("--board is empty"), "{refusal}");
    for name in ["WHO", "URL", "PASSWORD", "PASSWORD_FILE"] {
        let name = format!("JOBBOARD_{name}");
        let refusal = machine.refusal(Flags::default(), &[(&name, "")]);
        let expected = format!("{name} is empty; unset");
        assert!(refusal.starts_with(&expected), "{refusal}");
    }
}
