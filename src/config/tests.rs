//! Who has the last word on each value, and what nobody is told.

use std::{fs, path::Path};

use rustix::{process::geteuid, system::uname};
use tempfile::TempDir;

use super::*;

/// A machine with a home folder and an `/etc`.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn user_file(self, text: &str) -> Self {
        self.write(USER, text);
        self
    }

    fn system_file(self, text: &str) -> Self {
        self.write(SYSTEM, text);
        self
    }

    fn env(&self, variables: &[(&str, &str)]) -> Environment {
        let home = self.text("home");
        let mut all = vec![("HOME", home.as_str())];
        all.extend(variables);
        Environment::made_of(&all, &self.path("etc"), || None)
    }

    fn try_load(&self, flags: Flags, variables: &[(&str, &str)]) -> Result<Config, String> {
        Config::load(flags, &self.env(variables)).map_err(|error| format!("{error:#}"))
    }

    fn load(&self, flags: Flags, variables: &[(&str, &str)]) -> Config {
        self.try_load(flags, variables).unwrap()
    }

    fn refusal(&self, flags: Flags, variables: &[(&str, &str)]) -> String {
        self.try_load(flags, variables).unwrap_err()
    }
}

const USER: &str = "home/.config/jobboard/config.toml";
const SYSTEM: &str = "etc/jobboard/config.toml";

fn board(text: &str) -> Flags {
    Flags {
        board: Some(text.to_owned()),
        ..Flags::default()
    }
}

fn text<T: ToString>(sourced: &Sourced<T>) -> (String, String) {
    (sourced.value.to_string(), sourced.source.to_string())
}

fn url(config: &Config) -> (String, String) {
    let board = &config.board.value;
    pair(board.url.to_string(), board.url_source.to_string())
}

fn protected(config: &Config) -> (String, String) {
    let board = &config.board.value;
    pair(
        board.is_protected.to_string(),
        board.protected_source.to_string(),
    )
}

fn pair(value: impl Into<String>, source: impl Into<String>) -> (String, String) {
    (value.into(), source.into())
}

fn password(config: &Config) -> String {
    let secret = config.password().unwrap().unwrap();
    secret.expose().to_owned()
}

#[test]
fn without_a_word_from_anybody_there_are_defaults() {
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
    let host = uname().nodename().to_string_lossy().into_owned();
    assert_eq!(text(&config.who), pair(format!("ada@{host}"), "default"));
}

