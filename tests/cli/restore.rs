//! `jobboard restore`.

use crate::support::env::Env;

fn trashed() -> (Env, String) {
    let env = Env::new();
    let uuid = env.post("resize");
    env.claim("@1", "ada");
    env.trash("@1");
    (env, uuid)
}

#[test]
fn restored_job_is_unclaimed_on_the_board() {
    let (env, _) = trashed();
    let run = env.run("restore @1");
    let job = env.show("@1");
    assert_eq!(job["state"], "UNCLAIMED");
    assert!(job["trashed_on"].is_null());
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    00000001-0000-0000-0000-000000000000	resize	restored
    --- stderr
    ");
}

#[test]
fn restored_job_has_no_attempts() {
    let (env, _) = trashed();
    let database = env.database();
    let tried = "UPDATE job SET attempts = 5, postponed = 2, not_before = 4102444800000000";
    database.execute(tried, []).unwrap();
    env.ok("restore @1");
    let job = env.show("@1");
    assert_eq!(job["attempts"], 0);
    assert!(job["not_before"].is_null());
}

#[test]
fn same_uuid_on_the_board_blocks_a_restore() {
    let (env, uuid) = trashed();
    env.ok(format!("post again --uuid {uuid}"));
    let run = env.run("restore @1");
    assert_eq!(env.names(), ["again"]);
    insta::assert_snapshot!(run, @"
    exit code 4
    --- stdout
    --- stderr
    error: cannot restore @1 on sqlite:ROOT/state/jobboard/board.db: a job with the uuid 00000001-0000-0000-0000-000000000000 already exists on the board
    hint: nothing changed; `jobboard show 00000001-0000-0000-0000-000000000000` shows the existing job
    ");
}

#[test]
fn job_outside_the_trash_is_not_found() {
    let env = Env::new();
    env.post("resize");
    env.fails(3, "restore @1");
}

#[test]
fn filter_restores_many_jobs() {
    let env = Env::new();
    env.post_many(7);
    for job in 1..=7 {
        env.trash(&format!("@{job}"));
    }
    let run = env.run("restore --filter name=job-* --yes -o table");
    assert_eq!(env.names().len(), 7);
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    restored 00000001 job-0
    restored 00000002 job-1
    restored 00000003 job-2
    restored 00000004 job-3
    restored 00000005 job-4
    restored 00000006 job-5
    restored 00000007 job-6
    --- stderr
      00000001 job-0
      00000002 job-1
      00000003 job-2
      00000004 job-3
      00000005 job-4
      … and 2 more
    ");
}
