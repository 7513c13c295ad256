//! The execution policy, tested with hostile postings.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use clap::{Args as _, FromArgMatches as _};
use rustix::process::geteuid;
use serde_json::{Value, json};

use super::*;
use crate::{board::testing::assert_matches, tests::rows, trust::Untrusted};

fn job(name: &str, details: Value) -> Job {
    Job {
        details: Some(details.into()),
        ..Job::named(name)
    }
}

fn policy(programs: Option<Vec<Glob>>, variables: Option<Vec<Glob>>) -> ExecutionPolicy {
    ExecutionPolicy {
        programs,
        variables,
        handlers: None,
        search: vec!["/usr/bin".into(), "/bin".into()],
        found: Some(ProgramCache::default()),
    }
}

fn only_programs(path: &str) -> Option<Vec<Glob>> {
    Some(vec![Glob::of_path(path).unwrap()])
}

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn open() -> ExecutionPolicy {
    policy(None, None)
}

fn refusal(policy: &ExecutionPolicy, details: Value) -> String {
    policy.plan(&job("a", details)).unwrap_err().to_string()
}

fn path_of(policy: &ExecutionPolicy, details: Value) -> PathBuf {
    let plan = policy.plan(&job("a", details)).unwrap();
    plan.command.unwrap().program
}

#[test]
fn command_is_found_in_our_path_in_any_directory() {
    let found = path_of(&open(), json!({"command": ["env"], "cwd": "/tmp"}));
    assert!(found.starts_with("/usr/bin") || found.starts_with("/bin"));
    assert!(found.ends_with("env"));
}

#[test]
fn malformed_commands_are_refused() {
    for [details, reason] in rows(
        r#"
        {} => the job has no command
        {"command": "rm -rf /"} => array of strings
        {"command": []} => array of strings
        {"command": ["true", 1]} => array of strings
        {"command": ["true", "a\u0000b"]} => array of strings
        {"command": null} => array of strings
        {"command": ["true"], "cwd": "tmp"} => an absolute path
        {"command": ["true"], "stdin": 5} => text
        {"command": ["true"], "timeout": 5} => a duration
        {"command": ["true"], "max_attempts": 0} => a positive JSON number
        {"command": ["true"], "env": ["A"]} => object of strings
        {"command": ["true"], "env": {"A": 1}} => object of strings
        {"command": ["true"], "env": {"A=B": "1"}} => object of strings
        ["true"] => the job has no command
        "#,
    ) {
        let refusal = refusal(&open(), serde_json::from_str(details).unwrap());
        assert!(refusal.contains(reason), "{details}: {refusal}");
    }
}

#[test]
fn relative_programs_are_refused() {
    let nothing = refusal(&open(), json!({"command": [""]}));
    assert_eq!(nothing, "the command names no program");
    for program in ["./sh", "bin/sh", "../sh", "/usr/../bin/sh", ".."] {
        let refusal = refusal(&open(), json!({"command": [program], "cwd": "/bin"}));
        assert!(refusal.contains("as an absolute path"), "{refusal}");
    }
}

#[test]
fn postings_cannot_set_variables_that_choose_programs() {
    for name in ["PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "JOBBOARD_URL"] {
        let details = json!({"command": ["true"], "env": {name: "/tmp"}});
        assert!(refusal(&open(), details).contains(name));
    }
    let details = json!({"command": ["true"], "env": {"LANG": "C"}});
    path_of(&open(), details.clone());
    let strict = policy(None, Some(Vec::new()));
    assert!(refusal(&strict, details.clone()).contains("LANG"));
    let some = policy(None, Some(vec!["LAN?".into()]));
    path_of(&some, details);
}

#[test]
fn allowed_programs_match_by_their_resolved_path() {
    let of = |text: &str| policy(only_programs(text), None);
    let env = || json!({"command": ["env"]});
    let found = path_of(&open(), env());
    path_of(&of(found.to_str().unwrap()), env());
    assert!(refusal(&of("/opt/*/env"), env()).contains("is not allowed here"));
    assert!(refusal(&of("/*"), env()).contains("is not allowed here"));
    // An absent program is not at an allowed path.
    let absent = json!({"command": ["no-such-program"]});
    assert!(refusal(&of("/usr/bin/*"), absent.clone()).contains("is not installed here"));
    let plan = open().plan(&job("a", absent)).unwrap();
    assert!(matches!(plan.command, Err(NotRun::NotFound { .. })));
}

#[test]
fn policy_without_programs_runs_no_command() {
    let closed = policy(Some(Vec::new()), None);
    assert!(refusal(&closed, json!({"command": ["true"]})).contains("not allowed"));
    assert!(refusal(&closed, json!({})).contains("no command"));
}

