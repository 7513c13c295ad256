//! Postings that the policy must never execute.

use std::{fs, path::PathBuf};

use serde_json::json;

use super::{Stage, stage::set_mode};
use crate::support::{members, wait_until};

/// Drains the board, and requires that nothing ran and nothing changed.
fn is_left_alone(stage: &Stage, words: &[&str]) {
    let before = stage.env.everything();
    let conduct = [&["conduct", "--drain"], words].concat();
    let run = stage.env.run(conduct);
    run.exits(7, "=skipped jobs=");
    run.warns("ran=0");
    assert_eq!(stage.env.everything(), before);
    assert!(stage.log().is_empty());
}

/// Creates a program in the current directory that logs its execution.
fn trap(stage: &Stage, name: &str) -> PathBuf {
    let path = stage.env.file(name);
    let log = stage.env.file("log");
    fs::write(&path, format!("#!/bin/sh\necho ran >> {}\n", log.display())).unwrap();
    set_mode(&path, 0o755);
    path
}

#[test]
fn network_board_needs_an_explicit_policy() {
    need!(stage = Stage::redis());
    stage.post("a", "echo ran >> log");
    stage.env.run("conduct --drain").fails(
        8,
        "--handlers DIR, --allow PATTERN, --allow-any or -- COMMAND",
    );
    assert!(stage.log().is_empty());
}

#[test]
fn postings_cannot_escape_the_policy() {
    need!(stage = Stage::redis());
    let trapped = trap(&stage, "trapped");
    let directory = stage.env.file("").display().to_string();
    let ours = json!(["sh", "-c", "echo ran >> log"]);
    for details in [
        json!({"command": "echo ran >> log"}),
        json!({"command": ["./trapped"], "cwd": directory}),
        json!({"command": ["../work/trapped"]}),
        json!({"command": [format!("{directory}/../work/trapped")]}),
        json!({"command": ours, "env": {"PATH": directory}}),
        json!({"command": ours, "env": {"LD_PRELOAD": trapped}}),
        json!({"command": ours, "env": {"JOBBOARD_URL": "redis://elsewhere"}}),
        json!({"command": ours, "env": {"LANG": "C"}}),
    ] {
        stage.env.load("a", &details);
    }
    is_left_alone(&stage, &["--allow-any"]);
    is_left_alone(&stage, &["--allow", "/*/*", "--allow-env", "L?_*"]);
}

#[test]
fn only_allowed_programs_run() {
    need!(stage = Stage::redis());
    let trapped = trap(&stage, "trapped");
    stage.env.load("a", &json!({"command": [trapped]}));
    is_left_alone(&stage, &["--allow", "/usr/bin/*", "--allow", "/bin/*"]);
    let pattern = format!("{}/*", stage.env.root().display());
    is_left_alone(&stage, &["--allow", &pattern]);
    let pattern = format!("{}/*/trapp?d", stage.env.root().display());
    let conduct = format!("conduct --drain --allow {pattern}");
    stage.env.ok(conduct);
    assert_eq!(stage.log(), ["ran"]);
}

#[test]
fn handlers_run_by_job_name_only() {
    need!(stage = Stage::redis());
    let directory = stage.env.file("handlers");
    fs::create_dir(&directory).unwrap();
    set_mode(&directory, 0o755);
    fs::write(directory.join("resize"), "#!/bin/sh\ncat >> log\n").unwrap();
    set_mode(&directory.join("resize"), 0o755);
    trap(&stage, "outside");
    for name in ["../outside", "../../../../../../bin/sh", "other"] {
        let command = json!({"command": ["sh", "-c", "echo ran >> log"]});
        stage.env.load(name, &command);
    }
    is_left_alone(&stage, &["--handlers", "handlers"]);
    stage
        .env
        .load("resize", &json!({"size": 4, "command": ["false"]}));
    let conduct = "conduct --drain --handlers handlers";
    assert_eq!(stage.env.run(conduct).code, 7);
    assert_eq!(stage.log(), ["{\"size\":4,\"command\":[\"false\"]}"]);
    set_mode(&directory, 0o777);
    let run = stage.env.run(conduct);
    run.fails(8, "is writable by other users");
}