#[test]
fn the_default_board_follows_the_state_folder() {
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
fn without_a_home_only_the_default_board_is_missing() {
    let machine = Machine::new();
    let variables = [("HOME", "")];
    let refusal = machine.refusal(Flags::default(), &variables);
    assert!(
        refusal.contains("set HOME, or name a board with --board"),
        "{refusal}"
    );
    machine.load(board("redis://host"), &variables);
}

#[test]
fn the_account_of_the_user_comes_before_the_variable() {
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
fn a_board_is_chosen_by_flag_environment_user_and_system() {
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
fn the_user_s_table_hides_that_of_the_system() {
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
fn a_named_file_replaces_the_others() {
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
    assert_eq!(refusal, format!("--config: there is no {}", path.display()));
}

#[test]
fn files_are_found_below_the_configuration_folder() {
    let machine = Machine::new();
    machine.write("xdg/jobboard/config.toml", "op_timeout = \"7s\"");
    let folder = machine.text("xdg");
    let config = machine.load(Flags::default(), &[("XDG_CONFIG_HOME", &folder)]);
    assert_eq!(config.op_timeout.value, Duration::from_secs(7));
    // The home of many a daemon.
    machine.load(board("redis://a"), &[("HOME", "/dev/null")]);
}

#[test]
fn unknown_boards_are_told_the_known_ones() {
    let machine = Machine::new();
    assert_eq!(
        machine.refusal(board("prud"), &[]),
        "--board names the board `prud`, which is not known: no configuration file has a \
         [board.NAME]"
    );
    let machine = machine
        .user_file("default = \"gone\"\n[board.prod]\nurl = \"redis://a\"")
        .system_file("[board.prod]\nurl = \"redis://b\"\n[board.lab]\nurl = \"redis://c\"");
    assert_eq!(
        machine.refusal(Flags::default(), &[("JOBBOARD_URL", "prud")]),
        "JOBBOARD_URL names the board `prud`, which is not known: known are lab, prod"
    );
    let refusal = machine.refusal(Flags::default(), &[]);
    assert!(
        refusal.contains("config.toml names the board `gone`"),
        "{refusal}"
    );
    let refusal = machine.refusal(board("./jobs.db"), &[]);
    assert!(
        refusal.ends_with("; a file is named sqlite:./jobs.db"),
        "{refusal}"
    );
}

#[test]
fn wrong_urls_are_told_where_they_stand() {
    let machine = Machine::new().user_file("[board.a]\nurl = \"redis://:hunter2@h/x\"");
    let refusal = machine.refusal(board("a"), &[]);
    assert_eq!(
        refusal,
        format!(
            "the url of [board.a] in {} is wrong: `x` is not the number of a database: write one \
             such as redis://HOST/0",
            machine.text(USER)
        )
    );
    let refusal = machine.refusal(Flags::default(), &[("JOBBOARD_URL", "x://:hunter2@h")]);
    assert!(refusal.starts_with("JOBBOARD_URL is not the URL of a board: unknown scheme `x`"));
    // Nobody needs a board that is not used to be right.
    machine.load(board("redis://host"), &[]);
}

#[test]
fn what_is_empty_is_not_taken_for_unset() {
    let machine = Machine::new();
    let who = Flags {
        who: Some(String::new()),
        ..Flags::default()
    };
    assert_eq!(
        machine.refusal(who, &[]),
        "cannot act under the name that --who gives: the name of an owner must not be empty or blank"
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
            refusal.starts_with(&format!("{name} is empty: unset it")),
            "{refusal}"
        );
    }
}

#[test]
fn the_owner_s_name_comes_from_flag_environment_and_table() {
    let machine = Machine::new().user_file("[board.a]\nurl = \"redis://a\"\nwho = \"carl\"");
    let who = |flags, variables: &[(&str, &str)]| text(&machine.load(flags, variables).who);
    let flags = || Flags {
        who: Some("ada".to_owned()),
        ..board("a")
    };
    let variables = [("JOBBOARD_WHO", "bob")];
    assert_eq!(who(flags(), &variables), pair("ada", "--who"));
    assert_eq!(who(board("a"), &variables), pair("bob", "JOBBOARD_WHO"));
    assert_eq!(who(board("a"), &[]), pair("carl", machine.text(USER)));
    assert_eq!(who(board("redis://a"), &[]).1, "default");
    let refusal = machine.refusal(board("a"), &[("JOBBOARD_WHO", "a\nb")]);
    assert!(refusal.contains("JOBBOARD_WHO gives: the name of an owner must not contain"));
}

#[test]
fn nobody_lifts_another_s_read_only() {
    let machine = Machine::new().user_file(
        "[board.ro]\nurl = \"redis://a\"\nread_only = true\n\
         [board.rw]\nurl = \"redis://a\"\nread_only = false",
    );
    let file = machine.text(USER);
    let read_only = |name, flag, variable: Option<&str>| {
        let flags = Flags {
            read_only: flag,
            ..board(name)
        };
        let variable = variable.map(|value| ("JOBBOARD_READ_ONLY", value));
        text(&machine.load(flags, variable.as_slice()).read_only)
    };
    assert_eq!(
        read_only("ro", true, Some("1")),
        pair("true", "--read-only")
    );
    assert_eq!(
        read_only("rw", false, Some("TRUE")),
        pair("true", "JOBBOARD_READ_ONLY")
    );
    assert_eq!(
        read_only("ro", false, Some("1")),
        pair("true", "JOBBOARD_READ_ONLY")
    );
    assert_eq!(read_only("ro", false, Some("0")), pair("true", &file));
    assert_eq!(read_only("ro", false, None), pair("true", &file));
    assert_eq!(
        read_only("rw", false, Some("")),
        pair("false", "JOBBOARD_READ_ONLY")
    );
    assert_eq!(read_only("rw", false, None), pair("false", &file));
    assert_eq!(
        read_only("redis://a", false, None),
        pair("false", "default")
    );
    let refusal = machine.refusal(board("ro"), &[("JOBBOARD_READ_ONLY", "yes")]);
    assert_eq!(
        refusal,
        "JOBBOARD_READ_ONLY is `yes`: it is 1 or true, 0 or false"
    );
}

#[test]
fn the_timeout_comes_from_flag_user_and_system() {
    let machine = Machine::new().system_file("op_timeout = \"1m30s\"\nmax_details = 4096");
    let flags = |millis| Flags {
        op_timeout: Some(Duration::from_millis(millis)),
        ..Flags::default()
    };
    let config = machine.load(Flags::default(), &[]);
    assert_eq!(config.op_timeout.value, Duration::from_secs(90));
    assert_eq!(
        text(&config.max_details),
        pair("4096", machine.text(SYSTEM))
    );
    let machine = machine.user_file("op_timeout = \"2s\"");
    let config = machine.load(Flags::default(), &[]);
    assert_eq!(config.op_timeout.source.to_string(), machine.text(USER));
    assert_eq!(
        text(&config.max_details),
        pair("4096", machine.text(SYSTEM))
    );
    let timeout = machine.load(flags(250), &[]).op_timeout;
    let flag = Source::Flag("--op-timeout");
    assert_eq!(timeout, Sourced::new(Duration::from_millis(250), flag));
    assert!(machine.refusal(flags(0), &[]).starts_with("--op-timeout: "));
    assert!(
        machine
            .refusal(flags(u64::MAX), &[])
            .starts_with("--op-timeout: ")
    );
}

#[test]
fn sizes_are_written_as_people_write_them() {
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
        let entries = config.entries();
        assert!(
            entries
                .iter()
                .any(|row| row.key == "max_details" && row.value == shown)
        );
    }
}

/// A file, the line that is wrong, and what is said of it.
const MISTAKES: &[(&str, usize, &str)] = &[
    (
        "nme = 1",
        1,
        "unknown key `nme`, expected one of `default`, `op_timeout`",
    ),
    (
        "\n[board.a]\nurl = \"x:\"\npasswd = 1",
        4,
        "unknown key `passwd`",
    ),
    ("[board.a]\nwho = \"x\"", 1, "missing key `url`"),
    (
        "[board]\n\na = \"hunter2\"",
        3,
        "the value is not a table with at least a `url`",
    ),
    (
        "[board.a]\nurl = \"x:\"\nread_only = \"hunter2\"",
        3,
        "the value is not true or false",
    ),
    ("board = 3", 1, "the value is not a table"),
    ("\ndefault = 3", 2, "the value is not a text"),
    ("[board.a]\nurl = \"redis://:hunter2@h\" x", 2, "unexpected"),
    (
        "[board.a]\nurl = \"redis://:hunter2@h",
        2,
        "invalid basic string",
    ),
    (
        "[board.a]\nurl = \"x:\"\nurl = \"hunter2:\"",
        3,
        "duplicate key",
    ),
    ("op_timeout = 5", 1, "op_timeout is a text such as \"5s\""),
    ("op_timeout = \"5\"", 1, "op_timeout: `5` lacks a unit"),
    (
        "op_timeout = \"0s\"",
        1,
        "op_timeout: an operation cannot be done in no time",
    ),
    (
        "max_details = \"1MB\"",
        1,
        "max_details is a number of bytes, or a text such as",
    ),
    (
        "max_details = \"KiB\"",
        1,
        "max_details is a number of bytes",
    ),
    (
        "max_details = \"+1KiB\"",
        1,
        "max_details is a number of bytes",
    ),
    (
        "max_details = \"99999999999GiB\"",
        1,
        "max_details is a number of bytes",
    ),
    ("max_details = 0", 1, "max_details is a number of bytes"),
    ("max_details = -1", 1, "max_details is a number of bytes"),
    (
        "[board.a]\nurl = \"x:\"\npassword_command = \"echo hunter2\"",
        3,
        "password_command is an array such as [\"pass\", \"show\", \"redis\"]: it is run \
         without a shell",
    ),
    (
        "[board.a]\nurl = \"x:\"\npassword_command = []",
        3,
        "begins with a program",
    ),
    (
        "[board.a]\nurl = \"x:\"\npassword_command = [1]",
        3,
        "has texts only",
    ),
];

#[test]
fn mistakes_in_files_are_told_with_their_line() {
    for (content, line, message) in MISTAKES {
        let machine = Machine::new().user_file(content);
        let refusal = machine.refusal(board("redis://a"), &[]);
        let start = format!("{}, line {line}: ", machine.text(USER));
        assert!(refusal.starts_with(&start), "{content}: {refusal}");
        assert!(refusal.contains(message), "{content}: {refusal}");
        assert!(!refusal.contains("hunter2"), "{content}: {refusal}");
    }
}

#[test]
fn names_of_boards_are_no_urls() {
    for (content, message) in [
        (
            "[board.\"\"]\nurl = \"x:\"",
            "the name of a board is not empty",
        ),
        ("[board.\"redis://:hunter2@h\"]\nurl = \"x:\"", "has no `:`"),
        (
            "default = \"redis://:hunter2@h\"",
            "`default` is the NAME of a board",
        ),
    ] {
        let machine = Machine::new().user_file(content);
        let refusal = machine.refusal(board("redis://a"), &[]);
        assert!(refusal.contains(message), "{refusal}");
        assert!(!refusal.contains("hunter2"), "{refusal}");
    }
}

#[test]
fn files_that_cannot_be_read_are_no_missing_files() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path(USER)).unwrap();
    let refusal = machine.refusal(board("redis://a"), &[]);
    assert!(
        refusal.starts_with(&format!("cannot read {}", machine.text(USER))),
        "{refusal}"
    );
}