fn handlers(name: &str, mode: u32) -> (tempfile::TempDir, ExecutionPolicy) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    fs::write(&path, "#!/bin/sh\n").unwrap();
    set(&path, mode);
    let mut policy = policy(Some(Vec::new()), None);
    let handlers = Directory::new(directory.path()).unwrap();
    policy.handlers = Some(Handlers::Directory(handlers));
    (directory, policy)
}

#[test]
fn handler_receives_the_details() {
    let (directory, policy) = handlers("resize", 0o755);
    let plan = policy.plan(&job("resize", json!({"size": 4}))).unwrap();
    let command = plan.command.unwrap();
    assert_eq!(command.program, directory.path().join("resize"));
    assert_eq!(command.input, Input::Text(b"{\"size\":4}\n".to_vec()));
}

#[test]
fn job_name_with_a_path_is_no_handler() {
    let (directory, policy) = handlers("resize", 0o755);
    fs::create_dir(directory.path().join("sub")).unwrap();
    for name in "../../bin/sh|/bin/sh||.|..|.resize|sub|other|a\0b".split('|') {
        assert!(policy.plan(&job(name, json!({}))).is_err(), "{name}");
    }
    let long = "x".repeat(4000);
    assert_matches!(
        policy.plan(&job(&long, json!({}))),
        Err(Forbidden::NoCommand { .. })
    );
}

#[test]
fn handler_writable_by_other_users_is_refused() {
    let refused = |policy: &ExecutionPolicy| {
        let refused = policy.plan(&job("resize", json!({})));
        refused.unwrap_err().to_string()
    };
    let (_directory, policy) = handlers("resize", 0o775);
    assert!(refused(&policy).contains("is writable by other users"));
    let (_directory, policy) = handlers("resize", 0o644);
    assert!(refused(&policy).contains("not executable"));
    let (directory, policy) = handlers("resize", 0o755);
    set(directory.path(), 0o777);
    assert!(refused(&policy).contains("is writable by other users"));
    let (directory, policy) = handlers("other", 0o755);
    symlink("/bin/sh", directory.path().join("resize")).unwrap();
    assert!(refused(&policy).contains("not a regular file"));
}

#[test]
fn board_file_writable_by_other_users_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let board = directory.path().join("board.db");
    check_board(&board).unwrap();
    fs::write(&board, "").unwrap();
    set(&board, 0o600);
    check_board(&board).unwrap();
    let side = directory.path().join("board.db-wal");
    fs::write(&side, "").unwrap();
    set(&side, 0o666);
    assert!(matches!(check_board(&board), Err(Untrusted::Writable { path, .. }) if path == side));
    set(&side, 0o600);
    set(directory.path(), 0o770);
    assert_matches!(check_board(&board), Err(Untrusted::Writable { .. }));
}

#[test]
fn relative_directories_are_not_searched() {
    let search = absolute_search(Some(OsStr::new(":bin:/usr/bin:.:/bin")));
    assert_eq!(search, [Path::new("/usr/bin"), Path::new("/bin")]);
    // Whatever the current directory is.
    for nowhere in [None, Some(""), Some("."), Some("::"), Some("src:./src")] {
        let search = absolute_search(nowhere.map(OsStr::new));
        assert!(search.is_empty(), "{nowhere:?}");
        assert!(find(OsStr::new("Cargo.toml"), &search).is_err());
    }
}

#[test]
fn handler_path_writable_by_other_users_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    let set = |path: &str, mode| set(&at(path), mode);
    fs::create_dir_all(at("ours/folder")).unwrap();
    set("ours", 0o755);
    set("ours/folder", 0o755);
    symlink(at("ours"), at("link")).unwrap();
    symlink("../link/./folder", at("ours/again")).unwrap();
    symlink("loop", at("loop")).unwrap();
    let ways = [
        "ours/folder",
        "link/folder",
        "ours/again",
        "link/../ours/again",
    ];
    for way in ways {
        Directory::new(&at(way)).unwrap();
    }
    Directory::new(&at("loop")).unwrap_err();
    // A directory that all users can write is safe only with the sticky bit.
    set("ours", 0o1777);
    for way in ways {
        Directory::new(&at(way)).unwrap();
    }
    for mode in [0o777, 0o775] {
        set("ours", mode);
        for way in ways {
            let refused = Directory::new(&at(way)).unwrap_err();
            assert!(matches!(refused, Untrusted::Writable { .. }), "{refused}");
        }
    }
    set("ours", 0o755);
    set("ours/folder", 0o1777);
    assert_matches!(
        Directory::new(&at("ours/folder")),
        Err(Untrusted::Writable { .. })
    );
    set("ours/folder", 0o755);
    if !geteuid().is_root() {
        eprintln!("skipped: only root can give a folder away");
        return;
    }
    for (foreign, way) in [("ours", "ours/folder"), ("link", "link/folder")] {
        let give = |to| std::os::unix::fs::lchown(at(foreign), Some(to), None).unwrap();
        give(65534);
        let refused = Directory::new(&at(way)).unwrap_err();
        assert!(matches!(refused, Untrusted::Foreign { .. }), "{refused}");
        give(0);
        Directory::new(&at(way)).unwrap();
    }
}

