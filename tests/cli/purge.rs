//! `jobboard purge`.

use crate::support::env::{Env, names};

/// Two trashed jobs, and one on the board.
fn two_trashed() -> Env {
    let env = Env::new();
    env.post_many(3);
    env.trash("@1");
    env.trash("@2");
    env
}

fn trash(env: &Env) -> Vec<String> {
    names(&env.run("list --trash --json"))
}

#[test]
fn purged_job_is_deleted() {
    let env = two_trashed();
    let run = env.run("purge @1 --yes");
    assert_eq!(trash(&env), ["job-1"]);
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    00000001-0000-0000-0000-000000000000	job-0	purged
    --- stderr
      00000001 job-0
    ");
}

#[test]
fn purge_without_a_terminal_needs_yes() {
    let env = two_trashed();
    let run = env.run("purge @1");
    run.failed(8);
    assert_eq!(trash(&env).len(), 2);
    insta::assert_snapshot!(run, @"
    exit code 8
    --- stdout
    --- stderr
      00000001 job-0
    error: cannot purge 1 job permanently on sqlite:ROOT/state/jobboard/board.db: confirmation is required, but there is no terminal
    hint: add `--yes` to confirm in advance
    ");
}

#[test]
fn purge_all_deletes_the_trash_only() {
    let env = two_trashed();
    env.ok("purge --all --yes");
    assert!(trash(&env).is_empty());
    assert_eq!(env.names(), ["job-2"]);
}

#[test]
fn purge_older_than_deletes_only_older_jobs() {
    let env = two_trashed();
    let purge = |age: &str| env.run(format!("purge --older-than {age} --yes"));
    assert_eq!(purge("1h").succeeded(), "");
    assert_eq!(trash(&env).len(), 2);
    let database = env.database();
    let backdate = "UPDATE job SET trashed_on = trashed_on - 7200000000 WHERE sequence = 1";
    database.execute(backdate, []).unwrap();
    purge("1h").succeeded();
    assert_eq!(trash(&env), ["job-1"]);
}

#[test]
fn job_on_the_board_cannot_be_purged() {
    let env = two_trashed();
    env.fails(3, "purge @3 --yes");
    assert_eq!(env.names(), ["job-2"]);
}

#[test]
fn purge_requires_a_selection() {
    let env = two_trashed();
    assert_eq!(env.run("purge --yes").code, 2);
    assert_eq!(trash(&env).len(), 2);
}

#[test]
fn dry_run_lists_the_jobs_even_if_read_only() {
    let env = Env::new();
    env.post_many(3);
    env.trash("@1");
    env.trash("@2");
    let dry = |words: &[&str]| {
        let dry = ["--dry-run", "--read-only", "--json"];
        let run = env.jobboard(&[words, &dry].concat()).run();
        let listed = run.json();
        let names = listed.as_array().unwrap().iter();
        let names = names.map(|job| job["name"].as_str().unwrap().to_owned());
        (run.stderr.clone(), names.collect::<Vec<_>>())
    };
    for verb in ["purge", "restore"] {
        let (_, names) = dry(&[verb, "--filter", "state=TRASHED"]);
        assert_eq!(names, ["job-0", "job-1"], "{verb}");
    }
    assert!(dry(&["purge", "--older-than", "1h"]).1.is_empty());
    for verb in ["abandon", "consume", "trash"] {
        let (message, names) = dry(&[verb, "@3"]);
        assert_eq!((message.as_str(), names), ("", vec!["job-2".to_owned()]));
        let (message, _) = dry(&[verb, "--filter", "name=*"]);
        assert!(
            message.contains("skipped without --force: 1 of 1 job"),
            "{message}"
        );
    }
    env.fails(8, "purge --all --dry-run --max 1");
    env.fails(3, "trash @9 --dry-run");
    assert_eq!(env.names(), ["job-2"]);
    assert_eq!(env.run("list --trash --count").stdout, "2\n");
}

#[test]
fn younger_jobs_do_not_count_for_max() {
    let env = two_trashed();
    let purge = |age: &str| env.run(format!("purge --older-than {age} --max 1 --yes"));
    assert!(purge("1h").succeeded().is_empty());
    assert!(
        purge("1ms")
            .failed(8)
            .contains("2 jobs selected, but --max is 1")
    );
    assert_eq!(trash(&env).len(), 2);
}

#[test]
fn limit_counts_matching_jobs_only() {
    let env = two_trashed();
    let purge = |words: &[&str]| {
        let always = ["purge", "--yes", "--limit", "1"];
        env.jobboard(&[&always, words].concat()).run()
    };
    assert!(!purge(&["--older-than", "1h"]).stderr.contains("--limit"));
    assert_eq!(trash(&env).len(), 2);
    let run = purge(&["--all"]);
    assert!(run.stderr.contains("skipped (--limit): 1 job"), "{run}");
    assert_eq!(trash(&env).len(), 1);
}
