//! `jobboard owner`.

use serde_json::json;

use crate::support::env::Env;

#[test]
fn owner_prints_only_the_name() {
    let env = Env::new();
    let uuid = env.post("resize");
    env.claim("@1", "ada");
    let run = env.run("owner @1");
    assert_eq!(run.succeeded(), "ada\n");
    assert_eq!(
        env.json("owner @1 --json"),
        json!({"uuid": uuid, "name": "resize", "owner": "ada", "host": null})
    );
}

#[test]
fn unclaimed_job_has_no_owner() {
    let env = Env::new();
    env.post("resize");
    let run = env.run("owner @1");
    run.failed(6);
    insta::assert_snapshot!(run, @"
    exit code 6
    --- stdout
    --- stderr
    error: cannot show the owner of resize on sqlite:ROOT/state/jobboard/board.db: the job is not claimed
    hint: `jobboard claim @1` claims the job
    ");
}

#[test]
fn missing_job_has_no_owner() {
    let env = Env::new();
    let run = env.run("owner @1 --json");
    run.failed(3);
    assert_eq!(run.error()["kind"], "not-found");
}

#[test]
fn several_owners_are_printed_with_their_jobs() {
    let env = Env::new();
    let jobs = env.post_many(3);
    env.claim("@1", "ada");
    env.claim("@2", "bob");
    let run = env.run("owner @1 @2");
    let expected = format!("{}\tada\n{}\tbob\n", jobs[0], jobs[1]);
    assert_eq!(run.succeeded(), expected);
    let run = env
        .jobboard(&["owner", "-", "--json"])
        .stdin("@2\n@3\n")
        .run();
    assert_eq!(run.code, 7, "{run}");
    let expected = json!({"uuid": jobs[1], "name": "job-1", "owner": "bob", "host": null});
    assert_eq!(run.values(), [expected]);
    assert!(run.stderr.contains("the job is not claimed"), "{run}");
}
