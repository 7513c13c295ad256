//! Tests of configuration files and their errors.

use super::*;
use crate::tests::rows;

const MISTAKES: &str = r#"
    nme = 1 => 1 => unknown key `nme`, expected one of `default`, `op_timeout`
    \n[board.a]\nurl = "x:"\npasswd = 1 => 4 => unknown key `passwd`
    [board.a]\nwho = "x" => 1 => missing key `url`
    [board]\n\na = "hunter2" => 3 => `a` must be a table with at least a `url`
    [board]\na = ["sqlite:hunter2"] => 2 => `a` must be a table with at least a `url`
    [board.a]\nurl = "x:"\nread_only = "hunter2" => 3 => `read_only` must be true or false
    board = 3 => 1 => `board` must be a table
    \ndefault = 3 => 2 => `default` must be a string
    [board.a]\nurl = "redis://:hunter2@h" x => 2 => unexpected
    [board.a]\nurl = "redis://:hunter2@h => 2 => invalid basic string
    [board.a]\nurl = "x:"\nurl = "hunter2:" => 3 => duplicate key
    op_timeout = 5 => 1 => op_timeout must be a string such as "5s"
    op_timeout = "5" => 1 => op_timeout: `5` has no unit
    op_timeout = "0s" => 1 => op_timeout: the timeout must be longer than 0s
    max_details = "1TB" => 1 => max_details must be a number of bytes or a string such as
    max_details = "KiB" => 1 => max_details must be a number of bytes
    max_details = "+1KiB" => 1 => max_details must be a number of bytes
    max_details = "99999999999GiB" => 1 => max_details must be a number of bytes
    max_details = 0 => 1 => max_details must be a number of bytes
    max_details = -1 => 1 => max_details must be a number of bytes
    [board.a]\nurl = "x:"\npassword_command = "echo hunter2" => 3 => password_command must be an array such as ["pass", "show", "redis"]; no shell splits a string
    [board.a]\nurl = "x:"\npassword_command = [] => 3 => must begin with a program
    [board.a]\nurl = "x:"\npassword_command = [1] => 3 => must contain only strings
    [board.a]\nurl = "x:"\nhistory = "none" => 3 => history must be a whole number from 0 to 4294967295
    [board.a]\nurl = "x:"\nhistory = -1 => 3 => history must be a whole number from 0 to 4294967295
    [board.a]\nurl = "x:"\npassword_file = 3 => 3 => `password_file` must be a string with a path
    [board.a]\nurl = "x:"\nconduct = "all" => 3 => `conduct` must be a table such as { allow = ["/usr/bin/*"] }
    [board.a]\nurl = "x:"\nconduct = ["/opt/h"] => 3 => `conduct` must be a table such as
    [board.a]\nurl = "x:"\nconduct = 2026-01-01 => 3 => `conduct` must not be a date
    [board.a]\nurl = "x:"\nconduct = { allow = "/bin/a" } => 3 => `allow` must be an array of strings
    [board.a]\nurl = "x:"\n[board.a.conduct]\nallow_any = 1 => 4 => `allow_any` must be true or false
"#;

#[test]
fn errors_in_files_have_their_line() {
    for [content, line, message] in rows(MISTAKES) {
        let machine = Machine::new().user_file(content);
        let refusal = machine.refusal(board("redis://a"), &[]);
        let start = format!("{}, line {line}: ", machine.text(USER));
        assert!(refusal.starts_with(&start), "{content}: {refusal}");
        assert!(refusal.contains(message), "{content}: {refusal}");
        assert!(!refusal.contains("hunter2"), "{content}: {refusal}");
    }
}

#[test]
fn board_name_must_not_look_like_a_url() {
    for [content, message] in rows(
        r#"
        [board.""]\nurl = "x:" => a board name must not be empty
        [board."redis://:hunter2@h"]\nurl = "x:" => contain `:`
        default = "redis://:hunter2@h" => `default` must be the name of a board
        "#,
    ) {
        let machine = Machine::new().user_file(content);
        let refusal = machine.refusal(board("redis://a"), &[]);
        assert!(refusal.contains(message), "{refusal}");
        assert!(!refusal.contains("hunter2"), "{refusal}");
    }
}

#[test]
fn unreadable_file_is_an_error() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path(USER)).unwrap();
    let refusal = machine.refusal(board("redis://a"), &[]);
    let expected = format!("cannot read {}", machine.text(USER));
    assert!(refusal.starts_with(&expected), "{refusal}");
}

#[test]
fn relative_paths_resolve_against_the_file() {
    let machine = Machine::new().user_file(
        "[board.a]\nurl = \"sqlite:jobs.db\"\n\
         [board.b]\nurl = \"rediss://b?ca=ca.pem\"\npassword_file = \"pw\"",
    );
    let directory = machine.path(USER).parent().unwrap().to_owned();
    let url = machine.load(board("a"), &[]).board.value.url.to_string();
    let file = directory.join("jobs.db");
    assert_eq!(url, format!("sqlite:{}", file.display()));
    let config = machine.load(board("b"), &[]);
    assert_eq!(config.password.value, Password::File(directory.join("pw")));
    let url = config.board.value.url.to_string();
    let ca = format!("?ca={}", directory.join("ca.pem").display());
    assert!(url.ends_with(&ca), "{url}");
}