#[test]
fn relative_paths_in_a_file_go_from_its_folder() {
    let machine = Machine::new().user_file(
        "[board.a]\nurl = \"sqlite:jobs.db\"\n\
         [board.b]\nurl = \"rediss://b?ca=ca.pem\"\npassword_file = \"pw\"",
    );
    let folder = machine.path(USER).parent().unwrap().to_owned();
    let url = machine.load(board("a"), &[]).board.value.url;
    assert_eq!(
        url.to_string(),
        format!("sqlite:{}", folder.join("jobs.db").display())
    );
    let config = machine.load(board("b"), &[]);
    assert_eq!(config.password.value, Password::File(folder.join("pw")));
    let url = config.board.value.url.to_string();
    assert!(
        url.ends_with(&format!("?ca={}", folder.join("ca.pem").display())),
        "{url}"
    );
}

#[test]
fn the_password_comes_from_the_first_who_names_one() {
    let machine = Machine::new();
    let write = |name: &str| {
        machine
            .write(name, &format!("{name}\n"))
            .display()
            .to_string()
    };
    let (flag, variable, table) = (write("of-flag"), write("of-variable"), write("of-table"));
    let machine = machine.user_file(&format!(
        "[board.file]\nurl = \"redis://:of-url@h\"\npassword_file = \"{table}\"\n\
         password_command = [\"false\"]\n\
         [board.command]\nurl = \"redis://:of-url@h\"\npassword_command = [\"echo\", \"of-echo\"]\n\
         [board.url]\nurl = \"redis://:of-url@h\"\n",
    ));
    let file = machine.text(USER);
    let found = |flags, variables: &[(&str, &str)]| {
        let config = machine.load(flags, variables);
        (password(&config), config.password.source.to_string())
    };
    let all = [
        ("JOBBOARD_PASSWORD_FILE", variable.as_str()),
        ("JOBBOARD_PASSWORD", "of-text"),
    ];
    let flags = Flags {
        password_file: Some(flag.into()),
        ..board("file")
    };
    assert_eq!(found(flags, &all), pair("of-flag", "--password-file"));
    let of_variable = pair("of-variable", "JOBBOARD_PASSWORD_FILE");
    assert_eq!(found(board("file"), &all), of_variable);
    assert_eq!(
        found(board("file"), &all[1..]),
        pair("of-text", "JOBBOARD_PASSWORD")
    );
    assert_eq!(found(board("file"), &[]), pair("of-table", &file));
    assert_eq!(found(board("command"), &[]), pair("of-echo", &file));
    assert_eq!(found(board("url"), &[]), pair("of-url", &file));
    assert_eq!(
        found(board("redis://:here@h"), &[]),
        pair("here", "--board")
    );
}

