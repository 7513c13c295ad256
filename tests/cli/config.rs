//! `jobboard config`; `precedence` tests the order of the sources.

use std::{
    fs,
    os::unix::fs::{chown, symlink},
};

use rustix::process::geteuid;

use crate::{
    conduct::set_mode,
    support::{Env, play},
};

#[test]
fn json_is_an_array_of_settings() {
    let settings = Env::new().json("config --json");
    let who = settings.as_array().unwrap().iter();
    let who = who.clone().find(|setting| setting["key"] == "who").unwrap();
    assert_eq!(who["source"], "default");
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
    env.jobboard(&["list", "--board", "a"]).run().succeeded();
    std::os::unix::fs::lchown(&file, Some(65534), None).unwrap();
    is_refused(&env, "belongs to user 65534", "chown");
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

#[test]
fn errors_in_files_have_their_lines() {
    play(
        r#"
        # an error in the file has its line
        config default = "prod"\n[board.prod]\nurl = "sqlite:x"\nreadonly = true\n
        2 config => error: ROOT/config/jobboard/config.toml, line 4: unknown key `readonly`, expected one of `url`, `who`, `read_only`, `protected`, `password_file`, `password_command`, `history`, `logbook`, `conduct`

        # files in the current directory are ignored
        file config.toml nonsense
        file jobboard.toml nonsense
        file .jobboard.toml nonsense
        0 config

        # defaults are listed
        0 config == board\tnone\tdefault\nurl\tsqlite:ROOT/state/jobboard/board.db\tdefault\nwho\tuser@host\tdefault\nread_only\tfalse\tdefault\nprotected\tfalse\tdefault\nyes\tfalse\tdefault\npassword\tnone\tdefault\nformat\tnone\tdefault\nop_timeout\t5s\tdefault\nmax_details\t1MiB\tdefault\nhistory\t10000\tdefault

        # a file without secrets may be shared
        config [board.a]\nurl = "sqlite:a.db"\nlogbook = "sqlite:l.db"\n[board.b]\nurl = "sqlite:a.db"\npassword_file = "pw"\n
        mode 664 ../config/jobboard/config.toml
        0 list --board a
        8 list --board b

        # a shared file does not send a file to its server
        config [board.a]\nurl = "redis-sentinel://127.0.0.1:1/m?sentinel_password_file=/etc/hostname"\n
        5 list --board a
        mode 666 ../config/jobboard/config.toml
        8 list --board a => sets a command or a password => is writable by other users => chmod go-w
        8 list --board a --json => {"error":{"code":8,"kind":"refused"

        # the environment sets defaults for options
        0 post resize
        0 JOBBOARD_FORMAT=json list -> "name":"resize"
        3 JOBBOARD_FORMAT=json show @9 => {"error":{"code":3
        2 JOBBOARD_FORMAT=json lst => {"error":{"code":2
        0 JOBBOARD_FORMAT=json list -o uuid !> {
        0 JOBBOARD_FORMAT=json metrics -> # HELP jobboard_up
        0 JOBBOARD_FORMAT=jsonl dash --once --ascii -> resize
        0 JOBBOARD_FORMAT=json report page.html !> {
        0 JOBBOARD_FORMAT=uuid status -> unclaimed
        0 JOBBOARD_FORMAT=json completions bash -> # Completion for bash.
        0 JOBBOARD_YES=1 trash @1 --force
        2 JOBBOARD_FORMAT=xml list => error: JOBBOARD_FORMAT
        2 JOBBOARD_OP_TIMEOUT=5 list => error: JOBBOARD_OP_TIMEOUT
        2 JOBBOARD_CONFIG=nowhere.toml list => error: JOBBOARD_CONFIG
        2 JOBBOARD_YES=maybe list => error: JOBBOARD_YES

        # each value is listed with its source
        config default = "prod"\nmax_details = "2MiB"\n[board.prod]\nurl = "sqlite:prod.db"\nprotected = true\n
        0 JOBBOARD_WHO=ada JOBBOARD_PASSWORD=hunter2 config --op-timeout 90s == board\tprod\tROOT/config/jobboard/config.toml\nurl\tsqlite:ROOT/config/jobboard/prod.db\tROOT/config/jobboard/config.toml\nwho\tada\tJOBBOARD_WHO\nread_only\tfalse\tdefault\nprotected\ttrue\tROOT/config/jobboard/config.toml\nyes\tfalse\tdefault\npassword\tset\tJOBBOARD_PASSWORD\nformat\tnone\tdefault\nop_timeout\t1m30s\t--op-timeout\nmax_details\t2MiB\tROOT/config/jobboard/config.toml\nhistory\t10000\tdefault\nconfig_file\tROOT/config/jobboard/config.toml\tdefault
        "#,
    );
}
