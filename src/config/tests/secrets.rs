//! Tests that passwords stay hidden.

use super::*;
use crate::tests::rows;

#[test]
fn password_comes_from_the_first_source_that_names_one() {
    let machine = Machine::new();
    let write = |name: &str| {
        machine.write(name, &format!("{name}\n"));
        machine.text(name)
    };
    let (flag, variable, table) = (write("of-flag"), write("of-variable"), write("of-table"));
    let machine = machine.user_file(&format!(
        "[board.file]\nurl = \"redis://:of-url@h\"\npassword_file = \"{table}\"\n\
         password_command = [\"false\"]\n\
         [board.command]\nurl = \"redis://:of-url@h\"\npassword_command = [\"echo\", \"of-echo\"]\n\
         [board.url]\nurl = \"redis://:of-url@h\"\n",
    ));
    let all = [
        ("JOBBOARD_PASSWORD_FILE", variable.as_str()),
        ("JOBBOARD_PASSWORD", "of-text"),
    ];
    let flags = Flags {
        password_file: Some(flag.into()),
        ..board("file")
    };
    for (flags, variables, expected) in [
        (flags, &all[..], "of-flag from --password-file"),
        (
            board("file"),
            &all,
            "of-variable from JOBBOARD_PASSWORD_FILE",
        ),
        (board("file"), &all[1..], "of-text from JOBBOARD_PASSWORD"),
        (board("file"), &[], "of-table from the user file"),
        (board("command"), &[], "of-echo from the user file"),
        (board("url"), &[], "of-url from the user file"),
        (board("redis://:here@h"), &[], "here from --board"),
    ] {
        let config = machine.load(flags, variables);
        let found = with_source(password(&config), &config.password.source);
        assert_eq!(found, expected);
    }
}

#[test]
fn stdin_is_read_only_on_request() {
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
fn failed_password_source_is_reported_without_its_contents() {
    let machine = Machine::new();
    machine.write("home/.config/jobboard/empty", "");
    let script = "#!/bin/sh\necho hunter2; exit 3\n";
    let program = machine.write("home/.config/jobboard/fail", script);
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, executable).unwrap();
    let refusal = |setting: &str| {
        let file = format!("[board.a]\nurl = \"redis://a\"\n{setting}");
        machine.write(USER, &file);
        let error = machine.load(board("a"), &[]).password().unwrap_err();
        format!("{error:#}")
    };
    for [setting, message] in rows(
        r#"
        password_file = "gone" => cannot read the password from
        password_file = "empty" => empty: the file is empty
        password_command = ["./fail"] => fail` exited with exit status: 3
        password_command = ["sh", "-c", "echo hunter2; kill -9 $$"] => signal: 9
        password_command = ["true"] => the password_command `true` printed no password
        password_command = ["printf", "hunter2\\377"] => the file is not UTF-8 text
        password_command = ["/gone/program"] => cannot run the password_command `/gone/program`
        "#,
    ) {
        let refusal = refusal(setting);
        assert!(refusal.contains(message), "{setting}: {refusal}");
        assert!(!refusal.contains("hunter2"), "{refusal}");
    }
}

#[test]
fn secrets_are_absent_from_debug_output() {
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
