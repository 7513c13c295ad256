//! References to one or several jobs.

use crate::support::env::Env;

const ONE: &str = "5f3a0000-0000-4000-8000-000000000001";
const OTHER: &str = "5f3a0000-0000-4000-8000-000000000002";

/// Two jobs with a common uuid prefix.
fn alike() -> Env {
    let env = Env::new();
    for (name, uuid) in [("resize", ONE), ("grow", OTHER)] {
        let post = env.jobboard(&["post", name, "--uuid", uuid]);
        assert_eq!(post.run().posted(), uuid);
    }
    env
}

#[test]
fn every_form_of_reference_finds_the_job() {
    let env = alike();
    let whole = ONE.to_uppercase();
    let key = format!("key:{ONE}");
    for reference in [ONE, &whole, &ONE[..36], "@1", &key] {
        assert_eq!(env.show(reference)["name"], "resize", "{reference}");
    }
    let uuid = env.post("other");
    for length in [4, 8, 9, 13, 30] {
        assert_eq!(env.show(&uuid[..length])["name"], "other", "{length}");
    }
}

#[test]
fn ambiguous_prefix_lists_the_candidates() {
    let env = alike();
    let run = env.run("show 5f3a");
    assert!(
        run.stderr.contains(ONE) && run.stderr.contains(OTHER),
        "{run}"
    );
    insta::assert_snapshot!(run, @"
    exit code 3
    --- stdout
    --- stderr
    error: cannot show 5f3a on sqlite:ROOT/state/jobboard/board.db: 5f3a matches several jobs: 00000001-0000-0000-0000-000000000000 (resize), 00000002-0000-0000-0000-000000000000 (grow)
    hint: give more digits of the uuid
    ");
}

#[test]
fn ambiguous_reference_changes_no_job() {
    let env = alike();
    env.claim("@1", "ada");
    let before = env.everything();
    for call in [
        &["claim", "5f3a"][..],
        &["extend", "5f3a", "--expiry", "1h"],
        &["abandon", "5f3a", "--force", "--yes"],
        &["consume", "5f3a", "--force", "--yes"],
        &["trash", "5f3a", "--force", "--yes"],
        &["wait", "5f3a"],
        &["owner", "5f3a"],
    ] {
        let run = env
            .jobboard(&[call, &["--json", "--who", "ada"]].concat())
            .run();
        run.failed(3);
        assert_eq!(run.error()["kind"], "ambiguous");
    }
    assert_eq!(env.everything(), before);
}

#[test]
fn ambiguous_reference_in_the_trash_is_refused() {
    let env = alike();
    env.trash("@1");
    env.trash("@2");
    let before = env.everything();
    for verb in ["restore", "purge"] {
        let run = env.run(format!("{verb} 5f3a --json"));
        assert_ne!(run.code, 0, "{run}");
    }
    let run = env.run("purge 5f3a --yes --json");
    assert_eq!(run.error()["kind"], "ambiguous");
    assert_eq!(env.everything(), before);
}

#[test]
fn references_are_read_from_standard_input() {
    let env = Env::new();
    let uuids = env.post_many(3);
    let lines = format!("{}\n\n  @3  \n", uuids[0]);
    let consume = ["consume", "-", "--force", "--yes"];
    let run = env.jobboard(&consume).stdin(lines).run();
    assert_eq!(run.succeeded().lines().count(), 2);
    assert_eq!(env.names(), ["job-1"]);
}

#[test]
fn one_command_can_feed_another() {
    let env = Env::new();
    env.post_many(3);
    env.claim("@2", "ada");
    let listed = env.run("list --unclaimed -o uuid");
    let trash = ["trash", "-", "--force", "--yes"];
    let run = env.jobboard(&trash).stdin(listed.succeeded()).run();
    run.succeeded();
    assert_eq!(env.names(), ["job-1"]);
}

#[test]
fn empty_standard_input_selects_nothing() {
    let env = Env::new();
    env.post("resize");
    let consume = env.jobboard(&["consume", "-", "--force", "--yes"]);
    let run = consume.stdin("\n").run();
    assert_eq!(env.names(), ["resize"]);
    assert_eq!(run.succeeded(), "");
}

#[test]
fn each_of_several_jobs_is_reported_and_possible_changes_happen() {
    let env = Env::new();
    env.post_many(3);
    env.claim("@1", "ada");
    env.claim("@2", "bob");
    let run = env.run("consume @1 @2 @3 @99 --who ada");
    assert_eq!(env.names(), ["job-1", "job-2"]);
    insta::assert_snapshot!(run, @"
    exit code 7
    --- stdout
    00000001-0000-0000-0000-000000000000	job-0	consumed
    --- stderr
    error: cannot consume @2 on sqlite:ROOT/state/jobboard/board.db: the job belongs to bob, not to ada
    hint: if the claim is yours under another name, add `--who NAME`; if the owner is gone, use `jobboard consume --force --yes @2`
    error: cannot consume @3 on sqlite:ROOT/state/jobboard/board.db: the job is not claimed
    hint: `jobboard consume --force --yes @3` also works on an unclaimed job
    error: cannot consume @99 on sqlite:ROOT/state/jobboard/board.db: the job does not exist
    hint: `jobboard list` shows the jobs on the board; add `--trash` or `--history` for jobs that have left it
    error: failed for 3 of 4 jobs
    ");
}

#[test]
fn json_failures_are_separate_errors() {
    let env = Env::new();
    env.post_many(2);
    env.claim("@1", "ada");
    let run = env.run("consume @1 @2 @99 --who ada --json");
    assert_eq!(run.code, 7);
    assert_eq!(run.values().len(), 1);
    let errors = serde_json::Deserializer::from_str(&run.stderr).into_iter();
    let errors: Vec<serde_json::Value> = errors.collect::<Result<_, _>>().unwrap();
    let kinds: Vec<_> = errors.iter().map(|error| &error["error"]["kind"]).collect();
    assert_eq!(kinds, ["not-claimed", "not-found", "failed"]);
    assert_eq!(errors[2]["error"]["code"], 7);
}

#[test]
fn partial_failure_exits_with_7_for_every_verb() {
    for (verb, is_for_trash) in [
        ("abandon", false),
        ("consume", false),
        ("trash", false),
        ("restore", true),
        ("retry", true),
        ("purge", true),
    ] {
        let env = Env::new();
        env.post("resize");
        env.claim("@1", "ada");
        if is_for_trash {
            env.trash("@1");
        }
        let yes: &[&str] = if verb.starts_with("re") {
            &[]
        } else {
            &["--yes"]
        };
        let words = [&[verb, "@1", "@99", "--who", "ada"], yes].concat();
        let run = env.jobboard(&words).run();
        assert_eq!(run.code, 7, "{run}");
        assert_eq!(run.stdout.lines().count(), 1, "{run}");
        assert!(run.stderr.contains("@99"), "{run}");
    }
}

#[test]
fn job_named_twice_is_changed_once() {
    let env = Env::new();
    env.post("resize");
    let run = env.run("consume @1 @1 --force --yes");
    assert_eq!(run.stdout.lines().count(), 1, "{run}");
    assert!(env.names().is_empty());
}

#[test]
fn unique_key_is_a_reference() {
    let env = Env::new();
    env.post("resize");
    let unique = ["post", "backup", "--unique", "nightly run"];
    let uuid = env.jobboard(&unique).run().posted();
    assert_eq!(env.show("unique:nightly run")["uuid"], uuid);
    let claim = env.run("claim 'unique:nightly run' -o uuid");
    assert_eq!(claim.succeeded(), format!("{uuid}\n"));
    let run = env
        .jobboard(&["consume", "-"])
        .stdin("unique:nightly run\n")
        .run();
    run.succeeded();
    assert_eq!(env.state("unique:nightly run"), "COMPLETE");
}

#[test]
fn unique_key_means_the_last_run_even_if_an_earlier_one_is_in_the_trash() {
    let env = Env::new();
    let post = "post backup --unique night";
    env.run(post).succeeded();
    env.run("trash --force --yes backup").succeeded();
    env.run(post).succeeded();
    env.run("consume --force --yes unique:night").succeeded();
    for command in ["show unique:night", "explain unique:night"] {
        let run = env.run(command);
        let answer = run.succeeded().to_lowercase();
        assert!(answer.contains("complete"), "{run}");
    }
}
