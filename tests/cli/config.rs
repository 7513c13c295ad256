//! `jobboard config`; what overrides what is in `precedence`.

use crate::env::Env;

#[test]
fn the_defaults_are_shown_as_such() {
    let run = Env::new().jobboard(&["config"]).run();
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    board	none	default
    url	sqlite:ROOT/state/jobboard/board.db	default
    who	user@host	default
    read_only	false	default
    protected	false	default
    password	none	default
    op_timeout	5s	default
    max_details	1MiB	default
    --- stderr
    ");
}

#[test]
fn each_value_is_shown_with_who_said_it() {
    let env = Env::new();
    env.configure(
        "default = \"prod\"\nmax_details = \"2MiB\"\n\
         [board.prod]\nurl = \"sqlite:prod.db\"\nprotected = true\n",
    );
    let run = env
        .jobboard(&["config", "--op-timeout", "90s"])
        .env("JOBBOARD_WHO", "ada")
        .env("JOBBOARD_PASSWORD", "hunter2")
        .run();
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    board	prod	ROOT/config/jobboard/config.toml
    url	sqlite:ROOT/config/jobboard/prod.db	ROOT/config/jobboard/config.toml
    who	ada	JOBBOARD_WHO
    read_only	false	default
    protected	true	ROOT/config/jobboard/config.toml
    password	set	JOBBOARD_PASSWORD
    op_timeout	1m30s	--op-timeout
    max_details	2MiB	ROOT/config/jobboard/config.toml
    config_file	ROOT/config/jobboard/config.toml	default
    --- stderr
    ");
}

#[test]
fn json_is_an_array_of_settings() {
    let settings = Env::new().jobboard(&["config", "--json"]).run().json();
    let who = settings.as_array().unwrap().iter();
    let who = who.clone().find(|setting| setting["key"] == "who").unwrap();
    assert_eq!(who["source"], "default");
}

#[test]
fn a_mistake_in_the_file_is_told_with_its_line() {
    let env = Env::new();
    env.configure("default = \"prod\"\n[board.prod]\nurl = \"sqlite:x\"\nreadonly = true\n");
    let run = env.jobboard(&["config"]).run();
    run.failed(2);
    insta::assert_snapshot!(run, @"
    exit code 2
    --- stdout
    --- stderr
    error: ROOT/config/jobboard/config.toml, line 4: unknown key `readonly`, expected one of `url`, `who`, `read_only`, `protected`, `password_file`, `password_command`
    ");
}

#[test]
fn nothing_in_the_current_folder_is_read() {
    let env = Env::new();
    for name in ["config.toml", "jobboard.toml", ".jobboard.toml"] {
        std::fs::write(env.file(name), "nonsense").unwrap();
    }
    env.jobboard(&["config"]).run().succeeded();
}