#[test]
fn timeout_and_max_attempts_of_a_job_apply_to_its_handler() {
    need!(stage = Stage::embedded());
    let directory = stage.env.file("handlers");
    fs::create_dir(&directory).unwrap();
    set_mode(&directory, 0o755);
    let script =
        "#!/bin/sh\ncmp - \"$JOBBOARD_DETAILS_FILE\" && echo same >> log\nexec sleep 600\n";
    fs::write(directory.join("slow"), script).unwrap();
    set_mode(&directory.join("slow"), 0o755);
    let job = stage
        .env
        .run("post slow timeout=50ms max_attempts:=2")
        .posted();
    let conduct = ["--drain", "--handlers", "handlers", "--retry-delay", "10ms"];
    assert_eq!(stage.conduct(&conduct).run().code, 7);
    let job = stage.env.show(&job);
    assert_eq!(members(&job, "state attempts"), "TRASHED 2");
    let reason = &job["last_failure"]["reason"];
    assert_eq!(*reason, json!("the command took longer than 50ms"));
    assert_eq!(stage.log(), ["same"; 2]);

    stage.env.load("slow", &json!({"timeout": 5}));
    let run = stage.conduct(&conduct).run();
    assert_eq!(run.code, 7, "{run}");
    run.warns("the job's `timeout` must be a duration such as 5m");
}

#[test]
fn program_in_the_current_directory_is_never_found() {
    need!(stage = Stage::embedded());
    trap(&stage, "trapped");
    let drain = ["--drain", "--max-attempts", "1"];
    let drained = |path: &str| stage.conduct(&drain).env("PATH", path);
    let all = ["", ".", "::", "../work", ":./"].map(drained);
    let none = stage.conduct(&drain).in_shell("unset PATH; exec \"$@\"");
    for conduct in all.into_iter().chain([none]) {
        let job = stage.env.jobboard(&["post", "a", "--", "trapped"]);
        let job = job.run().posted();
        let run = conduct.run();
        assert_eq!(run.code, 7, "{run:?}");
        let reason = &stage.env.show(&job)["last_failure"]["reason"];
        assert_eq!(*reason, json!("program trapped not found"));
    }
    assert!(stage.log().is_empty());
    // `run` uses the current directory: its user typed the name.
    let run = ["run", "a", "--", "trapped"];
    stage.env.jobboard(&run).env("PATH", ".").run().succeeded();
    assert_eq!(stage.log(), ["ran"]);
}

#[test]
fn handler_directory_must_be_protected() {
    need!(stage = Stage::redis());
    let refused = |directory: &str| {
        let conduct = ["conduct", "--drain", "--handlers", directory];
        let run = stage.env.run(conduct);
        run.failed(8).to_owned()
    };
    for directory in ["/usr/bin", "/bin/../bin"] {
        let message = refused(directory);
        assert!(message.contains("would be a handler"), "{message}");
        assert!(message.contains("--allow-any"), "{message}");
    }
    stage
        .env
        .ok("conduct --drain --allow-any --handlers /usr/bin");
    let parent = stage.env.file("parent");
    fs::create_dir_all(parent.join("handlers")).unwrap();
    std::os::unix::fs::symlink("parent/handlers", stage.env.file("link")).unwrap();
    set_mode(&parent.join("handlers"), 0o755);
    set_mode(&parent, 0o777);
    for directory in ["parent/handlers", "link"] {
        assert!(refused(directory).contains("work/parent is writable by other users (mode 777)"));
    }
    fs::write(parent.join("file"), "").unwrap();
    for mistyped in ["nowhere", "parent/file"] {
        let conduct = format!("conduct --drain --handlers {mistyped}");
        stage.env.run(conduct).fails(2, "no directory ");
    }
    // Nothing starts once other users can change the path, even under a running conductor.
    set_mode(&parent, 0o755);
    let handler = parent.join("handlers/a");
    fs::write(&handler, "#!/bin/sh\necho \"$0\" >> log\n").unwrap();
    set_mode(&handler, 0o755);
    let conductor = stage.env.jobboard("conduct --handlers link").spawn();
    stage.env.load("a", &json!({}));
    stage.logged(1);
    assert_eq!(stage.log(), [handler.to_str().unwrap()]);
    set_mode(&parent, 0o777);
    stage.env.load("a", &json!({}));
    stage.says(&conductor, "is writable by other users");
    conductor.kill();
    assert_eq!(stage.log().len(), 1);
}

#[test]
fn board_writable_by_other_users_is_not_conducted() {
    need!(stage = Stage::embedded());
    stage.post("a", "echo ran >> log");
    let refused = || {
        let run = stage.conduct(&["--drain"]).run();
        let message = run.failed(8).to_owned();
        assert!(stage.log().is_empty());
        message
    };
    set_mode(&stage.env.board(), 0o620);
    assert!(refused().contains("is writable by other users (mode 620)"));
    set_mode(&stage.env.board(), 0o600);
    let signal = stage.env.root().join("state/jobboard/board.db-signal");
    set_mode(&signal, 0o602);
    assert!(refused().contains("board.db-signal is writable"));
    set_mode(&signal, 0o600);
    set_mode(stage.env.board().parent().unwrap(), 0o770);
    assert!(refused().contains("mode 770"));
    let state = stage.env.root().join("state");
    set_mode(stage.env.board().parent().unwrap(), 0o700);
    set_mode(&state, 0o777);
    assert!(refused().contains("state is writable by other users (mode 777)"));
}

