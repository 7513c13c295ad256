//! `jobboard show`.

use serde_json::json;

use crate::support::env::Env;

#[test]
fn people_see_all_that_is_known() {
    let env = Env::new();
    let book = "flows:00000000-0000-4000-8000-000000000001";
    let posted = env
        .jobboard(&["post", "resize", "lb=5f3a", "--book", book])
        .run();
    env.claim(&posted.posted(), "ada");
    let run = env.jobboard(&["show", "@1", "-o", "table"]).run();
    insta::assert_snapshot!(run, @r#"
    exit code 0
    --- stdout
    resize  CLAIMED
    uuid          00000001-0000-0000-0000-000000000000
    priority      NORMAL
    sequence      1
    created       TIME
    modified      TIME
    owner         ada
    claimed       TIME
    expires       never
    fence         1
    book          flows 00000002-0000-0000-0000-000000000000
    details
      {
        "lb": "5f3a"
      }
    --- stderr
    "#);
}

#[test]
fn a_job_in_the_trash_is_found_too() {
    let env = Env::new();
    env.post("resize");
    env.trash("@1");
    assert_eq!(env.state("@1"), "TRASHED");
    assert!(env.show("@1")["trashed_on"].is_string());
}

#[test]
fn one_job_is_an_object_and_several_are_an_array() {
    let env = Env::new();
    env.post_many(2);
    assert_eq!(env.show("@1")["name"], "job-0");
    let both = env.jobboard(&["show", "@2", "@1", "--json"]).run().json();
    assert_eq!(both[0]["name"], "job-1");
    assert_eq!(both[1]["name"], "job-0");
}

#[test]
fn people_see_secrets_only_when_they_ask() {
    let env = Env::new();
    let details = json!({"user": "ada", "tls": {"private_key": "hunter2"}, "db_password": "hunter2",
        "chain": "-----BEGIN CERTIFICATE-----\nhunter2", "list": [{"api_token": "hunter2"}]});
    let details = details.to_string();
    let posted = env
        .jobboard(&["post", "resize", "--details", &details])
        .run();
    posted.succeeded();
    let shown = |more: &[&str]| {
        let arguments = [&["show", "@1", "-o", "table"], more].concat();
        let run = env.jobboard(&arguments).run();
        run.succeeded().matches("hunter2").count()
    };
    assert_eq!(shown(&[]), 0);
    assert_eq!(shown(&["--reveal"]), 4);
    assert_eq!(env.show("@1")["details"]["db_password"], "hunter2");
}

#[test]
fn a_job_that_is_nowhere_is_not_found() {
    let env = Env::new();
    env.post("resize");
    let run = env.jobboard(&["show", "@99"]).run();
    insta::assert_snapshot!(run, @"
    exit code 3
    --- stdout
    --- stderr
    error: cannot show @99 on sqlite:ROOT/state/jobboard/board.db: the job does not exist
    hint: `jobboard list` shows the jobs on the board; add `--trash` or `--history` for jobs that left it
    ");
}