#[test]
fn stdin_is_taken_only_when_asked_for() {
    let machine = Machine::new();
    let flags = Flags {
        password_file: Some("-".into()),
        ..Flags::default()
    };
    assert!(machine.load(flags, &[]).takes_stdin());
    let config = machine.load(Flags::default(), &[("JOBBOARD_PASSWORD_FILE", "-")]);
    assert!(config.takes_stdin());
    assert!(!machine.load(Flags::default(), &[]).takes_stdin());
}

#[test]
fn a_password_that_cannot_be_fetched_is_not_repeated() {
    let machine = Machine::new();
    machine.write("home/.config/jobboard/empty", "");
    let program = machine.write(
        "home/.config/jobboard/fail",
        "#!/bin/sh\necho hunter2; exit 3\n",
    );
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, executable).unwrap();
    let refusal = |setting: &str| {
        let file = format!("[board.a]\nurl = \"redis://a\"\n{setting}");
        machine.write(USER, &file);
        let error = machine.load(board("a"), &[]).password().unwrap_err();
        format!("{error:#}")
    };
    for (setting, message) in [
        ("password_file = \"gone\"", "cannot read the password from"),
        ("password_file = \"empty\"", "empty: it is empty"),
        (
            "password_command = [\"./fail\"]",
            "fail`, the password_command, ended with exit status: 3",
        ),
        (
            "password_command = [\"sh\", \"-c\", \"echo hunter2; kill -9 $$\"]",
            "signal: 9",
        ),
        (
            "password_command = [\"true\"]",
            "`true`, the password_command, printed no password",
        ),
        (
            "password_command = [\"printf\", \"hunter2\\\\377\"]",
            "it is not UTF-8 text",
        ),
        (
            "password_command = [\"/gone/program\"]",
            "cannot run `/gone/program`",
        ),
    ] {
        let refusal = refusal(setting);
        assert!(refusal.contains(message), "{setting}: {refusal}");
        assert!(!refusal.contains("hunter2"), "{refusal}");
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
    let rows = machine
        .load(flags, &[("JOBBOARD_READ_ONLY", "1")])
        .entries();
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row.key, row.text(), row.source.as_str()))
        .collect();
    let rows: Vec<_> = rows
        .iter()
        .map(|(key, value, source)| (*key, value.as_str(), *source))
        .collect();
    assert_eq!(
        rows,
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
    );
}

