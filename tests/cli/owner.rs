//! `jobboard owner`.

use serde_json::json;

use crate::env::Env;

#[test]
fn the_name_of_the_owner_is_all_that_is_printed() {
    let env = Env::new();
    let uuid = env.post("resize");
    env.claim("@1", "ada");
    let run = env.jobboard(&["owner", "@1"]).run();
    assert_eq!(run.succeeded(), "ada\n");
    assert_eq!(
        env.jobboard(&["owner", "@1", "--json"]).run().json(),
        json!({"uuid": uuid, "name": "resize", "owner": "ada"})
    );
}

#[test]
fn without_an_owner_nothing_is_printed() {
    let env = Env::new();
    env.post("resize");
    let run = env.jobboard(&["owner", "@1"]).run();
    run.failed(6);
    insta::assert_snapshot!(run, @"
    exit code 6
    --- stdout
    --- stderr
    error: nobody has claimed resize
    ");
}

#[test]
fn a_job_that_is_not_there_has_no_owner_to_tell() {
    let env = Env::new();
    let run = env.jobboard(&["owner", "@1", "--json"]).run();
    run.failed(3);
    assert_eq!(run.error()["kind"], "not-found");
}
