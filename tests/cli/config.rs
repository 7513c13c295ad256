//! `jobboard config`; `precedence` tests the order of the sources.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::Path,
};

use rustix::process::geteuid;

use crate::support::env::Env;

#[test]
fn defaults_are_listed() {
    let run = Env::new().run("config");
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    board	none	default
    url	sqlite:ROOT/state/jobboard/board.db	default
    who	user@host	default
    read_only	false	default
    protected	false	default
    yes	false	default
    password	none	default
    format	none	default
    op_timeout	5s	default
    max_details	1MiB	default
    history	10000	default
    --- stderr
    ");
}

#[test]
fn each_value_is_listed_with_its_source() {
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
    yes	false	default
    password	set	JOBBOARD_PASSWORD
    format	none	default
    op_timeout	1m30s	--op-timeout
    max_details	2MiB	ROOT/config/jobboard/config.toml
    history	10000	default
    config_file	ROOT/config/jobboard/config.toml	default
    --- stderr
    ");
}

#[test]
fn json_is_an_array_of_settings() {
    let settings = Env::new().json("config --json");
    let who = settings.as_array().unwrap().iter();
    let who = who.clone().find(|setting| setting["key"] == "who").unwrap();
    assert_eq!(who["source"], "default");
}

#[test]
fn error_in_the_file_has_its_line() {
    let env = Env::new();
    env.configure("default = \"prod\"\n[board.prod]\nurl = \"sqlite:x\"\nreadonly = true\n");
    let run = env.run("config");
    run.failed(2);
    insta::assert_snapshot!(run, @"
    exit code 2
    --- stdout
    --- stderr
    error: ROOT/config/jobboard/config.toml, line 4: unknown key `readonly`, expected one of `url`, `who`, `read_only`, `protected`, `password_file`, `password_command`, `history`, `logbook`, `conduct`
    ");
}

#[test]
fn files_in_the_current_directory_are_ignored() {
    let env = Env::new();
    for name in ["config.toml", "jobboard.toml", ".jobboard.toml"] {
        std::fs::write(env.file(name), "nonsense").unwrap();
    }
    env.ok("config");
}

#[test]
fn json_values_have_types() {
    let settings = Env::new().json("config --json");
    let value = |key: &str| {
        let mut settings = settings.as_array().unwrap().iter();
        settings.find(|setting| setting["key"] == key).unwrap()["value"].clone()
    };
    for (key, shown) in [
        ("board", serde_json::json!(null)),
        ("read_only", serde_json::json!(false)),
        ("protected", serde_json::json!(false)),
        ("password", serde_json::json!(null)),
        ("format", serde_json::json!("json")),
    ] {
        assert_eq!(value(key), shown, "{key}");
    }
}

#[test]
fn environment_sets_defaults_for_options() {
    let env = Env::new();
    env.post("resize");
    let listed = env.jobboard(&["list"]).env("JOBBOARD_FORMAT", "json").run();
    assert_eq!(listed.json()[0]["name"], "resize");
    let lost = env.jobboard(&["show", "@9"]).env("JOBBOARD_FORMAT", "json");
    assert_eq!(lost.run().error()["code"], 3);
    let wrong = env.jobboard(&["lst"]).env("JOBBOARD_FORMAT", "json");
    assert_eq!(wrong.run().error()["code"], 2);
    let flag = ["list", "-o", "uuid"];
    let run = env.jobboard(&flag).env("JOBBOARD_FORMAT", "json").run();
    assert!(!run.succeeded().contains('{'), "{run}");
    let script = env.jobboard(&["completions", "bash"]);
    let run = script.env("JOBBOARD_FORMAT", "json").run();
    assert!(
        run.succeeded().starts_with("# Completion for bash."),
        "{run}"
    );
    let trash = env.jobboard(&["trash", "@1", "--force"]);
    trash.env("JOBBOARD_YES", "1").run().succeeded();
    for (name, value) in [
        ("JOBBOARD_FORMAT", "xml"),
        ("JOBBOARD_OP_TIMEOUT", "5"),
        ("JOBBOARD_CONFIG", "nowhere.toml"),
        ("JOBBOARD_YES", "maybe"),
    ] {
        let run = env.jobboard(&["list"]).env(name, value).run();
        assert!(
            run.failed(2).starts_with(&format!("error: {name}")),
            "{run}"
        );
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Requires that the board is refused with this reason and this fix.
fn is_refused(env: &Env, why: &str, remedy: &str) {
    let run = env.run("list --board a --json");
    run.failed(8);
    let error = run.error();
    let refusal = |part: &str| error[part].as_str().unwrap_or_default().to_owned();
    assert_eq!(refusal("kind"), "refused", "{run}");
    assert!(
        refusal("message").contains("sets a command or a password"),
        "{run}"
    );
    assert!(refusal("message").contains(why), "{run}");
    assert!(refusal("hint").contains(remedy), "{run}");
}

#[test]
fn file_with_secrets_writable_by_others_is_refused() {
    for names in [
        "password_file = \"pw\"",
        "password_command = [\"true\"]",
        "logbook = \"mysql://o:pw@h/p\"",
        "conduct = { allow_any = true }",
        "",
    ] {
        let env = Env::new();
        let url = match names {
            "" => "redis://:pw@127.0.0.1:1",
            _ => "sqlite:a.db",
        };
        let file = env.configure(&format!("[board.a]\nurl = \"{url}\"\n{names}\n"));
        let code = match names {
            "" => 5,
            _ => 0,
        };
        let list = || env.run("list --board a").code;
        assert_eq!(list(), code, "{names}");
        let path = file.to_str().unwrap();
        for mode in [0o620, 0o602, 0o666] {
            set_mode(&file, mode);
            is_refused(
                &env,
                "is writable by other users",
                &format!("`chmod go-w {path}`"),
            );
        }
        set_mode(&file, 0o600);
        let directory = file.parent().unwrap();
        set_mode(directory, 0o777);
        is_refused(&env, "is writable by other users", "`chmod go-w ");
        // In a sticky directory, only the owner can replace a file.
        set_mode(directory, 0o1777);
        assert_eq!(list(), code, "{names}");
        if geteuid().is_root() {
            chown(&file, Some(65534), None).unwrap();
            is_refused(&env, "belongs to user 65534", &format!("`chown 0 {path}`"));
        }
    }
}

#[test]
fn configuration_through_a_foreign_link_is_refused() {
    if !geteuid().is_root() {
        return;
    }
    let env = Env::new();
    let file = env.configure("[board.a]\nurl = \"sqlite:a.db\"\npassword_file = \"pw\"\n");
    let real = file.with_extension("real");
    fs::rename(&file, &real).unwrap();
    symlink(&real, &file).unwrap();
    let list = env.jobboard(&["list", "--board", "a"]);
    list.run().succeeded();
    std::os::unix::fs::lchown(&file, Some(65534), None).unwrap();
    is_refused(&env, "belongs to user 65534", "chown");
}

#[test]
fn file_without_secrets_may_be_shared() {
    let env = Env::new();
    let file = env.configure(
        "[board.a]\nurl = \"sqlite:a.db\"\nlogbook = \"sqlite:l.db\"\n\
         [board.b]\nurl = \"sqlite:a.db\"\npassword_file = \"pw\"\n",
    );
    set_mode(&file, 0o664);
    env.ok("list --board a");
    env.fails(8, "list --board b");
}

#[test]
fn shared_file_does_not_send_a_file_to_its_server() {
    let env = Env::new();
    let file = env.configure(
        "[board.a]\nurl = \"redis-sentinel://127.0.0.1:1/m?sentinel_password_file=/etc/hostname\"\n",
    );
    env.fails(5, "list --board a");
    set_mode(&file, 0o666);
    is_refused(&env, "is writable by other users", "chmod go-w");
}

#[test]
fn shared_file_does_not_choose_the_server_that_gets_the_password() {
    let env = Env::new();
    let file = env.configure("[board.a]\nurl = \"redis://127.0.0.1:1\"\n");
    set_mode(&file, 0o664);
    env.fails(5, "list --board a");
    let list = env.jobboard(&["list", "--board", "a"]);
    let refused = list.env("JOBBOARD_PASSWORD", "secret").run();
    let message = refused.failed(8);
    assert!(
        message.contains("sets the server that gets the password"),
        "{refused}"
    );
    set_mode(&file, 0o644);
    let list = env.jobboard(&["list", "--board", "a"]);
    list.env("JOBBOARD_PASSWORD", "secret").run().failed(5);
}
