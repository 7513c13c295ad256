//! Tests of the choice of the board.

use super::*;

#[test]
fn defaults_apply_without_any_setting() {
    let machine = Machine::new();
    let config = machine.load(Flags::default(), &[("USER", "ada")]);
    let file = format!(
        "sqlite:{}",
        machine.text("home/.local/state/jobboard/board.db")
    );
    assert_eq!(url(&config), pair(file, "default"));
    assert!(!config.is_board_chosen);
    assert_eq!(config.board.value.name, None);
    assert_eq!(text(&config.read_only), pair("false", "default"));
    assert_eq!(protected(&config), pair("false", "default"));
    assert_eq!(config.op_timeout, Sourced::default(Duration::from_secs(5)));
    assert_eq!(text(&config.max_details), pair("1048576", "default"));
    assert_eq!(config.password().unwrap(), None);
    let host = host_name();
    assert_eq!(text(&config.who), pair(format!("ada@{host}"), "default"));
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
    assert_eq!(
        (chosen.name.as_deref(), chosen.is_protected),
        (Some("lbs"), true)
    );
}

#[test]
fn removed_file_is_protected_by_a_relative_path() {
    let directory = tempfile::tempdir_in(".").unwrap();
    let path = directory.path().canonicalize().unwrap().join("b.db");
    let table = format!(
        "[board.b]\nurl = \"sqlite:{}\"\nprotected = true\n",
        path.display()
    );
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
    let home = format!(
        "sqlite:{}",
        machine.text("home/.local/state/jobboard/board.db")
    );
    assert_eq!(
        url(&[("XDG_STATE_HOME", "/state")]),
        "sqlite:/state/jobboard/board.db"
    );
    assert_eq!(url(&[("XDG_STATE_HOME", "state")]), home);
    assert_eq!(url(&[("XDG_STATE_HOME", "")]), home);
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
    let source = machine.text(SYSTEM);
    let chosen = |flags, variables: &[(&str, &str)], machine: &Machine| {
        let config = machine.load(flags, variables);
        assert!(config.is_board_chosen);
        let name = config.board.value.name.clone();
        let name = name.map(|name| (name, config.board.source.to_string()));
        (name, url(&config))
    };
    assert_eq!(
        chosen(Flags::default(), &[], &machine),
        (Some(pair("b", &source)), pair("redis://b:6379/0", &source))
    );
    let machine = machine.user_file("default = \"a\"");
    assert_eq!(
        chosen(Flags::default(), &[], &machine),
        (
            Some(pair("a", machine.text(USER))),
            pair("redis://a:6379/0", &source)
        )
    );
    let variables = [("JOBBOARD_URL", "zk://z")];
    assert_eq!(
        chosen(Flags::default(), &variables, &machine),
        (None, pair("zk://z:2181/taskflow/jobs", "JOBBOARD_URL"))
    );
    assert_eq!(
        chosen(board("b"), &variables, &machine),
        (
            Some(pair("b", "--board")),
            pair("redis://b:6379/0", &source)
        )
    );
    assert_eq!(
        chosen(board("sqlite:x"), &[("JOBBOARD_URL", "a")], &machine),
        (None, pair("sqlite:x", "--board"))
    );
}

#[test]
fn user_table_replaces_the_system_table() {
    let machine = Machine::new()
        .system_file("[board.a]\nurl = \"redis://sys\"\nprotected = true\nwho = \"eve\"")
        .user_file("[board.a]\nurl = \"redis://user\"");
    let config = machine.load(board("a"), &[]);
    assert_eq!(
        url(&config),
        pair("redis://user:6379/0", machine.text(USER))
    );
    assert_eq!(protected(&config), pair("false", "default"));
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
    assert_eq!(protected(&config), pair("true", path.display().to_string()));
    fs::remove_file(&path).unwrap();
    let refusal = machine.refusal(flags(), &[]);
    assert_eq!(
        refusal,
        format!("--config: file {} does not exist", path.display())
    );
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
    assert_eq!(
        machine.refusal(board("prud"), &[]),
        "--board: unknown board `prud`; no configuration file has a [board.NAME] table"
    );
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
    assert_eq!(
        refusal,
        format!(
            "the url of [board.a] in {} is invalid: `x` is not a database number; write \
             redis://HOST/0, for example",
            machine.text(USER)
        )
    );
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
    assert_eq!(
        machine.refusal(who, &[]),
        "invalid owner name in --who: an owner name must not be empty or blank"
    );
    assert!(
        machine
            .refusal(board(""), &[])
            .starts_with("--board is empty")
    );
    for name in [
        "JOBBOARD_WHO",
        "JOBBOARD_URL",
        "JOBBOARD_PASSWORD",
        "JOBBOARD_PASSWORD_FILE",
    ] {
        let refusal = machine.refusal(Flags::default(), &[(name, "")]);
        assert!(
            refusal.starts_with(&format!("{name} is empty; unset")),
            "{refusal}"
        );
    }
}
