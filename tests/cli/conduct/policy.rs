//! What is never executed, whatever is posted.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::{Stage, stage::set_mode};

/// Posts a job with these details.
fn post(stage: &Stage, name: &str, details: &Value) {
    let details = details.to_string();
    let words = ["post", name, "--details", &details];
    stage.env.jobboard(&words).run().succeeded();
}

/// Drains the board, and requires that nothing was run, and nothing changed.
fn is_left_alone(stage: &Stage, words: &[&str]) {
    let before = stage.env.everything();
    let conduct = [&["conduct", "--drain"], words].concat();
    let run = stage.env.jobboard(&conduct).run();
    run.succeeded();
    assert!(run.stderr.contains("passed_over"), "{run:?}");
    assert!(run.stderr.contains("ran=0"), "{run:?}");
    assert_eq!(stage.env.everything(), before);
    assert!(stage.log().is_empty());
}

/// Makes a program in the folder of the runs that would tell of being run.
fn trap(stage: &Stage, name: &str) -> PathBuf {
    let path = stage.env.file(name);
    let log = stage.env.file("log");
    fs::write(&path, format!("#!/bin/sh\necho ran >> {}\n", log.display())).unwrap();
    set_mode(&path, 0o755);
    path
}

#[test]
fn on_a_network_nothing_runs_unless_it_was_said_what() {
    let Some(stage) = Stage::redis() else { return };
    stage.post("a", "echo ran >> log");
    let run = stage.env.jobboard(&["conduct", "--drain"]).run();
    let told = run.failed(8);
    assert!(
        told.contains("--handlers DIR, --allow PATTERN, or --allow-any"),
        "{told}"
    );
    assert!(stage.log().is_empty());
}

#[test]
fn what_postings_may_not_do_they_do_not() {
    let Some(stage) = Stage::redis() else { return };
    let trapped = trap(&stage, "trapped");
    let folder = stage.env.file("").display().to_string();
    let ours = json!(["sh", "-c", "echo ran >> log"]);
    for details in [
        json!({"command": "echo ran >> log"}),
        json!({"command": ["./trapped"], "cwd": folder}),
        json!({"command": ["../work/trapped"]}),
        json!({"command": [format!("{folder}/../work/trapped")]}),
        json!({"command": ours, "env": {"PATH": folder}}),
        json!({"command": ours, "env": {"LD_PRELOAD": trapped}}),
        json!({"command": ours, "env": {"JOBBOARD_URL": "redis://elsewhere"}}),
        json!({"command": ours, "env": {"LANG": "C"}}),
    ] {
        post(&stage, "a", &details);
    }
    is_left_alone(&stage, &["--allow-any"]);
    is_left_alone(&stage, &["--allow", "/*/*", "--allow-env", "L?_*"]);
}

#[test]
fn only_allowed_programs_run() {
    let Some(stage) = Stage::redis() else { return };
    let trapped = trap(&stage, "trapped");
    post(&stage, "a", &json!({"command": [trapped]}));
    is_left_alone(&stage, &["--allow", "/usr/bin/*", "--allow", "/bin/*"]);
    let pattern = format!("{}/*", stage.env.root().display());
    is_left_alone(&stage, &["--allow", &pattern]);
    let pattern = format!("{}/*/trapp?d", stage.env.root().display());
    let conduct = ["conduct", "--drain", "--allow", &pattern];
    stage.env.jobboard(&conduct).run().succeeded();
    assert_eq!(stage.log(), ["ran"]);
}

#[test]
fn handlers_run_by_the_name_of_the_job_and_by_nothing_else() {
    let Some(stage) = Stage::redis() else { return };
    let folder = stage.env.file("handlers");
    fs::create_dir(&folder).unwrap();
    set_mode(&folder, 0o755);
    fs::write(folder.join("resize"), "#!/bin/sh\ncat >> log\n").unwrap();
    set_mode(&folder.join("resize"), 0o755);
    trap(&stage, "outside");
    for name in ["../outside", "../../../../../../bin/sh", "other"] {
        post(
            &stage,
            name,
            &json!({"command": ["sh", "-c", "echo ran >> log"]}),
        );
    }
    is_left_alone(&stage, &["--handlers", "handlers"]);
    post(&stage, "resize", &json!({"size": 4, "command": ["false"]}));
    let conduct = ["conduct", "--drain", "--handlers", "handlers"];
    stage.env.jobboard(&conduct).run().succeeded();
    assert_eq!(stage.log(), ["{\"size\":4,\"command\":[\"false\"]}"]);
    set_mode(&folder, 0o777);
    let run = stage.env.jobboard(&conduct).run();
    assert!(run.failed(8).contains("can be written by others"));
}

#[test]
fn an_embedded_board_that_others_can_write_is_not_conducted() {
    let Some(stage) = Stage::embedded() else {
        return;
    };
    stage.post("a", "echo ran >> log");
    let refused = || {
        let run = stage.conduct(&["--drain"]).run();
        let told = run.failed(8).to_owned();
        assert!(stage.log().is_empty());
        told
    };
    set_mode(&stage.env.board(), 0o620);
    assert!(refused().contains("can be written by others (mode 620)"));
    set_mode(&stage.env.board(), 0o600);
    let signal = stage.env.root().join("state/jobboard/board.db-signal");
    set_mode(&signal, 0o602);
    assert!(refused().contains("board.db-signal can be written"));
    set_mode(&signal, 0o600);
    set_mode(stage.env.board().parent().unwrap(), 0o770);
    assert!(refused().contains("mode 770"));
}

#[test]
fn a_board_of_somebody_else_is_not_conducted_not_even_by_root() {
    let Some(stage) = Stage::embedded() else {
        return;
    };
    stage.post("a", "echo ran >> log");
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a file away");
        return;
    }
    let nobody = Some(65534);
    std::os::unix::fs::chown(stage.env.board(), nobody, None).unwrap();
    let run = stage.conduct(&["--drain"]).run();
    assert!(
        run.failed(8).contains("belongs to the user 65534"),
        "{run:?}"
    );
    assert!(stage.log().is_empty());
}
