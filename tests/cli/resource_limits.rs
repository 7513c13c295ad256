//! Process limits: file size and open files.

use std::fs;

use crate::{conduct::Stage, support::Env};

/// Half a mebibyte, in the units of a shell: less than the output below, more than a board.
const FILE_LIMIT: &str = "ulimit -f 1000; exec \"$@\"";

#[test]
fn unstorable_output_is_reported_once_and_stops_no_job() {
    need!(stage = Stage::embedded());
    let directory = stage.env.file("kept");
    fs::create_dir(&directory).unwrap();
    let uuid = stage.post(
        "a",
        "echo important; yes | head -c 3000000; echo ran >> log",
    );
    let conduct = ["--drain", "--output", "kept"];
    let run = stage.conduct(&conduct).in_shell(FILE_LIMIT).run();
    run.succeeded();
    let text = |event: &str| run.stderr.matches(event).count();
    assert_eq!(text("=output_not_kept "), 1, "{run:?}");
    assert_eq!(text("=running_end "), 1, "{run:?}");
    run.warns("File too large");
    let kept = fs::read_to_string(directory.join(format!("a-{uuid}.1.log"))).unwrap();
    assert!(kept.starts_with("important\ny\ny\n"));
    assert_eq!(stage.log(), ["ran"]);
}

#[test]
fn command_that_writes_too_much_is_ended_by_the_file_limit() {
    need!(stage = Stage::embedded());
    stage.post("a", "head -c 3000000 /dev/zero > large; echo $? > log");
    let run = stage.conduct(&["--drain"]).in_shell(FILE_LIMIT).run();
    run.succeeded();
    // 128 plus the number of the signal.
    assert_eq!(stage.log(), ["153"]);
}

#[test]
fn board_at_the_file_size_limit_names_the_limit() {
    let env = Env::new();
    env.post("a");
    let run = env.jobboard(&["post", "b", "--json"]);
    let run = run.in_shell("ulimit -f 1; exec \"$@\"").run();
    run.failed(1);
    let message = run.error()["message"].to_string();
    assert!(message.contains("`ulimit -f unlimited`"), "{message}");
    assert_eq!(env.names(), ["a"]);
}

#[test]
fn lack_of_file_descriptors_is_not_reported_as_denied() {
    let env = Env::new();
    env.post("a");
    let mut is_reported = false;
    for open in 10..30 {
        let script = format!(
            "for i in $(seq {open}); do exec {{file}}</dev/null; done; ulimit -n 32; exec \"$@\""
        );
        let bash = [
            "-c",
            script.as_str(),
            "bash",
            env!("CARGO_BIN_EXE_jobboard"),
        ];
        let list = [&bash[..], &["list"]].concat();
        let run = env.program("/bin/bash".as_ref(), &list).run();
        assert!(!run.stderr.contains("denies access"), "{run:?}");
        is_reported |= run.stderr.contains("`ulimit -n 1024`");
    }
    assert!(is_reported);
}