#[test]
fn system_program_directory_is_no_handler_directory() {
    for directory in ["/usr/bin", "/bin", "/usr/local/../bin", "/"] {
        let handlers = Directory::new(Path::new(directory)).unwrap();
        assert!(handlers.is_program_directory(&[]), "{directory}");
    }
    let directory = tempfile::tempdir().unwrap();
    let handlers = Directory::new(directory.path()).unwrap();
    assert!(!handlers.is_program_directory(&["/bin".into()]));
    assert!(handlers.is_program_directory(&["/bin".into(), directory.path().to_owned()]));
}

#[test]
fn board_path_writable_by_other_users_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let (parent, directory) = (root.path().join("parent"), root.path().join("parent/ours"));
    fs::create_dir_all(&directory).unwrap();
    set(&directory, 0o700);
    let board = directory.join("board.db");
    let absent = parent.join("absent/folder/board.db");
    // For root the group is its own.
    let group = if geteuid().is_root() { 0o775 } else { 0o755 };
    for mode in [0o755, group, 0o1777, 0o777] {
        set(&parent, mode);
        assert_eq!(check_board(&board).is_ok(), mode != 0o777, "{mode:o}");
        // The first process makes the directory.
        assert_eq!(check_board(&absent).is_ok(), mode & 0o2 == 0, "{mode:o}");
    }
}

#[test]
fn published_policy_decides_like_the_policy() {
    let (directory, handled) = handlers("resize", 0o755);
    fs::write(directory.path().join("anybodys"), "#!/bin/sh\n").unwrap();
    set(&directory.path().join("anybodys"), 0o777);
    let some = Some(vec!["LAN?".into()]);
    let none = Some(Vec::new());
    let policies = [
        open(),
        policy(Some(Vec::new()), None),
        policy(only_programs("/usr/*/*"), none),
        policy(only_programs("/usr/bin/*"), some.clone()),
        policy(only_programs("/opt/env"), some),
        ExecutionPolicy {
            programs: only_programs("/opt/*"),
            ..handled.clone()
        },
        handled,
    ];
    let command = RetryPolicy::augment_args(clap::Command::new("x"));
    let retry = RetryPolicy::from_arg_matches(&command.get_matches_from(["x"])).unwrap();
    for policy in policies {
        let published = serde_json::to_string(&policy.published(&retry)).unwrap();
        let elsewhere = ExecutionPolicy::of(&serde_json::from_str(&published).unwrap());
        for [name, details] in rows(
            r#"
            resize => {}
            anybodys => {"command": ["true"]}
            other => {"size": 4}
            other => {"command": ["true"]}
            other => {"command": ["/usr/bin/env"]}
            other => {"command": ["./env"]}
            other => {"command": "env"}
            other => {"command": ["true"], "env": {"LANG": "C"}}
            other => {"command": ["true"], "env": {"TZ": "C"}}
            other => {"command": ["true"], "env": {"PATH": "C"}}
            "#,
        ) {
            let job = job(name, serde_json::from_str(details).unwrap());
            let decided = |policy: &ExecutionPolicy| {
                let admitted = policy.admit(&job);
                admitted.map_err(|unfit| unfit.to_string())
            };
            let (ours, theirs) = (decided(&policy), decided(&elsewhere));
            assert_eq!(ours, theirs, "{published}: {name} {details}");
        }
    }
}

#[test]
fn long_published_pattern_matches_nothing_but_still_allows_commands() {
    let long = format!("/{}", "*".repeat(1024));
    let peer = ExecutionPolicy::of(&PublishedPolicy {
        programs: Some(vec![long.clone()]),
        variables: Some(vec![long]),
        ..PublishedPolicy::default()
    });
    let refusal = |details| peer.admit(&job("a", details)).unwrap_err();
    let of_program = refusal(json!({"command": ["/true"]}));
    assert_matches!(of_program, Forbidden::NotAllowed(_));
    let of_variable = refusal(json!({"command": ["/true"], "env": {"/": "1"}}));
    assert_matches!(of_variable, Forbidden::Variable(_));
}

#[test]
fn advice_to_allow_a_launcher_warns_that_it_allows_any_program() {
    for (program, warns) in [
        ("/usr/bin/env", true),
        ("/bin/sh", true),
        ("/usr/local/bin/python3.11", true),
        ("/usr/bin/mysqldump", false),
        ("/usr/bin/sh/dump", false),
    ] {
        let remedy = Forbidden::NotAllowed(program.to_owned()).remedy();
        let warning = " (this allows any program)";
        assert_eq!(remedy.ends_with(warning), warns, "{remedy}");
    }
}
