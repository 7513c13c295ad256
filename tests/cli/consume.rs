//! `jobboard consume`.

use serde_json::json;

use crate::support::env::Env;

#[test]
fn owner_consumes_a_job() {
    let (env, uuid) = Env::with_claimed_job();
    let outcome = env.run("consume @1 --who ada --json");
    assert_eq!(
        outcome.json(),
        json!({"uuid": uuid, "name": "resize", "done": "consumed"})
    );
    assert!(env.names().is_empty());
}

#[test]
fn table_output_names_the_result() {
    let (env, _) = Env::with_claimed_job();
    let run = env.run("consume @1 --who ada -o table");
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    consumed 00000001 resize
    --- stderr
    ");
}

#[test]
fn other_users_cannot_consume() {
    let (env, _) = Env::with_claimed_job();
    let run = env.run("consume @1 --who bob --json");
    assert_eq!(run.code, 4);
    assert_eq!(run.error()["kind"], "not-owner");
    assert_eq!(env.names(), ["resize"]);
}

#[test]
fn unclaimed_job_must_be_claimed_first() {
    let env = Env::new();
    env.post("resize");
    let run = env.run("consume @1");
    assert_eq!(env.names(), ["resize"]);
    insta::assert_snapshot!(run, @"
    exit code 4
    --- stdout
    --- stderr
    error: cannot consume @1 on sqlite:ROOT/state/jobboard/board.db: the job is not claimed
    hint: `jobboard consume --force --yes @1` also works on an unclaimed job
    ");
}

#[test]
fn force_consumes_any_job() {
    let (env, _) = Env::with_claimed_job();
    env.post("other");
    let run = env.run("consume @1 @2 --force --yes");
    assert!(env.names().is_empty());
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    00000001-0000-0000-0000-000000000000	resize	consumed
    00000002-0000-0000-0000-000000000000	other	consumed
    --- stderr
      00000001 resize (claimed by ada)
      00000002 other
    ");
}

#[test]
fn consume_requires_a_job() {
    let (env, _) = Env::with_claimed_job();
    let run = env.run("consume");
    insta::assert_snapshot!(run, @"
    exit code 2
    --- stdout
    --- stderr
    error: no job given: name one or use --state, --name, --filter or --problem
    ");
}
