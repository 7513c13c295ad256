//! The text and JSON of an explanation.

use crate::support::{Env, play};

#[test]
fn table_output_begins_with_the_verdict() {
    let env = Env::new();
    let job = env.post("resize");
    env.claim(&job, "ada");
    let words = ["explain", &job[..8], "-o", "table", "--color", "never"];
    let run = env.run(words);
    let shown = run.stdout.clone();
    let lines: Vec<_> = shown.lines().map(str::trim_end).collect();
    assert_eq!(
        lines[0],
        format!("resize {}  claim-never-expires", &job[..8]),
        "{run}"
    );
    assert!((4..=8).contains(&lines.len()), "{run}");
    assert!(
        lines.last().unwrap().contains("jobboard abandon --force"),
        "{run}"
    );
    // A report has no tab-separated form: every format for people is this text.
    for format in ["table", "tsv"] {
        let again = env.run(["explain", &job, "-o", format]);
        assert_eq!(again.stdout.lines().next(), Some(lines[0]), "{again}");
    }
}

#[test]
fn foreign_names_are_escaped_and_several_jobs_are_separated() {
    play(
        r#"
        # foreign names are escaped, and several jobs are separated
        0 post resize
        sql UPDATE job SET name = 'evil' || char(27) || '[31m'
        4 explain @1 00000000-0000-4000-8000-000000000000 -o table -> unknown-job !> \e
        "#,
    );
}

#[test]
fn read_only_board_has_no_fixes() {
    let env = Env::new();
    let job = env.post("resize");
    env.claim(&job, "ada");
    let fix = "abandon";
    let views = [
        format!("explain {job}"),
        "doctor --only jobs".to_owned(),
        "report --json".to_owned(),
    ];
    for view in views {
        let run = env.run(&view);
        run.shows(fix);
        let read_only = env.run(format!("{view} --read-only"));
        assert!(!read_only.stdout.contains(fix), "{read_only}");
        read_only.shows("claim-never-expires");
    }
    let run = env.run(format!("explain {job} --read-only"));
    run.warns("1 fix is not shown: the board is read-only because of --read-only");
}
