//! The output of commands.

use std::fs;

use super::{Stage, on_one_board};

on_one_board!(output_lines_are_complete_and_labelled);

fn output_lines_are_complete_and_labelled(stage: &Stage) {
    let script =
        "for i in $(seq 200); do printf \"$JOBBOARD_NAME \"; printf \"$i\\n\"; done; echo oops >&2";
    let jobs = ["a", "b", "c"].map(|name| (name, stage.post(name, script)));
    let run = stage
        .conduct(&["--drain", "-j3", "--output", "prefix"])
        .run();
    for (name, uuid) in jobs {
        let prefix = format!("{name}/{} | ", &uuid[..8]);
        let lines = run
            .succeeded()
            .lines()
            .filter_map(|line| line.strip_prefix(&prefix));
        let expected = (1..=200).map(|number| format!("{name} {number}"));
        assert!(lines.eq(expected), "{run:?}");
        run.warns(format!("{prefix}oops\n"));
    }
    assert_eq!(run.stdout.lines().count(), 600);
}

#[test]
fn long_line_is_split_and_the_last_needs_no_newline() {
    need!(stage = Stage::embedded());
    stage.post("a", "head -c 100000 /dev/zero | tr '\\0' x; printf end");
    let run = stage.conduct(&["--drain"]).run();
    let lines: Vec<_> = run.succeeded().lines().collect();
    let pieces = lines.iter().map(|line| line.split_once(" | ").unwrap().1);
    let text: String = pieces.collect();
    assert_eq!(text.len(), 100_003);
    assert!(text.ends_with("xend") && lines.len() > 1 && lines.len() < 20);
}

#[test]
fn output_can_be_kept_passed_on_or_dropped() {
    need!(stage = Stage::embedded());
    let conduct = |output: &str| {
        let uuid = stage.post("../a", "echo out; echo err >&2");
        let run = stage.conduct(&["--drain", "-q", "--output", output]).run();
        run.succeeded();
        (uuid, run)
    };
    let (_, run) = conduct("inherit");
    assert_eq!(
        (run.stdout.as_str(), run.stderr.as_str()),
        ("out\n", "err\n")
    );
    let (_, run) = conduct("discard");
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    let directory = stage.env.file("kept");
    fs::create_dir(&directory).unwrap();
    let (uuid, run) = conduct("kept");
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    let kept = fs::read_to_string(directory.join(format!(".._a-{uuid}.1.log"))).unwrap();
    let mut lines: Vec<_> = kept.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["err", "out"]);
    let typo = stage.conduct(&["--output", "prefx"]).run();
    typo.fails(2, "directory");
}

#[test]
fn foreign_files_in_the_output_directory_stop_no_job() {
    need!(stage = Stage::embedded());
    let directory = stage.env.file("kept");
    fs::create_dir(&directory).unwrap();
    let uuid = stage.post("a", "echo out; echo ran >> log");
    let pipe = directory.join(format!("a-{uuid}.1.log"));
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, 0o666.into(), 0).unwrap();
    let run = stage.conduct(&["--drain", "--output", "kept"]).run();
    run.exits(0, "output_not_kept");
    assert_eq!(stage.log(), ["ran"]);
}