#[test]
fn a_board_without_a_name_is_listed_without_one() {
    let machine = Machine::new();
    let path = machine.write("other.toml", "");
    let flags = Flags {
        config: Some(path.clone()),
        ..board("redis://a")
    };
    let rows = machine.load(flags, &[]).entries();
    assert_eq!((rows[0].key, &rows[0].value), ("board", &Value::Null));
    assert_eq!(rows[0].text(), "none");
    assert_eq!(rows[0].source, "--board");
    let file = rows.last().unwrap();
    assert_eq!(Path::new(&file.text()), path);
    assert_eq!(file.source, "--config");
    assert!(
        rows.iter()
            .any(|row| row.key == "password" && row.value.is_null())
    );
}

#[test]
fn no_secret_is_in_what_is_shown() {
    let machine = Machine::new();
    for variables in [
        [("JOBBOARD_URL", "redis://ada:hunter2@a")],
        [("JOBBOARD_PASSWORD", "hunter2")],
    ] {
        let config = machine.load(Flags::default(), &variables);
        assert_eq!(password(&config), "hunter2");
        assert!(!format!("{config:?}").contains("hunter2"), "{config:?}");
        let rows = serde_json::to_string(&config.entries()).unwrap();
        assert!(!rows.contains("hunter2"), "{rows}");
    }
}

#[test]
fn values_are_typed() {
    let machine = Machine::new();
    let rows = machine.load(board("redis://a"), &[]).entries();
    for key in ["read_only", "protected", "yes"] {
        let row = rows.iter().find(|row| row.key == key).unwrap();
        assert_eq!(
            (&row.value, row.text()),
            (&Value::Bool(false), "false".to_owned())
        );
    }
}

#[test]
fn what_scripts_say_again_and_again_can_be_said_once() {
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
    assert_eq!(text(&config.yes), pair("true", "JOBBOARD_YES"));
    let config = machine.load(
        Flags::default(),
        &[("JOBBOARD_CONFIG", &other.display().to_string())],
    );
    assert_eq!(config.max_details.value, 12);
    assert_eq!(config.entries().last().unwrap().source, "JOBBOARD_CONFIG");
}

#[test]
fn the_command_line_wins_over_what_was_said_once_however_wrong_that_is() {
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
fn a_variable_that_makes_no_sense_is_named() {
    let machine = Machine::new();
    for (name, value, told) in [
        (
            "JOBBOARD_FORMAT",
            "xml",
            "is `xml`: it is one of table, tsv, json, jsonl, uuid",
        ),
        ("JOBBOARD_FORMAT", "", "is empty"),
        (
            "JOBBOARD_OP_TIMEOUT",
            "10",
            ": `10` lacks a unit: write `10s` or `10m`",
        ),
        (
            "JOBBOARD_OP_TIMEOUT",
            "0s",
            ": an operation cannot be done in no time",
        ),
        (
            "JOBBOARD_YES",
            "yes",
            "is `yes`: it is 1 or true, 0 or false",
        ),
        (
            "JOBBOARD_CONFIG",
            "/nowhere.toml",
            ": there is no /nowhere.toml",
        ),
        ("JOBBOARD_CONFIG", "/", ": cannot read /"),
        ("JOBBOARD_CONFIG", "", "is empty"),
    ] {
        let refusal = machine.refusal(Flags::default(), &[(name, value)]);
        let told = format!(
            "{name}{}{told}",
            if told.starts_with(':') { "" } else { " " }
        );
        assert!(refusal.starts_with(&told), "{refusal}");
    }
}