#[test]
fn board_of_another_user_is_not_conducted_even_by_root() {
    need!(stage = Stage::embedded());
    stage.post("a", "echo ran >> log");
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a file away");
        return;
    }
    let nobody = Some(65534);
    std::os::unix::fs::chown(stage.env.board(), nobody, None).unwrap();
    let run = stage.conduct(&["--drain"]).run();
    run.fails(8, "belongs to user 65534");
    assert!(stage.log().is_empty());
}

#[test]
fn own_command_runs_for_each_job_with_its_details() {
    let stage = Stage::embedded().unwrap();
    stage.env.load("resize-1", &json!({"volume": 17}));
    stage.env.load(
        "resize-2",
        &json!({"command": ["sh", "-c", "echo theirs >> log"]}),
    );
    stage.env.load("other", &json!({}));
    let log = r#"printf '%s %s ' "$JOBBOARD_NAME" "$1" >> log; cat >> log"#;
    let of_resize = ["conduct", "--drain", "--filter", "name=resize-*", "--"];
    let command = ["sh", "-c", log, "sh", "fast"];
    let run = stage.env.run([&of_resize[..], &command].concat());
    run.succeeded();
    let expected = [
        r#"resize-1 fast {"volume":17}"#,
        r#"resize-2 fast {"command":["sh","-c","echo theirs >> log"]}"#,
    ];
    assert_eq!(stage.log(), expected);
    assert_eq!(stage.env.names(), ["other"]);
    let absent = stage.env.run("conduct --drain -- ./nowhere");
    absent.fails(2, "nowhere not found");
    stage.env.fails(2, "conduct --allow-any -- true");
    assert_eq!(stage.env.names(), ["other"]);
}

#[test]
fn allowed_variables_lift_no_limit_on_programs() {
    let stage = Stage::embedded().unwrap();
    stage.post("a", "echo ran >> log");
    let board = stage.env.board();
    stage.env.configure(&format!(
        "[board.local]\nurl = \"sqlite:{}\"\nconduct = {{ allow = [\"/usr/bin/true\"] }}\n",
        board.display()
    ));
    let conduct = [
        "--board",
        "local",
        "conduct",
        "--drain",
        "--allow-env",
        "FOO",
    ];
    stage.env.run(conduct).has_code(7);
    assert_eq!(stage.log(), [""; 0]);
    assert_eq!(stage.env.names(), ["a"]);
}

#[test]
fn own_command_on_a_network_board_needs_a_filter() {
    need!(stage = Stage::redis());
    stage.env.load("mine", &json!({}));
    stage.env.load("theirs", &json!({}));
    let command = ["--", "sh", "-c", "echo $JOBBOARD_NAME >> log"];
    let conduct = |words: &[&str]| {
        let words = [&["conduct", "--drain"], words, &command].concat();
        stage.env.run(words)
    };
    conduct(&[]).fails(8, "without --filter");
    conduct(&["--filter", "name=mine"]).succeeded();
    assert_eq!(stage.log(), ["mine"]);
    assert_eq!(stage.env.names(), ["theirs"]);
}

#[test]
fn own_command_leaves_flows_alone_and_waits_for_its_program() {
    let stage = Stage::embedded().unwrap();
    let book = json!({"name": "b", "uuid": "0e6dc4c5-9c2b-4b0e-b3e0-3c3a5a4c1b1a"});
    let flow = json!({"name": "flow", "book": book}).to_string();
    let post = stage.env.jobboard(&["post", "--from", "-"]).stdin(flow);
    post.run().succeeded();
    stage.env.load("mine", &json!({}));
    let program = trap(&stage, "worker");
    let of_each = ["--", program.to_str().unwrap()];
    let drained = stage.conduct(&[&["--drain"], &of_each[..]].concat()).run();
    drained.succeeded();
    assert_eq!(stage.log(), ["ran"]);
    assert_eq!(stage.env.names(), ["flow"]);
    let conductor = stage.start(&of_each);
    fs::remove_file(&program).unwrap();
    stage.env.load("later", &json!({}));
    stage.says(&conductor, "worker not found");
    let explain = || stage.env.run("explain later").stdout;
    wait_until("the cause is published", || {
        explain().contains("worker not found")
    });
    trap(&stage, "worker");
    stage.logged(2);
    conductor.kill();
}
